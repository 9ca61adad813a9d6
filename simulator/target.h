// SPDX-License-Identifier: Apache-2.0
// The target of a request, taken apart.
#ifndef NOMAD_HARVESTER_SIMULATOR_TARGET_H_
#define NOMAD_HARVESTER_SIMULATOR_TARGET_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nomad_harvester::simulator {

struct Target {
  std::string path;                   // as it came, without the query
  std::vector<std::string> segments;  // unescaped
  std::map<std::string, std::string> query;

  std::string Query(const std::string& key) const {
    const auto found = query.find(key);
    return found == query.end() ? "" : found->second;
  }
};

Target ParseTarget(std::string_view text);

// "%2F" and the like; '+' is a space if `plus_is_space`. What is no escape stays.
std::string Unescape(std::string_view text, bool plus_is_space);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_TARGET_H_
