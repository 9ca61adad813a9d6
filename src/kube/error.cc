// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/error.h"

#include <cstddef>
#include <string>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/reply_text.h"
#include "nomad_harvester/kube/object.h"

#include "absl/strings/cord.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;

constexpr char kPayloadUrl[] = "nomad-harvester/kube-error";
constexpr std::size_t kMaxMessageBytes = 1000;
// No real error body is longer; a larger one is not parsed.
constexpr std::size_t kMaxBodyBytes = 256UL * 1024;

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string OneLine(std::string_view text) { return http::OneLine(text, kMaxMessageBytes); }

void ReadJson(const Json& body, KubeError& error) {
  error.is_status = base::GetString(body, "kind") == "Status";
  error.message = OneLine(base::GetString(body, "message"));
  error.reason = OneLine(base::GetString(body, "reason"));
  // Rancher's errors have a string `code` instead of a reason; metav1.Status.code is a number.
  if (error.reason.empty()) error.reason = OneLine(base::GetString(body, "code"));
}

// Reads a metav1.Status, Rancher's {"type":"error","status":…,"code":…,"message":…}, an HTML page
// (its title) or plain text (429, proxies). The message is empty if the body has none.
KubeError ReadErrorBody(const http::HttpResponse& response) {
  KubeError error;
  error.http_status = response.status;
  const std::string_view text =
      base::TrimAsciiSpace(std::string_view(response.body).substr(0, kMaxBodyBytes));
  if (text.empty()) return error;
  if (text.front() == '{') {
    const absl::StatusOr<Json> body = base::ParseJson(text, "the error");
    if (body.ok() && body->is_object()) {
      ReadJson(*body, error);
      return error;
    }
  }
  error.message = OneLine(http::TextOfBody(text));
  return error;
}

// Matched as substrings, because the text around them differs between releases. Kubernetes:
// kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go.
// Harvester: harvester/harvester:pkg/util/resourcequota/error.go, "<resource> insufficient
// resources", in later releases with " due to resource quota".
bool IsQuotaRefusal(const KubeError& error) {
  const std::string_view text = error.message;
  if (error.http_status == 403 &&
      (Contains(text, "exceeded quota") || Contains(text, "insufficient quota") ||
       Contains(text, "failed quota") || Contains(text, "status unknown for quota"))) {
    return true;
  }
  return (error.http_status == 500 || error.http_status == 403 || error.http_status == 422) &&
         Contains(text, "insufficient resources");
}

// Non-quota refusals that Harvester's webhook returns as a plain Go error, and therefore as a 500
// (harvester/harvester:pkg/webhook/resources/virtualmachine/{validator,mutator}.go).
bool IsPlainGoRefusal(const KubeError& error) {
  return error.http_status == 500 && (Contains(error.message, "duplicate mac address") ||
                                      (Contains(error.message, "network-attachment-definitions") &&
                                       Contains(error.message, "not found")));
}

// True for the denial of an admission webhook, whatever its status. Kubernetes wraps the webhook's
// message, and some releases put more text before it, so it is matched as a substring
// (kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/
// statuserror.go).
bool IsDenial(const KubeError& error) {
  const std::string_view text = error.message;
  for (const char* const kind : {"admission webhook \"", "ValidatingAdmissionPolicy '"}) {
    const std::size_t begin = text.find(kind);
    if (begin == std::string_view::npos) continue;
    const std::string_view rest = text.substr(begin);
    if (Contains(rest, "\" denied the request") || Contains(rest, " denied request")) return true;
  }
  return false;
}

bool IsOfEndingNamespace(const KubeError& error) {
  return Contains(error.message, "being terminated");
}

// True for a 403 that no right ends.
bool HasAnotherCause(const KubeError& error) {
  return IsDenial(error) || IsOfEndingNamespace(error);
}

// True for a metav1.Status about a missing object. Excludes the text for an unknown path, in case
// the API server answers that with a Status
// (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go,
// NewGenericServerResponse).
bool NamesMissingObject(const KubeError& error) {
  constexpr char kUnknownPath[] = "the server could not find the requested resource";
  return error.is_status && error.reason == "NotFound" && !Contains(error.message, kUnknownPath);
}

enum class Refusal {
  kNo,
  kYes,
  // Only if the body is a metav1.Status: ingresses, firewalls and Rancher send their own 400, 403,
  // 405 and 421, mostly while something restarts.
  kOfKubernetes,
};
struct CodeRow {
  int http_status;
  StatusCode code;
  Refusal refusal;
};
// The meaning of a status unless the reply's text is more specific.
constexpr CodeRow kCodes[] = {
    {400, StatusCode::kInvalidArgument, Refusal::kOfKubernetes},
    {401, StatusCode::kUnauthenticated, Refusal::kNo},  // credentials are rotated
    {403, StatusCode::kPermissionDenied, Refusal::kOfKubernetes},
    {404, StatusCode::kNotFound, Refusal::kNo},
    {405, StatusCode::kUnimplemented, Refusal::kOfKubernetes},
    {408, StatusCode::kUnavailable, Refusal::kNo},  // a proxy gave up waiting
    // The object has changed. Never ABORTED: the agent takes that code as "busy".
    {409, StatusCode::kFailedPrecondition, Refusal::kNo},
    {410, StatusCode::kOutOfRange, Refusal::kOfKubernetes},
    // The limit belongs to the server that replies, whether API server or ingress.
    {413, StatusCode::kResourceExhausted, Refusal::kYes},
    {415, StatusCode::kUnimplemented, Refusal::kOfKubernetes},
    {422, StatusCode::kInvalidArgument, Refusal::kOfKubernetes},
    {429, StatusCode::kUnavailable, Refusal::kNo},  // the server wants a later attempt
    {500, StatusCode::kInternal, Refusal::kNo},
    {501, StatusCode::kUnimplemented, Refusal::kNo},
};

CodeRow RowOf(int http_status) {
  for (const CodeRow& row : kCodes) {
    if (row.http_status == http_status) return row;
  }
  // Mostly 502, 503 and 504.
  if (http_status >= 500) return {http_status, StatusCode::kUnavailable, Refusal::kNo};
  if (http_status >= 400) {
    return {http_status, StatusCode::kFailedPrecondition, Refusal::kOfKubernetes};
  }
  // Redirects are never followed: the base URL is wrong. Anything below is unexpected here.
  const bool redirect = http_status >= 300;
  return {http_status, redirect ? StatusCode::kFailedPrecondition : StatusCode::kInternal,
          Refusal::kNo};
}

// The reason in the payload of WithoutEffect; no server sends it.
constexpr char kWithoutEffect[] = "WithoutEffect";

bool Refuses(const KubeError& error) {
  // A webhook that could not be called has decided nothing, even if another webhook reports that in
  // its own denial (kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/util/webhook/error.go).
  if (Contains(error.message, "failed calling webhook")) return false;
  if (IsDenial(error) || IsQuotaRefusal(error) || IsPlainGoRefusal(error)) return true;
  if (error.reason == kWithoutEffect) return true;
  if (error.http_status == 404) return error.creating && NamesMissingObject(error);
  const Refusal refusal = RowOf(error.http_status).refusal;
  return refusal == Refusal::kYes || (refusal == Refusal::kOfKubernetes && error.is_status);
}

StatusCode CodeOf(const KubeError& error) {
  if (IsQuotaRefusal(error)) return StatusCode::kResourceExhausted;
  if (IsPlainGoRefusal(error)) return StatusCode::kFailedPrecondition;
  if (error.http_status == 409 && error.reason == "AlreadyExists") {
    return StatusCode::kAlreadyExists;
  }
  // kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go,
  // NewServerTimeout.
  if (error.http_status == 500 && error.reason == "ServerTimeout") return StatusCode::kUnavailable;
  return RowOf(error.http_status).code;
}

// Says what an operator can do about an answer that repeating does not change; empty: the answer
// says it.
std::string CureOf(const KubeError& error) {
  if (error.http_status == 401) {
    return "the credential is unknown to it, or has expired: check auth_token, auth_token_file, "
           "HARVESTER_TOKEN or the kubeconfig; through Rancher it must be a Rancher API key";
  }
  if (error.http_status == 403 && error.is_status && !IsQuotaRefusal(error) &&
      !HasAnotherCause(error)) {
    return "grant it as in examples/rbac.yaml";
  }
  constexpr char kKey[] = "harvester_url";
  if (error.http_status >= 500) return "";
  const std::string hint = http::AddressHint(error.message, "Harvester", kKey);
  const bool unknown_path = error.http_status == 404 && !error.is_status;
  return hint.empty() && unknown_path ? http::NotTheApi("Harvester", kKey) : hint;
}

std::string Text(const http::HttpResponse& response, const KubeError& error) {
  const std::string said = http::IsRedirection(response)
                               ? http::RedirectionText(response, "harvester_url")
                               : error.message;
  std::string number = "HTTP " + std::to_string(error.http_status);
  if (!error.reason.empty()) number += " " + error.reason;
  std::string text = said.empty() ? number : said + " (" + number + ")";
  if (const std::string cure = CureOf(error); !cure.empty()) text += "; " + cure;
  return text;
}

}  // namespace

absl::Status ToStatus(const http::HttpResponse& response, std::string_view purpose,
                      http::Method method) {
  const KubeError error = ReadErrorBody(response);
  absl::Status status =
      base::MakeStatus(CodeOf(error), std::string(purpose) + ": " + Text(response, error));
  const Json payload = {{"status", error.http_status},
                        {"reason", error.reason},
                        {"message", error.message},
                        {"is_status", error.is_status},
                        {"creating", method == http::Method::kPost}};
  base::SetPayload(kPayloadUrl, base::DumpJson(payload), &status);
  return status;
}

absl::Status WithoutEffect(const std::string& purpose) {
  absl::Status status = base::FailedPrecondition(
      purpose +
      "accepted without effect: nothing has changed; look for a webhook or a program that undoes "
      "or ignores the write");
  base::SetPayload(kPayloadUrl, base::DumpJson({{"status", 200}, {"reason", kWithoutEffect}}),
                   &status);
  return status;
}

std::optional<KubeError> GetKubeError(const absl::Status& status) {
  if (http::IsAnsweredByPage(status)) return KubeError{200, "", "", false, false};
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return std::nullopt;
  const absl::StatusOr<Json> json = base::ParseJson(std::string(*payload), "the payload");
  if (!json.ok()) return std::nullopt;
  return KubeError{static_cast<int>(base::GetInt(*json, "status")),
                   base::GetString(*json, "reason"), base::GetString(*json, "message"),
                   base::GetBool(*json, "is_status"), base::GetBool(*json, "creating")};
}

bool IsNotFound(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return false;
  const std::optional<KubeError> error = GetKubeError(status);
  // A webhook may deny a request with any status and reason, so that says nothing about the object.
  return error && NamesMissingObject(*error) && !IsDenial(*error);
}

// Only server responses have this code, never transport errors.
bool IsAlreadyExists(const absl::Status& status) { return absl::IsAlreadyExists(status); }
bool IsForbidden(const absl::Status& status) { return absl::IsPermissionDenied(status); }

// This code has other sources as well, so the payload is checked.
bool IsConflict(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return false;
  const std::optional<KubeError> error = GetKubeError(status);
  return error && error->http_status == 409 && !IsDenial(*error);
}

bool IsRefused(const absl::Status& status) {
  const std::optional<KubeError> error = GetKubeError(status);
  return error && Refuses(*error);
}

bool IsOfEndingNamespace(const absl::Status& status) {
  const std::optional<KubeError> error = GetKubeError(status);
  return error && IsOfEndingNamespace(*error);
}

bool MayLackRight(const absl::Status& status) {
  const std::optional<KubeError> error = GetKubeError(status);
  return IsForbidden(status) && !(error.has_value() && HasAnotherCause(*error));
}

bool IsPermanentRefusal(const http::HttpResponse& response) {
  return Refuses(ReadErrorBody(response));
}

}  // namespace nomad_harvester::kube
