// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"

#include "absl/strings/str_split.h"
#include "agent_grammar.h"

namespace nomad_harvester::cli {
namespace {

struct CronField {
  const char* name;
  int first;
  int last;
  const char* names = "";  // of the values, short and long
};

constexpr CronField kFields[] = {
    {"minute", 0, 59},
    {"hour", 0, 23},
    {"day of the month", 1, 31},
    {"month", 1, 12,
     "jan feb mar apr may jun jul aug sep oct nov dec january february march april may june july "
     "august september october november december"},
    {"day of the week", 0, 6,
     "sun mon tue wed thu fri sat sunday monday tuesday wednesday thursday friday saturday"}};

constexpr int kNone = -1;

// A number of one or two digits.
int NumberOf(std::string_view text) {
  const bool digits = !text.empty() && text.size() <= 2 &&
                      text.find_first_not_of("0123456789") == std::string_view::npos;
  return digits ? static_cast<int>(base::ParseInt(text).value_or(kNone)) : kNone;
}

int ValueOf(const CronField& field, std::string_view text) {
  if (field.last == 6 && NumberOf(text) == 7) return 0;  // Sunday
  if (const int number = NumberOf(text); number != kNone) {
    return number >= field.first && number <= field.last ? number : kNone;
  }
  const std::vector<std::string> names = absl::StrSplit(field.names, ' ');
  const auto found = std::find(names.begin(), names.end(), text);
  if (text.empty() || found == names.end()) return kNone;
  const int values = field.last - field.first + 1;
  return field.first + static_cast<int>(found - names.begin()) % values;
}

// "*", "5", "5-20", each with "/2" behind it; "?"; "l", "lw" and "15w" of a month, "5l" and "5#3"
// of a week. A range that ends before it begins never comes, or ends the agent with a panic.
bool IsEntry(const CronField& field, std::string_view text) {
  const auto before = [&](std::size_t count) { return text.substr(0, text.size() - count); };
  if (field.last == 31 && (text == "l" || text == "lw")) return true;
  const bool special = field.last == 31 ? text.ends_with('w')
                                        : field.last == 6 && text.size() > 1 && text.ends_with('l');
  if (special) return ValueOf(field, before(1)) != kNone;
  if (field.last == 6 && text.size() > 2 && text[text.size() - 2] == '#') {
    return text.back() >= '1' && text.back() <= '5' && ValueOf(field, before(2)) != kNone;
  }
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const int step = NumberOf(text.substr(slash + 1));
    if (step < 1 || step > field.last || text.substr(0, slash) == "?") return false;
    text = text.substr(0, slash);
  }
  if (text == "*" || text == "?") return true;
  const std::size_t dash = std::min(text.find('-'), text.size());
  const int first = ValueOf(field, text.substr(0, dash));
  if (dash == text.size()) return first != kNone;
  int last = ValueOf(field, text.substr(dash + 1));
  if (field.last == 6 && last == 0) last = field.last;
  return first != kNone && first <= last;
}

// Empty if it is a cron expression.
std::string ProblemOfCron(const std::string& text) {
  const std::vector<std::string> parts =
      absl::StrSplit(base::AsciiLower(text), absl::ByAnyChar(" \t\n\v\f\r"), absl::SkipEmpty());
  if (parts.size() != std::size(kFields)) {
    return "\"" + text + "\" has " + std::to_string(parts.size()) +
           " fields; expected five: minute, hour, day of the month, month, day of the week, such "
           "as \"0 7 * * 1-5\"";
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::vector<std::string> entries = absl::StrSplit(parts[i], ',', absl::SkipEmpty());
    const bool readable =
        !entries.empty() && std::all_of(entries.begin(), entries.end(), [&](const auto& entry) {
          return IsEntry(kFields[i], entry);
        });
    if (!readable) return "\"" + parts[i] + "\" is no " + kFields[i].name + " of a cron expression";
  }
  return "";
}

}  // namespace

ScheduleProblem ProblemOfSchedule(const std::string& start, const std::string& end,
                                  const std::string& duration) {
  if (start.empty()) return {"start", "is empty"};
  if (end.empty() == duration.empty()) {
    return {"start", std::string("goes with either end or duration, and ") +
                         (end.empty() ? "neither is" : "both are") + " given"};
  }
  if (std::string why = ProblemOfCron(start); !why.empty()) return {"start", why};
  if (!end.empty()) return {"end", ProblemOfCron(end)};
  const auto length = base::ParseGoDuration(duration);
  if (!length.ok()) return {"duration", base::Message(length.status())};
  return {"duration", length->count() > 0 ? "" : "must be greater than zero"};
}

}  // namespace nomad_harvester::cli
