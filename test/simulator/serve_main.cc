// SPDX-License-Identifier: Apache-2.0
// Serves a simulated Harvester and Nomad until its standard input ends, for the comparison with the
// real servers' responses (test/e2e/cmd/fidelity) and for tests of the executable. Prints both
// URLs, one per line. With --fast machines take tenths of seconds.
#include <iostream>
#include <set>
#include <string_view>

#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/simulator/server.h"

#include "support/seeded_random.h"

int main(int argc, char** argv) {
  using nomad_harvester::simulator::Cluster;
  using nomad_harvester::simulator::Options;
  using nomad_harvester::simulator::SimulatorServer;
  const auto clock = nomad_harvester::runtime::MakeSystemClock();
  const auto random = nomad_harvester::support::MakeSeededRandom(1);
  Options options;
  options.boot_time = std::chrono::seconds(2);
  options.join_time = std::chrono::seconds(1);
  options.shutdown_time = std::chrono::seconds(2);
  options.heartbeat_timeout = std::chrono::seconds(3);
  options.networks = {"default/vlan10"};
  options.client.drivers = {{"mock_driver", {}}};  // as the real clients of that comparison have
  const std::set<std::string_view> given(argv + 1, argv + argc);
  if (given.contains("--fast")) {
    options.boot_time = std::chrono::milliseconds(400);
    options.join_time = std::chrono::milliseconds(200);
    options.shutdown_time = std::chrono::milliseconds(400);
    options.heartbeat_timeout = std::chrono::seconds(1);
    options.start_time = std::chrono::milliseconds(50);
    options.stop_time = std::chrono::milliseconds(300);
  }
  Cluster cluster(*clock, *random, options);
  SimulatorServer server(cluster, *clock);
  if (const absl::Status started = server.Start(); !started.ok()) {
    std::cerr << started.message() << '\n';
    return 1;
  }
  std::cout << server.harvester_url() << '\n' << server.nomad_url() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  return 0;
}
