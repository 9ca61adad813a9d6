// The process: hands arguments and environment to module cli. The only file that no test links.

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/cli/commands.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody sets it
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  return nomad_harvester::cli::Main(arguments, environment);
}
