// SPDX-License-Identifier: Apache-2.0
#include "selector.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::simulator {
namespace {

bool IsSymbol(char c) { return c == '=' || c == '!' || c == '(' || c == ')' || c == ','; }

// "a in (b,c)" → a, in, (, b, ",", c, ). The empty token marks the end.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) { Next(); }
  const std::string& current() const { return current_; }
  bool AtIdentifier() const { return !current_.empty() && !IsSymbol(current_.front()); }

  std::string Take() {
    std::string taken = std::move(current_);
    Next();
    return taken;
  }

 private:
  void Next() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
      rest_.remove_prefix(1);
    }
    std::size_t length = 0;
    if (!rest_.empty() && IsSymbol(rest_.front())) {
      length = rest_.substr(0, 2) == "==" || rest_.substr(0, 2) == "!=" ? 2 : 1;
    } else {
      while (length < rest_.size() && !IsSymbol(rest_[length]) &&
             std::isspace(static_cast<unsigned char>(rest_[length])) == 0) {
        ++length;
      }
    }
    current_ = std::string(rest_.substr(0, length));
    rest_.remove_prefix(length);
  }

  std::string_view rest_;
  std::string current_;
};

absl::Status Unexpected(const Tokens& tokens, std::string_view expected) {
  return base::InvalidArgument("found '" + tokens.current() +
                               "', expected: " + std::string(expected));
}

// "(a,b)"; an empty value between commas counts as a value.
absl::StatusOr<std::set<std::string>> ParseSet(Tokens& tokens) {
  if (tokens.current() != "(") return Unexpected(tokens, "'('");
  tokens.Take();
  std::set<std::string> values;
  while (true) {
    values.insert(tokens.AtIdentifier() ? tokens.Take() : "");
    if (tokens.current() == ",") {
      tokens.Take();
    } else if (tokens.current() == ")") {
      tokens.Take();
      return values;
    } else {
      return Unexpected(tokens, "',' or ')'");
    }
  }
}

}  // namespace

absl::StatusOr<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  Tokens tokens(text);
  while (!tokens.current().empty()) {
    Requirement requirement;
    if (tokens.current() == "!") {
      tokens.Take();
      requirement.op = Operator::kDoesNotExist;
    }
    if (!tokens.AtIdentifier()) {
      return Unexpected(tokens, "!, identifier, or 'end of string'");
    }
    requirement.key = tokens.Take();
    if (requirement.op == Operator::kExists) {
      const std::string op = tokens.current();
      if (op == "=" || op == "==" || op == "!=") {
        tokens.Take();
        requirement.op = op == "!=" ? Operator::kNotIn : Operator::kIn;
        requirement.values.insert(tokens.AtIdentifier() ? tokens.Take() : "");
      } else if (op == "in" || op == "notin") {
        tokens.Take();
        requirement.op = op == "in" ? Operator::kIn : Operator::kNotIn;
        NH_ASSIGN_OR_RETURN(requirement.values, ParseSet(tokens));
      }
    }
    selector.requirements_.push_back(std::move(requirement));
    if (tokens.current().empty()) break;
    if (tokens.current() != ",") return Unexpected(tokens, "',' or 'end of string'");
    tokens.Take();
    if (tokens.current().empty()) return Unexpected(tokens, "identifier after ','");
  }
  return selector;
}

bool LabelSelector::Matches(const nlohmann::json& object) const {
  const nlohmann::json* labels = base::FindPath(object, {"metadata", "labels"});
  for (const Requirement& requirement : requirements_) {
    const auto value =
        labels == nullptr ? std::nullopt : base::FindString(*labels, requirement.key);
    switch (requirement.op) {
      case Operator::kIn:
        if (!value || requirement.values.count(*value) == 0) return false;
        break;
      case Operator::kNotIn:
        if (value && requirement.values.count(*value) != 0) return false;
        break;
      case Operator::kExists:
        if (!value) return false;
        break;
      case Operator::kDoesNotExist:
        if (value) return false;
        break;
    }
  }
  return true;
}

absl::StatusOr<FieldSelector> FieldSelector::Parse(std::string_view text,
                                                   const std::vector<std::string_view>& known) {
  FieldSelector selector;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipEmpty())) {
    const std::string term(part);
    const std::size_t equals = term.find('=');
    if (equals == std::string::npos) {
      return base::InvalidArgument("invalid selector: '" + std::string(text) +
                                   "'; can't understand '" + term + "'");
    }
    const bool unequal = equals > 0 && term[equals - 1] == '!';
    const bool twice = term.substr(equals).starts_with("==");
    Requirement requirement{.field = term.substr(0, equals - (unequal ? 1 : 0)),
                            .equal = !unequal,
                            .value = term.substr(equals + (twice ? 2 : 1))};
    const std::string& field = requirement.field;
    if (field != "metadata.name" && field != "metadata.namespace" &&
        std::find(known.begin(), known.end(), field) == known.end()) {
      return base::InvalidArgument("field label not supported: " + field);
    }
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

bool FieldSelector::Matches(const nlohmann::json& object) const {
  return std::all_of(
      requirements_.begin(), requirements_.end(), [&](const Requirement& requirement) {
        const nlohmann::json* value = &object;
        for (const absl::string_view member : absl::StrSplit(requirement.field, '.')) {
          if (value != nullptr) value = base::FindMember(*value, std::string(member));
        }
        const bool is_text = value != nullptr && value->is_string();
        const std::string text = is_text ? value->get<std::string>() : std::string();
        return (text == requirement.value) == requirement.equal;
      });
}

}  // namespace nomad_harvester::simulator
