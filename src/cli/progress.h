// SPDX-License-Identifier: Apache-2.0
// What "scale" prints while it acts. Private to module cli.
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

// Made from the engine's log with its debug lines: a line for each thing that is done or waited
// for, and to `run.err` for each that is in trouble, with the time since it was made. Warnings of
// the settings, which the command has told, are not repeated. While it exists it also shows that
// the command is at work: on a terminal in a last line that is written again every second,
// elsewhere in a line for each minute without another one. `run` and its streams outlive it.
class Progress final : public log::Sink {
 public:
  // `expected`: the VMs that are to be made, removed or kept.
  Progress(const CommandRun& run, std::size_t expected);

  void Write(const log::Record& record) override;

  // Nothing is at work any more: removes the last line.
  void End();
  // Since it was made: "1m5s".
  std::string Elapsed() const;

 private:
  std::string TimeColumn() const;
  bool IsSaid(const log::Record& record) const;
  // Counts what the record says of a VM; " (2 of 5)" if it is done with the VM.
  std::string Count(const log::Record& record, const std::string& vm) NH_REQUIRES(mutex_);
  void Print(std::ostream& to, const std::string& text) NH_REQUIRES(mutex_);
  void Beat();

  const CommandRun& run_;
  runtime::Clock& clock_;
  const base::MonoTime began_;
  const std::size_t expected_;
  std::vector<std::string> said_;

  base::Mutex mutex_;
  std::size_t done_ NH_GUARDED_BY(mutex_) = 0;
  std::set<std::string> at_work_ NH_GUARDED_BY(mutex_);  // VMs
  base::MonoTime last_line_ NH_GUARDED_BY(mutex_);
  bool has_beat_ NH_GUARDED_BY(mutex_) = false;  // the terminal's last line is one
  std::unique_ptr<runtime::PeriodicTask> beats_;
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_PROGRESS_H_
