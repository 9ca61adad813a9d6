// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/demand/query.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/demand/packing.h"
#include "nomad_harvester/policy/strategies.h"

#include "absl/strings/str_join.h"

namespace nomad_harvester::demand {
namespace {

// What a query asks for, by its first word.
constexpr policy::Choice<Subject> kSubjects[] = {{"nodes-needed", Subject::kNodesNeeded},
                                                 {"overflow", Subject::kOverflow},
                                                 {"room", Subject::kRoom}};

std::string NameOf(Subject subject) { return std::string(policy::NameIn(kSubjects, subject)); }

// Splits where `separates` is true, outside of quotes and parentheses. Empty parts are dropped.
template <typename Separates>
std::vector<std::string_view> Split(std::string_view text, const Separates& separates) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool quoted = false;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const bool ends = i == text.size();
    const char c = ends ? ' ' : text[i];
    if (c == '"') quoted = !quoted;
    if (!quoted && c == '(') ++depth;
    if (!quoted && c == ')') --depth;
    if (!ends && (quoted || depth > 0 || !separates(c))) continue;
    if (i > begin) parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}
constexpr char kWhiteSpace[] = " \t\r\n";
bool IsSpace(char c) { return std::string_view(kWhiteSpace).find(c) != std::string_view::npos; }

std::string_view Unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

std::string WithQuotes(const std::string& name, const char* if_any_of) {
  return name.find_first_of(if_any_of) == std::string::npos ? name : "\"" + name + "\"";
}

// "key=value"; a quoted key may contain '='.
std::pair<std::string_view, std::string_view> KeyAndValue(std::string_view text) {
  const std::size_t from = text.starts_with('"') ? text.find('"', 1) : 0;
  const std::size_t at = text.find('=', std::min(from, text.size()));
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

struct Amount {
  std::string_view name;
  std::string_view unit;
  std::int64_t Resources::*member;
  std::int64_t most = kUnlimited;
};
constexpr std::array<Amount, 4> kAmounts = {{{"cpu", "MHz", &Resources::cpu},
                                             {"cores", "cores", &Resources::cores, kMaxCores},
                                             {"memory", "MiB", &Resources::memory_mb},
                                             {"disk", "MiB", &Resources::disk_mb}}};

constexpr char kNoSpaces[] = "write KEY=VALUE without spaces around \"=\"";

// Reads "(cpu=500,memory=1024,nvidia/gpu/T4=1)". False: `problem` then says what is wrong.
bool ReadResources(std::string_view text, Resources& resources, std::string& problem) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') {
    problem = base::Quoted(text) + " is no size in parentheses";
    return false;
  }
  bool has_any = false;
  std::set<std::string> seen;
  for (const std::string_view given :
       Split(text.substr(1, text.size() - 2), [](char c) { return c == ','; })) {
    const std::string_view part = base::TrimAsciiSpace(given);
    const auto [key_text, value] = KeyAndValue(part);
    const std::string key(Unquoted(key_text));
    const auto amount = base::ParseInt(value);
    const auto* const found = std::find_if(kAmounts.begin(), kAmounts.end(),
                                           [&](const Amount& row) { return row.name == key; });
    const bool is_known = found != kAmounts.end();
    const bool is_device =
        std::count(key.begin(), key.end(), '/') >= 2 && key.find('"') == std::string::npos;
    const std::int64_t most = is_known ? found->most : kUnlimited;
    if (base::TrimAsciiSpace(key_text) != key_text || base::TrimAsciiSpace(value) != value) {
      problem = base::Quoted(part) + ": " + kNoSpaces;
    } else if (!is_known && !is_device) {
      problem = base::Quoted(part) + " is neither cpu, cores, memory or disk nor a device";
    } else if (!amount.ok() || *amount < 0 || *amount > most) {
      problem = base::Quoted(part) + " is no whole number" +
                (is_known ? " of " + std::string(found->unit) : "") + " from 0 to " +
                std::to_string(most);
    } else if (!seen.insert(key).second) {
      problem = key + " is given twice";
    }
    if (!problem.empty()) return false;
    (is_device ? resources.devices[key] : resources.*found->member) = *amount;
    has_any = has_any || *amount > 0;
  }
  if (!has_any) problem = "the size is empty";
  return has_any;
}

// What ReadResources reads, of amounts from `least` to what it accepts.
std::string AmountsText(const Resources& size, std::int64_t least) {
  std::vector<std::string> parts;
  for (const Amount& each : kAmounts) {
    const std::int64_t amount = size.*each.member;
    if (amount < least || amount > each.most) continue;
    parts.push_back(std::string(each.name) + "=" + std::to_string(amount));
  }
  for (const auto& [device, count] : size.devices) {
    parts.push_back(WithQuotes(device, " \t\r\n\v\f,=()") + "=" + std::to_string(count));
  }
  return "(" + absl::StrJoin(parts, ",") + ")";
}

template <auto kMember>
bool SetName(Query& query, std::string_view value, std::string& problem) {
  const std::string_view name = Unquoted(value);
  const std::size_t wrong = name.find_first_of("\",;=*'()");
  if (wrong != std::string_view::npos) {
    const char c = name[wrong];
    problem = c == ',' || c == ';' ? "keys are separated by spaces, not by commas"
                                   : "no name has the character " + std::string(1, c);
  } else if (kMember == &Query::node_pool && name == "all") {
    problem = "all is Nomad's word for every node pool, and no node is in it";
  }
  query.*kMember = std::string(name);
  return !name.empty() && problem.empty();
}
bool AddHeadroom(Query& query, std::string_view value, std::string& problem) {
  Headroom headroom{.count = 1};
  const std::size_t open = value.find('(');
  if (open == std::string_view::npos) {
    problem = "it has no size in parentheses";
    return false;
  }
  if (open > 0) {
    const auto count = base::ParseInt(value.substr(0, open - 1));
    if (value[open - 1] != 'x' || !count.ok() || *count < 1 || *count > kMaxAddedForGroup) {
      problem = base::Quoted(value.substr(0, open)) + " is no number of units from 1x to " +
                std::to_string(kMaxAddedForGroup) + "x";
      return false;
    }
    headroom.count = *count;
  }
  if (!ReadResources(value.substr(open), headroom.unit, problem)) return false;
  query.headroom.push_back(std::move(headroom));
  return true;
}
bool SetIdleFor(Query& query, std::string_view value, std::string& /*problem*/) {
  const auto duration = base::ParseGoDuration(value);
  if (duration.ok()) query.idle_for = *duration;
  return duration.ok() && *duration >= base::Duration::zero();
}
bool SetNode(Query& query, std::string_view value, std::string& problem) {
  query.node = {
      .cpu = kUnlimited, .cores = kUnlimited, .memory_mb = kUnlimited, .disk_mb = kUnlimited};
  return ReadResources(value, *query.node, problem);
}

template <auto kMember>
bool SetHomeName(Query& query, std::string_view value, std::string& /*problem*/) {
  query.home.*kMember = std::string(Unquoted(value));
  return base::IsDnsLabel(query.home.*kMember);
}
bool SetMax(Query& query, std::string_view value, std::string& /*problem*/) {
  const auto max = base::ParseInt(value);
  query.home.max = max.ok() ? *max : -1;
  return query.home.max >= 0;
}

// Which subjects have a key.
constexpr unsigned Of(Subject subject) { return 1U << static_cast<unsigned>(subject); }
constexpr unsigned kOfNodes = Of(Subject::kNodesNeeded) | Of(Subject::kOverflow);
constexpr unsigned kOfHome = Of(Subject::kOverflow) | Of(Subject::kRoom);

// The grammar.
struct Key {
  std::string_view name;
  std::string_view form;
  // False: the value is wrong; `problem` says more if the form does not say all.
  bool (*set)(Query& query, std::string_view value, std::string& problem);
  bool repeats = false;
  unsigned subjects = kOfNodes;
  bool required = false;
};
constexpr std::array<Key, 9> kKeys = {{
    {"node_class", "a node class, such as batch", &SetName<&Query::node_class>},
    {"datacenter", "a datacenter, such as dc1", &SetName<&Query::datacenter>},
    {"node_pool", "a node pool, such as default", &SetName<&Query::node_pool>},
    {"headroom",
     "units of MHz and MiB, such as 3x(cpu=500,memory=1024), also with cores, disk and devices",
     &AddHeadroom, true},
    {"idle_for", "a duration with its unit, such as 90s, 10m or 1h", &SetIdleFor},
    {"node",
     "what a new node holds, such as (cpu=8000,memory=16384), also with cores, disk and devices",
     &SetNode},
    {"namespace", "the namespace of the VMs in Harvester, such as nomad",
     &SetHomeName<&HomePool::ns>, false, kOfHome, true},
    {"pool", "the node_group_name of the VMs, such as batch", &SetHomeName<&HomePool::pool>, false,
     kOfHome, true},
    {"max", "the most VMs that the pool may have, as in its policy, such as 10", &SetMax, false,
     Of(Subject::kOverflow), true},
}};

bool IsOf(const Key& key, Subject subject) { return (key.subjects & Of(subject)) != 0; }

// The last word of "key = value", "key =value" or "key= value" at `i`.
std::size_t EndOfPair(const std::vector<std::string_view>& words, std::size_t i) {
  const auto next = [&] { return i + 1 < words.size() ? words[i + 1] : std::string_view(); };
  if (words[i].find('=') == std::string_view::npos && next().starts_with('=')) ++i;
  if (words[i].ends_with('=') && !next().empty() && next().find('=') == std::string_view::npos) ++i;
  return i;
}

std::string UnknownKey(std::string_view name, Subject subject) {
  std::vector<std::string> names;
  for (const Key& key : kKeys) {
    if (IsOf(key, subject)) names.emplace_back(key.name);
  }
  const auto nearest = base::NearestName(name, names);
  return base::Quoted(name) + " is no key of " + NameOf(subject) +
         (nearest.has_value() ? "; did you mean " + *nearest + "?"
                              : "; the keys are " + absl::StrJoin(names, ", "));
}

// A query that begins with nothing known is read as one of the first.
Subject ReadSubject(std::vector<std::string_view>& words, std::vector<std::string>& problems) {
  std::vector<std::string> names;
  for (const auto& choice : kSubjects) names.emplace_back(choice.name);
  const std::string first(words.empty() ? "" : words.front());
  const auto nearest = base::NearestName(first, names);
  if (nearest.has_value()) words.erase(words.begin());
  if (nearest != first) {
    problems.push_back("a query begins with nodes-needed, overflow or room" +
                       (nearest.has_value() ? "; did you mean " + *nearest + "?"
                                            : ", such as \"nodes-needed node_class=batch\""));
  }
  for (const auto& choice : kSubjects) {
    if (choice.name == nearest) return choice.value;
  }
  return Subject::kNodesNeeded;
}

// What the query lacks.
void AddMissing(Subject subject, const std::vector<std::string_view>& seen,
                std::vector<std::string>& problems) {
  const auto is_given = [&](std::string_view name) {
    return std::find(seen.begin(), seen.end(), name) != seen.end();
  };
  if (subject != Subject::kRoom && !is_given("node_class") && !is_given("datacenter") &&
      !is_given("node_pool")) {
    problems.emplace_back(
        "name the pool with at least one of node_class, datacenter and node_pool");
  }
  for (const Key& key : kKeys) {
    if (!key.required || !IsOf(key, subject) || is_given(key.name)) continue;
    problems.push_back(NameOf(subject) + " needs " + std::string(key.name) + ": give " +
                       std::string(key.form));
  }
}

}  // namespace

nodepool::PoolIdentity Query::Identity() const {
  return {.node_class = node_class, .datacenter = datacenter, .node_pool = node_pool};
}

std::string ToString(const HomePool& home) { return home.ns + "/" + home.pool; }

std::string ToString(const Headroom& headroom) {
  return std::to_string(headroom.count) + "x" + AmountsText(headroom.unit, 1);
}

std::string ToString(const Query& query) {
  std::string text = NameOf(query.subject);
  const auto add = [&text](const char* key, const std::string& value) {
    text += std::string(" ") + key + "=" + value;
  };
  const auto add_name = [&add](const char* key, const std::optional<std::string>& name) {
    if (name.has_value()) add(key, WithQuotes(*name, kWhiteSpace));
  };
  add_name("node_class", query.node_class);
  add_name("datacenter", query.datacenter);
  add_name("node_pool", query.node_pool);
  for (const Headroom& each : query.headroom) add("headroom", ToString(each));
  if (query.idle_for != Query().idle_for) add("idle_for", base::FormatGoDuration(query.idle_for));
  if (query.node.has_value()) add("node", AmountsText(*query.node, 0));
  if (query.subject == Subject::kNodesNeeded) return text;
  add("namespace", query.home.ns);
  add("pool", query.home.pool);
  if (query.subject == Subject::kOverflow) add("max", std::to_string(query.home.max));
  return text;
}

absl::StatusOr<Query> ParseQuery(std::string_view text) {
  Query query;
  std::vector<std::string> problems;
  std::vector<std::string_view> words = Split(text, IsSpace);
  query.subject = ReadSubject(words, problems);
  std::vector<std::string_view> seen;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (const std::size_t last = EndOfPair(words, i); last > i) {
      const std::size_t length =
          static_cast<std::size_t>(words[last].data() - word.data()) + words[last].size();
      problems.push_back(base::Quoted({word.data(), length}) + ": " + kNoSpaces);
      seen.push_back(KeyAndValue(word).first);
      i = last;
      continue;
    }
    const auto [name, value] = KeyAndValue(word);
    const auto* const key = std::find_if(kKeys.begin(), kKeys.end(), [&, named = name](auto& row) {
      return row.name == named && IsOf(row, query.subject);
    });
    if (key == kKeys.end()) {
      problems.push_back(UnknownKey(name, query.subject));
      continue;
    }
    const bool twice = std::find(seen.begin(), seen.end(), name) != seen.end();
    seen.push_back(name);
    std::string problem;
    if (twice && !key->repeats) {
      problems.push_back(std::string(name) + " is given twice");
    } else if (!key->set(query, value, problem)) {
      problems.push_back(std::string(name) + " = " + base::Quoted(value) + ": " +
                         (problem.empty() ? "" : problem + "; ") + "give " +
                         std::string(key->form));
    }
  }
  AddMissing(query.subject, seen, problems);
  if (!problems.empty()) return base::InvalidArgument(absl::StrJoin(problems, "\n"));
  return query;
}

}  // namespace nomad_harvester::demand
