// SPDX-License-Identifier: Apache-2.0
// Parses JSON without exceptions, with a limit of depth, and without dropped members.
#include "nomad_harvester/base/json_reader.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::base {
namespace {

using Json = nlohmann::json;
using ElementFunction = std::function<absl::Status(const Json&)>;

constexpr std::size_t kMaxDepth = 200;

// Builds the value from nlohmann's events. The parser does not recurse, so depth costs only memory.
// The depth is limited for code that walks the value recursively.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  // If `element` is set, it receives the elements of a root array one by one, and none is kept.
  explicit Reader(std::string_view text, const DropTree& drop, const ElementFunction* element)
      : text_size_(text.size()), root_drop_(&drop), element_(element) {}

  bool null() override { return Value(nullptr); }
  bool boolean(bool value) override { return Value(value); }
  bool number_integer(number_integer_t value) override { return Value(value); }
  bool number_unsigned(number_unsigned_t value) override { return Value(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return Value(value);
  }
  bool string(string_t& value) override { return Value(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*elements*/) override { return Open(Json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t /*elements*/) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    if (skipped_levels_ > 0) return true;
    const Level& level = levels_.back();
    member_drop_ = level.drop == nullptr ? nullptr : level.drop->Find(name);
    skip_next_ = member_drop_ != nullptr && member_drop_->drops();
    if (!skip_next_) member_ = &(*level.value)[std::move(name)];
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;  // nlohmann/json:include/nlohmann/detail/exceptions.hpp
    // The texts of nlohmann's errors quote the input, which may hold a secret: only the position is
    // kept.
    if (error.id == kOutOfRange) {
      failure_ = "a number is out of range";
    } else if (position > text_size_) {
      failure_ = "unexpected end of input";
    } else {
      failure_ = "syntax error at byte " + std::to_string(position);
    }
    return false;
  }

  // Why the parser stopped: a syntax error, or the error of `element`.
  const std::string& failure() const { return failure_; }
  const absl::Status& element_status() const { return element_status_; }
  Json TakeRoot() { return std::move(root_); }

 private:
  struct Level {
    Json* value;           // an object or array that is being filled
    const DropTree* drop;  // members to drop below it; null: none
  };

  template <typename T>
  bool Value(T&& value) {
    if (Skipped()) return true;
    Place(Json(std::forward<T>(value)));
    return HandOver();
  }

  bool Open(Json value) {
    if (levels_.size() + skipped_levels_ >= kMaxDepth) {
      failure_ = "nested deeper than " + std::to_string(kMaxDepth) + " levels";
      return false;
    }
    if (skipped_levels_ > 0 || Skipped()) {
      ++skipped_levels_;
      return true;
    }
    const DropTree* drop = CurrentDrop();
    levels_.push_back(Level{Place(std::move(value)), drop});
    return true;
  }

  bool Close() {
    if (skipped_levels_ > 0) {
      --skipped_levels_;
      return true;
    }
    levels_.pop_back();
    return HandOver();
  }

  // A value is complete: passes an element of the root to `element_`, if set.
  bool HandOver() {
    if (element_ == nullptr || levels_.size() != 1 || !root_.is_array()) return true;
    element_status_ = (*element_)(root_.back());
    root_.clear();
    return element_status_.ok();
  }

  // Whether the value that begins here belongs to a dropped member.
  bool Skipped() {
    if (skipped_levels_ > 0) return true;
    return std::exchange(skip_next_, false);
  }

  // What is dropped below the value that begins here.
  const DropTree* CurrentDrop() const {
    if (levels_.empty()) return root_drop_;
    return levels_.back().value->is_array() ? levels_.back().drop : member_drop_;
  }

  Json* Place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *levels_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *member_ = std::move(value);
    return member_;
  }

  const std::size_t text_size_;
  const DropTree* root_drop_;
  const ElementFunction* element_;
  Json root_;
  std::vector<Level> levels_;
  Json* member_ = nullptr;  // target of the value after a key
  const DropTree* member_drop_ = nullptr;
  bool skip_next_ = false;
  std::size_t skipped_levels_ = 0;
  std::string failure_;
  absl::Status element_status_;
};

// Returns the root; an array is empty if `element` received its elements.
absl::StatusOr<Json> Read(std::string_view text, std::string_view what, const DropTree& drop,
                          const ElementFunction* element) {
  Reader reader(text, drop, element);
  if (Json::sax_parse(text.begin(), text.end(), &reader)) return reader.TakeRoot();
  NH_RETURN_IF_ERROR(reader.element_status());
  return InvalidArgument(std::string(what) + " is not JSON: " + reader.failure());
}

}  // namespace

void DropTree::Add(std::string_view dotted_path) {
  if (dotted_path.empty()) return;
  const std::size_t dot = dotted_path.find('.');
  const std::string_view member = dotted_path.substr(0, dot);
  auto child = std::find_if(children_.begin(), children_.end(),
                            [member](const DropTree& tree) { return tree.name_ == member; });
  if (child == children_.end()) {
    children_.emplace_back();
    child = std::prev(children_.end());
    child->name_ = member;
  }
  if (dot == std::string_view::npos) {
    child->drops_ = true;
  } else {
    child->Add(dotted_path.substr(dot + 1));
  }
}

const DropTree* DropTree::Find(std::string_view member) const {
  const DropTree* any = nullptr;
  for (const DropTree& child : children_) {
    if (child.name_ == member) return &child;
    if (child.name_ == "*") any = &child;
  }
  return any;
}

absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view what) {
  return ParseJson(text, what, {});
}

absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view what, const DropTree& drop) {
  return Read(text, what, drop, nullptr);
}

absl::Status ParseJsonList(std::string_view text, std::string_view what, const DropTree& drop,
                           const ElementFunction& element) {
  NH_ASSIGN_OR_RETURN(const Json root, Read(text, what, drop, &element));
  if (root.is_array() || root.is_null()) return absl::OkStatus();
  return InvalidArgument(std::string(what) + " is not a list");
}

}  // namespace nomad_harvester::base
