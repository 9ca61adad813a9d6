// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/hcl/source.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::hcl {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
// Of a longer line only this many bytes before and after the mistake are shown.
constexpr std::size_t kShownBytes = 80;
// "_pass" as in basic_auth_pass; "pass" alone is a part of pass-through, too.
constexpr std::string_view kSecretWords[] = {"token",   "passw",     "passphrase",  "passcode",
                                             "_pass",   "secret",    "auth",        "credential",
                                             "header_", "user_data", "network_data"};

std::size_t Characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !base::ContinuesCharacter(c); }));
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

// Where the first login in a URL begins, "https://USER:PASSWORD@HOST"; the line's end if there is
// none.
std::size_t StartOfLogin(std::string_view line) {
  constexpr std::string_view kScheme = "://";
  for (std::size_t at = line.find(kScheme); at < line.size(); at = line.find(kScheme, at)) {
    at += kScheme.size();
    const std::size_t end = line.find_first_of("@/ \t\"", at);
    if (end < line.size() && line[end] == '@') return at;
  }
  return line.size();
}

// The end of the part of `line` that holds no secret: the end of the first name that announces one,
// or the start of a login.
std::size_t EndOfOpenPart(std::string_view line) {
  const std::size_t login = StartOfLogin(line);
  for (std::size_t begin = 0; begin < login;) {
    if (!IsNameCharacter(line[begin])) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < line.size() && IsNameCharacter(line[end])) ++end;
    if (IsSecretName(line.substr(begin, end - begin))) return end;
    begin = end;
  }
  return login;
}

std::string OnOneLine(std::string_view text) {
  std::string line = base::ToValidUtf8(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return line;
}

struct Excerpt {
  std::string text;
  std::size_t caret = 0;  // characters before it
};

// The line with the byte `at` of it, which may be its end.
Excerpt Cut(std::string_view line, std::size_t at) {
  std::size_t from = at > kShownBytes ? at - kShownBytes : 0;
  std::size_t to = std::min(line.size(), at + kShownBytes);
  // To whole characters, which are four bytes at most.
  for (int i = 0; i < 3 && from < at && base::ContinuesCharacter(line[from]); ++i) ++from;
  for (int i = 0; i < 3 && to < line.size() && base::ContinuesCharacter(line[to]); ++i) ++to;
  const std::size_t shown = std::min(to, EndOfOpenPart(line));
  Excerpt excerpt{.text = from > 0 ? "… " : "", .caret = from > 0 ? std::size_t{2} : 0};
  if (shown > from) excerpt.text += OnOneLine(line.substr(from, shown - from));
  if (shown < line.size()) excerpt.text += " …";
  excerpt.caret += Characters(line.substr(from, at - from));
  return excerpt;
}

}  // namespace

bool IsSecretName(std::string_view name) {
  const std::string lower = base::AsciiLower(name);
  if (lower.ends_with("_file")) return false;
  return (lower.ends_with("key") && lower != "key") || lower == "pass" ||
         std::any_of(std::begin(kSecretWords), std::end(kSecretWords),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

Source::Source(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)) {
  if (text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
}

std::string Source::Where(std::size_t offset) const {
  const std::string_view before = text().substr(0, std::min(offset, text_.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  return name_ + ":" + std::to_string(line) + ":" +
         std::to_string(Characters(before.substr(start)) + 1);
}

absl::Status Source::Error(std::size_t offset, std::string_view message, Line shown) const {
  offset = std::min(offset, text_.size());
  std::string report = Where(offset) + ": " + std::string(message);
  if (shown == Line::kHidden) return base::InvalidArgument(report);
  const std::string_view before = text().substr(0, offset);
  const std::size_t start = before.rfind('\n') + 1;
  const std::size_t end = std::min(text().find('\n', offset), text_.size());
  std::string_view line = text().substr(start, end - start);
  if (line.ends_with('\r') && offset < end) line.remove_suffix(1);
  const Excerpt excerpt = Cut(line, offset - start);
  const std::string number = std::to_string(std::count(before.begin(), before.end(), '\n') + 1);
  report += "\n  " + number + " | " + excerpt.text;
  if (excerpt.caret <= Characters(excerpt.text)) {
    report +=
        "\n  " + std::string(number.size(), ' ') + " | " + std::string(excerpt.caret, ' ') + "^";
  }
  return base::InvalidArgument(report);
}

}  // namespace nomad_harvester::hcl
