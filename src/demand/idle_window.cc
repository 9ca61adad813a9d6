// SPDX-License-Identifier: Apache-2.0
#include "idle_window.h"

namespace nomad_harvester::demand {

std::int64_t IdleWindow::Add(base::MonoTime now, base::Duration idle_for, std::int64_t count) {
  while (!steps_.empty() && steps_.back().count <= count) steps_.pop_back();
  steps_.push_back({now, count});
  while (now - steps_.front().at > idle_for) steps_.pop_front();
  return steps_.front().count;
}

}  // namespace nomad_harvester::demand
