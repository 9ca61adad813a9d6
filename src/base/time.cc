#include "nomad_harvester/base/time.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::base {
namespace {

using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr std::array<std::string_view, 7> kWeekdays = {"Sun", "Mon", "Tue", "Wed",
                                                       "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// Reads a text from the front; after the first mismatch everything fails.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  // Exactly `count` digits.
  int Digits(std::size_t count) {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!NextIsDigit()) {
        ok_ = false;
        return 0;
      }
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }

  // One of the characters; returns which one came.
  char OneOf(std::string_view allowed) {
    if (!ok_ || rest_.empty() || allowed.find(rest_.front()) == std::string_view::npos) {
      ok_ = false;
      return '\0';
    }
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  void Literal(std::string_view text) {
    if (!ok_ || rest_.substr(0, text.size()) != text) {
      ok_ = false;
      return;
    }
    rest_.remove_prefix(text.size());
  }

  // One of three-letter names; returns its index.
  template <std::size_t N>
  std::size_t Name(const std::array<std::string_view, N>& names) {
    for (std::size_t i = 0; i < N; ++i) {
      if (rest_.substr(0, 3) != names[i]) continue;
      rest_.remove_prefix(3);
      return i;
    }
    ok_ = false;
    return 0;
  }

  // ".123": nanoseconds; digits past the ninth are dropped. Nothing there: zero.
  std::int64_t Fraction() {
    if (!ok_ || rest_.empty() || rest_.front() != '.') return 0;
    rest_.remove_prefix(1);
    ok_ = NextIsDigit();
    std::int64_t value = 0;
    std::int64_t unit = 100'000'000;
    for (; NextIsDigit(); rest_.remove_prefix(1), unit /= 10) value += unit * (rest_.front() - '0');
    return value;
  }

  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  bool NextIsDigit() const {
    return ok_ && !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
  }

  std::string_view rest_;
  bool ok_ = true;
};

struct Civil {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int offset_minutes = 0;
  std::int64_t nanosecond = 0;
};

// The second 60 is a leap second, which UTC inserts at the end of a day only; it becomes the first
// second of the next day, as POSIX counts.
std::optional<sys_seconds> ToSeconds(const Civil& civil) {
  const std::chrono::year_month_day date{std::chrono::year(civil.year),
                                         std::chrono::month(static_cast<unsigned>(civil.month)),
                                         std::chrono::day(static_cast<unsigned>(civil.day))};
  if (!date.ok() || civil.hour > 23 || civil.minute > 59 || civil.second > 60) return std::nullopt;
  const sys_seconds time = sys_days(date) + std::chrono::hours(civil.hour) +
                           std::chrono::minutes(civil.minute - civil.offset_minutes) +
                           seconds(civil.second);
  if (civil.second == 60 && time != std::chrono::floor<std::chrono::days>(time)) {
    return std::nullopt;
  }
  return time;
}

// Nothing outside of what 64-bit nanoseconds hold.
std::optional<WallTime> ToWallTime(sys_seconds time, std::int64_t nanosecond) {
  constexpr auto kMin = std::chrono::ceil<seconds>(WallTime::min());
  constexpr auto kMax = std::chrono::floor<seconds>(WallTime::max());
  if (time < kMin || time >= kMax) return std::nullopt;
  return WallTime(time) + Duration(nanosecond);
}

std::string Padded(std::int64_t value, std::size_t width) {
  std::string digits = std::to_string(value);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

std::string Clock(sys_seconds time) {
  const std::chrono::hh_mm_ss clock(time - std::chrono::floor<std::chrono::days>(time));
  return Padded(clock.hours().count(), 2) + ":" + Padded(clock.minutes().count(), 2) + ":" +
         Padded(clock.seconds().count(), 2);
}

std::chrono::year_month_day DateOf(sys_seconds time) {
  return std::chrono::floor<std::chrono::days>(time);
}

// "2026-11-21T02:03:04" and `digits` places of the fraction of the second (none, and no point,
// for zero), then "Z".
std::string FormatFraction(WallTime time, std::size_t digits) {
  const auto whole = std::chrono::floor<seconds>(time);
  const std::chrono::year_month_day date = DateOf(whole);
  std::string text = Padded(static_cast<int>(date.year()), 4) + "-" +
                     Padded(static_cast<unsigned>(date.month()), 2) + "-" +
                     Padded(static_cast<unsigned>(date.day()), 2) + "T" + Clock(whole);
  if (digits > 0) text += "." + Padded((time - whole).count(), 9).substr(0, digits);
  return text + "Z";
}

}  // namespace

absl::StatusOr<WallTime> ParseRfc3339(std::string_view text) {
  Scanner scanner(text);
  Civil civil;
  civil.year = scanner.Digits(4);
  scanner.Literal("-");
  civil.month = scanner.Digits(2);
  scanner.Literal("-");
  civil.day = scanner.Digits(2);
  scanner.OneOf("Tt");
  civil.hour = scanner.Digits(2);
  scanner.Literal(":");
  civil.minute = scanner.Digits(2);
  scanner.Literal(":");
  civil.second = scanner.Digits(2);
  civil.nanosecond = scanner.Fraction();
  const char zone = scanner.OneOf("Zz+-");
  int offset_hours = 0;
  int offset_minutes = 0;
  if (zone == '+' || zone == '-') {
    offset_hours = scanner.Digits(2);
    scanner.Literal(":");
    offset_minutes = scanner.Digits(2);
  }
  civil.offset_minutes = (offset_hours * 60 + offset_minutes) * (zone == '-' ? -1 : 1);
  const std::optional<sys_seconds> whole =
      scanner.AtEnd() && offset_hours <= 23 && offset_minutes <= 59 ? ToSeconds(civil)
                                                                    : std::nullopt;
  if (!whole) return InvalidArgument("\"" + std::string(text) + "\" is not an RFC 3339 time");
  const std::optional<WallTime> time = ToWallTime(*whole, civil.nanosecond);
  if (!time) {
    return InvalidArgument("the time \"" + std::string(text) +
                           "\" is outside of the years 1678 to 2261");
  }
  return *time;
}

std::string FormatRfc3339(WallTime time) { return FormatFraction(time, 0); }

std::string FormatRfc3339Micros(WallTime time) { return FormatFraction(time, 6); }

std::string FormatRfc3339Nanos(WallTime time) {
  const std::string fraction = Padded((time - std::chrono::floor<seconds>(time)).count(), 9);
  return FormatFraction(time, fraction.find_last_not_of('0') + 1);
}

// The name of the weekday must be one, but the date alone decides, as in golang/go:src/time/
// format.go.
absl::StatusOr<WallTime> ParseHttpDate(std::string_view text) {
  Scanner scanner(text);
  Civil civil;
  scanner.Name(kWeekdays);
  scanner.Literal(", ");
  civil.day = scanner.Digits(2);
  scanner.Literal(" ");
  civil.month = static_cast<int>(scanner.Name(kMonths)) + 1;
  scanner.Literal(" ");
  civil.year = scanner.Digits(4);
  scanner.Literal(" ");
  civil.hour = scanner.Digits(2);
  scanner.Literal(":");
  civil.minute = scanner.Digits(2);
  scanner.Literal(":");
  civil.second = scanner.Digits(2);
  scanner.Literal(" GMT");
  const std::optional<sys_seconds> whole = scanner.AtEnd() ? ToSeconds(civil) : std::nullopt;
  const std::optional<WallTime> time = whole ? ToWallTime(*whole, 0) : std::nullopt;
  if (!time) return InvalidArgument("\"" + std::string(text) + "\" is not an HTTP date");
  return *time;
}

std::string FormatHttpDate(WallTime time) {
  const auto whole = std::chrono::floor<seconds>(time);
  const std::chrono::year_month_day date = DateOf(whole);
  const std::chrono::weekday weekday{sys_days(date)};
  return std::string(kWeekdays[weekday.c_encoding()]) + ", " +
         Padded(static_cast<unsigned>(date.day()), 2) + " " +
         std::string(kMonths[static_cast<unsigned>(date.month()) - 1]) + " " +
         Padded(static_cast<int>(date.year()), 4) + " " + Clock(whole) + " GMT";
}

}  // namespace nomad_harvester::base
