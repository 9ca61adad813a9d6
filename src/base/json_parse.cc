// SPDX-License-Identifier: Apache-2.0
// ParseJson: without exceptions, and with a limit of depth.
#include <cstddef>
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
constexpr std::size_t kMaxDepth = 200;

// Builds the value from nlohmann's events. The parser does not recurse, so depth costs only memory.
// The depth is limited for code that walks the value recursively.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(std::string_view text) : text_size_(text.size()) {}

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
    member_ = &(*levels_.back())[std::move(name)];
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

  // Why the parser stopped.
  const std::string& failure() const { return failure_; }
  Json TakeRoot() { return std::move(root_); }

 private:
  template <typename T>
  bool Value(T&& value) {
    Place(Json(std::forward<T>(value)));
    return true;
  }
  bool Open(Json value) {
    if (levels_.size() >= kMaxDepth) {
      failure_ = "nested deeper than " + std::to_string(kMaxDepth) + " levels";
      return false;
    }
    levels_.push_back(Place(std::move(value)));
    return true;
  }
  bool Close() {
    levels_.pop_back();
    return true;
  }

  Json* Place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *levels_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *member_ = std::move(value);
    return member_;
  }

  const std::size_t text_size_;
  Json root_;
  std::vector<Json*> levels_;  // objects and arrays that are being filled
  Json* member_ = nullptr;     // target of the value after a key
  std::string failure_;
};

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view what) {
  Reader reader(text);
  if (Json::sax_parse(text.begin(), text.end(), &reader)) return reader.TakeRoot();
  return InvalidArgument(std::string(what) + " is not JSON: " + reader.failure());
}

}  // namespace nomad_harvester::base
