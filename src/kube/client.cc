// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/client.h"

#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/reply_text.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/kube/observed.h"

#include "nlohmann/json.hpp"
#include "paths.h"

namespace nomad_harvester::kube {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kMetadataOrJson[] =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
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

bool IsOfSecrets(const http::HttpRequest& request) {
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  return path.ends_with("/secrets") || path.find("/secrets/") != std::string_view::npos;
}

// A webhook may quote the object it denies. Removes quotations of the Secret's base64 data from the
// reply; a quotation is recognised by the first characters of a value.
void DropQuotedData(const std::string& sent, std::string* reply) {
  constexpr std::size_t kRecognised = 24;
  constexpr std::string_view kBase64 =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  const auto body = base::ParseJson(sent, "the request");
  const Json* const data = body.ok() ? base::FindMember(*body, "data") : nullptr;
  if (data == nullptr || !data->is_object()) return;
  for (const Json& value : *data) {
    if (!value.is_string()) continue;
    const std::string begin = value.get<std::string>().substr(0, kRecognised);
    if (begin.size() < kRecognised) continue;
    for (std::size_t at = reply->find(begin); at != std::string::npos;
         at = reply->find(begin, at)) {
      const std::size_t end = reply->find_first_not_of(kBase64, at);
      reply->replace(at, end == std::string::npos ? end : end - at, "(data)");
    }
  }
}

// Returns a 2xx reply, the transport's error, or ToStatus of any other reply. `list`, if not null,
// receives the body.
absl::StatusOr<http::HttpResponse> Exchange(http::HttpTransport& transport,
                                            const runtime::Context& context,
                                            http::HttpRequest request,
                                            base::JsonListReader* list = nullptr) {
  if (!request.headers.Find("Accept").has_value()) request.headers.Set("Accept", kJson);
  absl::StatusOr<http::HttpResponse> response =
      list == nullptr ? transport.Send(context, request)
                      : http::SendReading(transport, context, request, *list, "harvester_url");
  if (!response.ok() || response->is_success()) return response;
  if (IsOfSecrets(request)) DropQuotedData(request.body, &response->body);
  return ToStatus(*response, request.purpose, request.method);
}

absl::StatusOr<Observed> ExchangeObject(http::HttpTransport& transport,
                                        const runtime::Context& context,
                                        http::HttpRequest request) {
  const std::string purpose = request.purpose;
  const bool is_read = request.method == http::Method::kGet;
  NH_ASSIGN_OR_RETURN(const http::HttpResponse response,
                      Exchange(transport, context, std::move(request)));
  absl::StatusOr<Json> object = base::ParseJson(response.body, "the reply");
  if (object.ok() && object->is_object()) {
    return Observed{*std::move(object), http::ServerDate(response)};
  }
  const absl::Status why =
      object.ok() ? base::Internal("the reply is not a JSON object") : object.status();
  const absl::Status status = http::Undecodable(purpose, response, why, "harvester_url");
  // It is unknown whether a write took effect. Its error loses the payload, so that nothing else is
  // concluded from the reply.
  return is_read ? status : base::Internal(base::Message(status));
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

// The members of a list beside its items. list.beside(i) has the value of path i.
const std::vector<std::string>& BesideItems() {
  static const auto* const kPaths =
      new std::vector<std::string>{"metadata.continue", "metadata.resourceVersion", "kind"};
  return *kPaths;
}

// Neither another object without items nor a page must pass for a whole list (rule S1). The API
// server makes pages only of a request with a limit, and the plugin sends none.
absl::Status CheckIsList(const base::JsonListReader& list, const ResourceType& type, Part part,
                         const std::string& purpose) {
  const std::string wanted = std::string(type.kind) + "List";
  const std::string& version = list.beside(1);
  const std::string& kind = list.beside(2);
  const bool is_kind =
      kind == wanted || (part == Part::kMetadata && kind == "PartialObjectMetadataList");
  std::string what;
  if (!is_kind) {
    what = kind.empty() ? "has no kind, but should be a " + wanted
                        : "is a \"" + kind + "\", not a " + wanted;
  } else if (version.empty()) {
    what = "is a " + kind + " without metadata.resourceVersion";
  } else if (!list.beside(0).empty()) {
    what = "is only a page of the list";
  } else {
    return absl::OkStatus();
  }
  return base::Internal(purpose + ": the reply " + what +
                        "; check that harvester_url is the address of the API, and that no proxy "
                        "changes its replies");
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

absl::StatusOr<std::optional<base::WallTime>> KubeClient::ReadList(
    const runtime::Context& context, const ResourceType& type, const std::string& ns,
    const Selector& selector, Part part, const std::vector<std::string>& paths,
    base::JsonElements& elements) const {
  NH_ASSIGN_OR_RETURN(const std::string path, CollectionPath(type, ns));
  const std::string purpose = "list " + DescribeCollection(type, ns);
  const std::string query =
      base::QueryString({{"labelSelector", selector.labels}, {"fieldSelector", selector.fields}});
  http::HttpRequest request = Request(http::Method::kGet, path + query, purpose);
  if (part == Part::kMetadata) request.headers.Set("Accept", kMetadataOrJson);
  base::JsonListReader reader("items", paths, elements, BesideItems());
  NH_ASSIGN_OR_RETURN(const http::HttpResponse response,
                      Exchange(*transport_, context, std::move(request), &reader));
  NH_RETURN_IF_ERROR(CheckIsList(reader, type, part, purpose));
  return http::ServerDate(response);
}

absl::StatusOr<Observed> KubeClient::Create(const runtime::Context& context,
                                            const ResourceType& type, const std::string& ns,
                                            const Json& object, bool dry_run) const {
  NH_ASSIGN_OR_RETURN(const std::string path, CollectionPath(type, ns));
  const std::string name = NameOf(object);
  const std::string purpose = (dry_run ? "dry-run create " : "create ") + Describe(type, ns, name);
  if (name.empty()) {
    return base::InvalidArgument(purpose + ": refused without a name: the request, if repeated, " +
                                 "would make a second object");
  }
  const std::string query =
      base::QueryString({{"fieldValidation", "Strict"}, {"dryRun", dry_run ? "All" : ""}});
  http::HttpRequest request = Request(http::Method::kPost, path + query, purpose);
  SetBody(request, object, kJson);
  request.effect = dry_run ? http::Effect::kRead : http::Effect::kWrite;
  request.late_is_harmless = type.late_is_harmless;
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
  request.late_is_harmless = type.late_is_harmless;
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

absl::StatusOr<Observed> KubeClient::ServerVersion(const runtime::Context& context) const {
  return ExchangeObject(
      *transport_, context,
      Request(http::Method::kGet, "/version", "get the version of the API server"));
}

absl::StatusOr<Json> KubeClient::CreateReview(const runtime::Context& context,
                                              const std::string& path, const Json& review) const {
  http::HttpRequest request = Request(http::Method::kPost, path,
                                      "ask " + base::GetString(review, "kind", "the API server"));
  SetBody(request, review, kJson);
  NH_ASSIGN_OR_RETURN(Observed answer, ExchangeObject(*transport_, context, std::move(request)));
  return std::move(answer.object);
}

std::string NameOf(const Json& object) { return base::TextAt(object, {"metadata", "name"}); }

std::string ResourceVersionOf(const Json& object) {
  return base::TextAt(object, {"metadata", "resourceVersion"});
}

}  // namespace nomad_harvester::kube
