// SPDX-License-Identifier: Apache-2.0
#include "observation/nomad_reads.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::scaling {
namespace {

// Limits one wait on the condition variable, which uses the real clock, while the context's clock
// may be a fake one and the wait may be unlimited.
constexpr base::Duration kMinSlice = std::chrono::milliseconds(1);
constexpr base::Duration kMaxSlice = std::chrono::hours(1);

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

template <typename List>
typename SharedList<List>::Result SharedList<List>::ReadForAll(const runtime::Context& context,
                                                               const nomad::ReadOptions& options,
                                                               Slot* slot) {
  const Slot in_flight = *slot = std::make_shared<InFlightRead>();
  in_flight->index = options.index;
  std::exception_ptr thrown;
  absl::StatusOr<List> read = base::Internal("the list was not read");
  mutex_.unlock();
  try {
    read = read_(context, options);
  } catch (...) {
    thrown = std::current_exception();
  }
  mutex_.lock();
  in_flight->abandoned = thrown != nullptr || (!read.ok() && context.Done());
  if (read.ok()) {
    in_flight->result = std::make_shared<const List>(*std::move(read));
  } else {
    in_flight->result = read.status();
  }
  in_flight->done = true;
  *slot = nullptr;
  changed_.NotifyAll();
  if (thrown != nullptr) std::rethrow_exception(thrown);
  return in_flight->result;
}

template <typename List>
bool SharedList<List>::WaitFor(const runtime::Context& context, base::MonoTime until,
                               InFlightRead& in_flight) {
  while (!in_flight.done) {
    const base::MonoTime now = context.clock().Now();
    if (context.Done() || now >= until) return false;
    const base::Duration left = std::min(until - now, context.Remaining());
    changed_.WaitUntil(mutex_, context.stop_token(),
                       std::chrono::steady_clock::now() + std::clamp(left, kMinSlice, kMaxSlice),
                       [&] { return in_flight.done; });
  }
  return true;
}

template <typename List>
typename SharedList<List>::Result SharedList<List>::Get(const runtime::Context& context,
                                                        bool or_running) {
  base::MutexLock lock(mutex_);
  Slot too_early = or_running ? nullptr : plain_;
  for (;;) {
    const Slot in_flight = plain_;
    if (in_flight == nullptr) return ReadForAll(context, {}, &plain_);
    if (!WaitFor(context, base::MonoTime::max(), *in_flight)) return context.Check();
    if (in_flight != too_early && !in_flight->abandoned) return in_flight->result;
  }
}

template <typename List>
typename SharedList<List>::Result SharedList<List>::Await(const runtime::Context& context,
                                                          const nomad::ReadOptions& options) {
  const base::MonoTime until = context.clock().Now() + options.wait;
  {
    base::MutexLock lock(mutex_);
    for (;;) {
      const base::Duration left = until - context.clock().Now();
      const Slot in_flight = blocking_;
      if (left <= base::Duration::zero()) break;
      if (in_flight == nullptr) {
        return ReadForAll(context, {.index = options.index, .wait = left}, &blocking_);
      }
      // The others wait for a list newer than the caller's.
      if (in_flight->index > options.index) break;
      if (!WaitFor(context, until, *in_flight)) break;
      if (in_flight->abandoned) continue;
      // An unchanged list ends the wait after half of it, so that callers who wait together
      // continue together.
      const bool goes_on = until - context.clock().Now() <= options.wait / 2;
      if (!in_flight->result.ok() || (*in_flight->result)->index > options.index ||
          (goes_on && (*in_flight->result)->index == options.index)) {
        return in_flight->result;
      }
    }
  }
  NH_RETURN_IF_ERROR(context.Check());
  return Get(context);
}

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

absl::StatusOr<nomad::Indexed<NodeList>> NomadReads::Held(const SharedList<Nodes>::Result& list) {
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

template class SharedList<NomadReads::Nodes>;
template class SharedList<nomad::Indexed<std::vector<nomad::Node>>>;
template class SharedList<NomadReads::Allocations>;

}  // namespace nomad_harvester::scaling
