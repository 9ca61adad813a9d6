// SPDX-License-Identifier: Apache-2.0
// The grammar of the agent's files: one table, and the walker that compares a file with it. Private
// to module cli.
#ifndef NOMAD_HARVESTER_CLI_AGENT_GRAMMAR_H_
#define NOMAD_HARVESTER_CLI_AGENT_GRAMMAR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/hcl/document.h"

#include "absl/status/status.h"

namespace nomad_harvester::cli {

enum class ValueType {
  kText,
  kDuration,
  kQueryWindow,  // a duration, or "instant"
  kBool,
  kInteger,
  kPort,
  kLimit,  // an integer greater than 0
  kTexts,
  kNamespaces,  // texts, or a single one
  kTextMap,
  kCounts,  // a map of integers that are not negative
};

enum class Presence { kOptional, kRequired, kNullable };
enum class Since { kAlways, k050 };  // which agents know it: all, or none before 0.5.0
enum class Repeat { kOnce, kMany };

// Arguments that have all but their name in common.
struct ArgumentRule {
  ValueType type;
  std::vector<std::string_view> names;
  Presence presence = Presence::kOptional;
  Since since = Since::kAlways;
};

struct BlockRule {
  std::string_view type;  // empty for a file
  Repeat repeat = Repeat::kOnce;
  int labels = 0;
  std::vector<ArgumentRule> arguments = {};
  std::vector<BlockRule> blocks = {};
  bool other_texts = false;  // any other argument is a text
  Since since = Since::kAlways;
};

// A file of the agent's -config, and one of its policy.dir.
const BlockRule& AgentFileRule();
const BlockRule& PolicyFileRule();

// For hcl::ReadDocument.
std::vector<hcl::BlockSchema> SchemaOf(const BlockRule& rule);

struct GrammarNotes {
  std::vector<std::string> unknown;  // names that agents up to 0.5.0 refuse; newer ones may not
  std::vector<std::string> newer;    // what agents before 0.5.0 refuse
};

// INVALID_ARGUMENT, made by Source::Error, for the first thing that every agent refuses; a name
// that nearly matches is one. After success every value has its type.
absl::Status CheckGrammar(const hcl::Source& source, const hcl::Body& body, const BlockRule& rule,
                          GrammarNotes* notes);

// Returns an integer as the agent converts it from a number or a text.
std::optional<std::int64_t> IntegerOf(const hcl::Value& value);

// The argument that is wrong, and why; an empty `why`: none is.
struct ScheduleProblem {
  std::string argument;
  std::string why;
};

// What the agent refuses (hashicorp/nomad-autoscaler:sdk/schedule.go,
// ValidateScalingPolicySchedule): start, and one of end and duration. start and end are cron
// expressions of five fields (hashicorp/cronexpr:cronexpr_parse.go).
ScheduleProblem ProblemOfSchedule(const std::string& start, const std::string& end,
                                  const std::string& duration);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_AGENT_GRAMMAR_H_
