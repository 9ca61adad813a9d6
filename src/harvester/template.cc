// SPDX-License-Identifier: Apache-2.0
// Renders Mustache templates: our checks, then kainjow's renderer.
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kainjow/mustache.hpp>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_spec.h"

#include "nlohmann/json.hpp"
#include "template_scanner.h"

namespace nomad_harvester::harvester {
namespace {

// The limit of a Secret (kubernetes/kubernetes:pkg/apis/core/types.go, MaxSecretSize). A larger
// template cannot become user data, and the renderer's cost grows with its size.
constexpr std::size_t kMaxTemplateBytes = 1024 * 1024;
constexpr std::size_t kMaxProblems = 10;
constexpr std::size_t kMaxNameBytes = 60;

constexpr std::string_view kForeignBracesHint =
    "To keep other {{ }} (Jinja, consul-template, Nomad), change Mustache's delimiters before "
    "them: "
    "{{=<% %>=}}, then <%vm_name%>.";

std::string Quote(std::string_view text) {
  std::string shown(text.substr(0, kMaxNameBytes));
  if (text.size() > kMaxNameBytes) shown += "...";
  return base::DumpJson(nlohmann::json(shown));
}

std::string UnknownVariable(const std::string& name, const TemplateVariables& known) {
  std::vector<std::string> names;
  for (const auto& [candidate, value] : known) names.push_back(candidate);
  std::string text = "unknown variable " + Quote(name);
  if (const auto nearest = base::NearestName(name, names)) {
    return text + ", did you mean " + Quote(*nearest) + "?";
  }
  text += "; known variables:";
  for (const std::string& candidate : names) text += " " + candidate;
  return text;
}

std::optional<std::string> FindProblem(const TemplateTag& tag, const TemplateVariables& known) {
  switch (tag.kind) {
    case TemplateTag::Kind::kVariable:
      if (known.contains(tag.text)) return std::nullopt;
      return UnknownVariable(tag.text, known);
    case TemplateTag::Kind::kUnsupported:
      return "sections and partials are not supported: " + Quote(tag.text);
    case TemplateTag::Kind::kComment:
    case TemplateTag::Kind::kDelimiters:
      break;
  }
  return std::nullopt;
}

absl::StatusOr<ScannedTemplate> Check(const std::string& source, const TemplateVariables& known) {
  if (source.size() > kMaxTemplateBytes) {
    return base::InvalidArgument("the template is larger than 1 MiB, the limit of a Secret");
  }
  ScannedTemplate scanned = ScanTemplate(source);
  std::vector<TemplateProblem> problems;
  for (const TemplateTag& tag : scanned.tags) {
    auto problem = FindProblem(tag, known);
    if (problem) problems.push_back({tag.begin, *std::move(problem)});
  }
  problems.insert(problems.end(), scanned.problems.begin(), scanned.problems.end());
  if (problems.empty()) return scanned;

  std::string text;
  for (std::size_t i = 0; i < problems.size() && i < kMaxProblems; ++i) {
    text += DescribePosition(source, problems[i].position) + ": " + problems[i].text + "\n";
  }
  if (problems.size() > kMaxProblems) {
    text += "and " + std::to_string(problems.size() - kMaxProblems) + " more\n";
  }
  return base::InvalidArgument(text + std::string(kForeignBracesHint));
}

// Looks names up unchanged. The library's own context would split "env.NAME" at its dots and look
// for nested objects.
class FlatContext final : public kainjow::mustache::basic_context<std::string> {
 public:
  explicit FlatContext(const TemplateVariables& variables) {
    for (const auto& [name, value] : variables) values_.emplace(name, value);
  }
  void push(const kainjow::mustache::data*) override {}
  void pop() override {}
  const kainjow::mustache::data* get(const std::string& name) const override {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  }
  const kainjow::mustache::data* get_partial(const std::string&) const override { return nullptr; }

 private:
  std::map<std::string, kainjow::mustache::data> values_;
};

}  // namespace

absl::StatusOr<std::string> RenderTemplate(const std::string& source,
                                           const TemplateVariables& variables) {
  NH_ASSIGN_OR_RETURN(const ScannedTemplate scanned, Check(source, variables));
  // A text without tags is returned unchanged.
  if (scanned.tags.empty()) return source;
  try {
    kainjow::mustache::mustache renderer(WithoutStandaloneLines(source, scanned));
    if (!renderer.is_valid()) return base::InvalidArgument(renderer.error_message());
    renderer.set_custom_escape([](const std::string& text) { return text; });
    FlatContext context(variables);
    std::string rendered = renderer.render(context);
    if (!renderer.is_valid()) return base::InvalidArgument(renderer.error_message());
    if (rendered.size() > kMaxTemplateBytes) {
      return base::InvalidArgument(
          "the rendered template is larger than 1 MiB, the limit of a Secret");
    }
    return rendered;
  } catch (const std::exception& error) {
    return base::Internal("the template cannot be rendered: " + std::string(error.what()));
  }
}

}  // namespace nomad_harvester::harvester
