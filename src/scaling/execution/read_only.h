// SPDX-License-Identifier: Apache-2.0
// A write permit that always refuses: read-only commands cannot write, even with a bug above this
// layer.
#ifndef NOMAD_HARVESTER_SCALING_READ_ONLY_H_
#define NOMAD_HARVESTER_SCALING_READ_ONLY_H_

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/context.h"

namespace nomad_harvester::scaling {

class ReadOnly final : public runtime::WritePermit {
 public:
  absl::Status Check() const override {
    return base::FailedPrecondition("a dry run does not write");
  }
  base::Duration AttemptLimit() const override { return base::Duration::max(); }
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_READ_ONLY_H_
