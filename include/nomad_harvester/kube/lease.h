// SPDX-License-Identifier: Apache-2.0
// A coordination.k8s.io/v1 Lease as a plain struct.
#ifndef NOMAD_HARVESTER_KUBE_LEASE_H_
#define NOMAD_HARVESTER_KUBE_LEASE_H_

#include <map>
#include <optional>
#include <string>

#include "nomad_harvester/base/time.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::kube {

struct Observed;

struct Lease {
  std::string name;
  std::string ns;
  std::string uid;
  std::string resource_version;
  std::string holder;  // empty: not held
  int lease_duration_seconds = 0;
  std::optional<base::WallTime> renew_time;
  std::optional<base::WallTime> acquire_time;
  int transitions = 0;
  std::map<std::string, std::string> annotations;
  // The API server's clock (Date header) when it returned this Lease: never late, up to a second
  // early.
  std::optional<base::WallTime> server_time;
};

// Reads leniently: a member that is missing or cannot be parsed is left unset.
Lease ParseLease(const Observed& observed);
// UNAVAILABLE: a success whose reply is no Lease, as of a proxy. It proves nothing. `name`: of the
// Lease, for the error.
absl::StatusOr<Lease> ParseLeaseReply(const absl::StatusOr<Observed>& reply,
                                      const std::string& name);

// Builds the object to create: name, namespace, spec, annotations and `labels`; the server sets uid
// and resource version. Unset members (no time, no duration, no holder) are omitted, because
// Kubernetes refuses a duration of 0
// (kubernetes/kubernetes:pkg/apis/coordination/validation/validation.go).
nlohmann::json LeaseObject(const Lease& lease, const std::map<std::string, std::string>& labels);

// A merge patch; members without a value stay unchanged.
struct LeaseChange {
  // The precondition. Empty: an unconditional patch, which is sent only once.
  std::string resource_version;
  std::optional<std::string> holder;  // "" releases
  std::optional<int> lease_duration_seconds;
  std::optional<base::WallTime> renew_time;
  std::optional<base::WallTime> acquire_time;
  std::optional<int> transitions;
  // A key with a value is set; a key without a value is removed.
  std::map<std::string, std::optional<std::string>> annotations;
};
// For KubeClient::MergePatch. Times are MicroTime: the API server refuses anything but six
// fractional digits
// (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/micro_time.go).
nlohmann::json LeasePatch(const LeaseChange& change);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_LEASE_H_
