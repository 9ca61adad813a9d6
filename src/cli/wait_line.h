// SPDX-License-Identifier: Apache-2.0
// What a command waits for, on the terminal. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_WAIT_LINE_H_
#define NOMAD_HARVESTER_CLI_WAIT_LINE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/log/logger.h"

#include "terminal.h"

namespace nomad_harvester::cli {

// The requests that have no reply yet. Thread-safe.
class OpenRequests {
 public:
  using Id = std::uint64_t;

  // `where`: "Nomad at http://10.0.0.1:4646".
  Id Begin(std::string where, base::MonoTime now);
  void End(Id id);
  // "waiting for Nomad at http://10.0.0.1:4646 (3s)", for the oldest one; empty if none takes
  // longer than a second.
  std::string Line(base::MonoTime now) const;

 private:
  struct Request {
    std::string where;
    base::MonoTime begin;
  };
  mutable base::Mutex mutex_;
  std::map<Id, Request> open_ NH_GUARDED_BY(mutex_);
  Id next_ NH_GUARDED_BY(mutex_) = 0;
};

// Tells `requests` of each request, except for blocking queries, which wait for something else.
// Both outlive the transport.
std::shared_ptr<http::HttpTransport> WithOpenRequests(std::shared_ptr<http::HttpTransport> inner,
                                                      std::string where, OpenRequests& requests);

// Shows the line of its requests on the standard error, and erases it before anything else is
// written there or to std::cout. Does nothing, and starts no thread, unless the terminal redraws.
// Thread-safe; one at a time.
class WaitLine {
 public:
  explicit WaitLine(const Terminal& terminal);
  ~WaitLine();
  WaitLine(const WaitLine&) = delete;
  WaitLine& operator=(const WaitLine&) = delete;

  OpenRequests& requests() { return requests_; }
  // `inner`, before whose records the line is erased. Must not be used after this object.
  std::shared_ptr<log::Sink> Around(std::shared_ptr<log::Sink> inner);

 private:
  class Screen;

  OpenRequests requests_;
  const std::unique_ptr<Screen> screen_;  // null: shows nothing
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_WAIT_LINE_H_
