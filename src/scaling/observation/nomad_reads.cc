// SPDX-License-Identifier: Apache-2.0
#include "observation/nomad_reads.h"

#include <chrono>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::scaling {
namespace {

constexpr base::Duration kClusterIsKept = std::chrono::minutes(5);

// See NomadClient::FirstNode.
bool Proves(const nomad::Indexed<std::vector<nomad::Node>>& first,
            const nomad::Indexed<std::vector<nomad::Node>>& list) {
  // A proxy that drops the header makes every index 0.
  if (first.index == 0 || first.index != list.index) return false;
  if (first.value.empty() || list.value.empty()) return false;
  const nomad::Node& a = first.value.front();
  const nomad::Node& b = list.value.front();
  return a.id == b.id && a.create_index == b.create_index && a.modify_index == b.modify_index;
}

}  // namespace

NomadReads::NomadReads(const std::shared_ptr<const nomad::NomadClient>& lists)
    : nodes_([this, lists](const runtime::Context& context,
                           const nomad::ReadOptions& options) -> absl::StatusOr<Nodes> {
        NH_ASSIGN_OR_RETURN(auto read, lists->ListNodes(context, options));
        Nodes nodes{std::move(read), cache_.version()};
        cache_.Keep(nodes.value);
        for (nomad::Node& node : nodes.value) cache_.Complete(&node);
        return nodes;
      }),
      first_([lists](const runtime::Context& context, const nomad::ReadOptions& /*unused*/) {
        return lists->FirstNode(context);
      }),
      allocations_([lists](const runtime::Context& context, const nomad::ReadOptions& options) {
        return lists->ListAllocations(context, nomad::AllocationPart::kTaskStates, options);
      }),
      placements_([lists](const runtime::Context& context, const nomad::ReadOptions& options) {
        return lists->ListAllocations(context, nomad::AllocationPart::kResources, options);
      }),
      lists_(lists) {}

absl::StatusOr<std::string> NomadReads::Cluster(const runtime::Context& context) {
  {
    const base::MutexLock lock(mutex_);
    const bool current = context.clock().Now() - cluster_read_at_ < kClusterIsKept;
    if (cluster_.has_value() && current) return *cluster_;
  }
  return ReadCluster(context);
}

absl::StatusOr<std::string> NomadReads::ReadCluster(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(std::string keys, lists_->ReadClusterKeys(context));
  const base::MutexLock lock(mutex_);
  cluster_ = keys;
  cluster_read_at_ = context.clock().Now();
  return keys;
}

absl::StatusOr<nomad::Indexed<NodeList>> NomadReads::ListNodes(const runtime::Context& context,
                                                               const nomad::ReadOptions& options) {
  const bool blocks = options.index > 0 && options.wait > base::Duration::zero();
  if (blocks) return Held(nodes_.Await(context, options));
  for_status_.Hold(nullptr);  // so that not both lists are in memory at once
  return Held(nodes_.Get(context));
}

absl::StatusOr<nomad::Indexed<NodeList>> NomadReads::ListNodesForStatus(
    const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(HeldList<Nodes>::Ptr held,
                      for_status_.Current([&](const Nodes& list) -> absl::StatusOr<bool> {
                        NH_ASSIGN_OR_RETURN(const auto first,
                                            first_.Get(context, /*or_running=*/true));
                        return Proves(*first, list) && list.completed_by == cache_.version();
                      }));
  if (held != nullptr) return NodesOf(held);
  return Held(nodes_.Get(context, /*or_running=*/true));
}

absl::StatusOr<nomad::Indexed<NodeList>> NomadReads::Held(
    const nomad::SharedList<Nodes>::Result& list) {
  NH_RETURN_IF_ERROR(list);
  // A list without nodes is not held: that there is no node must be read each time.
  if (!(*list)->value.empty()) for_status_.Hold(*list);
  return NodesOf(*list);
}

absl::StatusOr<nomad::Indexed<nomad::Node>> NomadReads::GetNode(const runtime::Context& context,
                                                                const nomad::NomadClient& client,
                                                                const std::string& id) {
  NH_ASSIGN_OR_RETURN(auto node, client.GetNode(context, id));
  node.value = cache_.Remember(std::move(node.value));
  return node;
}

absl::StatusOr<nomad::Node> NomadReads::GetFullNode(const runtime::Context& context,
                                                    const nomad::NomadClient& client,
                                                    nomad::Node stub) {
  if (cache_.Complete(&stub)) return stub;
  NH_ASSIGN_OR_RETURN(auto node, GetNode(context, client, stub.id));
  return std::move(node.value);
}

absl::StatusOr<std::string> FindOwnNode(const runtime::Context& context,
                                        const nomad::NomadClient& nomad,
                                        const std::string& allocation) {
  if (allocation.empty()) return std::string();
  auto node = nomad.NodeOfAllocation(context, allocation);
  if (absl::IsNotFound(node.status())) {
    // A token that can read every namespace would find the allocation, so it is in another cluster.
    const auto read_job = nomad.VerifyReadJob(context);
    if (read_job.ok() && *read_job == nomad::ReadJob::kEverywhere) return std::string();
  }
  if (node.ok()) return node;
  return base::Annotate(node.status(), "the autoscaler's own node cannot be found (allocation " +
                                           allocation + "), and it must never be removed");
}

}  // namespace nomad_harvester::scaling
