// SPDX-License-Identifier: Apache-2.0
#include "agent_schedule.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_split.h"

namespace nomad_harvester::cli {
namespace {

struct Field {
  const char* name;
  std::int64_t least;
  std::int64_t most;       // the highest value that may be written
  std::int64_t most_step;  // the longest interval behind "/"
  std::vector<std::string_view> names = {};
};

const std::vector<Field>& Fields() {
  static const std::vector<Field> fields = {
      {"minute", 0, 59, 59},
      {"hour", 0, 23, 23},
      {"day of the month", 1, 31, 31},
      {"month",
       1,
       12,
       12,
       {"jan",     "feb",      "mar",   "apr",   "may",  "jun",  "jul",    "aug",
        "sep",     "oct",      "nov",   "dec",   "january", "february", "march", "april",
        "june",    "july",     "august", "september", "october", "november", "december"}},
      {"day of the week",
       0,
       7,
       6,
       {"sun", "mon", "tue", "wed", "thu", "fri", "sat", "sunday", "monday", "tuesday",
        "wednesday", "thursday", "friday", "saturday"}}};
  return fields;
}

// A number of one or two digits.
std::optional<std::int64_t> NumberOf(std::string_view text) {
  const bool digits = !text.empty() && text.size() <= 2 &&
                      text.find_first_not_of("0123456789") == std::string_view::npos;
  return digits ? std::optional(base::ParseInt(text).value_or(-1)) : std::nullopt;
}

bool IsValue(const Field& field, std::string_view text) {
  if (const auto number = NumberOf(text)) return *number >= field.least && *number <= field.most;
  return std::find(field.names.begin(), field.names.end(), text) != field.names.end();
}

// "*", "5", "5-20", each with "/2" behind it; "?".
bool IsRange(const Field& field, std::string_view text) {
  if (text == "?") return true;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const auto step = NumberOf(text.substr(slash + 1));
    if (!step.has_value() || *step < 1 || *step > field.most_step) return false;
    text = text.substr(0, slash);
  }
  if (text == "*") return true;
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return IsValue(field, text);
  return IsValue(field, text.substr(0, dash)) && IsValue(field, text.substr(dash + 1));
}

// "l", "lw" and "15w" of days of the month; "5l" and "5#3" of days of the week.
bool IsSpecial(const Field& field, std::string_view text) {
  const bool of_month = field.most == 31;
  if (of_month && (text == "l" || text == "lw")) return true;
  if (of_month && text.ends_with('w')) return IsValue(field, text.substr(0, text.size() - 1));
  if (field.most != 7) return false;
  if (text.ends_with('l')) return IsValue(field, text.substr(0, text.size() - 1));
  const std::size_t hash = text.find('#');
  if (hash == std::string_view::npos) return false;
  const std::string_view week = text.substr(hash + 1);
  return week.size() == 1 && week >= "1" && week <= "5" && IsValue(field, text.substr(0, hash));
}

// Empty if it is a cron expression.
std::string ProblemOfCron(const std::string& text) {
  const std::vector<std::string> parts =
      absl::StrSplit(base::AsciiLower(text), absl::ByAnyChar(" \t\n\v\f\r"), absl::SkipEmpty());
  if (parts.size() != Fields().size()) {
    return "\"" + text + "\" has " + std::to_string(parts.size()) +
           " fields; expected five: minute, hour, day of the month, month, day of the week, such as "
           "\"0 7 * * 1-5\"";
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Field& field = Fields()[i];
    const std::vector<std::string> entries = absl::StrSplit(parts[i], ',', absl::SkipEmpty());
    const bool readable =
        !entries.empty() && std::all_of(entries.begin(), entries.end(), [&](std::string_view entry) {
          return IsRange(field, entry) || IsSpecial(field, entry);
        });
    if (!readable) return "\"" + parts[i] + "\" is no " + field.name + " of a cron expression";
  }
  return "";
}

}  // namespace

ScheduleProblem ProblemOfSchedule(const std::string& start, const std::string& end,
                                  const std::string& duration) {
  if (start.empty()) return {"start", "is empty"};
  if (end.empty() == duration.empty()) {
    return {"start", "goes with either end or duration, and " +
                         std::string(end.empty() ? "neither is" : "both are") + " given"};
  }
  if (std::string why = ProblemOfCron(start); !why.empty()) return {"start", why};
  if (!end.empty()) {
    std::string why = ProblemOfCron(end);
    return why.empty() ? ScheduleProblem{} : ScheduleProblem{"end", why};
  }
  const auto length = base::ParseGoDuration(duration);
  if (!length.ok()) return {"duration", base::Message(length.status())};
  if (length->count() <= 0) return {"duration", "must be greater than zero"};
  return {};
}

}  // namespace nomad_harvester::cli
