// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM end a command's work in good order: requests that wait end, Leases are given
// up. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_INTERRUPT_H_
#define NOMAD_HARVESTER_CLI_INTERRUPT_H_

#include <thread>

#include "nomad_harvester/runtime/context.h"

namespace nomad_harvester::cli {

// Blocks both signals in the calling thread, and so in those that it starts afterwards: to be made
// before any other thread. They stay blocked.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // From now on the first of them cancels `work`, which must outlive this object. Once.
  void Cancels(const runtime::CancelSource& work);

 private:
  int signals_ = -1;  // a signalfd
  int end_ = -1;      // an eventfd: the watcher is not needed any more
  std::thread watcher_;
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_INTERRUPT_H_
