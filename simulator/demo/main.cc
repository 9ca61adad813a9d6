// SPDX-License-Identifier: Apache-2.0
// harvester_demo [HARVESTER]: starts the real executable against a simulated Harvester and Nomad,
// and shows a pool grow and shrink. Exit code 0: every check passed; 130: a signal ended it.
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/wait.h>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/simulator/cluster.h"
#include "nomad_harvester/simulator/server.h"

#include "child.h"
#include "plugin_client.h"
#include "screen.h"
#include "show.h"
#include "terminal.h"

namespace nomad_harvester::demo {
namespace {

// A temporary directory; the destructor removes it with its contents.
class TempDir {
 public:
  TempDir() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "harvester-demo-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Times short enough for a demonstration.
simulator::Options Systems() {
  simulator::Options options;
  options.boot_time = std::chrono::milliseconds(2500);
  options.join_time = std::chrono::milliseconds(1500);
  options.shutdown_time = std::chrono::milliseconds(1500);
  options.heartbeat_timeout = std::chrono::seconds(4);
  options.stop_time = std::chrono::milliseconds(2500);
  return options;
}

PluginClient::Policy Policy(const std::string& user_data_file) {
  return {{"node_group_name", "web"},
          {"namespace", "nomad"},
          {"node_class", "web"},
          {"datacenter", "dc1"},
          {"image", "default/ubuntu-24.04"},
          {"cpu_request", "2"},
          {"memory_request", "4Gi"},
          {"networks", "default/vlan100"},
          {"node_drain_deadline", "30s"},
          {"node_purge", "true"},
          {"user_data_file", user_data_file}};
}

// False: the file could not be written.
bool WriteUserData(const std::string& path) {
  std::ofstream file(path);
  file << "#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: |\n"
          "    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n"
          "    meta {\n      harvester_vm_uuid = \"{{vm_uuid}}\"\n    }\n";
  return file.flush().good();
}

int Conclude(const Show& show, std::vector<std::string> problems, int plugin_end) {
  if (show.interrupted()) {
    std::cout << "\nInterrupted; nothing was checked.\n";
    return 130;
  }
  if (!WIFEXITED(plugin_end) || WEXITSTATUS(plugin_end) != 0) {
    problems.emplace_back("the plugin did not end with 0 at SIGTERM");
  }
  std::cout << "\nSummary\n";
  for (const std::string& line : show.summary()) std::cout << "  " << line << "\n";
  if (problems.empty()) {
    std::cout << "  nothing left: no VM, no volume, no Secret, no Nomad node\n"
              << "All checks passed.\n";
    return 0;
  }
  const std::size_t width = PaperNow().width;
  for (const std::string& problem : problems) {
    std::cout << cli::Fold("  WRONG: " + problem, width, 4) << "\n";
  }
  return 1;
}

int Fail(const absl::Status& status, Child& child) {
  child.End();
  for (const std::string& line : child.TakeLines()) std::cerr << line << "\n";
  std::cerr << "harvester_demo: " << base::Message(status) << "\n";
  return 1;
}

int Main(const std::string& executable) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // threads inherit it

  const auto clock = runtime::MakeSystemClock();
  const auto random = runtime::MakeSystemRandom();
  simulator::Cluster cluster(*clock, *random, Systems());
  simulator::SimulatorServer server(cluster, *clock);
  const TempDir directory;
  Child child;
  if (const absl::Status status = server.Start(); !status.ok()) return Fail(status, child);
  const std::string user_data = directory.path() + "/user-data.yaml";
  if (directory.path().empty() || !WriteUserData(user_data)) {
    return Fail(base::Internal("no temporary directory can be had"), child);
  }

  const std::string address = "unix:" + directory.path() + "/plugin.sock";
  const absl::Status started =
      child.Start({executable, "dev", "--listen", address},
                  {"HARVESTER_URL=" + server.harvester_url(), "HARVESTER_TOKEN=demo",
                   "NOMAD_ADDR=" + server.nomad_url(), "PATH=/usr/bin:/bin"});
  if (!started.ok()) return Fail(started, child);
  PluginClient plugin(address, Policy(user_data));
  if (const absl::Status status = plugin.WaitUntilServing(); !status.ok()) {
    return Fail(status, child);
  }
  Show show(cluster, child, plugin, signals);
  std::vector<std::string> problems = show.Run();
  return Conclude(show, std::move(problems), child.End());
}

}  // namespace
}  // namespace nomad_harvester::demo

int main(int argc, char** argv) {
  const std::string beside =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "harvester").string();
  try {
    return nomad_harvester::demo::Main(argc > 1 ? argv[1] : beside);
  } catch (const std::exception& error) {  // what was unwound has given the terminal back
    std::cerr << "harvester_demo: " << error.what() << "\n";
    return 1;
  }
}
