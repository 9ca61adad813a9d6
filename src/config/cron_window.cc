// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/config/cron_window.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_split.h"

namespace nomad_harvester::config {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::sys_days;

constexpr base::Duration kMinOpen = minutes(1);
constexpr base::Duration kMaxOpen = hours(168);

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed",
                                                       "thu", "fri", "sat"};

struct CronField {
  std::string_view name;
  int first;  // the first and the last value that `*` stands for
  int last;
  std::span<const std::string_view> names = {};  // of `first` and the following values

  bool is_day_of_week() const { return names.size() == kWeekdays.size(); }
};

enum : std::size_t { kMinute, kHour, kDayOfMonth, kMonth, kDayOfWeek };
constexpr std::array<CronField, 5> kCronFields = {{{"minute", 0, 59},
                                                   {"hour", 0, 23},
                                                   {"day of month", 1, 31},
                                                   {"month", 1, 12, kMonths},
                                                   {"day of week", 0, 6, kWeekdays}}};

absl::Status WrongCron(const CronField& field, std::string_view item, std::string_view what) {
  constexpr std::size_t kMaxShown = 40;
  return base::InvalidArgument("the field " + std::string(field.name) + ": \"" +
                               std::string(item.substr(0, kMaxShown)) + "\" " + std::string(what));
}

// Parses a number or a name. Sunday has two numbers.
absl::StatusOr<int> CronValue(const CronField& field, std::string_view text) {
  const auto name = std::find(field.names.begin(), field.names.end(), base::AsciiLower(text));
  if (name != field.names.end()) {
    return field.first + static_cast<int>(name - field.names.begin());
  }
  const int last = field.is_day_of_week() ? 7 : field.last;
  const absl::StatusOr<std::int64_t> number = base::ParseInt(text);
  if (number.ok() && *number >= field.first && *number <= last) return static_cast<int>(*number);
  return WrongCron(
      field, text,
      "is not a number from " + std::to_string(field.first) + " to " + std::to_string(last) +
          (field.names.empty() ? "" : ", nor a name such as " + std::string(field.names[0])));
}

// "*", "2", "1-5", and with a step "*/5" or "0-30/10".
absl::Status AddCronItem(const CronField& field, std::string_view item, std::bitset<60>* values) {
  const std::size_t slash = item.find('/');
  const std::string_view range = item.substr(0, slash);
  const std::size_t dash = range.find('-');
  int step = 1;
  if (slash != std::string_view::npos) {
    const absl::StatusOr<std::int64_t> number = base::ParseInt(item.substr(slash + 1));
    if (!number.ok() || *number < 1 || *number > field.last) {
      return WrongCron(field, item,
                       "has a step that is no number from 1 to " + std::to_string(field.last));
    }
    if (range != "*" && dash == std::string_view::npos) {
      return WrongCron(field, item, "has a step, but is no range");
    }
    step = static_cast<int>(*number);
  }
  int first = field.first;
  int last = field.last;
  if (range != "*") {
    NH_ASSIGN_OR_RETURN(first, CronValue(field, range.substr(0, dash)));
    last = first;
  }
  if (dash != std::string_view::npos) {
    NH_ASSIGN_OR_RETURN(last, CronValue(field, range.substr(dash + 1)));
    // "fri-sun": the Sunday that ends the week.
    if (field.is_day_of_week() && last == 0) last = 7;
  }
  if (last < first) return WrongCron(field, item, "ends before it begins");
  for (int value = first; value <= last; value += step) {
    values->set(static_cast<std::size_t>(field.is_day_of_week() ? value % 7 : value));
  }
  return absl::OkStatus();
}

absl::StatusOr<base::Duration> ReadOpenFor(const std::string& text) {
  const absl::StatusOr<base::Duration> duration = base::ParseGoDuration(text);
  if (duration.ok() && *duration >= kMinOpen && *duration <= kMaxOpen) return *duration;
  return base::InvalidArgument("the last field, how long it is open: \"" + text.substr(0, 40) +
                               "\" is not a duration from 1m to 168h");
}

}  // namespace

absl::StatusOr<CronWindow> CronWindow::Parse(std::string_view text) {
  const std::vector<std::string> fields =
      absl::StrSplit(base::ToAbsl(text), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (fields.size() != kCronFields.size() + 1) {
    return base::InvalidArgument("has " + std::to_string(fields.size()) +
                                 " fields, not five of cron and a duration");
  }
  CronWindow window;
  for (std::size_t i = 0; i < kCronFields.size(); ++i) {
    const std::vector<std::string> items = absl::StrSplit(fields[i], ',');
    for (const std::string& item : items) {
      NH_RETURN_IF_ERROR(AddCronItem(kCronFields[i], item, &window.fires_[i]));
    }
  }
  window.restricts_days_of_month_ = fields[kDayOfMonth] != "*";
  window.restricts_days_of_week_ = fields[kDayOfWeek] != "*";
  NH_ASSIGN_OR_RETURN(window.duration_, ReadOpenFor(fields[5]));
  // Every day of a month occurs within eight years.
  const sys_days begin = std::chrono::year(2000) / 1 / 1;
  for (sys_days day = begin; day < begin + std::chrono::years(8); day += days(1)) {
    if (window.FiresOn(day)) return window;
  }
  return WrongCron(kCronFields[kDayOfMonth], fields[kDayOfMonth],
                   "never comes in the months \"" + fields[kMonth] + "\"");
}

bool CronWindow::FiresOn(sys_days day) const {
  const std::chrono::year_month_day date(day);
  if (!fires_[kMonth][static_cast<unsigned>(date.month())]) return false;
  const bool in_month = fires_[kDayOfMonth][static_cast<unsigned>(date.day())];
  const bool in_week = fires_[kDayOfWeek][std::chrono::weekday(day).c_encoding()];
  return restricts_days_of_month_ && restricts_days_of_week_ ? in_month || in_week
                                                             : in_month && in_week;
}

bool CronWindow::FiresAt(base::WallTime minute) const {
  const sys_days day = std::chrono::floor<days>(minute);
  const std::chrono::hh_mm_ss time(minute - day);
  return fires_[kHour][static_cast<std::size_t>(time.hours().count())] &&
         fires_[kMinute][static_cast<std::size_t>(time.minutes().count())] && FiresOn(day);
}

bool CronWindow::IsOpen(base::WallTime time) const {
  for (base::WallTime minute = std::chrono::floor<minutes>(time); minute > time - duration_;
       minute -= minutes(1)) {
    if (FiresAt(minute)) return true;
  }
  return false;
}

base::WallTime CronWindow::OpenFrom(base::WallTime time) const {
  if (IsOpen(time)) return time;
  base::WallTime minute = std::chrono::ceil<minutes>(time);
  // It ends: no window was parsed that never opens.
  while (!FiresAt(minute)) {
    // There may be eight years of days on which it does not fire.
    const sys_days day = std::chrono::floor<days>(minute);
    minute = FiresOn(day) ? minute + minutes(1) : base::WallTime(day + days(1));
  }
  return minute;
}

}  // namespace nomad_harvester::config
