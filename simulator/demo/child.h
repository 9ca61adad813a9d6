// SPDX-License-Identifier: Apache-2.0
// The plugin's process and its output.
#ifndef NOMAD_HARVESTER_SIMULATOR_DEMO_CHILD_H_
#define NOMAD_HARVESTER_SIMULATOR_DEMO_CHILD_H_

#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

#include "nomad_harvester/base/mutex.h"

#include "absl/status/status.h"

namespace nomad_harvester::demo {

class Child {
 public:
  Child() = default;
  // Ends the process if it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // `environment` holds "NAME=value" and is the child's whole environment.
  absl::Status Start(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment);
  // Sends SIGTERM, then SIGKILL if the process still runs after a while; blocks until it has ended.
  // Returns the status from waitpid; -1: it never ran. Idempotent.
  int End();
  // Every line of its standard output and error since the last call.
  std::vector<std::string> TakeLines();

 private:
  void ReadLines();

  pid_t pid_ = -1;
  int wait_status_ = -1;
  int read_fd_ = -1;
  std::thread reader_;
  base::Mutex mutex_;
  std::vector<std::string> lines_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::demo

#endif  // NOMAD_HARVESTER_SIMULATOR_DEMO_CHILD_H_
