// SPDX-License-Identifier: Apache-2.0
//
// Operators' writes, and what became of them (rule L9).

#include <functional>
#include <optional>
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "commands/command_run.h"

namespace nomad_harvester::scaling {

absl::Status Settle(const absl::Status& outcome, const std::string& object,
                    const std::function<absl::StatusOr<bool>()>& is_there) {
  const std::string not_written = object + " was not written";
  if (outcome.ok()) return outcome;
  // Of FAILED_PRECONDITION, TLS sends nothing, and a conflict may be with the own first attempt.
  const bool is_sure = kube::IsRefused(outcome) || kube::IsNotFound(outcome) ||
                       absl::IsUnauthenticated(outcome) || absl::IsInvalidArgument(outcome) ||
                       (absl::IsFailedPrecondition(outcome) && !kube::IsConflict(outcome));
  if (is_sure) {
    return base::Annotate(outcome, not_written);
  }
  const absl::StatusOr<bool> there = is_there();
  if (kube::IsNotFound(there.status())) {
    return base::MakeStatus(outcome.code(), not_written + ": " + base::Message(outcome) +
                                                "; a read after it finds no such object");
  }
  if (!there.ok()) {
    return base::Unavailable("whether " + object +
                             " was written is not known: " + base::Message(outcome) +
                             "; and it could not be read again: " + base::Message(there.status()) +
                             "; nomad-harvester status shows it once that is gone; then repeat it");
  }
  if (*there) return absl::OkStatus();
  return base::Annotate(outcome, not_written + ", as a read after it shows; repeat it");
}

absl::Status AnnotateVm(const runtime::Context& context, const harvester::VmStore& store,
                        const harvester::VirtualMachine& vm,
                        const harvester::AnnotationChanges& changes,
                        const std::function<bool(const harvester::VirtualMachine&)>& has_them) {
  const absl::Status outcome =
      store.Annotate(context, vm.name, vm.resource_version, changes).status();
  return Settle(outcome, "VM " + vm.name, [&]() -> absl::StatusOr<bool> {
    NH_ASSIGN_OR_RETURN(const auto now, store.Get(context, vm.name));
    return now.value.uid == vm.uid && has_them(now.value);
  });
}

absl::Status Maintenance::RequestReplacement(const runtime::Context& context,
                                             const harvester::VirtualMachine& vm,
                                             const std::optional<std::string>& reason) const {
  return AnnotateVm(context, harvester::VmStore(clients_.kube, vm.ns), vm,
                    {{harvester::kReplaceAnnotation, reason}},
                    [&](const harvester::VirtualMachine& now) {
                      return now.replace_request == reason.value_or("");
                    });
}

}  // namespace nomad_harvester::scaling
