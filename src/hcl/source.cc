// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <iterator>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/hcl/document.h"

#include "cursor.h"

namespace nomad_harvester::hcl {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::size_t kShownBytes = 160;
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

// A URL with a login, "https://USER:PASSWORD@HOST". A slash in the password is a mistake that
// people make.
bool HasLogin(std::string_view line) {
  constexpr std::string_view kScheme = "://";
  for (std::size_t at = line.find(kScheme); at < line.size(); at = line.find(kScheme, at)) {
    at += kScheme.size();
    const std::size_t end = line.find_first_of("@ \t\"", at);
    if (end < line.size() && line[end] == '@') return true;
  }
  return false;
}

bool HasSecretName(std::string_view line) {
  while (!line.empty()) {
    const auto end = std::find_if_not(line.begin(), line.end(), IsNameCharacter);
    const auto length = static_cast<std::size_t>(end - line.begin());
    if (IsSecretName(line.substr(0, length))) return true;
    line.remove_prefix(std::max(length, std::size_t{1}));
  }
  return false;
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
  const bool is_json = base::AsciiLower(name_).ends_with(".json");
  if (!is_json && text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
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
  if (HasLogin(line) || HasSecretName(line)) return base::InvalidArgument(report);
  std::string excerpt(base::Utf8Prefix(base::ToValidUtf8(line), kShownBytes));
  std::replace_if(
      excerpt.begin(), excerpt.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; },
      ' ');
  const std::size_t caret = Characters(before.substr(start));
  if (caret > Characters(excerpt)) return base::InvalidArgument(report);
  const std::string number = std::to_string(std::count(before.begin(), before.end(), '\n') + 1);
  report += "\n  " + number + " | " + excerpt + "\n  " + std::string(number.size(), ' ') + " | " +
            std::string(caret, ' ') + "^";
  return base::InvalidArgument(report);
}

absl::StatusOr<Body> ReadDocument(const Source& source, const std::vector<BlockSchema>& blocks,
                                  std::vector<std::size_t>* jsonencodes) {
  const std::string name = base::AsciiLower(source.name());
  if (name.ends_with(".hcl")) return ReadNative(source, jsonencodes);
  if (name.ends_with(".json")) return ReadJson(source, blocks);
  return base::InvalidArgument(source.name() +
                               ": the agent reads files whose names end with .hcl or .json only");
}

const Argument* FindArgument(const Body& body, std::string_view name) {
  const auto found = std::find_if(body.arguments.begin(), body.arguments.end(),
                                  [&](const Argument& argument) { return argument.name == name; });
  return found == body.arguments.end() ? nullptr : &*found;
}

std::optional<std::string> TextOf(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kBool:
    case Value::Kind::kNumber:
    case Value::Kind::kString:
      return value.text;
    default:
      return std::nullopt;
  }
}

}  // namespace nomad_harvester::hcl
