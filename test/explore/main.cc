// SPDX-License-Identifier: Apache-2.0
// harvester_explore: visits the reachable states of the configurations and prints their number, or
// the shortest path to a violation.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "explorer.h"

namespace nomad_harvester::explore {
namespace {

constexpr char kUsage[] =
    R"(usage: harvester_explore [OPTION...]

  --ci                 what a submission must pass: 1.5 million states of each configuration
  --small              the budgets of the unit test
  --states N           visit at most N states of each configuration
  --seconds N          end each configuration after N seconds
  --configuration NAME only this one
  --processes N        only configurations with so many processes
  --without-row ROW    leave this row out of NextStep
  --swap ROW,ROW       the first gives way wherever the second matches, too
  --list               the configurations and the rows

Exit 0: nothing was violated. Exit 1: a violation; its shortest trace is printed. Exit 2: usage.
)";

struct Options {
  bool large = true;
  std::size_t states = SIZE_MAX;
  double seconds = 0;
  int processes = 0;
  std::string configuration;
  Mutation mutation;
  bool list = false;
};

std::optional<scaling::Row> RowNamed(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(scaling::Row::kMarkedStartDrain); ++i) {
    const auto row = static_cast<scaling::Row>(i);
    if (RowName(row) == name) return row;
  }
  return std::nullopt;
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--ci") {
      options->states = 1'500'000;
    } else if (flag == "--small") {
      options->large = false;
    } else if (flag == "--list") {
      options->list = true;
    } else if (i + 1 == argc) {
      return false;
    } else if (flag == "--states") {
      options->states = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--seconds") {
      options->seconds = std::strtod(argv[++i], nullptr);
    } else if (flag == "--processes") {
      options->processes = std::atoi(argv[++i]);
    } else if (flag == "--configuration") {
      options->configuration = argv[++i];
    } else if (flag == "--without-row") {
      options->mutation.off = RowNamed(argv[++i]);
      if (!options->mutation.off.has_value()) return false;
    } else if (flag == "--swap") {
      const std::string_view pair = argv[++i];
      const std::size_t comma = pair.find(',');
      if (comma == std::string_view::npos) return false;
      const auto first = RowNamed(pair.substr(0, comma));
      const auto second = RowNamed(pair.substr(comma + 1));
      if (!first.has_value() || !second.has_value()) return false;
      options->mutation.swap = Mutation::Swap{.first = *first, .second = *second};
    } else {
      return false;
    }
  }
  return true;
}

void List() {
  for (const Configuration& configuration : Configurations(true)) {
    std::printf("%-10s %s\n", configuration.name.c_str(), configuration.about.c_str());
  }
  for (int i = 0; i <= static_cast<int>(scaling::Row::kMarkedStartDrain); ++i) {
    std::printf("%s\n", std::string(RowName(static_cast<scaling::Row>(i))).c_str());
  }
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// False: a violation.
bool Run(const Configuration& configuration, const Options& options, std::size_t* states) {
  const auto start = std::chrono::steady_clock::now();
  Limits limits{.states = options.states};
  if (options.seconds > 0) {
    limits.enough = [&] { return SecondsSince(start) > options.seconds; };
  }
  const Result result = Explore(configuration, options.mutation, limits);
  const double seconds = SecondsSince(start);
  *states += result.states;
  std::printf("%-10s %9zu states, %10zu transitions, depth %3zu, %7zu decisions, %5.1f s%s\n",
              configuration.name.c_str(), result.states, result.transitions, result.depth,
              result.decisions, seconds, result.complete ? ", complete" : "");
  if (result.violation == Violation::kNone) return true;
  std::printf("\n%s\n\n", Describe(result.violation).c_str());
  for (const std::string& line : result.trace) std::printf("%s\n", line.c_str());
  return false;
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (options.list) {
    List();
    return 0;
  }
  std::size_t states = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const Configuration& configuration : Configurations(options.large)) {
    if (!options.configuration.empty() && configuration.name != options.configuration) continue;
    if (options.processes != 0 && configuration.processes != options.processes) continue;
    if (!Run(configuration, options, &states)) return 1;
    std::fflush(stdout);
  }
  const double seconds = SecondsSince(start);
  std::printf("%zu states in %.1f s, %.0f a second: nothing was violated\n", states, seconds,
              static_cast<double>(states) / seconds);
  return 0;
}

}  // namespace
}  // namespace nomad_harvester::explore

int main(int argc, char** argv) { return nomad_harvester::explore::Main(argc, argv); }
