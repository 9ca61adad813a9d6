// SPDX-License-Identifier: Apache-2.0
// VMs and what belongs to them, in one namespace of a Harvester cluster.
#ifndef NOMAD_HARVESTER_HARVESTER_VM_STORE_H_
#define NOMAD_HARVESTER_HARVESTER_VM_STORE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/quota.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

// Something read, and the API server's "now" of that reply.
template <typename T>
struct Timestamped {
  T value;
  std::optional<base::WallTime> server_time;
};

struct Claim {
  std::string name;
  std::string uid;
  std::string pool;  // label; empty: none
  bool terminating = false;
};
struct CloudInitSecret {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string pool;
  std::string action_id;
  std::string owner_uid;  // of the VM; empty: none yet
  base::WallTime created_at{};
};

// Annotation → new value; nothing removes it.
using AnnotationChanges = std::map<std::string, std::optional<std::string>>;

// Thread-safe. Every call blocks for its requests; errors are KubeClient's.
class VmStore {
 public:
  VmStore(std::shared_ptr<const kube::KubeClient> client, std::string ns);

  const std::string& ns() const { return ns_; }

  // One list (pages aside): every VM that carries our managed-by label, members or not.
  absl::StatusOr<Timestamped<std::vector<VirtualMachine>>> ListManaged(
      const runtime::Context& context) const;
  // One list: every VM of the namespace.
  absl::StatusOr<Timestamped<std::vector<VirtualMachine>>> ListAll(
      const runtime::Context& context) const;
  absl::StatusOr<Timestamped<VirtualMachine>> Get(const runtime::Context& context,
                                                  const std::string& name) const;
  absl::StatusOr<std::vector<VirtualMachineInstance>> ListInstances(
      const runtime::Context& context) const;
  // NOT_FOUND: the VM has none, it does not run.
  absl::StatusOr<VirtualMachineInstance> GetInstance(const runtime::Context& context,
                                                     const std::string& name) const;

  // One conditional PATCH. FAILED_PRECONDITION (kube::IsConflict): the VM has changed since
  // `resource_version`. After a lost reply a repetition conflicts as well: the caller reads again.
  absl::StatusOr<VirtualMachine> Annotate(const runtime::Context& context, const std::string& name,
                                          const std::string& resource_version,
                                          const AnnotationChanges& changes) const;

  // The three writes of a creation. Each may be repeated with the same arguments after a lost
  // reply: ALREADY_EXISTS is read back, and is success if the object carries our action id and, for
  // the Secret, the same user data and no deletionTimestamp, for the VM, the same self annotation
  // (it may be terminating by now); otherwise ALREADY_EXISTS stays.
  absl::StatusOr<CloudInitSecret> CreateSecret(const runtime::Context& context,
                                               const nlohmann::json& secret) const;
  absl::StatusOr<Timestamped<VirtualMachine>> CreateVm(const runtime::Context& context,
                                                       const nlohmann::json& vm) const;
  // FAILED_PRECONDITION if the Secret is another action's.
  absl::Status SetSecretOwner(const runtime::Context& context, const VmIdentity& identity,
                              const std::string& vm_uid) const;
  // Full admission of the VM, nothing stored (dryRun=All): a read.
  absl::Status DryRunCreateVm(const runtime::Context& context, const nlohmann::json& vm) const;

  // DELETE with uid and resourceVersion, both of which must be given; OK if it is gone already.
  // FAILED_PRECONDITION: changed, by somebody else or by this very DELETE whose reply was lost.
  absl::Status DeleteVm(const runtime::Context& context, const std::string& name,
                        const std::string& uid, const std::string& resource_version) const;

  // One list: every claim of the namespace, because those of CDI images have lost our labels.
  absl::StatusOr<std::vector<Claim>> ListClaims(const runtime::Context& context) const;
  // OK if it is gone already.
  absl::Status DeleteClaim(const runtime::Context& context, const Claim& claim) const;

  // One list: every Secret that carries our managed-by label. What they hold is not even decoded.
  absl::StatusOr<Timestamped<std::vector<CloudInitSecret>>> ListSecrets(
      const runtime::Context& context) const;
  absl::StatusOr<CloudInitSecret> GetSecret(const runtime::Context& context,
                                            const std::string& name) const;
  // OK if it is gone already.
  absl::Status DeleteSecret(const runtime::Context& context, const CloudInitSecret& secret) const;

  // `name` is a resource name, else a display name; exactly one match (FAILED_PRECONDITION
  // otherwise, naming what was found). An image that is not imported yet is returned with
  // `problem`.
  absl::StatusOr<Image> ResolveImage(const runtime::Context& context, const std::string& ns,
                                     const std::string& name) const;
  // NOT_FOUND names the attachment.
  absl::Status CheckNetwork(const runtime::Context& context, const Network& network) const;
  // One list: the quotas of the namespace.
  absl::StatusOr<std::vector<ResourceQuota>> ListQuotas(const runtime::Context& context) const;
  // The public key of a KeyPair, one line. FAILED_PRECONDITION: it holds none, or several lines.
  absl::StatusOr<std::string> PublicKey(const runtime::Context& context, const std::string& ns,
                                        const std::string& name) const;

 private:
  std::shared_ptr<const kube::KubeClient> client_;
  std::string ns_;
};

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_VM_STORE_H_
