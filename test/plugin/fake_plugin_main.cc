// SPDX-License-Identifier: Apache-2.0
// A plugin process with a scripted target service, for contract tests in which the real plugin
// would need a Harvester cluster.

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <unistd.h>

#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/plugin/plugin_process.h"
#include "nomad_harvester/runtime/clock.h"

#include "plugin/fake_service.h"

namespace {

namespace config = nomad_harvester::config;
namespace log = nomad_harvester::log;
namespace plugin = nomad_harvester::plugin;

config::StringMap ReadEnvironment() {
  config::StringMap environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    const std::size_t equals = variable.find('=');
    if (equals != std::string::npos) {
      environment.emplace(variable.substr(0, equals), variable.substr(equals + 1));
    }
  }
  return environment;
}

}  // namespace

// Arguments: none, or "dev" and an address.
int main(int argc, char** argv) {
  // Blocks the signal as a main may do, so that the service's threads do not receive it.
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  sigaddset(&mask, SIGINT);
  pthread_sigmask(SIG_BLOCK, &mask, nullptr);

  const std::unique_ptr<nomad_harvester::runtime::Clock> clock =
      nomad_harvester::runtime::MakeSystemClock();
  plugin::ProcessOptions options;
  options.environment = ReadEnvironment();
  options.logger = log::Logger(log::MakeHclogSink("fake"), log::Level::kTrace);
  options.clock = clock.get();
  plugin::FakeService service(options.logger);
  if (argc == 3 && std::string(argv[1]) == "dev") {
    plugin::DevOptions dev;
    dev.listen = argv[2];
    dev.on_listening = [](const std::string& address) {
      std::printf("%s\n", address.c_str());
      std::fflush(stdout);
    };
    return plugin::RunDev(service, options, dev);
  }
  if (!plugin::StartedByHost(options.environment)) {
    std::fputs("This program is a plugin of the Nomad Autoscaler, which starts it.\n", stderr);
    return 1;
  }
  return plugin::RunPlugin(service, options);
}
