// SPDX-License-Identifier: Apache-2.0
// The simulated Nomad's HTTP API: one request, one reply. Cluster implements the waiting.
#ifndef NOMAD_HARVESTER_SIMULATOR_NOMAD_API_H_
#define NOMAD_HARVESTER_SIMULATOR_NOMAD_API_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/http/message.h"
#include "nomad_harvester/simulator/options.h"

#include "nlohmann/json.hpp"
#include "nomad_state.h"
#include "target.h"

namespace nomad_harvester::simulator {

// A parsed request: "/v1/<resource>/<id>/<action>".
struct NomadCall {
  Target target;
  std::string resource;  // see RequestInfo::resource; empty: not a path of the API
  std::string id;
  bool write = false;
};
NomadCall ParseNomadCall(const http::HttpRequest& request);

// A blocking query's parameters (hashicorp/nomad:command/agent/http.go, parseWait).
struct NomadWait {
  std::uint64_t index = 0;  // 0: do not wait
  base::Duration wait{};
  std::optional<http::HttpResponse> refusal;
};
NomadWait ParseNomadWait(const http::HttpRequest& request);

struct NomadReply {
  http::HttpResponse response;
  // The index that a blocking query compares; 0: the reply has none.
  std::uint64_t index = 0;
};

class NomadApi {
 public:
  NomadApi(World& world, NomadState& state) : world_(world), state_(state) {}
  NomadReply Handle(const http::HttpRequest& request);

  bool read_job_denied = false;
  bool list_jobs_denied = false;
  bool node_write_denied = false;
  bool acl = false;
  std::vector<std::string> keys = {kFirstNomadKey};

 private:
  bool Admits(const http::HttpRequest& request) const;
  NomadReply Dispatch(const NomadCall& call, const http::HttpRequest& request);
  NomadReply Nodes(const Target& target) const;
  NomadReply Node(const NomadCall& call) const;
  NomadReply NodeAllocations(const NomadCall& call) const;
  NomadReply Allocations(const Target& target) const;
  NomadReply Allocation(const NomadCall& call) const;
  NomadReply Drain(const NomadCall& call, const std::string& body);
  NomadReply Eligibility(const NomadCall& call, const std::string& body);
  NomadReply Purge(const NomadCall& call);
  NomadReply Introduce(const http::HttpRequest& request);
  // nomad_metadata.cc
  NomadReply Metadata(const NomadCall& call, http::Method method, const std::string& body);
  NomadReply RegisterJob(const std::string& body);
  NomadReply StopJob(const NomadCall& call);
  NomadReply Jobs(const Target& target) const;
  NomadReply Job(const NomadCall& call) const;
  NomadReply Evaluations(const Target& target) const;
  NomadReply Acl(const NomadCall& call) const;
  NomadReply NodePool(const NomadCall& call) const;
  NomadReply Members() const;
  NomadReply NoPolicies() const;
  NomadReply Keys() const;

  World& world_;
  NomadState& state_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_NOMAD_API_H_
