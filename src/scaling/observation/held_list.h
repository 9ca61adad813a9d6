// SPDX-License-Identifier: Apache-2.0
// A list that answers Status for as long as a cheap request proves that it is current (rule S3). It
// never decides an act: the loop reads its own. Private to module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HELD_LIST_H_
#define NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HELD_LIST_H_

#include <algorithm>
#include <memory>
#include <utility>

#include "nomad_harvester/base/mutex.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

// Thread-safe; only Current blocks, for the proof.
template <typename List>
class HeldList {
 public:
  using Ptr = std::shared_ptr<const List>;

  // Returns the held list if `prove` says that it is current, and null if the list must be read in
  // full. If the proof was not answered or not permitted, returns that error. Any other error, such
  // as that of a server or proxy that refuses the proof's form, proves nothing.
  template <typename Prove>  // absl::StatusOr<bool>(const List&)
  absl::StatusOr<Ptr> Current(Prove prove) {
    const Ptr list = ToProve();
    if (list == nullptr) return list;
    const absl::StatusOr<bool> proof = prove(*list);
    const absl::Status& why = proof.status();
    if (absl::IsUnavailable(why) || absl::IsDeadlineExceeded(why) || absl::IsCancelled(why) ||
        absl::IsUnauthenticated(why) || absl::IsPermissionDenied(why)) {
      return why;
    }
    const bool is_current = proof.ok() && *proof;
    Proved(list, is_current);
    return is_current ? list : nullptr;
  }
  void Hold(Ptr list) {
    base::MutexLock lock(mutex_);
    list_ = std::move(list);
  }

 private:
  // The held list if its proof is worth a request, else null. Proving a list that changes all the
  // time wastes requests: after n failed proofs in a row, the next n lists, at most eight, are read
  // without one.
  Ptr ToProve() {
    base::MutexLock lock(mutex_);
    if (list_ == nullptr || unproved_-- > 0) return nullptr;
    return list_;
  }
  // Records what the proof said. A list that is not current is no longer held.
  void Proved(const Ptr& list, bool is_current) {
    base::MutexLock lock(mutex_);
    if (list != list_) return;  // another caller has replaced it
    failures_ = is_current ? 0 : std::min(failures_ + 1, kMostUnproved);
    unproved_ = failures_;
    if (!is_current) list_ = nullptr;
  }

  static constexpr int kMostUnproved = 8;
  base::Mutex mutex_;
  Ptr list_ NH_GUARDED_BY(mutex_);
  int failures_ NH_GUARDED_BY(mutex_) = 0;
  int unproved_ NH_GUARDED_BY(mutex_) = 0;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HELD_LIST_H_
