#include "json_list.h"

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::nomad {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 100;

using Path = std::vector<std::string>;

Path Split(std::string_view text) {
  Path path;
  while (true) {
    const std::size_t slash = text.find('/');
    path.emplace_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return path;
    text.remove_prefix(slash + 1);
  }
}

bool Matches(const Path& pattern, const Path& path) {
  return pattern.size() == path.size() &&
         std::equal(pattern.begin(), pattern.end(), path.begin(),
                    [](const std::string& a, const std::string& b) { return a == "*" || a == b; });
}

// What the parser calls for every value. Returning false keeps a value out of the document.
class ListReader {
 public:
  ListReader(std::span<const std::string_view> unread,
             const std::function<absl::Status(const Json&)>& element)
      : element_(element) {
    for (const std::string_view pattern : unread) unread_.push_back(Split(pattern));
  }

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::key:
        return !IsUnread(depth - 2, parsed);
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (depth == 0) is_array_ = event == Json::parse_event_t::array_start;
        if (depth >= kMaxDepth) too_deep_ = true;
        return depth < kMaxDepth;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
      case Json::parse_event_t::value:
        if (depth != 1 || !is_array_) return true;
        if (status_.ok() && !too_deep_) status_ = element_(parsed);
        return false;
    }
    return true;
  }

  bool is_array() const { return is_array_; }
  bool too_deep() const { return too_deep_; }
  const absl::Status& status() const { return status_; }

 private:
  // A member's name is told apart by where it stands: tasks and meta keys have names of any kind.
  // `level` is 0 for the members of an element.
  bool IsUnread(int level, const Json& key) {
    const auto* name = key.get_ptr<const std::string*>();
    if (level < 0 || name == nullptr) return false;
    path_.resize(static_cast<std::size_t>(level));
    path_.push_back(*name);
    return std::any_of(unread_.begin(), unread_.end(),
                       [this](const Path& pattern) { return Matches(pattern, path_); });
  }

  std::vector<Path> unread_;
  const std::function<absl::Status(const Json&)>& element_;
  Path path_;  // of the member that is being read; empty names stand for array levels
  bool is_array_ = false;
  bool too_deep_ = false;
  absl::Status status_;
};

}  // namespace

absl::Status ForEachElement(std::string_view text, std::string_view what,
                            std::span<const std::string_view> unread,
                            const std::function<absl::Status(const Json&)>& element) {
  ListReader reader(unread, element);
  const Json document = Json::parse(
      text.begin(), text.end(),
      [&reader](int depth, Json::parse_event_t event, Json& parsed) {
        return reader(depth, event, parsed);
      },
      /*allow_exceptions=*/false);
  if (document.is_discarded()) return base::Internal(std::string(what) + " is not JSON");
  if (reader.too_deep()) return base::Internal(std::string(what) + " is nested too deeply");
  if (document.is_null()) return absl::OkStatus();
  if (!reader.is_array()) return base::Internal(std::string(what) + " is not a list");
  return reader.status();
}

}  // namespace nomad_harvester::nomad
