// SPDX-License-Identifier: Apache-2.0
#include "rules/progress.h"

namespace nomad_harvester::scaling {
namespace {

// Appends the messages of Kubernetes about the VM's pod, or else `words`, and about its volumes.
std::string With(const VmView& view, const std::string& words) {
  const std::string& cause = view.pod_message.empty() ? words : view.pod_message;
  std::string text = cause.empty() ? "" : ": " + cause;
  if (!view.volume_warning.empty()) text += "; " + view.volume_warning;
  return text;
}

std::string Cloning(const VmView& view) {
  const std::string& status = view.vm->printable_status;
  std::string text = "its volumes are made, and it has no instance yet";
  if (!status.empty()) text += " (" + status + ")";
  return text + With(view, harvester::TroubleOf(view.vm));
}

std::string Booting(const VmView& view) {
  if (!view.instance.has_value()) {
    return "its guest is started (" + view.vm->printable_status + ")" +
           With(view, harvester::TroubleOf(view.vm));
  }
  const harvester::VirtualMachineInstance& instance = *view.instance;
  std::string text = "its instance is " + (instance.phase.empty() ? "new" : instance.phase);
  if (const auto began = harvester::PhaseBegan(instance)) {
    text += " since " + base::FormatRfc3339(*began);
  }
  const std::string trouble = harvester::TroubleOf(instance);
  return text + With(view, trouble.empty() ? harvester::TroubleOf(view.vm) : trouble);
}

bool GuestRuns(const VmView& view) {
  return view.instance_runs.value_or(harvester::IsRunning(view.vm));
}

std::string Joining(const VmView& view) {
  std::string text = "its guest runs";
  if (view.instance.has_value()) {
    const auto began = harvester::PhaseBegan(*view.instance);
    if (began.has_value()) text += " since " + base::FormatRfc3339(*began);
    text += view.addresses.empty() ? " without an address" : " at " + view.addresses.front();
    text += harvester::IsAgentConnected(*view.instance) ? ", its guest agent answers,"
                                                        : ", its guest agent does not answer,";
  }
  return text + " and no Nomad node has its name";
}

}  // namespace

std::string DescribeProgress(const VmView& view) {
  if (GuestRuns(view)) return Joining(view);
  if (view.instance.has_value() || view.vm->instance_exists) return Booting(view);
  return Cloning(view);
}

std::string DescribeReadiness(const VmView& view, const nomad::Node* node,
                              const PoolSnapshot& snapshot) {
  std::string why = "no node has its name now";
  if (node != nullptr) {
    why = WhyNotReady(view, *node, snapshot)
              .value_or("without a policy nobody knows which drivers it needs");
  }
  return "its node " + view.vm->joined_node_id + " registered at " +
         base::FormatRfc3339(view.vm->joined_at.value_or(view.vm->created_at)) + ", but " + why;
}

std::string DescribeLateReadiness(const VmView& view, const nomad::Node* node,
                                  const PoolSnapshot& snapshot) {
  std::string text = DescribeReadiness(view, node, snapshot);
  const std::optional<base::WallTime> deadline = JoinDeadline(view);
  if (!deadline.has_value() || !view.vm->joined_at.has_value()) return text;
  const auto time = std::chrono::floor<std::chrono::seconds>(*deadline - *view.vm->joined_at);
  if (time <= base::Duration::zero()) return text;
  return text + " (join_timeout ended " + base::FormatGoDuration(time) + " after its registration)";
}

std::string AdviceToJoin(const VmView& view, const PoolSnapshot& snapshot) {
  if (!GuestRuns(view)) return "";
  const std::string text = "; read Nomad's log in the guest";
  if (!snapshot.policy.has_value()) return text;
  if (snapshot.policy->intro_token == config::IntroToken::kOff) {
    return text +
           "; if Nomad's servers enforce client introduction (1.11 and newer), set "
           "nomad_intro_token";
  }
  const bool has_one = snapshot.policy->intro_token == config::IntroToken::kRequired;
  const auto& made_for = view.vm->nodes;
  const std::optional<std::string>& pool =
      made_for.has_value() ? made_for->node_pool : snapshot.policy->node_pool;
  return text +
         (has_one ? "; its introduction token lets in"
                  : "; if Nomad had introduction tokens when it was made, its token lets in") +
         " a client of this name in node pool " + pool.value_or("default") +
         " for 30 minutes at most, and an expired one is refused even where none is needed";
}

}  // namespace nomad_harvester::scaling
