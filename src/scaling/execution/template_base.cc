// SPDX-License-Identifier: Apache-2.0
#include "execution/template_base.h"

#include <algorithm>
#include <map>
#include <utility>

#include "nomad_harvester/base/status.h"

#include "absl/strings/str_join.h"

namespace nomad_harvester::scaling {
namespace {

template <typename T>
void Fill(const T& value, T* key) {
  if (*key == T()) *key = value;
}

// Merges both; the policy's entries win.
void Merge(const std::map<std::string, std::string>& base, config::StringMap* values) {
  for (const auto& [key, value] : base) values->try_emplace(key, value);
}

}  // namespace

absl::Status FillFrom(const harvester::VmTemplate& base, config::PoolPolicy* policy) {
  if (base.hotplug && (policy->cpu_cores > 0 || policy->memory_bytes > 0)) {
    return base::FailedPrecondition(
        "vm_template: " + base.id +
        " lets CPU and memory be changed while a VM runs, and has sizes of its own for that; "
        "remove cpu_request and memory_request, or name another template");
  }
  const harvester::Image& image = base.base.disks.front().image;
  if (policy->image.name.empty()) policy->image = {.ns = image.ns, .name = image.name};
  Fill(base.cpu_cores, &policy->cpu_cores);
  Fill(base.memory_bytes, &policy->memory_bytes);
  if (policy->networks.empty()) {
    for (const harvester::Network& network : base.networks) {
      policy->networks.push_back({.management = network.management,
                                  .attachment = {.ns = network.ns, .name = network.name}});
    }
  }
  Fill(base.host_devices, &policy->host_devices);
  Fill(base.gpus, &policy->gpus);
  Fill(base.node_selector, &policy->node_selector);
  for (const auto& [key, value] : base.machine) policy->machine.try_emplace(key, value);
  if (!policy->run_strategy.has_value()) policy->run_strategy = base.run_strategy;
  Merge(base.labels, &policy->labels);
  // A tag in the policy replaces the template's label.
  for (const auto& [key, value] : policy->tags) policy->labels.erase("tag.harvesterhci.io/" + key);
  Merge(base.annotations, &policy->annotations);
  std::vector<std::string> missing;
  if (policy->image.name.empty()) missing.emplace_back("image");
  if (policy->cpu_cores == 0) missing.emplace_back("cpu_request");
  if (policy->memory_bytes == 0) missing.emplace_back("memory_request");
  if (policy->networks.empty()) missing.emplace_back("networks");
  if (missing.empty()) return absl::OkStatus();
  return base::FailedPrecondition("vm_template: " + base.id + " does not say " +
                                  absl::StrJoin(missing, ", ") + "; add these keys to the policy");
}

harvester::VmBase BaseFor(const harvester::VmTemplate& base, const config::PoolPolicy& policy) {
  return harvester::Override(base.base, {.cpu = policy.cpu_cores > 0,
                                         .memory = policy.memory_bytes > 0,
                                         .networks = !policy.networks.empty(),
                                         .data_disks = !policy.data_disks.empty(),
                                         .firmware = policy.firmware.has_value(),
                                         .machine = policy.machine});
}

std::vector<std::string> NotesOn(const harvester::VmTemplate& base,
                                 const config::PoolPolicy& policy) {
  std::vector<std::string> notes = base.notes;
  if (policy.ssh_keys.empty() && !base.ssh_keys.empty()) {
    notes.push_back("the SSH keys " + absl::StrJoin(base.ssh_keys, ", ") +
                    ", which ssh_keys can name");
  }
  return notes;
}

}  // namespace nomad_harvester::scaling
