// SPDX-License-Identifier: Apache-2.0
#include "observation/nomad_reads.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::scaling {
namespace {

// A wait on a real condition under a clock that may be a fake one, and may have no end.
constexpr base::Duration kShortestSlice = std::chrono::milliseconds(1);
constexpr base::Duration kLongestSlice = std::chrono::hours(1);

}  // namespace

template <typename T>
typename SharedList<T>::Result SharedList<T>::Lead(const runtime::Context& context,
                                                   const nomad::ReadOptions& options, Slot* slot,
                                                   bool* is_sole) {
  const Slot flight = *slot = std::make_shared<Flight>();
  flight->index = options.index;
  std::exception_ptr thrown;
  absl::StatusOr<nomad::Indexed<std::vector<T>>> read = base::Internal("the list was not read");
  mutex_.unlock();
  try {
    read = read_(context, options);
  } catch (...) {
    thrown = std::current_exception();
  }
  mutex_.lock();
  flight->abandoned = thrown != nullptr || (!read.ok() && context.Done());
  if (read.ok()) {
    flight->result = std::make_shared<nomad::Indexed<std::vector<T>>>(*std::move(read));
  } else {
    flight->result = read.status();
  }
  flight->done = true;
  *slot = nullptr;
  if (is_sole != nullptr) *is_sole = !flight->shared;
  changed_.NotifyAll();
  if (thrown != nullptr) std::rethrow_exception(thrown);
  return flight->result;
}

template <typename T>
bool SharedList<T>::WaitFor(const runtime::Context& context, base::MonoTime until, Flight& flight) {
  flight.shared = true;
  while (!flight.done) {
    const base::MonoTime now = context.clock().Now();
    if (context.Done() || now >= until) return false;
    const base::Duration left = std::min(until - now, context.Remaining());
    changed_.WaitUntil(
        mutex_, context.stop_token(),
        std::chrono::steady_clock::now() + std::clamp(left, kShortestSlice, kLongestSlice),
        [&] { return flight.done; });
  }
  return true;
}

template <typename T>
typename SharedList<T>::Result SharedList<T>::Get(const runtime::Context& context, bool or_running,
                                                  bool* is_sole) {
  base::MutexLock lock(mutex_);
  Slot too_early = or_running ? nullptr : plain_;
  for (;;) {
    const Slot flight = plain_;
    if (flight == nullptr) return Lead(context, {}, &plain_, is_sole);
    if (!WaitFor(context, base::MonoTime::max(), *flight)) return context.Check();
    if (flight != too_early && !flight->abandoned) return flight->result;
  }
}

template <typename T>
typename SharedList<T>::Result SharedList<T>::Await(const runtime::Context& context,
                                                    const nomad::ReadOptions& options,
                                                    bool* is_sole) {
  const base::MonoTime until = context.clock().Now() + options.wait;
  {
    base::MutexLock lock(mutex_);
    for (;;) {
      const base::Duration left = until - context.clock().Now();
      const Slot flight = blocking_;
      if (left <= base::Duration::zero()) break;
      if (flight == nullptr) {
        return Lead(context, {.index = options.index, .wait = left}, &blocking_, is_sole);
      }
      // The caller's list is older than what the others wait to see changed.
      if (flight->index > options.index) break;
      if (!WaitFor(context, until, *flight)) break;
      if (flight->abandoned) continue;
      // Without a change, the wait is over when half of it is: who waits together goes on together.
      const bool goes_on = until - context.clock().Now() <= options.wait / 2;
      if (!flight->result.ok() || (*flight->result)->index > options.index ||
          (goes_on && (*flight->result)->index == options.index)) {
        return flight->result;
      }
    }
  }
  NH_RETURN_IF_ERROR(context.Check());
  return Get(context, false, is_sole);
}

NomadReads::NomadReads(const std::shared_ptr<const nomad::NomadClient>& lists)
    : nodes_([lists](const runtime::Context& context, const nomad::ReadOptions& options) {
        return lists->ListNodes(context, options);
      }),
      allocations_([lists](const runtime::Context& context, const nomad::ReadOptions& options) {
        return lists->ListAllocations(context, options);
      }) {}

absl::StatusOr<NomadReads::Nodes> NomadReads::Completed(const SharedList<nomad::Node>::Result& list,
                                                        bool is_sole) const {
  NH_RETURN_IF_ERROR(list);
  // What nobody else has is not copied. SharedList made it as an object that is not const.
  Nodes nodes;
  if (is_sole) {
    nodes = std::move(const_cast<Nodes&>(**list));
  } else {
    nodes = **list;
  }
  for (nomad::Node& node : nodes.value) cache_.Complete(&node);
  return nodes;
}

absl::StatusOr<NomadReads::Nodes> NomadReads::ListNodes(const runtime::Context& context,
                                                        const nomad::ReadOptions& options) {
  const bool blocks = options.index > 0 && options.wait > base::Duration::zero();
  bool is_sole = false;
  const auto list = blocks ? nodes_.Await(context, options, &is_sole)
                           : nodes_.Get(context, /*or_running=*/false, &is_sole);
  if (list.ok()) cache_.Keep((*list)->value);
  return Completed(list, is_sole);
}

absl::StatusOr<NomadReads::Nodes> NomadReads::ListNodesForStatus(const runtime::Context& context) {
  bool is_sole = false;
  const auto list = nodes_.Get(context, /*or_running=*/true, &is_sole);
  return Completed(list, is_sole);
}

absl::StatusOr<nomad::Indexed<nomad::Node>> NomadReads::GetNode(const runtime::Context& context,
                                                                const nomad::NomadClient& client,
                                                                const std::string& id) {
  auto node = client.GetNode(context, id);
  if (node.ok()) cache_.Remember(node->value);
  return node;
}

template class SharedList<nomad::Node>;
template class SharedList<nomad::Allocation>;

}  // namespace nomad_harvester::scaling
