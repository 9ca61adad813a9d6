// SPDX-License-Identifier: Apache-2.0
// Uses Boost's push parser (basic_parser), because nlohmann's pulls its input and therefore needs
// all of it.
#include "nomad_harvester/base/json_fields.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/basic_parser_impl.hpp>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::base {
// Not unnamed, because a class outside of it has members of these types.
namespace json_push {

using Kind = JsonEvent::Kind;

constexpr std::size_t kMaxJsonDepth = 200;
constexpr int kNowhere = -1;

// Follows the tree of paths through a document, and passes on the values at a path.
class PathFollower {
 public:
  PathFollower(const JsonPaths& paths, JsonSink sink) : paths_(paths), sink_(std::move(sink)) {
    levels_.reserve(16);
  }

  // True if the next value, and everything below it, can be skipped.
  bool SkipsNext() const { return skipped_ > 0 || NextLevel() == kNowhere; }

  bool Open(Kind kind) {
    if (SkipsNext()) {
      ++skipped_;
      return true;
    }
    const int level = NextLevel();
    levels_.push_back({level, kind == Kind::kArray});
    return Emit(level, JsonEvent{.kind = kind});
  }
  bool Close() {
    if (skipped_ > 0) {
      --skipped_;
      return true;
    }
    const int level = levels_.back().number;
    levels_.pop_back();
    return Emit(level, JsonEvent{.kind = Kind::kEnd});
  }
  bool skips_keys() const { return skipped_ > 0; }
  void Key(std::string_view key) {
    if (skipped_ > 0) return;
    bool is_any = false;
    member_ = paths_.Find(levels_.back().number, key, &is_any);
    if (is_any) name_ = key;
  }
  bool Value(const JsonEvent& event) { return SkipsNext() ? true : Emit(NextLevel(), event); }
  // True if a text at the next place would be passed on.
  bool WantsText() const {
    return !SkipsNext() && paths_.levels()[static_cast<std::size_t>(NextLevel())].path != kNowhere;
  }

 private:
  struct OpenLevel {
    int number;
    bool is_array;
  };

  int NextLevel() const {
    if (levels_.empty()) return 0;
    return levels_.back().is_array ? levels_.back().number : member_;
  }
  bool Emit(int level, JsonEvent event) {
    const int path = paths_.levels()[static_cast<std::size_t>(level)].path;
    if (path == kNowhere) return true;
    event.name = name_;
    return sink_(path, event);
  }

  const JsonPaths& paths_;
  const JsonSink sink_;
  std::vector<OpenLevel> levels_;
  int member_ = kNowhere;
  std::size_t skipped_ = 0;
  std::string name_;
};

void Follow(const nlohmann::json& value, PathFollower& follower) {
  using Type = nlohmann::json::value_t;
  if (follower.SkipsNext()) return;
  switch (value.type()) {
    case Type::object:
      follower.Open(Kind::kObject);
      for (const auto& [key, member] : value.items()) {
        follower.Key(key);
        Follow(member, follower);
      }
      follower.Close();
      break;
    case Type::array:
      follower.Open(Kind::kArray);
      for (const auto& element : value) Follow(element, follower);
      follower.Close();
      break;
    case Type::string:
      follower.Value({.kind = Kind::kText, .text = value.get_ref<const std::string&>()});
      break;
    case Type::boolean:
      follower.Value({.kind = Kind::kBool, .boolean = value.get<bool>()});
      break;
    case Type::number_integer:
    case Type::number_unsigned: {
      const auto integer = value.get<std::int64_t>();
      const bool fits = value.type() == Type::number_integer || integer >= 0;
      follower.Value(fits ? JsonEvent{.kind = Kind::kInt, .integer = integer}
                          : JsonEvent{.kind = Kind::kFloat});
      break;
    }
    case Type::number_float:
      follower.Value({.kind = Kind::kFloat});
      break;
    default:
      follower.Value({.kind = Kind::kNull});
  }
}

// boost::json::basic_parser's handler. Texts may come in parts.
class PushHandler {
 public:
  using ErrorCode = boost::json::error_code;
  using View = boost::json::string_view;
  // NOLINTBEGIN(readability-identifier-naming): the names that Boost asks for.
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = max_object_size;
  static constexpr std::size_t max_key_size = max_object_size;
  static constexpr std::size_t max_string_size = max_object_size;
  // NOLINTEND(readability-identifier-naming)

  PushHandler(const JsonPaths& paths, JsonSink sink) : follower_(paths, std::move(sink)) {}

  bool on_document_begin(ErrorCode&) { return true; }
  bool on_document_end(ErrorCode&) { return true; }
  bool on_object_begin(ErrorCode& error) { return Go(follower_.Open(Kind::kObject), error); }
  bool on_object_end(std::size_t, ErrorCode& error) { return Go(follower_.Close(), error); }
  bool on_array_begin(ErrorCode& error) { return Go(follower_.Open(Kind::kArray), error); }
  bool on_array_end(std::size_t, ErrorCode& error) { return Go(follower_.Close(), error); }
  bool on_key_part(View part, std::size_t, ErrorCode&) {
    if (!follower_.skips_keys()) parts_.append(part.data(), part.size());
    return true;
  }
  bool on_key(View part, std::size_t, ErrorCode& error) {
    if (follower_.skips_keys()) return true;
    const std::string_view key = Whole(part);
    const bool is_valid = IsUtf8(key, error);
    if (is_valid) follower_.Key(key);
    parts_.clear();
    return is_valid;
  }
  bool on_string_part(View part, std::size_t, ErrorCode&) {
    if (follower_.WantsText()) parts_.append(part.data(), part.size());
    return true;
  }
  bool on_string(View part, std::size_t, ErrorCode& error) {
    if (!follower_.WantsText()) return true;
    const std::string_view text = Whole(part);
    const bool is_valid = IsUtf8(text, error);
    const bool go_on = is_valid && Go(follower_.Value({.kind = Kind::kText, .text = text}), error);
    parts_.clear();
    return go_on;
  }
  bool on_number_part(View, ErrorCode&) { return true; }
  bool on_int64(std::int64_t value, View, ErrorCode& error) {
    return Go(follower_.Value({.kind = Kind::kInt, .integer = value}), error);
  }
  bool on_uint64(std::uint64_t, View, ErrorCode& error) {
    return Go(follower_.Value({.kind = Kind::kFloat}), error);
  }
  bool on_double(double value, View, ErrorCode& error) {
    // Newer releases of the library take an oversized number as infinity.
    if (!std::isfinite(value)) {
      error = boost::json::error::exponent_overflow;
      return false;
    }
    return Go(follower_.Value({.kind = Kind::kFloat}), error);
  }
  bool on_bool(bool value, ErrorCode& error) {
    return Go(follower_.Value({.kind = Kind::kBool, .boolean = value}), error);
  }
  bool on_null(ErrorCode& error) { return Go(follower_.Value({.kind = Kind::kNull}), error); }
  bool on_comment_part(View, ErrorCode&) { return true; }
  bool on_comment(View, ErrorCode&) { return true; }

  bool stopped() const { return stopped_; }

 private:
  bool Go(bool go_on, ErrorCode& error) {
    if (!go_on) {
      stopped_ = true;
      error = boost::json::error::input_error;
    }
    return go_on;
  }
  static bool IsUtf8(std::string_view text, ErrorCode& error) {
    // Most texts are ASCII, so check eight characters at a time.
    std::size_t at = 0;
    for (std::uint64_t eight = 0; at + sizeof(eight) <= text.size(); at += sizeof(eight)) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      if ((eight & 0x8080808080808080U) != 0) break;
    }
    while (at < text.size()) {
      const std::size_t length =
          static_cast<signed char>(text[at]) >= 0 ? 1 : Utf8CharacterLength(text.substr(at));
      if (length == 0) {
        error = boost::json::error::syntax;
        return false;
      }
      at += length;
    }
    return true;
  }
  std::string_view Whole(View part) {
    if (parts_.empty()) return {part.data(), part.size()};
    parts_.append(part.data(), part.size());
    return parts_;
  }

  PathFollower follower_;
  std::string parts_;
  bool stopped_ = false;
};

inline boost::json::parse_options Options() {
  boost::json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  // Much faster. Only values that are passed on matter, and PushHandler checks those.
  options.allow_invalid_utf8 = true;
  return options;
}

}  // namespace json_push

namespace {

using json_push::kNowhere;
using Kind = JsonEvent::Kind;

std::vector<std::string> ListPaths(const std::string& list, const std::vector<std::string>& paths,
                                   const std::vector<std::string>& beside) {
  std::vector<std::string> all;
  all.reserve(paths.size() + 1 + beside.size());
  for (const std::string& path : paths) all.push_back(list.empty() ? path : list + "." + path);
  all.push_back(list);
  all.insert(all.end(), beside.begin(), beside.end());
  return all;
}

}  // namespace

JsonPaths::JsonPaths(const std::vector<std::string>& paths) : levels_(1) {
  for (std::size_t number = 0; number < paths.size(); ++number) {
    std::size_t level = 0;
    std::string_view rest = paths[number];
    while (!rest.empty()) {
      const std::size_t dot = rest.find('.');
      const std::string_view member = rest.substr(0, dot);
      rest = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
      const auto next = static_cast<int>(levels_.size());
      int* child = &levels_[level].any;
      if (member != "*") {
        auto& members = levels_[level].members;
        auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& entry) { return entry.first == member; });
        if (found == members.end()) found = members.insert(found, {std::string(member), kNowhere});
        child = &found->second;
      }
      if (*child == kNowhere) *child = next;
      level = static_cast<std::size_t>(*child);
      if (*child == next) levels_.emplace_back();
    }
    levels_[level].path = static_cast<int>(number);
  }
}

int JsonPaths::Find(int level, std::string_view member, bool* is_any) const {
  const Level& at = levels_[static_cast<std::size_t>(level)];
  for (const auto& [name, next] : at.members) {
    // Inlined checks first, because most names differ in size or first character.
    if (name.size() == member.size() && name.front() == member.front() && name == member) {
      return next;
    }
  }
  *is_any = at.any != kNowhere;
  return at.any;
}

void ReadJson(const nlohmann::json& value, const JsonPaths& paths, JsonSink sink) {
  json_push::PathFollower follower(paths, std::move(sink));
  json_push::Follow(value, follower);
}

class JsonPushParser::Impl {
 public:
  Impl(const JsonPaths& paths, JsonSink sink)
      : parser_(json_push::Options(), paths, std::move(sink)) {}

  void Write(std::string_view piece, bool more) {
    if (!problem_.empty() || parser_.handler().stopped()) return;
    json_push::PushHandler::ErrorCode error;
    const std::size_t read = parser_.write_some(more, piece.data(), piece.size(), error);
    using boost::json::error::incomplete;
    if (parser_.handler().stopped()) return;
    if (error == boost::json::error::too_deep) {
      problem_ = "nested deeper than " + std::to_string(json_push::kMaxJsonDepth) + " levels";
    } else if (error == boost::json::error::exponent_overflow) {
      problem_ = "a number is out of range";
    } else if (error == incomplete) {
      problem_ = "unexpected end of input";
    } else if (error || read < piece.size()) {
      problem_ = "syntax error at byte " + std::to_string(before_ + read + 1);
    }
    before_ += read;
  }
  absl::Status Finish(std::string_view what) {
    Write("", false);
    if (problem_.empty()) return absl::OkStatus();
    return InvalidArgument(std::string(what) + " is not JSON: " + problem_);
  }

 private:
  boost::json::basic_parser<json_push::PushHandler> parser_;
  std::size_t before_ = 0;  // bytes of the earlier pieces
  std::string problem_;
};

JsonPushParser::JsonPushParser(const JsonPaths& paths, JsonSink sink)
    : impl_(std::make_unique<Impl>(paths, std::move(sink))) {}
JsonPushParser::~JsonPushParser() = default;
void JsonPushParser::Write(std::string_view piece) { impl_->Write(piece, true); }
absl::Status JsonPushParser::Finish(std::string_view what) { return impl_->Finish(what); }

JsonListReader::JsonListReader(const std::string& list, const std::vector<std::string>& paths,
                               JsonElements& elements, const std::vector<std::string>& beside)
    : element_paths_(static_cast<int>(paths.size())),
      beside_(beside),
      paths_(ListPaths(list, paths, beside)),
      elements_(elements) {
  Begin();
}

void JsonListReader::Begin() {
  parser_.emplace(paths_, [this](int path, const JsonEvent& event) { return Take(path, event); });
  texts_.assign(beside_.size(), "");
  problem_.clear();
  refused_ = absl::OkStatus();
  open_ = 0;
  count_ = 0;
  has_list_ = false;
  elements_.Restart();
}

void JsonListReader::Write(std::string_view piece) { parser_->Write(piece); }

absl::Status JsonListReader::Finish(std::string_view what) {
  NH_RETURN_IF_ERROR(parser_->Finish(what));
  NH_RETURN_IF_ERROR(refused_);
  if (problem_.empty() && !has_list_) problem_ = "is not a list";
  if (problem_.empty()) return absl::OkStatus();
  return InvalidArgument(std::string(what) + " " + problem_);
}

bool JsonListReader::Take(int path, const JsonEvent& event) {
  if (path < element_paths_) {
    // A text or number in place of an element is refused before its members are read.
    if (open_ == 2) elements_.Take(path, event);
    return true;
  }
  if (path == element_paths_) return TakeList(event);
  if (event.kind == Kind::kNull) return true;
  const auto number = static_cast<std::size_t>(path - element_paths_ - 1);
  if (event.kind != Kind::kText)
    return Refuse("has a " + beside_[number] + " that is not a string");
  texts_[number] = event.text;
  return true;
}

bool JsonListReader::TakeList(const JsonEvent& event) {
  if (event.kind == Kind::kEnd) {
    if (--open_ == 0) return true;
    refused_ = elements_.End();
    return refused_.ok();
  }
  if (open_ == 0) {
    if (event.kind == Kind::kArray) open_ = 1;
    has_list_ = event.kind == Kind::kArray || event.kind == Kind::kNull;
    return has_list_ || Refuse("is not a list");
  }
  if (event.kind != Kind::kObject) return Refuse("has an element that is not an object");
  if (++count_ > kMaxElements) {
    return Refuse("has more than " + std::to_string(kMaxElements) + " elements");
  }
  open_ = 2;
  elements_.Begin();
  return true;
}

bool JsonListReader::Refuse(std::string_view problem) {
  problem_ = problem;
  return false;
}

}  // namespace nomad_harvester::base
