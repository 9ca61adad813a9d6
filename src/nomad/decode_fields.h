// SPDX-License-Identifier: Apache-2.0
// Functions that store one value of Nomad's JSON; shared by the decoders.
#ifndef NOMAD_HARVESTER_SRC_NOMAD_DECODE_FIELDS_H_
#define NOMAD_HARVESTER_SRC_NOMAD_DECODE_FIELDS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "nomad_harvester/base/json_fields.h"

namespace nomad_harvester::nomad {

// Bounds the amounts, so that sums cannot overflow for any response of the server.
inline constexpr std::int64_t kMaxAmount = std::int64_t{1} << 40;

inline constexpr std::int64_t kMaxPort = std::numeric_limits<std::uint16_t>::max();

inline std::int64_t Amount(const base::JsonEvent& event) {
  if (event.kind != base::JsonEvent::Kind::kInt) return 0;
  return std::clamp<std::int64_t>(event.integer, 0, kMaxAmount);
}
inline void Add(std::int64_t amount, std::int64_t& sum) {
  sum = std::min(kMaxAmount, sum + amount);
}

template <auto kMember, typename Record = base::RecordOf<kMember>>
void SetAmount(Record& record, const base::JsonEvent& event) {
  record.*kMember = Amount(event);
}
template <auto kMember, typename Record = base::RecordOf<kMember>>
void SetIndex(Record& record, const base::JsonEvent& event) {
  if (event.kind == base::JsonEvent::Kind::kInt) {
    record.*kMember = static_cast<std::uint64_t>(std::max<std::int64_t>(0, event.integer));
  }
}
// For the numbers of a list of ports.
template <auto kMember, typename Record = base::RecordOf<kMember>>
void AddPort(Record& record, const base::JsonEvent& event) {
  const std::int64_t port = Amount(event);
  if (port == 0 || port > kMaxPort) return;
  (record.*kMember).push_back(static_cast<std::uint16_t>(port));
}
// For a path that ends with "*": stores the number in a map, under its member's name.
template <auto kMember, typename Record = base::RecordOf<kMember>>
void PutAmount(Record& record, const base::JsonEvent& event) {
  (record.*kMember).insert_or_assign(std::string(event.name), Amount(event));
}
// Begins an element of a list of objects, and passes events on to the one that was begun last.
template <auto kList, typename Record = base::RecordOf<kList>>
void BeginLast(Record& record, const base::JsonEvent& event) {
  if (event.kind == base::JsonEvent::Kind::kObject) (record.*kList).emplace_back();
}
template <auto kList, auto kSet, typename Record = base::RecordOf<kList>>
void SetOfLast(Record& record, const base::JsonEvent& event) {
  if (!(record.*kList).empty()) kSet((record.*kList).back(), event);
}

// Returns the enum value at the position of its name; kUnknown comes after all names.
template <typename Enum, std::size_t kNames>
Enum ByName(const std::array<std::string_view, kNames>& names, std::string_view text) {
  static_assert(static_cast<std::size_t>(Enum::kUnknown) == kNames);
  return static_cast<Enum>(std::find(names.begin(), names.end(), text) - names.begin());
}
inline constexpr std::array<std::string_view, 5> kClientStatuses = {"pending", "running",
                                                                    "complete", "failed", "lost"};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_SRC_NOMAD_DECODE_FIELDS_H_
