// SPDX-License-Identifier: Apache-2.0
// Parsing of request targets.
#ifndef NOMAD_HARVESTER_SIMULATOR_TARGET_H_
#define NOMAD_HARVESTER_SIMULATOR_TARGET_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nomad_harvester::simulator {

struct Target {
  std::string path;                   // as received, without the query
  std::vector<std::string> segments;  // unescaped
  std::map<std::string, std::string> query;

  std::string Query(const std::string& key) const {
    const auto found = query.find(key);
    return found == query.end() ? "" : found->second;
  }
};

Target ParseTarget(std::string_view text);

// Decodes "%2F" etc.; '+' is a space if `plus_is_space`. Invalid escapes stay as they are.
std::string Unescape(std::string_view text, bool plus_is_space);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_TARGET_H_
