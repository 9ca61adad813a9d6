// SPDX-License-Identifier: Apache-2.0
// Prints the progress of "scale". Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_PROGRESS_H_
#define NOMAD_HARVESTER_CLI_PROGRESS_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/clock.h"

#include "command.h"

namespace nomad_harvester::cli {

// Prints lines with the elapsed time: those of Say, and of the engine's log the trouble, to
// `run.err`, and the wait for a Lease. Does not repeat warnings about the settings, which the
// command has already shown. `run` and its streams must outlive it. Thread-safe.
class Progress final : public log::Sink {
 public:
  explicit Progress(const CommandRun& run);

  void Write(const log::Record& record) override;
  void Say(const std::string& line) { Print(run_.out, line); }
  // Returns the time since construction: "1m5s".
  std::string Elapsed() const;

 private:
  bool IsAlreadyShown(const log::Record& record) const;
  void Print(std::ostream& to, const std::string& text);

  const CommandRun& run_;
  runtime::Clock& clock_;
  const base::MonoTime began_;
  std::vector<std::string> said_;
  base::Mutex mutex_;  // the streams
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_PROGRESS_H_
