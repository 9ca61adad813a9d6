// SPDX-License-Identifier: Apache-2.0
// Says of nodes of a Nomad, in this order, whether their work has another place, as a scale-in with
// scale_in_fit = "require" asks (rule C19): for the comparison with what Nomad does
// (test/e2e/fit_long_test.go). Arguments: Nomad's address, the datacenter that is the pool, a
// number, IDs of nodes. So many of these were drained before. Prints a line for each of the others:
// empty if it fits, else what would wait.
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/demand/fit.h"
#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/demand/service.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/runtime/workers.h"

#include "absl/status/statusor.h"

namespace nomad_harvester {
namespace {

absl::StatusOr<std::vector<demand::NodeFit>> FitOf(const std::string& address,
                                                   const std::string& datacenter,
                                                   const std::set<std::string>& leaving,
                                                   const std::vector<std::string>& nodes) {
  NH_ASSIGN_OR_RETURN(const config::PluginConfig config,
                      config::ParseApmConfig({{"nomad_address", address}}, {}));
  NH_ASSIGN_OR_RETURN(http::RawTransports made, demand::MakeCurlTransports(config));
  const auto clock = runtime::MakeSystemClock();
  runtime::WorkerPool workers({.threads = 8});
  demand::Reader reader(demand::MakeClient(config, std::move(made.nomad),
                                           runtime::MakeSystemRandom(), log::Logger(), nullptr),
                        workers);
  const runtime::Context context = runtime::Context::Background(*clock);
  NH_ASSIGN_OR_RETURN(const auto reading, reader.Read(context));
  std::set<std::string> emptied = leaving;
  emptied.insert(nodes.begin(), nodes.end());
  NH_ASSIGN_OR_RETURN(const demand::World world,
                      reader.WorldOf(context, *reading, {.datacenter = datacenter}, emptied));
  return demand::CheckFit(world, leaving, nodes, demand::Misfit::kPassedOver).nodes;
}

}  // namespace
}  // namespace nomad_harvester

int main(int argc, char** argv) {
  const std::vector<std::string> given(argv + 1, argv + argc);
  const std::ptrdiff_t ids = std::ssize(given) - 3;
  const int drained = ids < 0 ? -1 : std::atoi(given[2].c_str());
  if (drained < 0 || drained > ids) {
    std::cerr << "give Nomad's address, a datacenter, a number of drained nodes and IDs of nodes\n";
    return 2;
  }
  const auto nodes = given.begin() + 3 + drained;
  const auto fits =
      nomad_harvester::FitOf(given[0], given[1], {given.begin() + 3, nodes}, {nodes, given.end()});
  if (!fits.ok()) {
    std::cerr << fits.status().message() << '\n';
    return 1;
  }
  for (const nomad_harvester::demand::NodeFit& fit : *fits) std::cout << ToString(fit) << '\n';
  return 0;
}
