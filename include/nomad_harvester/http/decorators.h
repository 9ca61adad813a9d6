// SPDX-License-Identifier: Apache-2.0
// Decorators of HttpTransport besides retry. The order, outermost first: retry, concurrency limit,
// logging, token, transport (scaling/clients.h stacks them).
#ifndef NOMAD_HARVESTER_HTTP_DECORATORS_H_
#define NOMAD_HARVESTER_HTTP_DECORATORS_H_

#include <cstddef>
#include <memory>
#include <string>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/log/logger.h"

namespace nomad_harvester::http {

// Where a token comes from. Thread-safe; reads a file at most.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // The token to send; empty: send none. Re-reads its file when the file has changed.
  virtual absl::StatusOr<base::Secret> Token() = 0;
  // The server refused the last token: true if reading anew brought another one.
  virtual bool Refresh() = 0;
};
std::shared_ptr<TokenSource> MakeStaticToken(base::Secret token);
// Keeps the last token that could be read while the file is missing or empty; an error
// (FAILED_PRECONDITION, names the path) only if there has been none yet.
std::shared_ptr<TokenSource> MakeFileToken(std::string path);

struct TokenHeader {
  std::string name;    // "Authorization" or "X-Nomad-Token"
  std::string prefix;  // "Bearer " or ""
  bool refresh_on_403 = false;
};
// Adds the token; after a 401 (or 403 if so configured) refreshes it and, if it changed, sends the
// request once more.
std::shared_ptr<HttpTransport> WithToken(std::shared_ptr<HttpTransport> inner,
                                         std::shared_ptr<TokenSource> source, TokenHeader header);

// At most `limit` requests of this decorator in flight; others wait as long as their context
// allows.
std::shared_ptr<HttpTransport> WithConcurrencyLimit(std::shared_ptr<HttpTransport> inner,
                                                    std::size_t limit);

// One DEBUG line a request: method, target (query values of unknown keys REDACTED), purpose, status
// or error, duration. Headers and bodies are never logged.
std::shared_ptr<HttpTransport> WithLogging(std::shared_ptr<HttpTransport> inner, std::string system,
                                           log::Logger logger);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_DECORATORS_H_
