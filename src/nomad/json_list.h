// Reading a large JSON list without holding it in memory twice.
#ifndef NOMAD_HARVESTER_SRC_NOMAD_JSON_LIST_H_
#define NOMAD_HARVESTER_SRC_NOMAD_JSON_LIST_H_

#include <functional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::nomad {

// Calls `element` with each element of the top-level array `text`, in order; an element is dropped
// before the next one is built. `unread` names members that are left out while reading, as paths
// from the element: "Metrics", "TaskStates/*/Events", where * is any one member. `null` is an empty
// list: that is how Go writes a nil slice. INTERNAL, which begins with `what`, if the text is no
// JSON, no array, or nested deeper than 100 levels; `element` may have been called by then, so the
// caller discards what it collected. The first error of `element` is returned.
absl::Status ForEachElement(std::string_view text, std::string_view what,
                            std::span<const std::string_view> unread,
                            const std::function<absl::Status(const nlohmann::json&)>& element);

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_SRC_NOMAD_JSON_LIST_H_
