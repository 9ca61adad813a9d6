// SPDX-License-Identifier: Apache-2.0
#include "selector.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::simulator {
namespace {

// "a=b", "a==b" or "a!=b".
struct Term {
  std::string key;
  std::string op;  // empty: none of them
  std::string value;
};

std::vector<Term> TermsOf(std::string_view text) {
  std::vector<Term> terms;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipEmpty())) {
    const std::string term(part);
    const std::size_t begin = std::min(term.find("!="), term.find('='));
    if (begin == std::string::npos) {
      terms.push_back({.key = term, .op = "", .value = ""});
      continue;
    }
    const std::size_t length =
        term.compare(begin, 2, "!=") == 0 || term.compare(begin, 2, "==") == 0 ? 2 : 1;
    terms.push_back({.key = term.substr(0, begin),
                     .op = term.substr(begin, length),
                     .value = term.substr(begin + length)});
  }
  return terms;
}

}  // namespace

absl::StatusOr<Selector> Selector::OfLabels(std::string_view text) {
  Selector selector;
  for (Term& term : TermsOf(text)) {
    if (term.key.empty()) {
      return base::InvalidArgument("found '" + term.op +
                                   "', expected: !, identifier, or 'end of string'");
    }
    if (term.op.empty()) {
      return base::InvalidArgument("the simulated API server selects by =, == and !=, not by '" +
                                   term.key + "'");
    }
    selector.requirements_.push_back({.path = {"metadata", "labels", term.key},
                                      .equal = term.op != "!=",
                                      .value = std::move(term.value)});
  }
  return selector;
}

absl::StatusOr<Selector> Selector::OfFields(std::string_view text,
                                            const std::vector<std::string>& known) {
  Selector selector;
  for (Term& term : TermsOf(text)) {
    if (term.op.empty()) {
      return base::InvalidArgument("invalid selector: '" + std::string(text) +
                                   "'; can't understand '" + term.key + "'");
    }
    if (term.key != "metadata.name" && term.key != "metadata.namespace" &&
        std::find(known.begin(), known.end(), term.key) == known.end()) {
      return base::InvalidArgument("field label not supported: " + term.key);
    }
    selector.requirements_.push_back({.path = absl::StrSplit(term.key, '.'),
                                      .equal = term.op != "!=",
                                      .value = std::move(term.value)});
  }
  return selector;
}

bool Selector::Matches(const nlohmann::json& object) const {
  return std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& requirement) {
                       const nlohmann::json* value = &object;
                       for (const std::string& member : requirement.path) {
                         if (value != nullptr) value = base::FindMember(*value, member);
                       }
                       const bool is_text = value != nullptr && value->is_string();
                       const std::string text = is_text ? value->get<std::string>() : std::string();
                       return (text == requirement.value) == requirement.equal;
                     });
}

}  // namespace nomad_harvester::simulator
