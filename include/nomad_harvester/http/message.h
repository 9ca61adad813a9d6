// SPDX-License-Identifier: Apache-2.0
// HTTP requests and responses as plain data.
#ifndef NOMAD_HARVESTER_HTTP_MESSAGE_H_
#define NOMAD_HARVESTER_HTTP_MESSAGE_H_

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/time.h"

namespace nomad_harvester::base {
class JsonListReader;
}  // namespace nomad_harvester::base

namespace nomad_harvester::http {

enum class Method { kGet, kPost, kPut, kPatch, kDelete };
std::string_view MethodName(Method method);

// Header fields in order; names are case-insensitive.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}
  void Add(std::string_view name, std::string_view value);
  // Replaces every field of that name.
  void Set(std::string_view name, std::string_view value);
  std::optional<std::string> Find(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

// Says whether a request may change an object. Only writes check the context's WritePermit. A POST
// without effect (SelfSubjectAccessReview, dryRun=All) is a read.
enum class Effect { kRead, kWrite };

// Says whether a request may be repeated after an attempt with unknown outcome. Each call site
// decides this; it does not follow from the method.
enum class Idempotency { kIdempotent, kOnce };

struct HttpRequest {
  Method method = Method::kGet;
  // Path and query, already escaped, appended to the transport's base URL: "/v1/nodes?stale".
  std::string target;
  Headers headers;
  std::string body;
  Effect effect = Effect::kRead;
  Idempotency idempotency = Idempotency::kIdempotent;
  // For a write that does no harm if it takes effect after its caller has stopped waiting: permits
  // are not told about it (runtime::PendingWrite).
  bool late_is_harmless = false;
  // A server-side wait (blocking query) for which the attempt's time limit must leave room.
  base::Duration server_wait{};
  // The purpose, for errors and logs: "list VirtualMachines". Never a secret.
  std::string purpose;
  // If it is set, a transport may pass the body of a 2xx reply to it, piece by piece, instead of
  // returning the body. Not every transport does; SendReading handles both. Must outlive the
  // request.
  base::JsonListReader* list = nullptr;
};

struct HttpResponse {
  int status = 0;
  Headers headers;
  std::string body;  // decoded (gzip), at most the transport's cap; empty if a list took it

  bool is_success() const { return status >= 200 && status <= 299; }
};

// The server's time: the Date header of the reply, if valid.
std::optional<base::WallTime> ServerDate(const HttpResponse& response);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_MESSAGE_H_
