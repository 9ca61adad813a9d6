// SPDX-License-Identifier: Apache-2.0
// Nomad's lists of nodes and allocations.
#include "decode.h"
#include "fuzz/lists.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace nomad = nomad_harvester::nomad;
  namespace fuzz = nomad_harvester::fuzz;
  const std::string_view input = fuzz::Text(data, size);
  fuzz::CheckList<nomad::Node>(input, "", {}, nomad::NodeStubFields(), &nomad::FinishNode,
                               [](const nomad::Node& a, const nomad::Node& b) {
                                 return a.id == b.id && a.name == b.name && a.status == b.status &&
                                        !a.id.empty();
                               });
  fuzz::CheckList<nomad::AllocationRecord>(
      input, "", {}, nomad::AllocationFields(), &nomad::FinishAllocation,
      [](const nomad::AllocationRecord& a, const nomad::AllocationRecord& b) {
        return a.id == b.id && a.node_id == b.node_id && !a.id.empty();
      });
  return 0;
}
