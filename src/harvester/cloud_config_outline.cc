// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "cloud_config.h"

namespace nomad_harvester::harvester {
namespace {

constexpr char kOpenQuote[] = "a quoted scalar does not end";

TextPosition PositionOf(const YAML::Mark& mark) {
  return {static_cast<std::size_t>(mark.line), static_cast<std::size_t>(mark.column)};
}

// Thrown to stop the parser on input that YAML forbids but the library accepts; ReadOutline catches
// it.
class Refused final : public YAML::Exception {
 public:
  using YAML::Exception::Exception;
};

class OutlineReader final : public YAML::EventHandler {
 public:
  explicit OutlineReader(const std::string& text) : text_(text) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override { CheckLastQuote(); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    if (open_.empty()) outline_.empty = true;
    CheckColon(mark);
    Node(mark, "", false);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Node(mark, "", false); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    last_scalar_ = mark;
    Node(mark, value, true);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value style) override {
    const bool flow = style == YAML::EmitterStyle::Flow;
    if (AtRootMember() && open_.back().expects_value && in_keys_) {
      outline_.keys_are_list = true;
      outline_.keys_flow = flow;
      outline_.keys_begin = PositionOf(mark);
    }
    open_.push_back({false, flow, false, mark});
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value style) override {
    const bool flow = style == YAML::EmitterStyle::Flow;
    if (open_.empty()) {
      is_mapping_ = true;
      outline_.flow = flow;
      outline_.begin = PositionOf(mark);
    }
    open_.push_back({true, flow, false, mark});
  }
  void OnMapEnd() override { Close(); }

  bool IsUsable() const { return is_mapping_ || outline_.empty; }
  const CloudConfigOutline& outline() const { return outline_; }

 private:
  struct Collection {
    bool is_map = false;
    bool flow = false;
    bool expects_value = false;  // for the key at `key`
    YAML::Mark key;
  };

  bool AtRootMember() const { return is_mapping_ && open_.size() == 1; }

  void Node(const YAML::Mark& mark, const std::string& value, bool scalar) {
    if (is_mapping_ && open_.size() == 2 && in_keys_ && outline_.keys_are_list && scalar) {
      outline_.keys.push_back(value);
    }
    Member(mark, value);
  }

  void Close() {
    const YAML::Mark begin = open_.back().key;
    open_.pop_back();
    Member(begin, "");
  }

  void Member(const YAML::Mark& mark, const std::string& name) {
    if (open_.empty() || !open_.back().is_map) return;
    if (AtRootMember()) RootMember(mark, name);
    if (InNetwork()) NetworkMember(name);
    open_.back().key = mark;
    open_.back().expects_value = !open_.back().expects_value;
  }

  bool InNetwork() const {
    return is_mapping_ && open_.size() == 2 && !outline_.members.empty() &&
           open_.front().expects_value && outline_.members.back() == "network";
  }
  void NetworkMember(const std::string& name) {
    if (open_.back().expects_value) {
      outline_.values["network." + network_key_] = name;
    } else {
      network_key_ = name;
    }
  }

  void RootMember(const YAML::Mark& mark, const std::string& name) {
    if (open_.back().expects_value) {
      in_keys_ = false;
      outline_.values[outline_.members.back()] = name;
      return;
    }
    const bool is_merge = name == "<<";  // each of them counts
    if (!name.empty() && !is_merge && outline_.values.contains(name)) {
      throw Refused(mark,
                    "this top-level key is there already, and cloud-init would read only the last "
                    "one; write its entries under the first one");
    }
    outline_.members.push_back(name);
    in_keys_ = name == kAuthorizedKeysMember;
    if (in_keys_) outline_.has_keys = true;
  }

  // The library takes a line without a colon for a key without a value, and reports that value at
  // the position of the key.
  void CheckColon(const YAML::Mark& mark) const {
    if (open_.empty() || open_.back().flow || !open_.back().expects_value) return;
    if (mark.line == open_.back().key.line && mark.column == open_.back().key.column) {
      throw Refused(mark, "a key is not followed by a colon");
    }
  }

  // The library accepts an unterminated quoted scalar if the text ends with a line break. It can
  // only be the last scalar.
  void CheckLastQuote() const {
    if (last_scalar_.is_null()) return;
    auto position = static_cast<std::size_t>(last_scalar_.pos);
    if (position >= text_.size()) return;
    const char quote = text_[position];
    if (quote != '"' && quote != '\'') return;
    while (++position < text_.size()) {
      const char escape = quote == '"' ? '\\' : '\'';
      const bool has_next = position + 1 < text_.size();
      if (text_[position] == escape && has_next && (quote == '"' || text_[position + 1] == quote)) {
        ++position;
      } else if (text_[position] == quote) {
        return;
      }
    }
    throw Refused(last_scalar_, kOpenQuote);
  }

  const std::string& text_;
  CloudConfigOutline outline_;
  std::vector<Collection> open_;
  YAML::Mark last_scalar_ = YAML::Mark::null_mark();
  bool is_mapping_ = false;
  bool in_keys_ = false;
  std::string network_key_;
};

// The library's messages may quote the text after a colon, so that part is removed. One of its
// messages contains EOF, which must not reach the agent: it restarts all policies on it.
std::string Words(const YAML::Exception& error) {
  if (error.msg == YAML::ErrorMsg::EOF_IN_SCALAR) return kOpenQuote;
  return error.msg.substr(0, error.msg.find(':'));
}

absl::Status NotYaml(const std::string& what, const YAML::Exception& error) {
  std::string text = what + " is not valid YAML: ";
  if (!error.mark.is_null()) text += "line " + std::to_string(error.mark.line + 1) + ": ";
  return base::InvalidArgument(text + Words(error));
}

// Refuses what YAML does not allow (YAML 1.1, 5.1): control characters, and bytes that are not
// UTF-8.
absl::Status CheckCharacters(const std::string& what, const std::string& text) {
  if (base::ToValidUtf8(text) != text) {
    return base::InvalidArgument(what + " is not valid YAML: it is not valid UTF-8");
  }
  int line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F) {
      return base::InvalidArgument(what + " is not valid YAML: line " + std::to_string(line) +
                                   ": a control character");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CloudConfigOutline> ReadOutline(const std::string& text, const std::string& what) {
  NH_RETURN_IF_ERROR(CheckCharacters(what, text));
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    OutlineReader reader(text);
    if (!parser.HandleNextDocument(reader)) {
      CloudConfigOutline nothing;
      nothing.empty = true;
      return nothing;
    }
    if (!reader.IsUsable()) {
      return base::InvalidArgument(what + " is not a mapping of keys to values");
    }
    OutlineReader second(text);
    if (parser.HandleNextDocument(second)) {
      return base::InvalidArgument(what + " holds more than one YAML document");
    }
    return reader.outline();
  } catch (const YAML::Exception& error) {
    return NotYaml(what, error);
  } catch (const std::exception&) {
    return base::InvalidArgument(what + " is not valid YAML");
  }
}

}  // namespace nomad_harvester::harvester
