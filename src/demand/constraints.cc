// SPDX-License-Identifier: Apache-2.0
#include "constraints.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "nomad_harvester/base/parse.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "versions.h"

namespace nomad_harvester::demand {
namespace {

using Kind = Value::Kind;

// A pattern that would need more is not told.
constexpr std::int64_t kMaxRegexpMemory = 1 << 20;

// The name of a node class by which a policy means "none" (nodepool/identity.h).
constexpr std::string_view kNoClass = "autoscaler-default-pool";

Value Text(std::string_view text) { return {Kind::kText, text}; }
Value Missing() { return {Kind::kMissing, ""}; }

// Removes "${prefix" and "}"; nullopt if the target has another prefix.
std::optional<std::string_view> KeyOf(std::string_view target, std::string_view prefix) {
  if (!target.starts_with(prefix)) return std::nullopt;
  target.remove_prefix(prefix.size());
  if (target.ends_with('}')) target.remove_suffix(1);
  return target;
}

Value Find(const std::map<std::string, std::string>& map, std::string_view key) {
  const auto found = map.find(std::string(key));
  return found == map.end() ? Missing() : Text(found->second);
}

// hashicorp/nomad:nomad/structs/node_class.go: such values are of one node alone.
bool IsUnique(std::string_view target) {
  return target.starts_with("${node.unique.") || target.starts_with("${attr.unique.") ||
         target.starts_with("${meta.unique.");
}

// As Go's strconv does: without white space around.
std::optional<double> ParseFloat(std::string_view text) {
  double number = 0;
  const bool parsed =
      base::TrimAsciiSpace(text) == text && absl::SimpleAtod(std::string(text), &number);
  return parsed ? std::optional(number) : std::nullopt;
}

template <typename T>
bool IsOrdered(std::string_view op, const T& left, const T& right) {
  if (op == "<") return left < right;
  if (op == "<=") return left <= right;
  if (op == ">") return left > right;
  return left >= right;
}

// As integers if both are, else as floats, else by their bytes.
bool CheckOrder(std::string_view op, std::string_view left, std::string_view right) {
  if (const auto a = base::ParseInt(left), b = base::ParseInt(right); a.ok() && b.ok()) {
    return IsOrdered(op, *a, *b);
  }
  if (const auto a = ParseFloat(left), b = ParseFloat(right); a && b) return IsOrdered(op, *a, *b);
  return IsOrdered(op, left, right);
}

std::vector<std::string> Elements(std::string_view text) {
  std::vector<std::string> elements = absl::StrSplit(std::string(text), ',');
  for (std::string& element : elements) element = std::string(base::TrimAsciiSpace(element));
  std::sort(elements.begin(), elements.end());
  return elements;
}

bool ContainsAll(std::string_view left, std::string_view right) {
  std::vector<std::string> wanted = Elements(right);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  const std::vector<std::string> have = Elements(left);
  return std::includes(have.begin(), have.end(), wanted.begin(), wanted.end());
}
bool ContainsAny(std::string_view left, std::string_view right) {
  const std::vector<std::string> have = Elements(left);
  const std::vector<std::string> wanted = Elements(right);
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& element) {
    return std::binary_search(have.begin(), have.end(), element);
  });
}

std::shared_ptr<const re2::RE2> Compile(std::string_view pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxRegexpMemory);
  return std::make_shared<const re2::RE2>(std::string(pattern), options);
}

// For is_set and is_not_set.
Truth IsSet(Kind kind) {
  return kind == Kind::kUnknown ? Truth::kCannotTell : ToTruth(kind != Kind::kMissing);
}

}  // namespace

Value Resolve(std::string_view target, const nomad::Node& node) {
  if (!target.starts_with("${")) return Text(target);
  if (target == "${node.unique.id}") return Text(node.id);
  if (target == "${node.unique.name}") return Text(node.name);
  if (target == "${node.datacenter}") return Text(node.datacenter);
  if (target == "${node.class}") return Text(node.node_class);
  if (target == "${node.pool}") return Text(node.node_pool);
  const auto attribute = KeyOf(target, "${attr.");
  const auto meta = KeyOf(target, "${meta.");
  if (!attribute && !meta) return Missing();
  if (!node.full) return {};
  return attribute ? Find(node.attributes, *attribute) : Find(node.meta, *meta);
}

const NodeClasses::Classes& NodeClasses::By(const std::string& left,
                                            const std::string& right) const {
  // A literal is the same for all.
  const auto target = [](const std::string& t) { return t.starts_with("${") ? t : ""; };
  const auto [found, is_new] = classes_.try_emplace({target(left), target(right)});
  Classes& classes = found->second;
  if (!is_new) return classes;
  using Values = std::tuple<Kind, std::string_view, Kind, std::string_view>;
  std::map<Values, std::size_t> numbers;
  classes.of_node.reserve(nodes_.size());
  for (const nomad::Node* node : nodes_) {
    const Value l = demand::Resolve(left, *node);
    const Value r = demand::Resolve(right, *node);
    const auto [number, is_first] =
        numbers.try_emplace(Values(l.kind, l.text, r.kind, r.text), classes.examples.size());
    if (is_first) classes.examples.push_back(node);
    classes.of_node.push_back(number->second);
  }
  return classes;
}

const NodeClasses::Classes& NodeClasses::Single() const { return By("${node.unique.id}", ""); }

Value NewNode::ResolveAlone(std::string_view target) const {
  if (!target.starts_with("${")) return Text(target);
  if (IsUnique(target)) return {Kind::kOwn, ""};
  if (target == "${node.datacenter}" && identity_.datacenter) return Text(*identity_.datacenter);
  if (target == "${node.pool}" && identity_.node_pool) return Text(*identity_.node_pool);
  if (target == "${node.class}" && identity_.node_class) {
    return Text(*identity_.node_class == kNoClass ? "" : *identity_.node_class);
  }
  return {};
}

Value NewNode::Resolve(std::string_view target) const {
  const Value alone = ResolveAlone(target);
  if (alone.kind != Kind::kUnknown) return alone;
  const auto& examples = known_.By(std::string(target), "").examples;
  return examples.size() == 1 ? demand::Resolve(target, *examples.front()) : Value();
}

ConstraintCheck::ConstraintCheck(Constraint constraint) : constraint_(std::move(constraint)) {
  const bool is_literal = !constraint_.right.starts_with("${");
  if (constraint_.operand == "regexp" && is_literal) regexp_ = Compile(constraint_.right);
}

Truth ConstraintCheck::On(const nomad::Node& node) const {
  return Evaluate(Resolve(constraint_.left, node), Resolve(constraint_.right, node));
}
// Whether a value of its own is there at all, the known nodes tell.
Truth ConstraintCheck::On(const NewNode& node) const {
  const bool is_set = constraint_.operand == "is_set" || constraint_.operand == "is_not_set";
  const Value left = node.ResolveAlone(constraint_.left);
  const Value right = node.ResolveAlone(constraint_.right);
  const bool own = left.kind == Kind::kOwn || right.kind == Kind::kOwn;
  const bool known = left.kind != Kind::kUnknown && right.kind != Kind::kUnknown;
  if ((own || known) && !is_set) return Evaluate(left, right);
  return Agreed(node.known().By(constraint_.left, constraint_.right).examples,
                [&](const nomad::Node& other) { return On(other); });
}

std::string ConstraintCheck::ToString() const {
  std::string text = constraint_.left + " " + constraint_.operand;
  if (!constraint_.right.empty()) text += " " + constraint_.right;
  return text;
}

// A missing target equals an empty text for "!=" only. A value of one node alone differs from each
// text that a job names, which is of a node that is there.
Truth ConstraintCheck::Evaluate(Value left, Value right) const {
  const std::string& op = constraint_.operand;
  if (op == "is_set") return IsSet(left.kind);
  if (op == "is_not_set") {
    const Truth set = IsSet(left.kind);
    return set == Truth::kCannotTell ? set : ToTruth(set == Truth::kNo);
  }
  const auto is_known = [](const Value& value) {
    return value.kind == Kind::kText || value.kind == Kind::kMissing;
  };
  if (op == "!=" || op == "not") {
    const bool own = left.kind == Kind::kOwn || right.kind == Kind::kOwn;
    if (own && (is_known(left) || is_known(right))) return Truth::kYes;
    if (!is_known(left) || !is_known(right)) return Truth::kCannotTell;
    return ToTruth(left.text != right.text);
  }
  if (left.kind == Kind::kMissing || right.kind == Kind::kMissing) return Truth::kNo;
  if (!is_known(left) || !is_known(right)) return Truth::kCannotTell;
  const auto [l, r] = std::pair(left.text, right.text);
  if (op == "=" || op == "==" || op == "is") return ToTruth(l == r);
  if (op == "<" || op == "<=" || op == ">" || op == ">=") return ToTruth(CheckOrder(op, l, r));
  if (op == "version") return ToTruth(MeetsVersions(l, r, VersionRules::kVersion));
  if (op == "semver") return ToTruth(MeetsVersions(l, r, VersionRules::kSemver));
  if (op == "regexp") return MatchesRegexp(l, r);
  if (op == "set_contains" || op == "set_contains_all") return ToTruth(ContainsAll(l, r));
  if (op == "set_contains_any") return ToTruth(ContainsAny(l, r));
  return Truth::kCannotTell;  // of a newer Nomad
}

Truth ConstraintCheck::MatchesRegexp(std::string_view text, std::string_view pattern) const {
  const auto regexp = regexp_ != nullptr ? regexp_ : Compile(pattern);
  if (regexp->ok()) return ToTruth(re2::RE2::PartialMatch(std::string(text), *regexp));
  return regexp->error_code() == re2::RE2::ErrorPatternTooLarge ? Truth::kCannotTell : Truth::kNo;
}

bool MatchesGlob(std::string_view pattern, std::string_view text) {
  const std::string regexp =
      absl::StrReplaceAll(re2::RE2::QuoteMeta(std::string(pattern)), {{"\\*", "(?s).*"}});
  return re2::RE2::FullMatch(std::string(text), re2::RE2(regexp, re2::RE2::Latin1));
}

}  // namespace nomad_harvester::demand
