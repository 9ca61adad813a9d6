// SPDX-License-Identifier: Apache-2.0
#include "rules/back_off.h"

#include <algorithm>
#include <array>
#include <utility>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {
namespace {

struct WaitRange {
  std::string_view cause;
  base::Duration first;
  base::Duration longest;
  const char* what;
};
// kJoin waits longest: each VM that never joins already costs its join timeout, so only few
// attempts fit into a night.
// kRoom waits shortest, because room may come at any time, and a roll-out goes on within two
// minutes of it (rule R5).
constexpr std::array<WaitRange, 6> kWaitRanges = {{
    {cause::kCreate, std::chrono::seconds(30), std::chrono::minutes(30), "creating VMs"},
    {cause::kRoom, std::chrono::seconds(30), std::chrono::seconds(90), "finding room for new VMs"},
    {cause::kStart, std::chrono::minutes(1), std::chrono::hours(1), "starting new VMs"},
    {cause::kJoin, std::chrono::minutes(1), std::chrono::hours(4), "the join of new VMs"},
    {cause::kRemove, std::chrono::seconds(30), std::chrono::minutes(30), "removing VMs"},
    {cause::kRefused, std::chrono::seconds(30), std::chrono::minutes(30), "removing VMs"},
}};

const WaitRange& WaitRangeOf(std::string_view cause) {
  const auto* found = std::find_if(kWaitRanges.begin(), kWaitRanges.end(),
                                   [&](const WaitRange& range) { return range.cause == cause; });
  return found == kWaitRanges.end() ? kWaitRanges.front() : *found;
}

base::Duration WaitAfter(const WaitRange& range, std::int64_t failures) {
  base::Duration wait = range.first;
  for (std::int64_t i = 1; i < failures && wait < range.longest; ++i) wait *= 2;
  return std::min(wait, range.longest);
}

// RESOURCE_EXHAUSTED while a cause of this kind must wait.
absl::Status Check(const harvester::BackOff& back_off, bool of_removals, base::WallTime now) {
  for (const WaitRange& range : kWaitRanges) {
    const auto entry = back_off.find(std::string(range.cause));
    if (IsOfRemovals(range.cause) != of_removals || entry == back_off.end()) continue;
    const std::int64_t failures = entry->second.failures;
    if (!MustWait(range.cause, entry->second, now)) continue;
    return absl::Status(absl::StatusCode::kResourceExhausted,
                        std::string(range.what) + " failed " + std::to_string(failures) +
                            (failures == 1 ? " time" : " times in a row") + "; next try at " +
                            base::FormatRfc3339(entry->second.retry_at));
  }
  return absl::OkStatus();
}

}  // namespace

void RecordFailure(harvester::BackOff* back_off, std::string_view cause, base::WallTime now,
                   const std::string& action) {
  harvester::BackOffEntry& entry = (*back_off)[std::string(cause)];
  if (!action.empty() && std::exchange(entry.action, action) == action) return;
  ++entry.failures;
  entry.retry_at = now + WaitAfter(WaitRangeOf(cause), entry.failures);
}

void RecordNoRoom(harvester::BackOff* back_off, base::WallTime now) {
  harvester::BackOffEntry& entry = (*back_off)[std::string(cause::kRoom)];
  entry.failures = std::min(entry.failures + 1, kCircuitOpensAfter - 1);
  entry.retry_at = now + WaitAfter(WaitRangeOf(cause::kRoom), entry.failures);
}

void RecordCreationSuccess(harvester::BackOff* back_off) {
  std::erase_if(*back_off, [](const auto& entry) { return !IsOfRemovals(entry.first); });
}

void RecordRemovalSuccess(harvester::BackOff* back_off) {
  std::erase_if(*back_off, [](const auto& entry) { return IsOfRemovals(entry.first); });
}

bool IsOfRemovals(std::string_view cause) {
  return cause == cause::kRemove || cause == cause::kRefused;
}

bool MustWait(std::string_view cause, const harvester::BackOffEntry& entry, base::WallTime now) {
  const base::Duration longest = WaitAfter(WaitRangeOf(cause), entry.failures) + kUsualSkew;
  return now < entry.retry_at && entry.retry_at - now <= longest;
}

absl::Status CheckCreation(const harvester::BackOff& back_off, base::WallTime now) {
  return Check(back_off, false, now);
}

absl::Status CheckRemoval(const harvester::BackOff& back_off, base::WallTime now) {
  return Check(back_off, true, now);
}

bool RemovalsWereRefused(const harvester::BackOff& back_off) {
  return back_off.contains(std::string(cause::kRefused));
}

bool CreationCircuitIsOpen(const harvester::BackOff& back_off) {
  std::int64_t failures = 0;
  for (const std::string_view cause : {cause::kRoom, cause::kStart, cause::kJoin}) {
    const auto entry = back_off.find(std::string(cause));
    if (entry != back_off.end()) failures += entry->second.failures;
  }
  return failures >= kCircuitOpensAfter;
}

}  // namespace nomad_harvester::scaling
