// SPDX-License-Identifier: Apache-2.0
// Parses values that must be one of a few names.
#ifndef NOMAD_HARVESTER_SRC_CONFIG_CHOICES_H_
#define NOMAD_HARVESTER_SRC_CONFIG_CHOICES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/policy/strategies.h"

#include "config_reader.h"

namespace nomad_harvester::config {

using policy::Choice;

// A parser for ConfigReader::Read. `choices` must outlive it. Names are case-sensitive; an error
// names the nearest one.
template <typename T, std::size_t N>
auto OneOf(const Choice<T> (&choices)[N]) {
  return [&choices](const std::string& text) -> ValueOr<T> {
    std::vector<std::string> names;
    std::string list;
    for (const Choice<T>& choice : choices) {
      if (choice.name == text) return choice.value;
      names.emplace_back(choice.name);
      list += (list.empty() ? "" : ", ") + names.back();
    }
    const std::optional<std::string> near = base::NearestName(text.substr(0, 64), names);
    return Fault{"must be one of " + list, near ? "did you mean " + *near + "?" : "choose one"};
  };
}

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_SRC_CONFIG_CHOICES_H_
