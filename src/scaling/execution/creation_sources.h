// SPDX-License-Identifier: Apache-2.0
// Reads the sources of new VMs from Harvester: template, images, networks, keys, classes, quotas.
// Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_CREATION_SOURCES_H_
#define NOMAD_HARVESTER_SCALING_CREATION_SOURCES_H_

#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/harvester/vm_template.h"

#include "absl/status/statusor.h"
#include "execution/pool_dependencies.h"

namespace nomad_harvester::scaling {

// The policy's sources as Harvester has them. Each has its own error, which names the key.
struct CreationSources {
  // nullopt: the policy names no template.
  absl::StatusOr<std::optional<harvester::VmTemplate>> vm_template =
      absl::StatusOr<std::optional<harvester::VmTemplate>>(std::nullopt);
  // The images of the template's disks, without the root disk, in the order of the disks that have
  // one.
  absl::StatusOr<std::vector<harvester::Image>> disk_images = std::vector<harvester::Image>();
  absl::StatusOr<harvester::Image> image = absl::UnknownError("not read");
  absl::StatusOr<std::vector<harvester::Network>> networks = absl::UnknownError("not read");
  absl::StatusOr<std::vector<std::string>> public_keys = absl::UnknownError("not read");
  absl::StatusOr<std::vector<harvester::ResourceQuota>> quotas = absl::UnknownError("not read");
  absl::Status storage_classes = absl::UnknownError("not read");  // of data_disks and the template
  absl::Status priority_class{};
  std::vector<std::string> unread_storage{};   // classes that the token lacks the right to read
  std::vector<std::string> unread_priority{};  // likewise
  absl::StatusOr<bool> gpus_are_host_devices = true;
};
// Reads in parallel and blocks until done; reads that depend on the template follow it.
CreationSources ReadSources(const runtime::Context& context, const PoolDependencies& deps,
                            const config::PoolPolicy& policy);
// What to do about the problem of the source with this key of the policy: of its object that is
// missing, cannot be used or may not be read. Empty: the problem is another one, or says it.
std::string CureOfSource(std::string_view key, const absl::Status& problem);
// The classes that the token lacks the right to read: "storage class X", "priority class Y".
std::vector<std::string> UnreadClasses(const CreationSources& sources);

// The policy, completed by the template where the policy is silent. If the template cannot be read,
// the policy itself; its own sources are still read.
struct WantedPolicy {
  config::PoolPolicy policy;
  harvester::VmBase base;
  absl::Status problem;
};
WantedPolicy WantedOf(const config::PoolPolicy& policy, const CreationSources& sources);

// The first problem keeps its code; the texts of later ones are appended (rule C2).
void AddProblem(const absl::Status& problem, absl::Status* all);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CREATION_SOURCES_H_
