// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/client.h"

#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "decode.h"
#include "exchange.h"
#include "paths.h"

namespace nomad_harvester::kube {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kMergePatch[] = "application/merge-patch+json";

http::HttpRequest Request(http::Method method, std::string target, std::string purpose) {
  http::HttpRequest request;
  request.method = method;
  request.target = std::move(target);
  request.purpose = std::move(purpose);
  return request;
}

void SetBody(http::HttpRequest& request, const Json& body, const char* content_type) {
  request.headers.Set("Content-Type", content_type);
  request.body = base::DumpJson(body);
}

absl::StatusOr<Observed> ExchangeObject(http::HttpTransport& transport,
                                        const runtime::Context& context,
                                        http::HttpRequest request) {
  const std::string purpose = request.purpose;
  NH_ASSIGN_OR_RETURN(const http::HttpResponse response,
                      Exchange(transport, context, std::move(request)));
  return DecodeObject(response, purpose);
}

Json DeleteBody(const DeleteOptions& options) {
  Json preconditions = {{"uid", options.uid}};
  if (!options.resource_version.empty()) {
    preconditions["resourceVersion"] = options.resource_version;
  }
  // Never "Orphan": KubeVirt would leave the guest running
  // (kubevirt/kubevirt:pkg/virt-controller/watch/vm/vm.go).
  const bool foreground = options.propagation == Propagation::kForeground;
  return {{"apiVersion", "v1"},
          {"kind", "DeleteOptions"},
          {"propagationPolicy", foreground ? "Foreground" : "Background"},
          {"preconditions", std::move(preconditions)}};
}

}  // namespace

KubeClient::KubeClient(std::shared_ptr<http::HttpTransport> transport)
    : transport_(std::move(transport)) {}

absl::StatusOr<Observed> KubeClient::Get(const runtime::Context& context, const ResourceType& type,
                                         const std::string& ns, const std::string& name) const {
  NH_ASSIGN_OR_RETURN(std::string path, ObjectPath(type, ns, name));
  return ExchangeObject(
      *transport_, context,
      Request(http::Method::kGet, std::move(path), "get " + Describe(type, ns, name)));
}

absl::StatusOr<Observed> KubeClient::Create(const runtime::Context& context,
                                            const ResourceType& type, const std::string& ns,
                                            const Json& object,
                                            const CreateOptions& options) const {
  NH_ASSIGN_OR_RETURN(const std::string path, CollectionPath(type, ns));
  const std::string name = NameOf(object);
  http::HttpRequest request =
      Request(http::Method::kPost,
              path + QueryString({{"fieldValidation", options.strict ? "Strict" : ""},
                                  {"dryRun", options.dry_run ? "All" : ""}}),
              (options.dry_run ? "dry-run create " : "create ") + Describe(type, ns, name));
  SetBody(request, object, kJson);
  request.effect = options.dry_run ? http::Effect::kRead : http::Effect::kWrite;
  // A second POST of an object that the server names makes a second object.
  request.idempotency =
      name.empty() && !options.dry_run ? http::Idempotency::kOnce : http::Idempotency::kIdempotent;
  return ExchangeObject(*transport_, context, std::move(request));
}

absl::StatusOr<Observed> KubeClient::MergePatch(const runtime::Context& context,
                                                const ResourceType& type, const std::string& ns,
                                                const std::string& name, const Json& patch) const {
  NH_ASSIGN_OR_RETURN(std::string path, ObjectPath(type, ns, name));
  const std::string purpose = "patch " + Describe(type, ns, name);
  const bool conditional = !ResourceVersionOf(patch).empty();
  if (!conditional && base::FindPath(patch, {"metadata", "resourceVersion"}) != nullptr) {
    return base::InvalidArgument(purpose + ": refused with an empty resourceVersion: the patch " +
                                 "would be unconditional");
  }
  http::HttpRequest request = Request(http::Method::kPatch, std::move(path), purpose);
  SetBody(request, patch, kMergePatch);
  request.effect = http::Effect::kWrite;
  request.idempotency = conditional ? http::Idempotency::kIdempotent : http::Idempotency::kOnce;
  return ExchangeObject(*transport_, context, std::move(request));
}

absl::Status KubeClient::Delete(const runtime::Context& context, const ResourceType& type,
                                const std::string& ns, const std::string& name,
                                const DeleteOptions& options) const {
  NH_ASSIGN_OR_RETURN(std::string path, ObjectPath(type, ns, name));
  const std::string purpose = "delete " + Describe(type, ns, name);
  if (options.uid.empty()) {
    return base::InvalidArgument(purpose + ": refused without the object's uid: another object " +
                                 "of that name might be deleted");
  }
  http::HttpRequest request = Request(http::Method::kDelete, std::move(path), purpose);
  SetBody(request, DeleteBody(options), kJson);
  request.effect = http::Effect::kWrite;
  return Exchange(*transport_, context, std::move(request)).status();
}

absl::StatusOr<Json> KubeClient::CreateReview(const runtime::Context& context,
                                              const std::string& path, const Json& review) const {
  http::HttpRequest request = Request(http::Method::kPost, path,
                                      "ask " + base::GetString(review, "kind", "the API server"));
  SetBody(request, review, kJson);
  NH_ASSIGN_OR_RETURN(Observed answer, ExchangeObject(*transport_, context, std::move(request)));
  return std::move(answer.object);
}

}  // namespace nomad_harvester::kube
