// SPDX-License-Identifier: Apache-2.0
#include "execution/creation.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/template_hash.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/scaling/template_check.h"

#include "execution/creation_sources.h"
#include "execution/template_base.h"
#include "execution/vm_objects.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {
namespace {

constexpr std::size_t kRandomLength = 8;

// kubernetes/kubernetes:pkg/apis/core/types.go, MaxSecretSize: the sum of all values of a Secret.
constexpr std::size_t kMaxInSecret = std::size_t{1024} * 1024;

// Two copies of a token of about 1 KiB each.
constexpr std::size_t kRoomForTokens = std::size_t{4} * 1024;

// The Secret stores a token's expiry in whole seconds, so smaller differences are ignored.
constexpr base::Duration kSameToken = std::chrono::seconds(30);
constexpr char kIntroTokenVariable[] = "nomad_intro_token";
// Stands for a token if no VM is made.
constexpr char kSampleToken[] = "INTRODUCTION-TOKEN";

constexpr char kUserData[] = "user_data";
constexpr char kNetworkData[] = "network_data";

// Returns an empty source if neither text nor file is set.
absl::StatusOr<TemplateSource> ReadTemplate(const std::string& key,
                                            const std::optional<std::string>& text,
                                            const std::optional<std::string>& file) {
  if (!file.has_value()) return TemplateSource{.key = key, .text = text.value_or("")};
  TemplateSource source{.key = key + "_file", .text = {}};
  auto content = base::ReadFile(*file);
  if (absl::IsNotFound(content.status())) {
    return base::NotFound(source.key + ": " + base::Message(content.status()) +
                          "; it is read where the autoscaler's agent runs: create it there");
  }
  if (!content.ok()) return base::Annotate(content.status(), source.key);
  source.text = *std::move(content);
  return source;
}

harvester::TemplateVariables CommonVariables(const config::PluginConfig& plugin,
                                             const config::PoolPolicy& policy,
                                             const std::string& policy_id) {
  harvester::TemplateVariables variables = {
      {"pool", policy.pool},
      {"namespace", policy.ns},
      {"node_class", policy.node_class.value_or("")},
      {"node_pool", policy.node_pool.value_or("")},
      {"datacenter", policy.datacenter.value_or("")},
      {"nomad_region", plugin.nomad.region},
      {"policy_id", policy_id},
      {kIntroTokenVariable, kSampleToken},
  };
  for (const auto& [name, value] : plugin.template_environment) {
    variables["env." + name] = value;
  }
  return variables;
}

absl::Status CheckTokenIsOff(const config::PoolPolicy& policy, const std::string& template_text) {
  if (policy.intro_token != config::IntroToken::kOff ||
      !harvester::UsesVariable(template_text, kIntroTokenVariable)) {
    return absl::OkStatus();
  }
  return base::InvalidArgument(
      "it contains {{nomad_intro_token}}, but the key nomad_intro_token is \"off\": set it to "
      "\"auto\" or \"required\"");
}

bool UsesToken(const CreationPlan& plan) {
  return harvester::UsesVariable(plan.user_data.text, kIntroTokenVariable) ||
         harvester::UsesVariable(plan.network_data.text, kIntroTokenVariable);
}

// Checks that the variable is used if and only if the key is set, in files as well.
absl::Status CheckTokenIsUsed(const config::PoolPolicy& policy, const CreationPlan& plan) {
  for (const TemplateSource* source : {&plan.user_data, &plan.network_data}) {
    const absl::Status off = CheckTokenIsOff(policy, source->text);
    if (!off.ok()) return base::Annotate(off, source->key);
  }
  if (UsesToken(plan) || policy.intro_token == config::IntroToken::kOff) return absl::OkStatus();
  return base::InvalidArgument(
      "nomad_intro_token: no template contains {{nomad_intro_token}}; let " + plan.user_data.key +
      " write it to Nomad's intro_token.jwt, or remove the key");
}

absl::Status CheckNoCredential(const std::string& key, const std::string& text) {
  const std::optional<std::string> credential = base::CredentialIn(text);
  if (!credential.has_value()) return absl::OkStatus();
  return base::InvalidArgument(
      key + ": it contains a credential of the plugin itself (" + *credential +
      "), which every new VM could then use: remove it, and give VMs one of their own");
}

// Lines that are no secret: the first one, and the values of variables.
std::set<std::string> OrdinaryValues(const harvester::TemplateVariables& variables) {
  std::set<std::string> values = {"#cloud-config"};
  for (const auto& [name, value] : variables) {
    if (name != kIntroTokenVariable && !name.starts_with("env.")) values.insert(value);
  }
  return values;
}

// Errors name the policy's keys. Without a token, the variables contain a placeholder.
absl::StatusOr<harvester::CloudInit> ComposeCloudInit(const CreationPlan& plan,
                                                      const harvester::VmIdentity& identity,
                                                      harvester::IntroToken token = {}) {
  harvester::TemplateVariables variables = WithIdentity(plan.variables, identity);
  if (!token.jwt.empty()) variables[kIntroTokenVariable] = token.jwt.Reveal();
  absl::StatusOr<std::string> user_data =
      harvester::ComposeUserData(plan.user_data.text, variables, plan.public_keys);
  if (!user_data.ok()) return base::Annotate(user_data.status(), plan.user_data.key);
  harvester::CloudInit cloud_init{.user_data = *std::move(user_data),
                                  .intro_token = std::move(token)};
  std::string keys = plan.user_data.key;
  if (plan.vm_spec.has_network_data) {
    absl::StatusOr<std::string> network_data =
        harvester::ComposeNetworkData(plan.network_data.text, variables);
    if (!network_data.ok()) return base::Annotate(network_data.status(), plan.network_data.key);
    cloud_init.network_data = *std::move(network_data);
    keys += ", " + plan.network_data.key;
  }
  NH_RETURN_IF_ERROR(CheckNoCredential(plan.user_data.key, cloud_init.user_data));
  NH_RETURN_IF_ERROR(CheckNoCredential(plan.network_data.key, cloud_init.network_data));
  const std::set<std::string> ordinary = OrdinaryValues(variables);
  cloud_init.lines = {base::Secret::Lines(cloud_init.user_data, ordinary),
                      base::Secret::Lines(cloud_init.network_data, ordinary)};
  std::size_t bytes = cloud_init.user_data.size() + cloud_init.network_data.size();
  // A sample has no token yet. A real one must fit both in the text and beside it.
  if (UsesToken(plan)) bytes += kRoomForTokens;
  if (bytes <= kMaxInSecret) return cloud_init;
  return base::InvalidArgument(
      keys + ": " + std::to_string(bytes) + " bytes for cloud-init, but a Secret holds " +
      std::to_string(kMaxInSecret) + "; let the VM download what is large");
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

absl::Status WithCure(std::string_view key, const absl::Status& problem) {
  const std::string cure = CureOfSource(key, problem);
  if (cure.empty()) return problem;
  return base::MakeStatus(problem.code(), base::Message(problem) + "; " + cure);
}

// Returns all missing or refused objects, or else the first failed request.
absl::Status ProblemOf(const std::vector<absl::Status>& statuses) {
  absl::Status all;
  for (const absl::Status& status : statuses) {
    if (!status.ok() && !absl::IsNotFound(status) && !absl::IsFailedPrecondition(status) &&
        !absl::IsPermissionDenied(status)) {
      return status;
    }
    AddProblem(status, &all);
  }
  return all;
}

// Returns the spec as far as the policy alone defines it.
harvester::VmSpec SpecOf(const config::PoolPolicy& policy) {
  harvester::VmSpec vm_spec;
  vm_spec.ns = policy.ns;
  vm_spec.pool = policy.pool;
  vm_spec.cpu_cores = policy.cpu_cores;
  vm_spec.memory_bytes = policy.memory_bytes;
  vm_spec.data_disks = policy.data_disks;
  vm_spec.has_network_data =
      policy.network_data.has_value() || policy.network_data_file.has_value();
  vm_spec.firmware = policy.firmware.value_or(policy::Firmware::kBios);
  vm_spec.host_devices = policy.host_devices;
  vm_spec.gpus = policy.gpus;
  vm_spec.host_spread = policy.host_spread;
  vm_spec.node_selector = policy.node_selector;
  vm_spec.zones = policy.zones;
  vm_spec.run_strategy = policy.run_strategy.value_or(policy::RunStrategy::kRerunOnFailure);
  vm_spec.machine = policy.machine;
  vm_spec.labels = policy.labels;
  vm_spec.annotations = policy.annotations;
  vm_spec.tags = policy.tags;
  vm_spec.deletion_holds = policy.deletion_holds;
  vm_spec.join_timeout = base::FormatGoDuration(policy.join_timeout);
  return vm_spec;
}

// Always the same for a pool, so that a refusal that quotes the name repeats its text (rule T1).
harvester::VmIdentity SampleIdentity(const PoolDependencies& deps,
                                     const config::PoolPolicy& policy) {
  const std::string hash = base::StableHash("sample/" + deps.key.ToString());
  return IdentityFor(policy.name_prefix + "-" + hash.substr(0, kRandomLength), hash);
}

// Sets the images of the template's disks, and the sizes that follow from them.
void SetDiskImages(const std::vector<harvester::Image>& images, harvester::VmBase* base) {
  std::size_t next = 0;
  for (std::size_t i = 1; i < base->disks.size(); ++i) {
    harvester::VmBase::Disk& disk = base->disks[i];
    if (!disk.from_image || next == images.size()) continue;
    disk.image = images[next++];
    disk.storage_class = disk.image.storage_class;
    disk.bytes = std::max(disk.bytes, disk.image.virtual_size);
  }
}

// Returns the policy's size, or the template's if the image fits, or the image's minimum.
absl::StatusOr<std::int64_t> RootDiskOf(const config::PoolPolicy& policy,
                                        const harvester::VmSpec& vm_spec) {
  std::optional<std::int64_t> wanted = policy.disk_bytes;
  if (!wanted.has_value() && !vm_spec.base.disks.empty()) {
    wanted = std::max(vm_spec.base.disks.front().bytes, vm_spec.image.virtual_size);
  }
  auto disk = harvester::RootDiskBytes(vm_spec.image, wanted.has_value() ? &*wanted : nullptr);
  if (!disk.ok()) return base::Annotate(disk.status(), "disk_size");
  return disk;
}

void SetHashes(const std::string& template_id, CreationPlan* plan) {
  const harvester::TemplateSources sources{.user_data = plan->user_data.text,
                                           .network_data = plan->network_data.text,
                                           .template_version = template_id,
                                           .public_keys = plan->public_keys};
  plan->vm_spec.template_hash = harvester::TemplateHash(sources, plan->vm_spec);
  plan->vm_spec.template_parts = harvester::TemplateParts(sources, plan->vm_spec);
}

// Returns the variables "env.HARVESTER_TEMPLATE_…" that a template mentions.
std::set<std::string> EnvironmentIn(std::string_view text) {
  constexpr std::string_view kPrefix = "env.HARVESTER_TEMPLATE_";
  constexpr std::string_view kName =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  std::set<std::string> names;
  for (std::size_t at = text.find(kPrefix); at != std::string_view::npos;
       at = text.find(kPrefix, at + 1)) {
    const std::size_t end = text.find_first_not_of(kName, at + kPrefix.size());
    names.emplace(text.substr(at, end - at));
  }
  return names;
}

}  // namespace

harvester::TemplateVariables WithIdentity(harvester::TemplateVariables variables,
                                          const harvester::VmIdentity& identity) {
  variables["vm_name"] = identity.name;
  variables["vm_uuid"] = identity.firmware_uuid;
  variables["action_id"] = identity.action_id;
  variables["zone"] = identity.zone;
  const std::size_t dash = identity.name.rfind('-');
  variables["short_id"] = identity.name.substr(dash == std::string::npos ? 0 : dash + 1);
  return variables;
}

absl::Status CheckTemplate(const config::PluginConfig& plugin, const config::PoolPolicy& policy,
                           std::string_view key, const std::string& text) {
  harvester::TemplateVariables variables =
      WithIdentity(CommonVariables(plugin, policy, "policy"),
                   IdentityFor(policy.name_prefix + "-sample", "action"));
  NH_RETURN_IF_ERROR(CheckTokenIsOff(policy, text));
  if (const std::set<std::string> names = EnvironmentIn(text); !names.empty()) {
    // Their values come from the environment, not from the policy, so only their use can be
    // checked.
    for (const std::string& name : names) variables.try_emplace(name);
    return harvester::RenderTemplate(text, variables).status();
  }
  if (key == kNetworkData) return harvester::ComposeNetworkData(text, variables).status();
  // Whether keys can be added does not depend on the keys themselves.
  std::vector<std::string> public_keys;
  if (!policy.ssh_keys.empty()) public_keys.emplace_back("ssh-ed25519 AAAA sample");
  return harvester::ComposeUserData(text, variables, public_keys).status();
}

absl::StatusOr<CreationPlan> PlanCreation(const PoolDependencies& deps,
                                          const config::PoolPolicy& given,
                                          const CreationSources& sources, std::uint64_t nomad_index,
                                          const std::string& policy_id) {
  const WantedPolicy wanted = WantedOf(given, sources);
  const config::PoolPolicy& policy = wanted.policy;
  CreationPlan plan;
  auto user_data = ReadTemplate(kUserData, policy.user_data, policy.user_data_file);
  auto network_data = ReadTemplate(kNetworkData, policy.network_data, policy.network_data_file);
  NH_RETURN_IF_ERROR(
      ProblemOf({user_data.status(), network_data.status(),
                 sources.vm_template.ok() ? wanted.problem
                                          : WithCure("vm_template", sources.vm_template.status()),
                 sources.gpus_are_host_devices.status(), WithCure("image", sources.image.status()),
                 WithCure("vm_template", sources.disk_images.status()),
                 WithCure("storage_class", sources.storage_classes),
                 WithCure("networks", sources.networks.status()),
                 WithCure("ssh_keys", sources.public_keys.status()),
                 WithCure("priority_class", sources.priority_class)}));
  plan.user_data = *std::move(user_data);
  plan.network_data = *std::move(network_data);
  NH_RETURN_IF_ERROR(CheckTokenIsUsed(policy, plan));
  plan.variables = CommonVariables(*deps.clients.config, policy, policy_id);
  plan.vm_spec = SpecOf(policy);
  plan.vm_spec.base = wanted.base;
  SetDiskImages(*sources.disk_images, &plan.vm_spec.base);
  plan.vm_spec.gpus_are_host_devices = *sources.gpus_are_host_devices;
  plan.vm_spec.nodes = NodesRecordOf(policy, deps.clients.config->nomad.region, nomad_index);
  plan.vm_spec.image = *sources.image;
  NH_ASSIGN_OR_RETURN(plan.vm_spec.disk_bytes, RootDiskOf(policy, plan.vm_spec));
  plan.vm_spec.networks = *sources.networks;
  plan.public_keys = *sources.public_keys;
  plan.unread_classes = UnreadClasses(sources);
  const bool has_template = sources.vm_template->has_value();
  if (has_template) plan.template_notes = NotesOn(**sources.vm_template, given);
  SetHashes(has_template ? (*sources.vm_template)->id : "", &plan);
  NH_ASSIGN_OR_RETURN(harvester::CloudInit sample,
                      ComposeCloudInit(plan, SampleIdentity(deps, policy)));
  plan.lines = std::move(sample.lines);
  return plan;
}

absl::StatusOr<CurrentTemplate> ReadCurrentTemplate(const runtime::Context& context,
                                                    const PoolDependencies& deps,
                                                    const config::PoolPolicy& policy) {
  NH_ASSIGN_OR_RETURN(const CreationPlan plan,
                      PlanCreation(deps, policy, ReadSources(context, deps, policy), 0, ""));
  return CurrentTemplate{.hash = plan.vm_spec.template_hash, .parts = plan.vm_spec.template_parts};
}

void UpdateCurrentTemplate(const runtime::Context& context, const PoolDependencies& deps,
                           const config::PoolPolicy& policy) {
  auto read = ReadCurrentTemplate(context, deps, policy);
  if (read.ok()) {
    deps.backlog.new_vms.current = *std::move(read);
  } else {
    deps.logger.Warn("Could not read the VM template; drift is unknown",
                     {{"action_id", deps.call}, {"error", read.status()}});
  }
}

absl::Status CheckIntroTokens(const runtime::Context& context, const PoolDependencies& deps,
                              const config::PoolPolicy& policy, CreationPlan* plan) {
  if (policy.intro_token == config::IntroToken::kOff) return absl::OkStatus();
  const absl::Status made = deps.nomad()
                                .Introduce(context, {.node_name = policy.name_prefix + "-sample",
                                                     .node_pool = policy.node_pool.value_or(""),
                                                     .ttl = std::chrono::seconds(1)})
                                .status();
  plan->intro_tokens = made.ok();
  if (made.ok()) return made;
  if (!absl::IsUnimplemented(made) || policy.intro_token == config::IntroToken::kRequired) {
    return base::Annotate(made, "nomad_intro_token");
  }
  plan->variables[kIntroTokenVariable] = "";
  return absl::OkStatus();
}

absl::StatusOr<harvester::IntroToken> MakeIntroToken(const runtime::Context& context,
                                                     const PoolDependencies& deps,
                                                     const std::string& vm,
                                                     const std::optional<std::string>& node_pool,
                                                     base::WallTime now) {
  NH_ASSIGN_OR_RETURN(
      const nomad::IntroductionToken made,
      deps.nomad().Introduce(
          context, {.node_name = vm, .node_pool = node_pool.value_or(""), .ttl = kIntroTokenFor}));
  return harvester::IntroToken{.jwt = made.jwt, .expires = now + made.lifetime};
}

base::Duration TokenCheckAfter(base::Duration lifetime) {
  return std::max<base::Duration>(lifetime / 2, std::chrono::seconds(30));
}

absl::StatusOr<std::optional<harvester::VmNeed>> DryRunCreation(const runtime::Context& context,
                                                                const PoolDependencies& deps,
                                                                const config::PoolPolicy& policy,
                                                                const CreationPlan& plan) {
  harvester::VmIdentity identity = SampleIdentity(deps, policy);
  identity.halted = plan.halted;
  const auto admitted =
      deps.vms.DryRunCreateVm(context, harvester::BuildVirtualMachine(plan.vm_spec, identity));
  if (!admitted.ok()) {
    // An unavailable webhook or server does not count as a refusal.
    return base::Annotate(admitted.status(), kube::IsRefused(admitted.status())
                                                 ? "Harvester would refuse the VM"
                                                 : "the trial creation of a VM failed");
  }
  return base::ToOptional(harvester::NeedOf(*admitted));
}

harvester::VmIdentity IdentityFor(const std::string& name, const std::string& action_id) {
  const std::string seed = action_id + "/" + name;
  return {.name = name,
          .firmware_uuid = DerivedUuid(seed),
          .action_id = action_id,
          .claim_random = base::StableHash("claim/" + seed).substr(0, 5)};
}

std::string NewVmName(const config::PoolPolicy& policy, runtime::Random& random) {
  return policy.name_prefix + "-" + random.NextName(kRandomLength);
}

absl::Status ClearLeftoverSecret(const runtime::Context& context, const PoolDependencies& deps,
                                 const std::string& vm) {
  const auto secret = deps.vms.GetSecret(context, harvester::SecretName(vm));
  if (kube::IsNotFound(secret.status())) return absl::OkStatus();
  NH_RETURN_IF_ERROR(secret);
  // The create request may have been delayed; a VM that has appeared since keeps its Secret.
  const auto machine = deps.vms.Get(context, vm);
  if (machine.ok()) return absl::OkStatus();
  if (!kube::IsNotFound(machine.status())) return machine.status();
  return deps.vms.DeleteSecret(context, *secret);
}

absl::StatusOr<VmObjects> ComposeVm(const CreationPlan& plan, const harvester::VmIdentity& identity,
                                    harvester::IntroToken token) {
  NH_ASSIGN_OR_RETURN(harvester::CloudInit cloud_init,
                      ComposeCloudInit(plan, identity, std::move(token)));
  return VmObjects{.secret = harvester::BuildSecret(plan.vm_spec, identity, cloud_init),
                   .vm = harvester::BuildVirtualMachine(plan.vm_spec, identity),
                   .lines = std::move(cloud_init.lines)};
}

absl::StatusOr<CreatedVm> CreateVm(const runtime::Context& context, const PoolDependencies& deps,
                                   const CreationPlan& plan, const PlannedCreation& creation,
                                   base::WallTime now) {
  CreatedVm created{.identity = IdentityFor(creation.name, creation.action_id)};
  created.identity.zone = creation.zone;
  created.identity.replaces = creation.replaces;
  created.identity.halted = plan.halted;
  harvester::IntroToken token;
  if (plan.intro_tokens) {
    NH_ASSIGN_OR_RETURN(
        token, MakeIntroToken(context, deps, creation.name, plan.vm_spec.nodes.node_pool, now));
  }
  NH_ASSIGN_OR_RETURN(const VmObjects objects, ComposeVm(plan, created.identity, token));
  NH_ASSIGN_OR_RETURN(created.secret, deps.vms.CreateSecret(context, objects.secret));
  if (const auto kept = created.secret.token_expires;
      kept.has_value() && token.expires - *kept > kSameToken) {
    // The Secret is from an earlier attempt, and its token may have expired.
    NH_RETURN_IF_ERROR(deps.vms.ReplaceIntroToken(context, created.secret, token));
    created.secret.token_expires = token.expires;
  }
  NH_ASSIGN_OR_RETURN(const auto vm, deps.vms.CreateVm(context, objects.vm));
  created.uid = vm.value.uid;
  if (vm.value.replaces.has_value() && !creation.replaces.has_value()) {
    created.replacement = vm.value;
  }
  if (created.secret.token_expires.has_value()) {
    deps.memory.RecordTokenOf(
        created.uid, deps.clock.Now() + TokenCheckAfter(*created.secret.token_expires - now));
  }
  return created;
}

namespace {

// Returns join-timeout for a VM created earlier, because the deadline counts from the creation: by
// a server whose clock was ahead, perhaps, and a limit below zero would be none.
std::string JoinTimeoutFromNow(const harvester::VirtualMachine& vm, base::Duration join_timeout,
                               base::WallTime now) {
  const auto age = std::chrono::ceil<std::chrono::seconds>(now - vm.created_at);
  return base::FormatGoDuration(std::max(age, std::chrono::seconds(0)) + join_timeout);
}

}  // namespace

absl::Status StartVm(const runtime::Context& context, const PoolDependencies& deps,
                     const harvester::VirtualMachine& vm, base::Duration join_timeout,
                     base::WallTime now) {
  harvester::Replaces replaces = *vm.replaces;
  const std::string start = std::exchange(replaces.start, "");
  // Somebody may have started it already.
  const std::string& run_strategy = harvester::WaitsToStart(vm) ? start : vm.run_strategy;
  return deps.vms
      .Annotate(context, vm.name, vm.resource_version,
                {{harvester::kReplacesAnnotation, harvester::ToAnnotation(replaces)},
                 {harvester::kJoinTimeoutAnnotation, JoinTimeoutFromNow(vm, join_timeout, now)}},
                run_strategy)
      .status();
}

absl::Status EndReplacement(const runtime::Context& context, const PoolDependencies& deps,
                            const harvester::VirtualMachine& vm, bool is_removed,
                            base::Duration join_timeout, base::WallTime now) {
  harvester::AnnotationChanges changes = {{harvester::kReplacesAnnotation, std::nullopt}};
  const bool waits = harvester::WaitsToStart(vm);
  // If this process dies before it marks the VM, the deadline removes it.
  if (waits) {
    changes[harvester::kJoinTimeoutAnnotation] = JoinTimeoutFromNow(vm, join_timeout, now);
  }
  std::optional<std::string> run_strategy;
  if (waits && !is_removed) run_strategy = vm.replaces->start;
  return deps.vms.Annotate(context, vm.name, vm.resource_version, changes, run_strategy).status();
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
