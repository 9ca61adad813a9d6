// SPDX-License-Identifier: Apache-2.0
#include "execution/creation.h"

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/template_hash.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {
namespace {

constexpr std::size_t kRandomLength = 8;

absl::StatusOr<std::string> ReadUserData(const config::PoolPolicy& policy) {
  if (policy.user_data.has_value()) return *policy.user_data;
  if (!policy.user_data_file.has_value()) return std::string();
  auto text = base::ReadFile(*policy.user_data_file);
  if (!text.ok()) return base::Annotate(text.status(), "user_data_file");
  return text;
}

harvester::TemplateVariables CommonVariables(const PoolDependencies& deps,
                                             const config::PoolPolicy& policy,
                                             const std::string& policy_id) {
  harvester::TemplateVariables variables = {
      {"pool", policy.pool},
      {"namespace", policy.ns},
      {"node_class", policy.node_class.value_or("")},
      {"node_pool", policy.node_pool.value_or("")},
      {"datacenter", policy.datacenter.value_or("")},
      {"nomad_region", deps.clients.config->nomad.region},
      {"zone", ""},
      {"policy_id", policy_id},
  };
  for (const auto& [name, value] : deps.clients.config->template_environment) {
    variables["env." + name] = value;
  }
  return variables;
}

harvester::TemplateVariables VariablesOf(const CreationPlan& plan,
                                         const harvester::VmIdentity& identity) {
  harvester::TemplateVariables variables = plan.variables;
  variables["vm_name"] = identity.name;
  variables["vm_uuid"] = identity.firmware_uuid;
  variables["action_id"] = identity.action_id;
  const std::size_t dash = identity.name.rfind('-');
  variables["short_id"] = identity.name.substr(dash == std::string::npos ? 0 : dash + 1);
  return variables;
}

// A UUID derived from `seed` (RFC 9562, version 8: application-defined content).
std::string DerivedUuid(const std::string& seed) {
  std::string hex = base::StableHash("uuid-high/" + seed) + base::StableHash("uuid-low/" + seed);
  hex[12] = '8';
  static constexpr std::string_view kVariant = "89ab";
  const std::size_t digit = hex[16] <= '9' ? static_cast<std::size_t>(hex[16] - '0')
                                           : static_cast<std::size_t>(hex[16] - 'a' + 10);
  hex[16] = kVariant[digit % 4];
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20, 12);
}

absl::StatusOr<std::vector<harvester::Network>> ReadNetworks(const runtime::Context& context,
                                                             const PoolDependencies& deps,
                                                             const config::PoolPolicy& policy) {
  std::vector<harvester::Network> networks;
  for (const config::NetworkRef& ref : policy.networks) {
    harvester::Network network{
        .management = ref.management, .ns = ref.attachment.ns, .name = ref.attachment.name};
    if (!network.management) {
      const absl::Status checked = deps.vms.CheckNetwork(context, network);
      if (!checked.ok()) return base::Annotate(checked, "networks");
    }
    networks.push_back(std::move(network));
  }
  return networks;
}

absl::StatusOr<harvester::Image> ReadImage(const runtime::Context& context,
                                           const PoolDependencies& deps,
                                           const config::PoolPolicy& policy) {
  auto image = deps.vms.ResolveImage(context, deps.executor, policy.image.ns, policy.image.name);
  if (!image.ok()) return base::Annotate(image.status(), "image");
  if (!image->imported) {
    return base::FailedPrecondition("image: " + policy.image.ns + "/" + policy.image.name +
                                    " cannot be used: " + image->problem);
  }
  return image;
}

absl::StatusOr<std::vector<std::string>> ReadPublicKeys(const runtime::Context& context,
                                                        const PoolDependencies& deps,
                                                        const config::PoolPolicy& policy) {
  std::vector<std::string> keys;
  for (const config::NamespacedName& key : policy.ssh_keys) {
    auto text = deps.vms.PublicKey(context, key.ns, key.name);
    if (!text.ok()) return base::Annotate(text.status(), "ssh_keys");
    keys.push_back(*std::move(text));
  }
  return keys;
}

harvester::VmIdentity SampleIdentity(const PoolDependencies& deps,
                                     const config::PoolPolicy& policy) {
  return IdentityFor(NewVmName(policy, deps.random), NewActionId(deps.random));
}

std::string HashOf(const CreationPlan& plan) {
  harvester::TemplateSources sources;
  sources.user_data = plan.user_data;
  sources.public_keys = plan.public_keys;
  return harvester::TemplateHash(sources, plan.vm_spec);
}

}  // namespace

CreationSources ReadSources(const runtime::Context& context, const PoolDependencies& deps,
                            const config::PoolPolicy& policy) {
  CreationSources sources;
  const std::array<std::function<void()>, 4> reads = {
      [&] { sources.image = ReadImage(context, deps, policy); },
      [&] { sources.networks = ReadNetworks(context, deps, policy); },
      [&] { sources.public_keys = ReadPublicKeys(context, deps, policy); },
      [&] { sources.quotas = deps.vms.ListQuotas(context); }};
  runtime::ForEachBounded(context, deps.executor, reads.size(), reads.size(), [&](std::size_t i) {
    reads[i]();
    return absl::OkStatus();
  });
  return sources;
}

absl::StatusOr<CreationPlan> PlanCreation(const PoolDependencies& deps,
                                          const config::PoolPolicy& policy,
                                          const CreationSources& sources, std::uint64_t nomad_index,
                                          const std::string& policy_id) {
  CreationPlan plan;
  NH_ASSIGN_OR_RETURN(plan.user_data, ReadUserData(policy));
  plan.variables = CommonVariables(deps, policy, policy_id);
  plan.vm_spec.ns = policy.ns;
  plan.vm_spec.pool = policy.pool;
  plan.vm_spec.cpu_cores = policy.cpu_cores;
  plan.vm_spec.memory_bytes = policy.memory_bytes;
  plan.vm_spec.run_strategy = policy.run_strategy;
  plan.vm_spec.labels = policy.labels;
  plan.vm_spec.annotations = policy.annotations;
  plan.vm_spec.tags = policy.tags;
  plan.vm_spec.join_timeout = policy.wait_for == config::WaitFor::kCreated
                                  ? "none"
                                  : base::FormatGoDuration(policy.join_timeout);
  plan.vm_spec.nodes = {.region = deps.clients.config->nomad.region,
                        .node_class = policy.node_class,
                        .datacenter = policy.datacenter,
                        .node_pool = policy.node_pool,
                        .node_attribute = policy.node_attribute,
                        .index = nomad_index};
  NH_ASSIGN_OR_RETURN(plan.vm_spec.image, sources.image);
  const std::int64_t* wanted = policy.disk_bytes.has_value() ? &*policy.disk_bytes : nullptr;
  auto disk = harvester::RootDiskBytes(plan.vm_spec.image, wanted);
  if (!disk.ok()) return base::Annotate(disk.status(), "disk_size");
  plan.vm_spec.disk_bytes = *disk;
  NH_ASSIGN_OR_RETURN(plan.vm_spec.networks, sources.networks);
  NH_ASSIGN_OR_RETURN(plan.public_keys, sources.public_keys);
  plan.vm_spec.template_hash = HashOf(plan);
  const absl::StatusOr<std::string> user_data = harvester::ComposeUserData(
      plan.user_data, VariablesOf(plan, SampleIdentity(deps, policy)), plan.public_keys);
  if (!user_data.ok()) {
    return base::Annotate(user_data.status(),
                          policy.user_data_file.has_value() ? "user_data_file" : "user_data");
  }
  return plan;
}

absl::Status DryRunCreation(const runtime::Context& context, const PoolDependencies& deps,
                            const config::PoolPolicy& policy, const CreationPlan& plan) {
  const absl::Status admitted = deps.vms.DryRunCreateVm(
      context, harvester::BuildVirtualMachine(plan.vm_spec, SampleIdentity(deps, policy)));
  return base::Annotate(admitted, "Harvester would refuse the VM");
}

harvester::VmIdentity IdentityFor(const std::string& name, const std::string& action_id) {
  const std::string seed = action_id + "/" + name;
  return {
      .name = name,
      .firmware_uuid = DerivedUuid(seed),
      .action_id = action_id,
      .claim_name = harvester::ClaimName(name, 0, base::StableHash("claim/" + seed).substr(0, 5))};
}

std::string NewVmName(const config::PoolPolicy& policy, runtime::Random& random) {
  return policy.name_prefix + "-" + random.NextName(kRandomLength);
}

absl::Status ClearLeftoverSecret(const runtime::Context& context, const PoolDependencies& deps,
                                 const std::string& vm) {
  const auto secret = deps.vms.GetSecret(context, harvester::SecretName(vm));
  if (kube::IsNotFound(secret.status())) return absl::OkStatus();
  NH_RETURN_IF_ERROR(secret);
  // The create request may have been delayed: a VM that has appeared since keeps its Secret.
  const auto machine = deps.vms.Get(context, vm);
  if (machine.ok()) return absl::OkStatus();
  if (!kube::IsNotFound(machine.status())) return machine.status();
  return deps.vms.DeleteSecret(context, *secret);
}

absl::StatusOr<CreatedVm> CreateVm(const runtime::Context& context, const PoolDependencies& deps,
                                   const CreationPlan& plan, const PlannedCreation& creation) {
  CreatedVm created{.identity = IdentityFor(creation.name, creation.action_id)};
  NH_ASSIGN_OR_RETURN(const std::string user_data,
                      harvester::ComposeUserData(
                          plan.user_data, VariablesOf(plan, created.identity), plan.public_keys));
  NH_ASSIGN_OR_RETURN(created.secret, deps.vms.CreateSecret(
                                          context, harvester::BuildSecret(
                                                       plan.vm_spec, created.identity, user_data)));
  NH_ASSIGN_OR_RETURN(
      const auto vm,
      deps.vms.CreateVm(context, harvester::BuildVirtualMachine(plan.vm_spec, created.identity)));
  created.uid = vm.value.uid;
  return created;
}

absl::Status OwnSecret(const runtime::Context& context, const PoolDependencies& deps,
                       const CreatedVm& created) {
  absl::Status owned =
      deps.vms.SetSecretOwner(context, created.identity, created.uid, created.secret);
  if (!owned.ok()) {
    deps.logger.Warn("The cloud-init Secret has no owner yet; the next Status sets it",
                     {{"vm", created.identity.name}, {"error", owned}});
  }
  return owned;
}

}  // namespace nomad_harvester::scaling
