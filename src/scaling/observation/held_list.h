// SPDX-License-Identifier: Apache-2.0
// A list that answers Status as long as a cheap request proves that it is current (rule S3). No act
// ever depends on it: the loop reads its own lists. Private to module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HELD_LIST_H_
#define NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HELD_LIST_H_

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
  // full. If the proof was not answered or not permitted, returns that error. Any other error
  // proves nothing, for example when a server or proxy rejects the form of the request.
  template <typename Prove>  // absl::StatusOr<bool>(const List&)
  absl::StatusOr<Ptr> Current(Prove prove) {
    Ptr list;
    {
      base::MutexLock lock(mutex_);
      list = list_;
    }
    if (list == nullptr) return list;
    const absl::StatusOr<bool> proof = prove(*list);
    const absl::Status& why = proof.status();
    if (absl::IsUnavailable(why) || absl::IsDeadlineExceeded(why) || absl::IsCancelled(why) ||
        absl::IsUnauthenticated(why) || absl::IsPermissionDenied(why)) {
      return why;
    }
    if (proof.ok() && *proof) return list;
    // So that it is not in memory beside the one that is read now.
    base::MutexLock lock(mutex_);
    if (list_ == list) list_.reset();
    return Ptr();
  }
  void Hold(Ptr list) {
    base::MutexLock lock(mutex_);
    list_ = std::move(list);
  }

 private:
  base::Mutex mutex_;
  Ptr list_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HELD_LIST_H_
