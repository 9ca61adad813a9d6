// SPDX-License-Identifier: Apache-2.0
// The values of the plugin's annotations. On a VM: the mark, the node selection, the published host
// and the protection. On a pool's Lease: the action, the back-off, the last policy and the pause.
//
// Each record has one function that lists its members; it is called with a Reader or a Writer.
// Objects of servers are parsed leniently (base/json.h). Our annotations must be complete: one that
// lacks data needed for a removal counts as unreadable.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/metadata.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

// Limited, because all annotations of a Lease together may have 256 KiB.
constexpr std::size_t kMaxError = 2048;

// Collects problems and the names that were read. A member that is missing or has another type is a
// problem, and its value stays unchanged.
class Reader {
 public:
  Reader(const json& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object_.is_object()) problems_ = "must be a JSON object";
  }

  template <typename T>
  void Value(const char* key, T& value) {
    if (const json* member = Require(key)) Take(key, *member, value);
  }
  // Optional; not written if empty.
  template <typename T>
  void Optional(const char* key, T& value) {
    if (const json* member = Find(key)) Take(key, *member, value);
  }
  // Optional; written even if empty.
  void MaybeEmpty(const char* key, std::string& text) { Optional(key, text); }
  // Must not be empty.
  void Text(const char* key, std::string& text) {
    Value(key, text);
    const json* member = Find(key);
    if (member != nullptr && member->is_string() && text.empty()) Report(key, "is empty");
  }
  // Likewise; written with at most kMaxError bytes.
  void ShortText(const char* key, std::string& text) { Text(key, text); }
  // A value with a text form.
  template <typename T, typename Format>
  void As(const char* key, T& value, const Format& /*format*/,
          absl::StatusOr<T> (*parse)(std::string_view)) {
    std::string text;
    Text(key, text);
    if (text.empty()) return;
    const absl::StatusOr<T> parsed = parse(text);
    if (!parsed.ok()) return Report(key, base::Message(parsed.status()));
    value = *parsed;
  }
  // An object with its own members.
  template <typename List, typename Record>
  void Object(const char* key, const List& list, Record& record) {
    const json* member = Require(key);
    if (member == nullptr) return;
    Reader inner(*member, "");
    list(inner, record);
    if (!inner.problems_.empty()) Report(key, inner.problems_);
  }
  // Call it last. Stores the members that this version does not know, as the text of an object, if
  // there are any.
  void Unknown(std::string& unknown_members) const {
    if (!object_.is_object()) return;
    json unknown = json::object();
    for (const auto& [key, value] : object_.items()) {
      if (!known_.contains(key)) unknown[key] = value;
    }
    if (!unknown.empty()) unknown_members = base::DumpJson(unknown);
  }

  // INVALID_ARGUMENT with every problem, or OK.
  absl::Status status() const {
    return problems_.empty() ? absl::OkStatus() : base::InvalidArgument(what_ + ": " + problems_);
  }

 private:
  const json* Find(const char* key) {
    known_.emplace(key);
    return base::FindMember(object_, key);
  }
  const json* Require(const char* key) {
    const json* member = Find(key);
    if (member == nullptr) Report(key, "is missing");
    return member;
  }
  void Report(const std::string& key, const std::string& problem) {
    problems_ += (problems_.empty() ? "" : "; ") + key + ": " + problem;
  }

  template <typename T>
  void TakeIf(bool is_wanted, const char* key, const json& member, T& value, const char* wanted) {
    if (!is_wanted) return Report(key, std::string("must be ") + wanted);
    value = member.get<T>();
  }
  void Take(const char* key, const json& member, std::string& value) {
    TakeIf(member.is_string(), key, member, value, "a string");
  }
  void Take(const char* key, const json& member, std::optional<std::string>& value) {
    Take(key, member, value.emplace());
  }
  void Take(const char* key, const json& member, bool& value) {
    TakeIf(member.is_boolean(), key, member, value, "true or false");
  }
  // nlohmann stores a negative JSON integer as a signed number.
  void Take(const char* key, const json& member, std::uint64_t& value) {
    TakeIf(member.is_number_unsigned(), key, member, value, "a whole number of at least 0");
  }
  void Take(const char* key, const json& member, std::int64_t& value) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    const bool fits = member.is_number_unsigned() && member.get<std::uint64_t>() <= kMax;
    TakeIf(fits, key, member, value, "a whole number of at least 0, in 63 bits");
  }
  void Take(const char* key, const json& member, std::set<std::string>& value) {
    TakeIf(member.is_array() && HoldsTexts(member), key, member, value, "a list of strings");
  }
  void Take(const char* key, const json& member, std::map<std::string, std::string>& value) {
    TakeIf(member.is_object() && HoldsTexts(member), key, member, value, "an object of strings");
  }
  static bool HoldsTexts(const json& values) {
    return std::all_of(values.begin(), values.end(), [](const json& v) { return v.is_string(); });
  }

  const json& object_;
  const std::string what_;
  std::set<std::string> known_;
  std::string problems_;
};

// Writes the members that a Reader reads.
class Writer {
 public:
  template <typename T>
  void Value(const char* key, const T& value) {
    object_[key] = value;
  }
  template <typename T>
  void Optional(const char* key, const T& value) {
    if (value != T()) object_[key] = value;
  }
  void Optional(const char* key, const std::optional<std::string>& value) {
    if (value) object_[key] = *value;
  }
  void MaybeEmpty(const char* key, const std::string& text) { object_[key] = text; }
  void Text(const char* key, const std::string& text) { object_[key] = text; }
  void ShortText(const char* key, const std::string& text) {
    object_[key] = base::ToShortUtf8(text, kMaxError);
  }
  template <typename T, typename Format, typename Parse>
  void As(const char* key, const T& value, const Format& format, const Parse& /*parse*/) {
    object_[key] = format(value);
  }
  template <typename List, typename Record>
  void Object(const char* key, const List& list, const Record& record) {
    Writer inner;
    list(inner, record);
    object_[key] = std::move(inner.object_);
  }
  // Members that this version writes itself take precedence.
  void Unknown(const std::string& unknown_members) {
    if (unknown_members.empty()) return;
    const auto unknown = base::ParseJson(unknown_members, "unknown members");
    if (unknown.ok() && unknown->is_object()) object_.insert(unknown->begin(), unknown->end());
  }

  std::string Dump() const { return base::DumpJson(object_); }

 private:
  json object_ = json::object();
};

std::string FormatDeadline(const DrainDeadline& deadline) {
  if (deadline.kind == DrainDeadline::Kind::kNone) return "none";
  if (deadline.kind == DrainDeadline::Kind::kNow) return "now";
  return base::FormatRfc3339Nanos(deadline.at);
}

absl::StatusOr<DrainDeadline> ParseDeadline(std::string_view text) {
  if (text == "none") return DrainDeadline{};
  if (text == "now") return DrainDeadline{DrainDeadline::Kind::kNow, {}};
  const auto at = base::ParseRfc3339(text);
  if (at.ok()) return DrainDeadline{DrainDeadline::Kind::kAt, *at};
  return base::InvalidArgument("is neither a time nor \"none\" nor \"now\"");
}

constexpr std::array<std::string_view, 4> kReasons = {"scale-in", "broken", "unhealthy", "replace"};

constexpr std::array<std::string_view, 5> kReplaceKinds = {"unhealthy", "requested", "host",
                                                           "drifted", "expired"};

// `names`: of the enumerators, in their order.
template <typename Enum, std::size_t kCount>
absl::StatusOr<Enum> ParseName(const std::array<std::string_view, kCount>& names,
                               std::string_view text) {
  const auto* const found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return base::InvalidArgument("is unknown");
  return static_cast<Enum>(found - names.begin());
}
absl::StatusOr<MarkReason> ParseReason(std::string_view text) {
  return ParseName<MarkReason>(kReasons, text);
}
std::string_view NameOf(ReplaceReason::Kind kind) {
  return kReplaceKinds[static_cast<std::size_t>(kind)];
}
absl::StatusOr<ReplaceReason::Kind> ParseReplaceKind(std::string_view text) {
  return ParseName<ReplaceReason::Kind>(kReplaceKinds, text);
}

absl::StatusOr<base::Duration> ParseGrace(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const base::Duration grace, base::ParseGoDuration(text));
  if (grace < base::Duration::zero()) return base::InvalidArgument("must not be negative");
  return grace;
}

constexpr auto kMembersOfNodes = [](auto& members, auto& nodes) {
  members.Optional("region", nodes.region);
  members.Optional("node_class", nodes.node_class);
  members.Optional("datacenter", nodes.datacenter);
  members.Optional("node_pool", nodes.node_pool);
  members.Text("node_attribute", nodes.node_attribute);
  members.Value("index", nodes.index);
};

constexpr auto kMembersOfMark = [](auto& members, auto& mark) {
  members.Text("action", mark.action);
  members.As("reason", mark.reason, MarkReasonName, ParseReason);
  members.Text("vm_uid", mark.vm_uid);
  members.MaybeEmpty("node_id", mark.node_id);
  members.As("marked_at", mark.marked_at, base::FormatRfc3339Nanos, base::ParseRfc3339);
  members.As("drain_deadline", mark.drain_deadline, FormatDeadline, ParseDeadline);
  members.As("grace", mark.grace, base::FormatGoDuration, ParseGrace);
  members.Value("force", mark.force);
  members.Value("ignore_system", mark.ignore_system);
  members.Value("purge", mark.purge);
  members.Object("nodes", kMembersOfNodes, mark.nodes);
  members.Unknown(mark.unknown_members);
};

constexpr auto kMembersOfPublishedHost = [](auto& members, auto& published) {
  members.Text("node_id", published.node_id);
  members.Text("host", published.host);
  members.Optional("zone", published.zone);
  members.Unknown(published.unknown_members);
};

constexpr auto kMembersOfReplaces = [](auto& members, auto& replaces) {
  members.Text("vm", replaces.vm);
  members.Text("uid", replaces.uid);
  members.As("reason", replaces.reason.kind, NameOf, ParseReplaceKind);
  members.Optional("detail", replaces.reason.detail);
  members.Optional("start", replaces.start);
  members.Optional("was", replaces.was);
  members.Optional("had", replaces.had);
  members.Optional("flips", replaces.flips);
  members.Unknown(replaces.unknown_members);
};

constexpr auto kMembersOfStopped = [](auto& members, auto& stopped) {
  members.As("stopped_at", stopped.at, base::FormatRfc3339Nanos, base::ParseRfc3339);
  members.MaybeEmpty("vm", stopped.vm);
  members.MaybeEmpty("template_hash", stopped.template_hash);
  members.ShortText("why", stopped.why);
  members.Optional("lacks_room", stopped.lacks_room);
  members.Unknown(stopped.unknown_members);
};

constexpr auto kMembersOfAction = [](auto& members, auto& action) {
  members.Text("id", action.id);
  members.Value("from", action.from);
  members.Value("to", action.to);
  members.Value("names", action.names);
  members.Value("create", action.create);
  members.Optional("cancel", action.cancel);
  members.Optional("despite_mass_loss", action.despite_mass_loss);
  members.Unknown(action.unknown_members);
};

constexpr auto kMembersOfBackOff = [](auto& members, auto& entry) {
  members.Value("failures", entry.failures);
  members.As("retry_at", entry.retry_at, base::FormatRfc3339Nanos, base::ParseRfc3339);
  members.Optional("action", entry.action);
  members.Unknown(entry.unknown_members);
};

constexpr auto kMembersOfPolicy = [](auto& members, auto& policy) {
  members.Text("id", policy.id);
  members.As("at", policy.at, base::FormatRfc3339Nanos, base::ParseRfc3339);
  members.Optional("before", policy.before);
  members.Unknown(policy.unknown_members);
};

constexpr auto kMembersOfError = [](auto& members, auto& error) {
  members.MaybeEmpty("action", error.action);
  members.Optional("vm", error.vm);
  members.As("at", error.at, base::FormatRfc3339Nanos, base::ParseRfc3339);
  members.ShortText("text", error.text);
  members.Unknown(error.unknown_members);
};

template <typename List, typename Record>
std::string Write(const List& list, const Record& record) {
  Writer writer;
  list(writer, record);
  return writer.Dump();
}

template <typename Record, typename List>
absl::StatusOr<Record> Read(const List& list, const json& object, std::string what) {
  Reader reader(object, std::move(what));
  Record record;
  list(reader, record);
  NH_RETURN_IF_ERROR(reader.status());
  return record;
}

template <typename Record, typename List>
absl::StatusOr<Record> Parse(const List& list, std::string_view text, const std::string& what) {
  NH_ASSIGN_OR_RETURN(const json object, base::ParseJson(text, what));
  return Read<Record>(list, object, what);
}

}  // namespace

std::string_view MarkReasonName(MarkReason reason) {
  return kReasons[static_cast<std::size_t>(reason)];
}

std::string Describe(const ReplaceReason& reason) {
  if (reason.kind == ReplaceReason::Kind::kHost) return "host " + reason.detail + " is cordoned";
  const std::string name(NameOf(reason.kind));
  return reason.detail.empty() ? name : name + ": " + reason.detail;
}

std::string ToAnnotation(const NodesRecord& nodes) { return Write(kMembersOfNodes, nodes); }
std::string ToAnnotation(const Mark& mark) { return Write(kMembersOfMark, mark); }
std::string ToAnnotation(const CancelledRemoval& undone) {
  return base::ToShortUtf8(base::FormatRfc3339(undone.at) + " " + undone.why, kMaxError);
}
std::string ToAnnotation(const PublishedHost& host) { return Write(kMembersOfPublishedHost, host); }
std::string ToAnnotation(const Replaces& replaces) { return Write(kMembersOfReplaces, replaces); }
std::string ToAnnotation(const StoppedReplacement& stopped) {
  return Write(kMembersOfStopped, stopped);
}
std::string ToAnnotation(const LeaseAction& action) { return Write(kMembersOfAction, action); }
std::string ToAnnotation(const PolicyRecord& policy) { return Write(kMembersOfPolicy, policy); }
std::string ToAnnotation(const ErrorRecord& error) { return Write(kMembersOfError, error); }
std::string ToAnnotation(const BackOff& back_off) {
  Writer writer;
  for (const auto& [cause, entry] : back_off) {
    writer.Object(cause.c_str(), kMembersOfBackOff, entry);
  }
  return writer.Dump();
}

absl::StatusOr<NodesRecord> ParseNodesRecord(std::string_view text) {
  return Parse<NodesRecord>(kMembersOfNodes, text, "nodes");
}
absl::StatusOr<Mark> ParseMark(std::string_view text) {
  return Parse<Mark>(kMembersOfMark, text, "mark");
}
absl::StatusOr<CancelledRemoval> ParseUndoneRemoval(std::string_view text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  NH_ASSIGN_OR_RETURN(const base::WallTime at, base::ParseRfc3339(text.substr(0, end)));
  return CancelledRemoval{at, std::string(text.substr(std::min(end + 1, text.size())))};
}
absl::StatusOr<PublishedHost> ParsePublishedHost(std::string_view text) {
  return Parse<PublishedHost>(kMembersOfPublishedHost, text, "published-host");
}
absl::StatusOr<Replaces> ParseReplaces(std::string_view text) {
  NH_ASSIGN_OR_RETURN(json object, base::ParseJson(text, "replaces"));
  // Without the rest, a new VM would count beside the one that it replaces.
  const std::string reason = base::GetString(object, "reason");
  if (!reason.empty() && !ParseReplaceKind(reason).ok()) {
    const std::string detail = base::GetString(object, "detail");
    object["reason"] = NameOf(ReplaceReason::Kind::kRequested);
    object["detail"] = detail.empty() ? reason : reason + ": " + detail;
  }
  return Read<Replaces>(kMembersOfReplaces, object, "replaces");
}
absl::StatusOr<StoppedReplacement> ParseStoppedReplacement(std::string_view text) {
  return Parse<StoppedReplacement>(kMembersOfStopped, text, "replacement");
}
absl::StatusOr<LeaseAction> ParseLeaseAction(std::string_view text) {
  return Parse<LeaseAction>(kMembersOfAction, text, "action");
}
absl::StatusOr<PolicyRecord> ParsePolicyRecord(std::string_view text) {
  return Parse<PolicyRecord>(kMembersOfPolicy, text, "policy");
}
absl::StatusOr<ErrorRecord> ParseErrorRecord(std::string_view text) {
  return Parse<ErrorRecord>(kMembersOfError, text, "last-error");
}
absl::StatusOr<BackOff> ParseBackOff(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const json object, base::ParseJson(text, "back-off"));
  if (!object.is_object()) return base::InvalidArgument("back-off: must be a JSON object");
  Reader reader(object, "back-off");
  BackOff back_off;
  for (const auto& [cause, entry] : object.items()) {
    reader.Object(cause.c_str(), kMembersOfBackOff, back_off[cause]);
  }
  NH_RETURN_IF_ERROR(reader.status());
  return back_off;
}

}  // namespace nomad_harvester::harvester
