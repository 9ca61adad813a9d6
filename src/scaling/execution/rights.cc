// SPDX-License-Identifier: Apache-2.0
#include "execution/rights.h"

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::scaling {
namespace {

constexpr Right kCreationRights[] = {{"create", "kubevirt.io", "virtualmachines"},
                                     {"get", "kubevirt.io", "virtualmachines"},
                                     {"patch", "kubevirt.io", "virtualmachines"},
                                     {"delete", "kubevirt.io", "virtualmachines"},
                                     {"create", "", "secrets"},
                                     {"get", "", "secrets"},
                                     {"patch", "", "secrets"},
                                     {"list", "", "secrets"},
                                     {"delete", "", "secrets"},
                                     {"list", "", "persistentvolumeclaims"},
                                     {"delete", "", "persistentvolumeclaims"}};
constexpr Right kRemovalRights[] = {{"get", "kubevirt.io", "virtualmachines"},
                                    {"patch", "kubevirt.io", "virtualmachines"},
                                    {"delete", "kubevirt.io", "virtualmachines"},
                                    {"list", "", "secrets"},
                                    {"delete", "", "secrets"},
                                    {"list", "", "persistentvolumeclaims"},
                                    {"delete", "", "persistentvolumeclaims"}};
constexpr Right kHistoryRights[] = {{"create", "", "configmaps"}, {"patch", "", "configmaps"}};

}  // namespace

std::span<const Right> CreationRights() { return kCreationRights; }
std::span<const Right> RemovalRights() { return kRemovalRights; }
std::span<const Right> HistoryRights() { return kHistoryRights; }

std::string RightText(const Right& right) {
  return std::string(right.verb) + " " + right.resource +
         (*right.group == '\0' ? "" : std::string(".") + right.group);
}

absl::StatusOr<std::vector<Right>> MissingRights(const runtime::Context& context,
                                                 const kube::KubeClient& client,
                                                 const kube::AccessRules& rules,
                                                 const std::string& ns,
                                                 std::span<const Right> rights) {
  std::vector<Right> missing;
  for (const Right& right : rights) {
    if (rules.Allows(right.verb, right.group, right.resource)) continue;
    if (rules.incomplete) {
      NH_ASSIGN_OR_RETURN(
          const bool allowed,
          kube::ReviewAccess(
              context, client,
              {.verb = right.verb, .group = right.group, .resource = right.resource, .ns = ns}));
      if (allowed) continue;
    }
    missing.push_back(right);
  }
  return missing;
}

}  // namespace nomad_harvester::scaling
