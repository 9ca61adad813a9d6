// SPDX-License-Identifier: Apache-2.0
// Prints the progress of "scale". Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_PROGRESS_H_
#define NOMAD_HARVESTER_CLI_PROGRESS_H_

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/clock.h"

#include "command.h"
#include "terminal.h"

namespace nomad_harvester::cli {

// Converts the engine's log, including debug lines: one line for each thing done or awaited, and
// one to `run.err` for each problem, with the elapsed time. Does not repeat warnings about the
// settings, which the command has already shown. While it exists it also shows that the command is
// running: on a terminal in a last line that is rewritten every second, elsewhere in one line per
// minute without other output. `run` and its streams must outlive it.
class Progress final : public log::Sink {
 public:
  // `expected`: the number of VMs to be made, removed or kept.
  Progress(const CommandRun& run, std::size_t expected);

  void Write(const log::Record& record) override;

  // The work has ended: removes the last line.
  void End();
  // Returns the time since construction: "1m5s".
  std::string Elapsed() const;

 private:
  std::string TimeColumn() const;
  bool IsAlreadyShown(const log::Record& record) const;
  // Counts what the record says about a VM; returns " (2 of 5)" if the VM is done.
  std::string Count(const log::Record& record, const std::string& vm) NH_REQUIRES(mutex_);
  std::string DoneOfExpected() const NH_REQUIRES(mutex_);  // "2 of 5"
  void Print(std::ostream& to, const std::string& text) NH_REQUIRES(mutex_);
  void Heartbeat();

  const CommandRun& run_;
  runtime::Clock& clock_;
  const base::MonoTime began_;
  const std::size_t expected_;
  std::vector<std::string> said_;

  base::Mutex mutex_;
  std::set<std::string> done_ NH_GUARDED_BY(mutex_);     // VMs
  std::set<std::string> at_work_ NH_GUARDED_BY(mutex_);  // VMs
  base::MonoTime last_line_ NH_GUARDED_BY(mutex_);
  bool has_beat_ NH_GUARDED_BY(mutex_) = false;  // it is the terminal's last line
  std::unique_ptr<runtime::PeriodicTask> beats_;
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_PROGRESS_H_
