// SPDX-License-Identifier: Apache-2.0
#include "reflection.h"

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "host_services.h"
#include "proto/reflection.pb.h"

namespace nomad_harvester::plugin {
namespace {

using ::google::protobuf::DescriptorPool;
using ::google::protobuf::FileDescriptor;
using ::grpc::reflection::v1alpha::ErrorResponse;
using ::grpc::reflection::v1alpha::FileDescriptorResponse;
using ::grpc::reflection::v1alpha::ListServiceResponse;
using ::grpc::reflection::v1alpha::ServerReflectionRequest;
using ::grpc::reflection::v1alpha::ServerReflectionResponse;

void ListServices(const Methods& methods, ListServiceResponse* response) {
  std::set<std::string> services;
  for (const auto& [method, handler] : methods) {
    services.insert(method.substr(1, method.rfind('/') - 1));
  }
  for (const std::string& service : services) response->add_service()->set_name(service);
}

// The file and all that it imports, as clients expect that cannot look further.
void AddFile(const FileDescriptor& file, std::set<const FileDescriptor*>* added,
             FileDescriptorResponse* response) {
  if (!added->insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), added, response);
}

void Describe(const FileDescriptor* file, ServerReflectionResponse* response) {
  if (file == nullptr) {
    ErrorResponse* const error = response->mutable_error_response();
    error->set_error_code(grpc::StatusCode::NOT_FOUND);
    error->set_error_message("there is no such file or symbol");
    return;
  }
  std::set<const FileDescriptor*> added;
  AddFile(*file, &added, response->mutable_file_descriptor_response());
}

std::string Answer(const Methods& methods, const std::string& message) {
  ServerReflectionResponse response;
  ServerReflectionRequest& request = *response.mutable_original_request();
  request.ParseFromString(message);
  response.set_valid_host(request.host());
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      Describe(pool.FindFileByName(request.file_by_filename()), &response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      Describe(pool.FindFileContainingSymbol(request.file_containing_symbol()), &response);
      break;
    case ServerReflectionRequest::kListServices:
      ListServices(methods, response.mutable_list_services_response());
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(grpc::StatusCode::UNIMPLEMENTED);
      response.mutable_error_response()->set_error_message("unknown kind of request");
  }
  return response.SerializeAsString();
}

void AnswerAll(const std::shared_ptr<Rpc>& rpc, const Methods& methods) {
  rpc->Read([rpc, &methods](const std::optional<std::string>& message) {
    if (message.has_value()) {
      rpc->Write(Answer(methods, *message), [rpc, &methods] { AnswerAll(rpc, methods); });
    } else {
      rpc->Finish(grpc::Status::OK);
    }
  });
}

}  // namespace

void AddReflection(CallRegistry& streams, Methods* methods) {
  (*methods)["/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"] =
      [&streams, methods](const std::shared_ptr<Rpc>& rpc) {
        if (HoldOpen(rpc, streams)) AnswerAll(rpc, *methods);
      };
}

}  // namespace nomad_harvester::plugin
