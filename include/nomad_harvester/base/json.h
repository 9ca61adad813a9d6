// SPDX-License-Identifier: Apache-2.0
// Reads JSON from external servers without exceptions.
//
// nlohmann's own accessors throw on a missing key or another type, and dump() throws on invalid
// UTF-8. Every module uses these functions instead.
#ifndef NOMAD_HARVESTER_BASE_JSON_H_
#define NOMAD_HARVESTER_BASE_JSON_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::base {

// Parses a whole document. INVALID_ARGUMENT has the message "<what> is not JSON" and the position,
// never the content. Rejects documents nested deeper than 200 levels.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view what);

// Returns compact text; invalid UTF-8 becomes U+FFFD.
std::string DumpJson(const nlohmann::json& value);

// Returns the member `key`, or null if `object` is not an object or has no such member.
const nlohmann::json* FindMember(const nlohmann::json& object, std::string_view key);
// Follows a path of members; null if any of them is missing.
const nlohmann::json* FindPath(const nlohmann::json& object,
                               std::initializer_list<std::string_view> path);

// Typed reads. Return the fallback if the member is missing or has another type.
std::string GetString(const nlohmann::json& object, std::string_view key,
                      std::string_view fallback = "");
std::int64_t GetInt(const nlohmann::json& object, std::string_view key, std::int64_t fallback = 0);
bool GetBool(const nlohmann::json& object, std::string_view key, bool fallback = false);
std::optional<std::string> FindString(const nlohmann::json& object, std::string_view key);
// The string at a path of members; empty if it is missing or not a string.
std::string TextAt(const nlohmann::json& object, std::initializer_list<std::string_view> path);
// Returns the strings of a list and skips its other elements. Empty if there is no such list.
std::vector<std::string> GetStrings(const nlohmann::json& object, std::string_view key);

// Whether the byte is not the first one of a UTF-8 character.
inline bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }
// The Unicode number of a well-formed UTF-8 character.
std::uint32_t CodePoint(std::string_view character);
// Length of the well-formed UTF-8 character at the front of `text`; 0 if there is none.
std::size_t Utf8CharacterLength(std::string_view text);
// Returns the beginning of `text`, at most `limit` bytes, without cutting a character.
std::string_view Utf8Prefix(std::string_view text, std::size_t limit);
// Returns valid UTF-8: each invalid byte becomes U+FFFD.
std::string ToValidUtf8(std::string_view text);
// Like ToValidUtf8, with at most `limit` bytes (at least 3). A truncated text ends with "...".
std::string ToShortUtf8(std::string_view text, std::size_t limit);
// Makes the text valid UTF-8 and escapes invisible characters. U+0080 to U+009F become "\x80" to
// "\x9f", because terminals treat them as escape sequences (ECMA-48 5.3) and JSON does not escape
// them. Characters that reorder or hide the surrounding text become "\u202e": directions,
// characters without width, line separators (Unicode Standard Annex 9, 2).
std::string EscapeUnseen(std::string_view text);
// Like EscapeUnseen, and also escapes all other control characters ("\x1b"). Each line break
// becomes `newline`. The result is one line that does not control a terminal.
std::string EscapeControls(std::string_view text, std::string_view newline = "\\n");
// The same in double quotes, for messages.
std::string Quoted(std::string_view text);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_JSON_H_
