// SPDX-License-Identifier: Apache-2.0
#include "cloud_config.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/harvester/vm_spec.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

absl::Status CannotAdd(std::string_view why) {
  return base::InvalidArgument("ssh_keys cannot be added to #cloud-config: " + std::string(why));
}

// Keys are compared by their blob, without type and comment. Its text begins with AAAA, the upper
// bytes of a length (RFC 4253, 6.6).
std::string KeyIdentity(std::string_view key) {
  key = base::TrimAsciiSpace(key);
  std::size_t begin = key.starts_with("AAAA") ? 0 : key.find(" AAAA");
  if (begin == std::string_view::npos) return std::string(key);
  if (begin != 0) ++begin;
  const std::string_view blob = key.substr(begin);
  return std::string(blob.substr(0, blob.find(' ')));
}

std::vector<std::string> MissingKeys(const CloudConfigOutline& outline,
                                     const std::vector<std::string>& wanted) {
  std::set<std::string> known;
  for (const std::string& key : outline.keys) known.insert(KeyIdentity(key));
  std::vector<std::string> missing;
  for (const std::string& key : wanted) {
    const std::string_view text = base::TrimAsciiSpace(key);
    if (!text.empty() && known.insert(KeyIdentity(text)).second) missing.emplace_back(text);
  }
  return missing;
}

// A JSON string is a double-quoted YAML scalar.
std::string Quoted(const std::string& text) { return base::DumpJson(nlohmann::json(text)); }

std::string QuotedItems(const std::vector<std::string>& keys) {
  std::string items;
  for (const std::string& key : keys) items += Quoted(key) + ", ";
  return items;
}

std::string BlockItems(const std::vector<std::string>& keys, std::size_t indent) {
  std::string items;
  for (const std::string& key : keys) items += std::string(indent, ' ') + "- " + Quoted(key) + "\n";
  return items;
}

// Nullopt if the text has no such line or the line is shorter.
std::optional<std::size_t> OffsetOf(const std::string& text, const TextPosition& position) {
  std::size_t offset = 0;
  for (std::size_t line = 0; line < position.line; ++line) {
    const std::size_t newline = text.find('\n', offset);
    if (newline == std::string::npos) return std::nullopt;
    offset = newline + 1;
  }
  offset += position.column;
  if (offset >= text.size()) return std::nullopt;
  return offset;
}

struct Insertion {
  std::size_t offset = 0;
  std::string text;
};

// Text is always inserted at the beginning of a collection, where it does not depend on the
// following text: a comment, another member or the end of the document.
std::optional<Insertion> PlanInsertion(const std::string& text, const CloudConfigOutline& outline,
                                       const std::vector<std::string>& keys) {
  const bool into_list = outline.has_keys;
  const bool flow = into_list ? outline.keys_flow : outline.flow;
  const TextPosition begin = into_list ? outline.keys_begin : outline.begin;
  const auto offset = OffsetOf(text, begin);
  if (!offset) return std::nullopt;
  if (flow) {
    // YAML allows a comma before the closing bracket.
    if (text[*offset] != (into_list ? '[' : '{')) return std::nullopt;
    const std::string items = QuotedItems(keys);
    if (into_list) return Insertion{*offset + 1, items};
    return Insertion{*offset + 1, Quoted(kAuthorizedKeysMember) + ": [" + items + "], "};
  }
  const std::size_t line = *offset - begin.column;
  if (into_list) return Insertion{line, BlockItems(keys, begin.column)};
  return Insertion{line, std::string(begin.column, ' ') + kAuthorizedKeysMember + ":\n" +
                             BlockItems(keys, begin.column + 2)};
}

absl::Status CheckAddable(const CloudConfigOutline& outline) {
  if (outline.has_keys && !outline.keys_are_list) {
    return CannotAdd("its ssh_authorized_keys must be a list");
  }
  const auto& members = outline.members;
  if (!outline.has_keys && std::find(members.begin(), members.end(), "<<") != members.end()) {
    return CannotAdd(
        "a merge key (<<) may add its own ssh_authorized_keys, which ours would override; write "
        "ssh_authorized_keys in the document itself");
  }
  return absl::OkStatus();
}

// Compares the outlines before and after an insertion, to verify that the keys were added in the
// right place.
bool IsAsIntended(const CloudConfigOutline& before, const CloudConfigOutline& after,
                  const std::vector<std::string>& added) {
  std::vector<std::string> members = before.members;
  if (!before.has_keys) members.insert(members.begin(), kAuthorizedKeysMember);
  std::vector<std::string> keys = added;
  keys.insert(keys.end(), before.keys.begin(), before.keys.end());
  return after.keys_are_list && after.members == members && after.keys == keys;
}

}  // namespace

bool IsCloudConfig(std::string_view text) {
  constexpr std::string_view kMark = "#cloud-config";
  text = base::TrimAsciiSpace(text);
  if (!base::EqualsIgnoreCase(text.substr(0, kMark.size()), kMark)) return false;
  // #cloud-config-archive and #cloud-config-jsonp are other formats.
  return text.size() == kMark.size() || text[kMark.size()] != '-';
}

bool IsRunByCloudInit(std::string_view text) {
  constexpr std::string_view kPrefixes[] = {
      "#!", "#include", "#cloud-config", "#part-handler", "#cloud-boothook", "## template: jinja"};
  constexpr std::string_view kGzip = "\x1f\x8b";
  constexpr std::size_t kMimeHeaderBytes = 4096;
  if (text.starts_with(kGzip)) return true;
  const std::string head = base::AsciiLower(text.substr(0, kMimeHeaderBytes));
  if (head.find("mime-version:") != std::string::npos) return true;
  const std::string_view begin = base::TrimAsciiSpace(text);
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes), [&](std::string_view prefix) {
    return base::EqualsIgnoreCase(begin.substr(0, prefix.size()), prefix);
  });
}

absl::StatusOr<std::string> AddAuthorizedKeys(const std::string& text,
                                              const std::vector<std::string>& keys) {
  NH_ASSIGN_OR_RETURN(const CloudConfigOutline outline, ReadOutline(text));
  const std::vector<std::string> missing = MissingKeys(outline, keys);
  if (missing.empty()) return text;
  NH_RETURN_IF_ERROR(CheckAddable(outline));
  std::string result = text;
  if (outline.empty) {
    if (!result.ends_with('\n')) result += "\n";
    result += std::string(kAuthorizedKeysMember) + ":\n" + BlockItems(missing, 2);
  } else {
    const auto insertion = PlanInsertion(text, outline, missing);
    if (!insertion) return CannotAdd("the beginning of its first collection was not found");
    result.insert(insertion->offset, insertion->text);
  }
  const auto check = ReadOutline(result);
  if (!check.ok() || !IsAsIntended(outline, *check, missing)) {
    return CannotAdd(
        "write the document as plain keys and values, without tags or anchors at its "
        "top level");
  }
  return result;
}

absl::StatusOr<std::string> ComposeUserData(const std::string& source,
                                            const TemplateVariables& variables,
                                            const std::vector<std::string>& public_keys) {
  NH_ASSIGN_OR_RETURN(std::string text, RenderTemplate(source, variables));
  if (text.empty()) text = "#cloud-config\n";
  if (IsCloudConfig(text)) return AddAuthorizedKeys(text, public_keys);
  if (public_keys.empty()) return text;
  return base::InvalidArgument(
      "ssh_keys need user data that begins with #cloud-config, or none at all");
}

absl::StatusOr<std::string> ComposeNetworkData(const std::string& source,
                                               const TemplateVariables& variables) {
  NH_ASSIGN_OR_RETURN(std::string text, RenderTemplate(source, variables));
  NH_ASSIGN_OR_RETURN(const CloudConfigOutline outline, ReadOutline(text, "network data"));
  if (outline.empty || outline.members.empty()) {
    return base::InvalidArgument("network data is empty; remove the key, or write version 1 or 2");
  }
  // The enclosing key "network" is optional, and "disabled" needs no version
  // (canonical/cloud-init:cloudinit/sources/DataSourceNoCloud.py, _maybe_remove_top_network, in
  // later releases cloudinit/stages.py; cloudinit/net/network_state.py, parse_net_config_data,
  // which gives up on every other version).
  const std::string prefix =
      outline.members == std::vector<std::string>{"network"} ? "network." : "";
  const auto value = [&](const char* key) { return base::ValueOf(outline.values, prefix + key); };
  const std::string version = value("version");
  if (version != "1" && version != "2" && value("config") != "disabled") {
    return base::InvalidArgument(
        "network data has no version that cloud-init knows; write \"version: 1\" or "
        "\"version: 2\", at the top or in the only key network");
  }
  return text;
}

}  // namespace nomad_harvester::harvester
