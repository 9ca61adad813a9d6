// SPDX-License-Identifier: Apache-2.0
// The table of docs/metrics.md has the metrics that exist; so do the examples. To update the
// columns of the page that are known here, run this executable with NOMAD_HARVESTER_UPDATE_DOCS=1
// in its environment.
#include <array>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/metrics/registry.h"

#include "nlohmann/json.hpp"
#include "support/source_tree.h"

namespace nomad_harvester::metrics {
namespace {

std::string_view TypeName(Type type) {
  static constexpr std::array<std::string_view, 3> kNames = {"gauge", "counter", "histogram"};
  return kNames.at(static_cast<std::size_t>(type));
}

using ::testing::IsSubsetOf;

constexpr char kBegin[] = "<!-- metrics: begin -->\n";
constexpr char kEnd[] = "<!-- metrics: end -->";

std::string Read(const std::string& relative) {
  return base::ReadFile(support::SourcePath(relative)).value();
}

std::string Table() {
  std::string table = "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n";
  for (const MetricRow& row : MetricTable()) {
    table += "| `" + std::string(row.name) + "` | " + std::string(TypeName(row.type)) + " | ";
    std::string labels;
    for (const std::string_view label : row.labels) {
      labels += (labels.empty() ? "`" : ", `") + std::string(label) + "`";
    }
    table += labels + " | " + std::string(row.help) + " |\n";
  }
  return table;
}

std::string WithTable(const std::string& page) {
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos) return "";
  return page.substr(0, begin + sizeof(kBegin) - 1) + Table() + page.substr(end);
}

// The words of a text that look like a metric of ours, without the suffixes of a histogram.
std::set<std::string> MetricsIn(const std::string& text) {
  static const std::regex kName("nomad_harvester_[a-z_]+[a-z]");
  static const std::regex kSuffix("_seconds_(bucket|sum|count)$");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), kName); at != std::sregex_iterator();
       ++at) {
    names.insert(std::regex_replace(at->str(), kSuffix, "_seconds"));
  }
  return names;
}

std::set<std::string> AllNames() {
  std::set<std::string> names;
  for (const MetricRow& row : MetricTable()) names.emplace(row.name);
  return names;
}

TEST(MetricsPage, the_table_of_docs_metrics_md_is_the_table_of_metrics) {
  const std::string wanted = WithTable(Read("docs/metrics.md"));
  if (std::getenv("NOMAD_HARVESTER_UPDATE_DOCS") != nullptr) {
    std::ofstream(support::SourcePath("docs/metrics.md"), std::ios::binary) << wanted;
  }
  EXPECT_TRUE(Read("docs/metrics.md") == wanted)
      << "docs/metrics.md is out of date: run metrics_test with NOMAD_HARVESTER_UPDATE_DOCS=1 in "
         "its environment, and commit the page";
}

TEST(MetricsPage, the_documents_name_no_metric_that_does_not_exist) {
  for (const char* page : {"docs/metrics.md", "docs/operations.md", "docs/troubleshooting.md"}) {
    EXPECT_THAT(MetricsIn(Read(page)), IsSubsetOf(AllNames())) << page;
  }
}

// Whether Prometheus takes them, and what it makes of them: test/contract/metrics_test.go.
TEST(MetricsPage, the_examples_name_no_metric_that_does_not_exist) {
  for (const char* example :
       {"examples/prometheus-alerts.yaml", "examples/grafana-dashboard.json"}) {
    EXPECT_THAT(MetricsIn(Read(example)), IsSubsetOf(AllNames())) << example;
  }
}

TEST(MetricsPage, the_dashboard_shows_every_metric) {
  EXPECT_EQ(MetricsIn(Read("examples/grafana-dashboard.json")), AllNames());
}

std::vector<std::string> PanelsOfTheDashboard() {
  const auto dashboard = base::ParseJson(Read("examples/grafana-dashboard.json"), "the dashboard");
  std::vector<std::string> titles;
  for (const nlohmann::json& panel : dashboard.value().at("panels")) {
    titles.push_back(base::GetString(panel, "title"));
  }
  return titles;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  return all;
}

constexpr char kMakeThePage[] =
    "run test/e2e's TestAPoolGrowsAndShrinksWithItsPolicy with NOMAD_HARVESTER_UPDATE_DOCS=1 in "
    "its environment, or write the panel there, and what it was empty for";

TEST(DashboardPage, has_the_panels_of_the_dashboard_in_their_order) {
  std::vector<std::string> on_page;
  for (const std::string& line : LinesOf(Read("docs/dashboard.md"))) {
    if (line.starts_with("| ")) on_page.push_back(line.substr(2, line.find(" | ") - 2));
  }
  ASSERT_FALSE(on_page.empty());
  on_page.erase(on_page.begin());  // the table's head
  EXPECT_EQ(on_page, PanelsOfTheDashboard()) << "docs/dashboard.md: " << kMakeThePage;
}

TEST(DashboardPage, its_picture_has_the_panels_of_the_dashboard_in_their_order) {
  static constexpr std::string_view kTitle = "font-size=\"12\">";  // dashboard_picture_test.go
  std::vector<std::string> drawn;
  for (const std::string& line : LinesOf(Read("docs/images/dashboard.svg"))) {
    const std::size_t title = line.find(kTitle);
    if (title == std::string::npos) continue;
    const std::size_t begin = title + kTitle.size();
    drawn.push_back(line.substr(begin, line.find('<', begin) - begin));
  }
  EXPECT_EQ(drawn, PanelsOfTheDashboard()) << "docs/images/dashboard.svg: " << kMakeThePage;
}

}  // namespace
}  // namespace nomad_harvester::metrics
