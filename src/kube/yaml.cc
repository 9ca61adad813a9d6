// SPDX-License-Identifier: Apache-2.0
#include "yaml.h"

#include <cstddef>
#include <exception>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "nlohmann/json.hpp"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/parser.h"

namespace nomad_harvester::kube {
namespace {

constexpr std::size_t kMaxDepth = 50;
constexpr std::size_t kMaxValues = 20'000;
constexpr std::size_t kMaxBytes = 8UL * 1024 * 1024;

// Thrown inside yaml-cpp, which cannot be stopped otherwise; ParseYaml catches it.
struct Refused {
  Refused(const YAML::Mark& mark, std::string text) : why(std::move(text)), line(mark.line + 1) {}

  std::string why;
  int line;
};

// The size of a value: the number of values, itself and nested ones, and the bytes of their
// strings.
struct ValueSize {
  std::size_t values = 0;
  std::size_t bytes = 0;
};

ValueSize SizeOf(const Json& value) {
  ValueSize size{1, 0};
  if (value.is_string()) size.bytes = value.get_ref<const std::string&>().size();
  if (!value.is_structured()) return size;
  for (const auto& [key, child] : value.items()) {
    const ValueSize below = SizeOf(child);
    size.values += below.values;
    size.bytes += below.bytes + (value.is_object() ? key.size() : 0);
  }
  return size;
}

// Builds a JSON value from yaml-cpp's events, without a YAML::Node, so that the expansion of
// aliases can be limited.
class Builder final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(mark, anchor, Json(nullptr));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& value) override {
    Add(mark, anchor, Json(value));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    // Inside the anchored value itself, the anchor is not complete yet.
    if (found == anchors_.end()) throw Refused(mark, "an alias refers to itself");
    // Charged before the copy: a short text of nested aliases can expand exponentially.
    Charge(mark, SizeOf(found->second));
    Add(mark, YAML::NullAnchor, found->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, Json::array());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, Json::object());
  }
  void OnMapEnd() override { Close(); }

  Json TakeRoot() { return std::move(root_); }

 private:
  struct Level {
    Json value;
    YAML::anchor_t anchor;
    YAML::Mark mark;
    std::optional<std::string> key;  // in an object, once read
  };

  void Charge(const YAML::Mark& mark, const ValueSize& size) {
    cost_.values += size.values;
    cost_.bytes += size.bytes;
    if (cost_.values > kMaxValues) {
      throw Refused(mark, "it expands to more than " + std::to_string(kMaxValues) + " values");
    }
    if (cost_.bytes > kMaxBytes) {
      throw Refused(mark, "it expands to more than " + std::to_string(kMaxBytes) + " bytes");
    }
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, Json value) {
    if (levels_.size() >= kMaxDepth) {
      throw Refused(mark, "it is nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    levels_.push_back(Level{std::move(value), anchor, mark, std::nullopt});
  }

  void Close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    Add(level.mark, level.anchor, std::move(level.value));
  }

  void Add(const YAML::Mark& mark, YAML::anchor_t anchor, Json value) {
    Charge(mark, {1, 0});
    if (anchor != YAML::NullAnchor) {
      Charge(mark, SizeOf(value));  // stored twice
      anchors_[anchor] = value;
    }
    if (levels_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& parent = levels_.back();
    if (parent.value.is_array()) {
      parent.value.push_back(std::move(value));
    } else if (!parent.key) {
      if (!value.is_string()) throw Refused(mark, "a key is not a string");
      parent.key = value.get<std::string>();
      // If treated as an ordinary key, it would silently omit the merged members.
      if (*parent.key == "<<") throw Refused(mark, "merge keys are not supported");
      if (parent.value.contains(*parent.key)) throw Refused(mark, "a key is given twice");
    } else {
      parent.value[*std::exchange(parent.key, std::nullopt)] = std::move(value);
    }
  }

  Json root_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, Json> anchors_;
  ValueSize cost_;
};

absl::Status NotYaml(int line, const std::string& why) {
  return base::InvalidArgument("line " + std::to_string(line) + ": " + why);
}

absl::StatusOr<Json> ParseDocument(const std::string& text) {
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Builder builder;
    if (!parser.HandleNextDocument(builder)) return base::InvalidArgument("it is empty");
    Json document = builder.TakeRoot();
    Builder second;
    if (parser.HandleNextDocument(second)) {
      return base::InvalidArgument("it holds several documents");
    }
    return document;
  } catch (const Refused& refused) {
    return NotYaml(refused.line, refused.why);
  } catch (const YAML::Exception& error) {
    // error.msg is a constant of yaml-cpp, except for messages that quote an alias or a tag.
    return NotYaml(error.mark.line + 1, "it is not YAML");
  } catch (const std::exception&) {
    return base::InvalidArgument("it is not YAML");
  }
}

}  // namespace

absl::StatusOr<Json> ParseYaml(const std::string& text) {
  // yaml-cpp does not accept all JSON: it rejects tabs as indentation.
  const std::string_view trimmed = base::TrimAsciiSpace(text);
  if (!trimmed.empty() && trimmed.front() == '{') {
    absl::StatusOr<Json> json = base::ParseJson(trimmed, "it");
    if (json.ok()) return json;
  }
  return ParseDocument(text);
}

}  // namespace nomad_harvester::kube
