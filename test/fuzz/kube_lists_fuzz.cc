// SPDX-License-Identifier: Apache-2.0
// Harvester's lists of VMs, their instances and quotas.
#include "fuzz/lists.h"
#include "object_fields.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace harvester = nomad_harvester::harvester;
  namespace fuzz = nomad_harvester::fuzz;
  const std::string_view input = fuzz::Text(data, size);
  const std::vector<std::string> beside = {"metadata.continue", "metadata.resourceVersion", "kind"};
  fuzz::CheckList<harvester::VirtualMachine>(
      input, "items", beside, harvester::VirtualMachineFields(), nullptr,
      [](const harvester::VirtualMachine& a, const harvester::VirtualMachine& b) {
        return a.name == b.name && a.uid == b.uid;
      });
  fuzz::CheckList<harvester::ResourceQuotaRecord>(
      input, "items", beside, harvester::ResourceQuotaFields(), nullptr,
      [](const harvester::ResourceQuotaRecord& a, const harvester::ResourceQuotaRecord& b) {
        return a.hard == b.hard && a.used == b.used && a.scoped == b.scoped;
      });
  return 0;
}
