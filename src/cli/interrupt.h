// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM end a command gracefully: waiting requests end, and Leases are released.
// Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_INTERRUPT_H_
#define NOMAD_HARVESTER_CLI_INTERRUPT_H_

#include <thread>

#include "nomad_harvester/runtime/context.h"

namespace nomad_harvester::cli {

// Blocks both signals in the calling thread and in those that it starts afterwards: create it
// before any other thread. They stay blocked.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The first signal from now on cancels `work`, which must outlive this object. Call once.
  void Cancels(const runtime::CancelSource& work);

 private:
  int signals_ = -1;  // a signalfd
  int end_ = -1;      // an eventfd: ends the watcher
  std::thread watcher_;
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_INTERRUPT_H_
