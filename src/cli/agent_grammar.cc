// SPDX-License-Identifier: Apache-2.0
#include "agent_grammar.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"

namespace nomad_harvester::cli {
namespace {

using enum ValueType;
using enum Presence;
using enum Repeat;
using hcl::Value;

// hashicorp/nomad-autoscaler:agent/config/config.go, Plugin.
BlockRule PluginRule(std::string_view type) {
  return {
      .type = type,
      .repeat = kMany,
      .labels = 1,
      .arguments = {{kText, {"driver"}, kRequired}, {kTexts, {"args"}}, {kTextMap, {"config"}}}};
}

// hashicorp/nomad-autoscaler:sdk/policy.go, ScalingPolicySchedule. What a schedule may hold is
// checked in agent_schedule.cc.
BlockRule ScheduleRule() {
  return {.type = "schedule",
          .arguments = {{kText, {"start"}, kRequired}, {kText, {"end", "duration"}}},
          .since = Since::k050};
}

absl::Status CheckText(const hcl::Source& source, std::string_view name, const Value& value) {
  if (hcl::TextOf(value).has_value()) return absl::OkStatus();
  const char* const what = value.kind == Value::Kind::kNull   ? "null"
                           : value.kind == Value::Kind::kList ? "a list"
                                                              : "a map";
  return source.Error(
      value.offset,
      std::string(name) + ": " + what +
          " is not possible here: values are texts, numbers and bools, a list is "
          "written as \"a,b\", a map as \"k=v,k=v\"",
      hcl::IsSecretName(name) ? hcl::Source::Line::kHidden : hcl::Source::Line::kShown);
}

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Values convert as in zclconf/go-cty:cty/convert/conversion_primitive.go: a bool or a number to a
// text, a text to either, but neither to the other.
class Walker {
 public:
  Walker(const hcl::Source& source, GrammarNotes* notes) : source_(source), notes_(*notes) {}

  absl::Status Check(const hcl::Body& body, const BlockRule& rule, std::size_t offset) {
    for (const hcl::Argument& argument : body.arguments) {
      NH_RETURN_IF_ERROR(CheckArgument(argument, rule));
    }
    for (const ArgumentRule& known : rule.arguments) {
      if (known.presence != kRequired) continue;
      for (const std::string_view name : known.names) {
        if (hcl::FindArgument(body, name) != nullptr) continue;
        return source_.Error(offset, std::string(name) + " is required in this block");
      }
    }
    for (auto block = body.blocks.begin(); block != body.blocks.end(); ++block) {
      const bool repeated = std::any_of(body.blocks.begin(), block, [&](const hcl::Block& other) {
        return other.type == block->type;
      });
      NH_RETURN_IF_ERROR(CheckBlock(*block, rule, repeated));
    }
    return absl::OkStatus();
  }

 private:
  static const ArgumentRule* FindArgument(const BlockRule& rule, std::string_view name) {
    for (const ArgumentRule& known : rule.arguments) {
      if (std::find(known.names.begin(), known.names.end(), name) != known.names.end()) {
        return &known;
      }
    }
    return nullptr;
  }
  static const BlockRule* FindBlock(const BlockRule& rule, std::string_view type) {
    const auto found = std::find_if(rule.blocks.begin(), rule.blocks.end(),
                                    [&](const BlockRule& known) { return known.type == type; });
    return found == rule.blocks.end() ? nullptr : &*found;
  }

  absl::Status Unknown(std::string_view kind, const std::string& name, std::size_t offset,
                       const BlockRule& rule) {
    std::vector<std::string> known;
    for (const ArgumentRule& other : rule.arguments) {
      known.insert(known.end(), other.names.begin(), other.names.end());
    }
    for (const BlockRule& other : rule.blocks) known.emplace_back(other.type);
    std::string text = "unknown " + std::string(kind) + " " + name;
    if (!rule.type.empty()) text += " in block " + std::string(rule.type);
    if (const auto nearest = base::NearestName(name, known); nearest.has_value()) {
      return source_.Error(offset, text + "; did you mean " + *nearest + "?");
    }
    notes_.unknown.push_back(source_.Where(offset) + ": " + text +
                             ": agents up to 0.5.0 refuse this file");
    return absl::OkStatus();
  }

  void NoteIfNewer(Since since, const std::string& what, std::size_t offset) {
    if (since == Since::kAlways) return;
    notes_.newer.push_back(source_.Where(offset) + ": agent 0.4.6 does not know " + what +
                           " and refuses this file");
  }

  absl::Status CheckArgument(const hcl::Argument& argument, const BlockRule& rule) {
    if (const ArgumentRule* const known = FindArgument(rule, argument.name)) {
      NoteIfNewer(known->since, argument.name, argument.offset);
      return CheckValue(argument, *known);
    }
    if (rule.other_texts) return CheckText(source_, argument.name, argument.value);
    if (FindBlock(rule, argument.name) == nullptr) {
      return Unknown("argument", argument.name, argument.offset, rule);
    }
    return source_.Error(argument.offset, argument.name + " is a block: write it without \"=\"");
  }

  absl::Status CheckBlock(const hcl::Block& block, const BlockRule& rule, bool repeated) {
    const BlockRule* const known = FindBlock(rule, block.type);
    if (known == nullptr) {
      if (rule.other_texts) {
        return source_.Error(block.offset,
                             "a " + std::string(rule.type) + " block has arguments only");
      }
      if (FindArgument(rule, block.type) == nullptr) {
        return Unknown("block", block.type, block.offset, rule);
      }
      return source_.Error(block.offset,
                           block.type + " is an argument: write " + block.type + " = …");
    }
    if (repeated && known->repeat == kOnce) {
      return source_.Error(block.offset, "a second block " + block.type + "; there is one at most");
    }
    if (block.labels.size() != static_cast<std::size_t>(known->labels)) {
      return source_.Error(
          block.offset,
          "block " + block.type +
              (known->labels == 0 ? " has no label: " + block.type + " {"
                                  : " has one label, its name: " + block.type + " \"NAME\" {"));
    }
    NoteIfNewer(known->since, "block " + block.type, block.offset);
    return Check(block.body, *known, block.offset);
  }

  absl::Status CheckValue(const hcl::Argument& argument, const ArgumentRule& rule) {
    const Value& value = argument.value;
    const bool is_null = value.kind == Value::Kind::kNull;
    const bool nullable = rule.presence == kNullable || rule.type >= kTexts;
    if (is_null && nullable) return absl::OkStatus();
    switch (rule.type) {
      case kTexts:
      case kNamespaces:
        return CheckTexts(argument, rule.type);
      case kTextMap:
      case kCounts:
        return CheckMap(argument, rule.type);
      default:
        break;
    }
    NH_RETURN_IF_ERROR(CheckText(source_, argument.name, value));
    return CheckScalar(argument.name, argument.offset, value, rule.type);
  }

  absl::Status CheckScalar(const std::string& name, std::size_t offset, const Value& value,
                           ValueType type) {
    const std::string text = *hcl::TextOf(value);
    const auto fail = [&](const std::string& why) {
      return source_.Error(offset, name + ": " + why);
    };
    if (type == kText) return absl::OkStatus();
    if (type == kBool) {
      const bool readable = value.kind == Value::Kind::kBool ||
                            (value.kind == Value::Kind::kString &&
                             (text == "true" || text == "false" || text == "1" || text == "0"));
      return readable ? absl::OkStatus() : fail("expected true or false");
    }
    if (type == kQueryWindow && text == "instant") {
      NoteIfNewer(Since::k050, name + " = \"instant\"", offset);
      return absl::OkStatus();
    }
    if (type == kDuration || type == kQueryWindow) {
      const auto duration = base::ParseGoDuration(text);
      // The agent takes an empty text for none.
      return text.empty() || duration.ok() ? absl::OkStatus()
                                           : fail(base::Message(duration.status()));
    }
    // net.Listen, and PolicyEval.validate.
    const std::int64_t least = type == kLimit ? 1 : type == kPort || type == kCounts ? 0 : kLeast;
    const std::int64_t most = type == kPort ? 65535 : kMost;
    const auto number = IntegerOf(value);
    if (number.has_value() && *number >= least && *number <= most) return absl::OkStatus();
    return fail("expected a whole number" +
                (least == kLeast ? "" : ", at least " + std::to_string(least)) +
                (most == kMost ? "" : " and at most " + std::to_string(most)));
  }

  absl::Status CheckTexts(const hcl::Argument& argument, ValueType type) {
    const Value& value = argument.value;
    // rewriteLegacyNamespaceValue.
    if (type == kNamespaces && value.kind == Value::Kind::kString) return absl::OkStatus();
    if (value.kind != Value::Kind::kList) {
      return source_.Error(value.offset, argument.name + ": expected a list: [\"a\", \"b\"]");
    }
    if (type == kNamespaces) NoteIfNewer(Since::k050, "a list of namespaces", value.offset);
    for (const Value& item : value.items) {
      NH_RETURN_IF_ERROR(CheckText(source_, argument.name, item));
    }
    return absl::OkStatus();
  }

  absl::Status CheckMap(const hcl::Argument& argument, ValueType type) {
    if (argument.value.kind != Value::Kind::kObject) {
      return source_.Error(argument.value.offset,
                           argument.name + ": expected a map: { key = value }");
    }
    for (const hcl::Argument& member : argument.value.members) {
      NH_RETURN_IF_ERROR(CheckText(source_, member.name, member.value));
      if (type == kTextMap) continue;
      NH_RETURN_IF_ERROR(CheckScalar(member.name, member.offset, member.value, type));
    }
    return absl::OkStatus();
  }

  const hcl::Source& source_;
  GrammarNotes& notes_;
};

}  // namespace

// hashicorp/nomad-autoscaler:agent/config/config.go: Agent and the types that it names, parseFile
// for durations, Validate for what only Nomad Autoscaler Enterprise has.
const BlockRule& AgentFileRule() {
  static const BlockRule kRule{
      .arguments = {{kText, {"log_level", "plugin_dir"}},
                    {kBool, {"log_json", "log_include_location", "enable_debug"}}},
      .blocks = {
          {.type = "dynamic_application_sizing",
           .arguments = {{kDuration, {"metrics_preload_threshold", "evaluate_after"}},
                         {kText,
                          {"namespace_label", "job_label", "group_label", "task_label",
                           "cpu_metric", "memory_metric"}}}},
          {.type = "http", .arguments = {{kText, {"bind_address"}}, {kPort, {"bind_port"}}}},
          {.type = "nomad",
           .arguments = {{kText,
                          {"address", "region", "token", "http_auth", "ca_cert", "ca_path",
                           "client_cert", "client_key", "tls_server_name"}},
                         {kBool, {"skip_verify"}},
                         {kDuration, {"block_query_wait_time"}},
                         {kNamespaces, {"namespace"}}}},
          {.type = "policy",
           .arguments = {{kText, {"dir"}},
                         {kDuration, {"default_cooldown", "default_evaluation_interval"}}},
           .blocks = {{.type = "source",
                       .repeat = kMany,
                       .labels = 1,
                       .arguments = {{kBool, {"enabled"}, kNullable}}}}},
          {.type = "policy_eval",
           .arguments = {{kLimit, {"delivery_limit"}, kNullable},
                         {kDuration, {"ack_timeout"}},
                         {kCounts, {"workers"}}}},
          {.type = "telemetry",
           .arguments =
               {{kDuration, {"prometheus_retention_time", "collection_interval"}},
                {kBool, {"prometheus_metrics", "disable_hostname", "enable_hostname_label"}},
                {kTexts, {"dogstatsd_tags"}},
                {kText,
                 {"statsite_address", "statsd_address", "dogstatsd_address", "circonus_api_token",
                  "circonus_api_app", "circonus_api_url", "circonus_submission_interval",
                  "circonus_submission_url", "circonus_check_id",
                  "circonus_check_force_metric_activation", "circonus_check_instance_id",
                  "circonus_check_search_tag", "circonus_check_tags", "circonus_check_display_name",
                  "circonus_broker_id", "circonus_broker_select_tag"}}}},
          {.type = "high_availability",
           .arguments = {{kBool, {"enabled"}, kNullable},
                         {kText, {"lock_namespace", "lock_path"}},
                         {kDuration, {"lock_ttl", "lock_delay"}}}},
          PluginRule("apm"),
          PluginRule("target"),
          PluginRule("strategy")}};
  return kRule;
}

// hashicorp/nomad-autoscaler:sdk/policy.go, FileDecodeScalingPolicies and the types that it names;
// policy/file/parse.go, decodePolicyDoc, for durations.
const BlockRule& PolicyFileRule() {
  static const BlockRule kRule{
      .blocks = {
          {.type = "scaling",
           .repeat = kMany,
           .labels = 1,
           .arguments = {{kBool, {"enabled"}},
                         {kText, {"type"}},
                         {kInteger, {"min"}},
                         {kInteger, {"max"}, kRequired}},
           .blocks = {
               {.type = "policy",
                .arguments = {{kDuration, {"cooldown", "evaluation_interval"}},
                              {kDuration, {"cooldown_on_scale_up"}, kOptional, Since::k050},
                              {kText, {"on_check_error"}}},
                .blocks = {ScheduleRule(),
                           {.type = "check",
                            .repeat = kMany,
                            .labels = 1,
                            .arguments = {{kText, {"group", "source", "query", "on_error"}},
                                          {kQueryWindow, {"query_window"}},
                                          {kDuration, {"query_window_offset"}}},
                            .blocks = {ScheduleRule(),
                                       {.type = "strategy", .labels = 1, .other_texts = true}}},
                           {.type = "target", .labels = 1, .other_texts = true}}}}}}};
  return kRule;
}

std::vector<hcl::BlockSchema> SchemaOf(const BlockRule& rule) {
  std::vector<hcl::BlockSchema> schema;
  schema.reserve(rule.blocks.size());
  for (const BlockRule& block : rule.blocks) {
    schema.push_back({block.type, block.labels, SchemaOf(block)});
  }
  return schema;
}

absl::Status CheckGrammar(const hcl::Source& source, const hcl::Body& body, const BlockRule& rule,
                          GrammarNotes* notes) {
  return Walker(source, notes).Check(body, rule, 0);
}

std::optional<std::int64_t> IntegerOf(const hcl::Value& value) {
  if (value.kind != Value::Kind::kNumber && value.kind != Value::Kind::kString) return std::nullopt;
  // zclconf/go-cty:cty/value_init.go, ParseNumberVal.
  const std::string_view text = value.text;
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  const auto digits = hcl::CanonicalNumber(text.substr(is_signed ? 1 : 0));
  if (!digits.has_value()) return std::nullopt;
  const auto number = base::ParseInt((text.starts_with('-') ? "-" : "") + *digits);
  return number.ok() ? std::optional(*number) : std::nullopt;
}

}  // namespace nomad_harvester::cli
