// SPDX-License-Identifier: Apache-2.0
// A list that several callers read with one request.
#ifndef NOMAD_HARVESTER_NOMAD_SHARED_LIST_H_
#define NOMAD_HARVESTER_NOMAD_SHARED_LIST_H_

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/wait.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::nomad {

// One list of Nomad, read once for all callers that want it at the same time, and dropped when the
// last of them has it. Thread-safe; a call blocks for its own request or for another caller's.
//
// Callers can be cancelled independently: if the one that sent the request gives up, another one
// sends it again.
template <typename List>  // for Await with an `index`
class SharedList {
 public:
  using Result = absl::StatusOr<std::shared_ptr<const List>>;
  using Read = std::function<absl::StatusOr<List>(const runtime::Context& context,
                                                  const ReadOptions& options)>;

  explicit SharedList(Read read) : read_(std::move(read)) {}

  // Returns a list requested after this call began. With `or_running`, a request already in flight
  // will do.
  Result Get(const runtime::Context& context, bool or_running = false);
  // Returns a list once its index is above `options.index`, or after `options.wait`. An unchanged
  // list may be returned after half of that time. All callers share one blocking query, which may
  // have been sent before this call: a list with a higher index than the caller's last one is
  // newer, and one with the same index is equal.
  Result Await(const runtime::Context& context, const ReadOptions& options);

 private:
  struct InFlightRead {
    std::uint64_t index = 0;  // the index on which a blocking query waits
    bool done = false;
    bool abandoned = false;  // its caller gave up
    Result result{};
  };
  using Slot = std::shared_ptr<InFlightRead>;
  Result ReadForAll(const runtime::Context& context, const ReadOptions& options, Slot* slot)
      NH_REQUIRES(mutex_);
  // Waits until the read is done. False if the context ends first.
  bool WaitFor(const runtime::Context& context, InFlightRead& in_flight) NH_REQUIRES(mutex_);

  const Read read_;
  base::Mutex mutex_;
  base::CondVar changed_;
  Slot plain_ NH_GUARDED_BY(mutex_);
  Slot blocking_ NH_GUARDED_BY(mutex_);
};

template <typename List>
typename SharedList<List>::Result SharedList<List>::ReadForAll(const runtime::Context& context,
                                                               const ReadOptions& options,
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
bool SharedList<List>::WaitFor(const runtime::Context& context, InFlightRead& in_flight) {
  return runtime::WaitFor(context, changed_, mutex_, [&] { return in_flight.done; });
}

template <typename List>
typename SharedList<List>::Result SharedList<List>::Get(const runtime::Context& context,
                                                        bool or_running) {
  base::MutexLock lock(mutex_);
  Slot too_early = or_running ? nullptr : plain_;
  for (;;) {
    const Slot in_flight = plain_;
    if (in_flight == nullptr) return ReadForAll(context, {}, &plain_);
    if (!WaitFor(context, *in_flight)) return context.Check();
    if (in_flight != too_early && !in_flight->abandoned) return in_flight->result;
  }
}

template <typename List>
typename SharedList<List>::Result SharedList<List>::Await(const runtime::Context& context,
                                                          const ReadOptions& options) {
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
      if (!WaitFor(context.WithDeadline(until), *in_flight)) break;
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

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_NOMAD_SHARED_LIST_H_
