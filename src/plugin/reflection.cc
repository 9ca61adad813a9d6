// SPDX-License-Identifier: Apache-2.0
#include "reflection.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "host_services.h"
#include "proto/descriptor_set.h"
#include "proto/descriptors.pb.h"
#include "proto/reflection.pb.h"

namespace nomad_harvester::plugin {
namespace {

using ::grpc::reflection::v1alpha::ErrorResponse;
using ::grpc::reflection::v1alpha::FileDescriptorResponse;
using ::grpc::reflection::v1alpha::ListServiceResponse;
using ::grpc::reflection::v1alpha::ServerReflectionRequest;
using ::grpc::reflection::v1alpha::ServerReflectionResponse;

// A file of the wire contract, and the names of what it declares.
struct File {
  std::string bytes;  // its descriptor
  std::vector<std::string> imports;
  std::set<std::string> symbols;
};
using Files = std::map<std::string, File>;

void AddSymbols(const std::string& scope, const proto::MessageDescriptor& message,
                std::set<std::string>* symbols) {
  const std::string name = scope + message.name();
  symbols->insert(name);
  for (const auto& nested : message.nested_type()) AddSymbols(name + ".", nested, symbols);
  for (const auto& type : message.enum_type()) symbols->insert(name + "." + type.name());
}

std::set<std::string> SymbolsOf(const proto::FileDescriptor& file) {
  std::set<std::string> symbols;
  const std::string scope = file.package().empty() ? "" : file.package() + ".";
  for (const auto& message : file.message_type()) AddSymbols(scope, message, &symbols);
  for (const auto& type : file.enum_type()) symbols.insert(scope + type.name());
  for (const auto& service : file.service()) {
    symbols.insert(scope + service.name());
    for (const auto& method : service.method()) {
      symbols.insert(scope + service.name() + "." + method.name());
    }
  }
  return symbols;
}

Files ReadFiles() {
  Files files;
  proto::FileDescriptorSet set;
  set.ParseFromString(std::string(proto::FileDescriptorSetBytes()));
  for (const std::string& bytes : set.file()) {
    proto::FileDescriptor file;
    file.ParseFromString(bytes);
    files[file.name()] = {.bytes = bytes,
                          .imports = {file.dependency().begin(), file.dependency().end()},
                          .symbols = SymbolsOf(file)};
  }
  return files;
}

void ListServices(const Methods& methods, ListServiceResponse* response) {
  std::set<std::string> services;
  for (const auto& [method, handler] : methods) {
    services.insert(method.substr(1, method.rfind('/') - 1));
  }
  for (const std::string& service : services) response->add_service()->set_name(service);
}

// The file and all that it imports, as clients expect that cannot look further.
void AddFile(const Files& files, const std::string& name, std::set<std::string>* added,
             FileDescriptorResponse* response) {
  const auto file = files.find(name);
  if (file == files.end() || !added->insert(name).second) return;
  response->add_file_descriptor_proto(file->second.bytes);
  for (const std::string& import : file->second.imports) AddFile(files, import, added, response);
}

void Describe(const Files& files, Files::const_iterator file, ServerReflectionResponse* response) {
  if (file == files.end()) {
    ErrorResponse* const error = response->mutable_error_response();
    error->set_error_code(grpc::StatusCode::NOT_FOUND);
    error->set_error_message("there is no such file or symbol");
    return;
  }
  std::set<std::string> added;
  AddFile(files, file->first, &added, response->mutable_file_descriptor_response());
}

std::string Answer(const Methods& methods, const std::string& message) {
  ServerReflectionResponse response;
  ServerReflectionRequest& request = *response.mutable_original_request();
  request.ParseFromString(message);
  response.set_valid_host(request.host());
  const Files files = ReadFiles();
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      Describe(files, files.find(request.file_by_filename()), &response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      Describe(files,
               std::find_if(files.begin(), files.end(),
                            [&](const auto& file) {
                              return file.second.symbols.contains(request.file_containing_symbol());
                            }),
               &response);
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
