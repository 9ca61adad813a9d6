// SPDX-License-Identifier: Apache-2.0
// Sends one request to Nomad and reads its reply; shared by the methods of the client.
#ifndef NOMAD_HARVESTER_SRC_NOMAD_CALLER_H_
#define NOMAD_HARVESTER_SRC_NOMAD_CALLER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::nomad {

// "/v1/node/" + an escaped ID. INVALID_ARGUMENT for an ID that would change the path: an empty one
// gives the path of the list, dots lead to a parent.
absl::StatusOr<std::string> PathOf(std::string_view prefix, std::string_view id,
                                   std::string_view suffix = "");

// A path and its query. Region and namespace come first.
class Target {
 public:
  Target(std::string path, const NomadClient::Options& options, std::string_view ns);
  Target(std::string path, const NomadClient::Options& options)
      : Target(std::move(path), options, options.ns) {}

  // Escapes the value.
  Target& Add(std::string_view key, std::string_view value);
  // The query parameters of a consistency mode and of a blocking query.
  Target& Add(const ReadOptions& options);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool has_query_ = false;
};

// Both index and wait are needed to block (hashicorp/nomad:nomad/rpc.go, blockingRPC).
bool IsBlocking(const ReadOptions& options);

struct CallerReply {
  std::string body;
  std::uint64_t index = 0;
  std::string next_token;  // empty: the last page
};

// `purpose` is for errors and logs; `needs` is the ACL rule that the error of a 403 names.
struct CallerText {
  std::string purpose;
  std::string_view needs;
};

class Caller {
 public:
  Caller(http::HttpTransport& transport, const runtime::Context& context)
      : transport_(transport), context_(context) {}

  absl::StatusOr<CallerReply> Get(const Target& target, const CallerText& text,
                                  base::Duration wait = {}) const;
  absl::Status Post(const Target& target, const CallerText& text, std::string body,
                    http::Idempotency idempotency) const;

 private:
  http::HttpTransport& transport_;
  const runtime::Context& context_;
};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_SRC_NOMAD_CALLER_H_
