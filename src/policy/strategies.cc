// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/policy/strategies.h"

#include <cstddef>

#include "nomad_harvester/policy/machine.h"

namespace nomad_harvester::policy {
namespace {

template <typename T, std::size_t N>
std::string_view Find(const Choice<T> (&choices)[N], T value) {
  for (const Choice<T>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return "";
}

}  // namespace

std::string_view NameOf(SelectorStrategy strategy) { return Find(kSelectorStrategies, strategy); }

std::string_view NameOf(RunStrategy strategy) { return Find(kRunStrategies, strategy); }

std::string_view NameOf(Firmware firmware) { return Find(kFirmwares, firmware); }

std::string_view NameOf(HostSpread spread) { return Find(kHostSpreads, spread); }

}  // namespace nomad_harvester::policy
