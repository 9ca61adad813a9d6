// SPDX-License-Identifier: Apache-2.0
// Shortens messages that concern many objects, and finds texts by name.
#ifndef NOMAD_HARVESTER_BASE_TEXT_H_
#define NOMAD_HARVESTER_BASE_TEXT_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nomad_harvester::base {

// "a, b": at most five, and the number of omitted ones.
std::string FirstFew(const std::vector<std::string>& names);

// Returns the text with "…" in place of the name where it is a word, by which the failures of
// several objects are compared.
std::string WithoutName(std::string_view text, std::string_view name);

// Joins the lines of a text to one: "2 failed: a: no disk; b: no image".
std::string OneLine(std::string_view text);

// The value of `key`; empty if there is none.
const std::string& ValueOf(const std::map<std::string, std::string>& values, std::string_view key);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_TEXT_H_
