#include "cloud_config_outline.h"

#include <exception>
#include <sstream>
#include <string>

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::harvester {
namespace {

TextPosition PositionOf(const YAML::Mark& mark) {
  return {static_cast<std::size_t>(mark.line), static_cast<std::size_t>(mark.column)};
}

// Depth 0 is the document itself, 1 the members of the root, 2 what stands in a member.
class OutlineReader final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark&, YAML::anchor_t) override {
    if (depth_ == 0) outline_.empty = true;
    Node("", false);
  }
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override { Node("", false); }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    Node(value, true);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value style) override {
    if (IsKeysValue()) {
      outline_.keys_are_list = true;
      outline_.keys_flow = style == YAML::EmitterStyle::Flow;
      outline_.keys_begin = PositionOf(mark);
    }
    ++depth_;
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value style) override {
    if (depth_ == 0) {
      is_mapping_ = true;
      outline_.flow = style == YAML::EmitterStyle::Flow;
      outline_.begin = PositionOf(mark);
    }
    ++depth_;
  }
  void OnMapEnd() override { Close(); }

  bool IsUsable() const { return is_mapping_ || outline_.empty; }
  const CloudConfigOutline& outline() const { return outline_; }

 private:
  bool IsKeysValue() const { return depth_ == 1 && is_mapping_ && expects_value_ && in_keys_; }

  // A node without children has been read.
  void Node(const std::string& value, bool scalar) {
    if (depth_ == 2 && is_mapping_ && in_keys_ && outline_.keys_are_list && scalar) {
      outline_.keys.push_back(value);
    }
    if (depth_ == 1 && is_mapping_) Member(value);
  }

  void Close() {
    --depth_;
    if (depth_ == 1 && is_mapping_) Member("");
  }

  // A key or a value of the root has been read.
  void Member(const std::string& name) {
    if (expects_value_) {
      in_keys_ = false;
    } else {
      outline_.members.push_back(name);
      in_keys_ = name == kAuthorizedKeysMember;
      if (in_keys_) {
        // Of a member that stands twice the last one counts.
        outline_.has_keys = true;
        outline_.keys_are_list = false;
        outline_.keys.clear();
      }
    }
    expects_value_ = !expects_value_;
  }

  CloudConfigOutline outline_;
  int depth_ = 0;
  bool is_mapping_ = false;
  bool expects_value_ = false;
  bool in_keys_ = false;
};

// What the library adds to some of its messages behind a colon comes from the text and is left out.
// One of its words is EOF, which must not leave the process: the agent restarts all policies on it.
std::string Words(const YAML::Exception& error) {
  if (error.msg == YAML::ErrorMsg::EOF_IN_SCALAR) return "a quoted scalar does not end";
  return error.msg.substr(0, error.msg.find(':'));
}

absl::Status NotYaml(const YAML::Exception& error) {
  std::string text = "#cloud-config is no valid YAML: ";
  if (!error.mark.is_null()) text += "line " + std::to_string(error.mark.line + 1) + ": ";
  return base::InvalidArgument(text + Words(error));
}

}  // namespace

absl::StatusOr<CloudConfigOutline> ReadOutline(const std::string& text) {
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    OutlineReader reader;
    if (!parser.HandleNextDocument(reader)) {
      CloudConfigOutline nothing;
      nothing.empty = true;
      return nothing;
    }
    if (!reader.IsUsable()) {
      return base::InvalidArgument("#cloud-config is no mapping of keys to values");
    }
    OutlineReader second;
    if (parser.HandleNextDocument(second)) {
      return base::InvalidArgument("#cloud-config holds more than one YAML document");
    }
    return reader.outline();
  } catch (const YAML::Exception& error) {
    return NotYaml(error);
  } catch (const std::exception&) {
    return base::InvalidArgument("#cloud-config is no valid YAML");
  }
}

}  // namespace nomad_harvester::harvester
