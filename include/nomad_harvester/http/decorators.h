// SPDX-License-Identifier: Apache-2.0
// The decorators of HttpTransport except retry. Their order, outermost first: retry, log and
// metrics, token, transport (see System in retry.h).
#ifndef NOMAD_HARVESTER_HTTP_DECORATORS_H_
#define NOMAD_HARVESTER_HTTP_DECORATORS_H_

#include <memory>
#include <string>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/metrics/sink.h"

namespace nomad_harvester::http {

// Provides a token. Thread-safe; blocks only to read a file.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // Returns the token to send; empty: send none. Reads the file again if it has changed.
  virtual absl::StatusOr<base::Secret> Token() = 0;
  // Reads the token again after the server rejected it.
  virtual void Refresh() = 0;
};
std::shared_ptr<TokenSource> MakeStaticToken(base::Secret token);
// While the file is missing, empty or unreadable, returns the last token that was read, or
// `until_read` if there is none yet. FAILED_PRECONDITION, with the path, if that is empty as well.
std::shared_ptr<TokenSource> MakeFileToken(std::string path, base::Secret until_read = {});
// True if the request was not sent because its token file could not be read.
bool IsTokenUnreadable(const absl::Status& status);

struct TokenHeader {
  std::string name;    // "Authorization" or "X-Nomad-Token"
  std::string prefix;  // "Bearer " or ""
  bool refresh_on_403 = false;
};
// Adds the token. After a 401 (or a 403 with `refresh_on_403`), refreshes it and, if it changed,
// sends the request once more.
std::shared_ptr<HttpTransport> WithToken(std::shared_ptr<HttpTransport> inner,
                                         std::shared_ptr<TokenSource> source, TokenHeader header);

// Logs and measures each request. One line per request: method, target (query values of unknown
// keys REDACTED), purpose, status or error, duration. The level is DEBUG, and TRACE for reads that
// succeed. Headers and bodies are never logged. `sink`, which may be null, is told the duration, by
// method ("watch": a blocking query) and status ("none": there was no reply).
std::shared_ptr<HttpTransport> WithLogAndMetrics(std::shared_ptr<HttpTransport> inner,
                                                 std::string system, const log::Logger& logger,
                                                 std::shared_ptr<metrics::Sink> sink);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_DECORATORS_H_
