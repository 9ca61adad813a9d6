// SPDX-License-Identifier: Apache-2.0
// How long a command waits for a system that does not answer, and what it says meanwhile
// (docs/commands.md, rule L9). Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_SYSTEM_WAITS_H_
#define NOMAD_HARVESTER_CLI_SYSTEM_WAITS_H_

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/scaling/clients.h"

namespace nomad_harvester::cli {

// How long a system may leave requests without any reply. The rest of a read also takes time, and a
// command promises an end within ten seconds.
inline constexpr base::Duration kAnswerLimit = std::chrono::seconds(8);
// How long after that the system is asked again: longer than another system can be silent, so that
// one read asks no system twice.
inline constexpr base::Duration kAskAgainAfter = kAnswerLimit + std::chrono::seconds(2);
// How long a command may print nothing before it says what it waits for.
inline constexpr base::Duration kFirstLineAfter = std::chrono::seconds(2);

// The waits of one command. The transports may outlive it.
class SystemWaits {
 public:
  // `has_printed` says whether the command has shown anything to the user; it is called from other
  // threads. `err` gets the line that says what is waited for. The clock and `err` must outlive
  // the transports.
  SystemWaits(runtime::Clock& clock, std::function<bool()> has_printed, std::ostream& err);

  // Returns transports that give up a system after kAnswerLimit without any reply: the requests
  // then fail, and so do others until kAskAgainAfter, without being sent. The error names the
  // system, its address, what was asked, and what to check, and is not retried. Transports to the
  // same address share the limit. Blocking queries have only their own limit. A request that its
  // caller ends sooner than a reply came before does not count: the system is slow. Of a request
  // that cannot be sent, or is not answered, the error also says where the address comes from.
  http::RawTransports Limit(const http::RawTransports& transports,
                            const config::PluginConfig& config);

 private:
  class System;
  class LimitedTransport;
  struct State;

  std::shared_ptr<http::HttpTransport> LimitOne(const std::shared_ptr<http::HttpTransport>& inner,
                                                const char* name, const std::string& key,
                                                const std::string& base_url);

  const std::shared_ptr<State> state_;
  const std::unique_ptr<runtime::PeriodicTask> timer_;  // last: it uses the state
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_SYSTEM_WAITS_H_
