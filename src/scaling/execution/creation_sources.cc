// SPDX-License-Identifier: Apache-2.0
#include "execution/creation_sources.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/error.h"

#include "execution/template_base.h"

namespace nomad_harvester::scaling {
namespace {

absl::StatusOr<std::vector<harvester::Network>> ReadNetworks(const runtime::Context& context,
                                                             const PoolDependencies& deps,
                                                             const config::PoolPolicy& policy) {
  std::vector<harvester::Network> networks;
  absl::Status problem;
  for (const config::NetworkRef& ref : policy.networks) {
    harvester::Network network{
        .management = ref.management, .ns = ref.attachment.ns, .name = ref.attachment.name};
    if (!network.management) {
      AddProblem(deps.vms.CheckNetwork(context, network), &problem);
    }
    networks.push_back(std::move(network));
  }
  if (!problem.ok()) return base::Annotate(problem, "networks");
  return networks;
}

// `key` is named in errors.
absl::StatusOr<harvester::Image> ReadImage(const runtime::Context& context,
                                           const PoolDependencies& deps, const std::string& key,
                                           const config::NamespacedName& name) {
  auto image = deps.vms.ResolveImage(context, deps.executor, name.ns, name.name);
  if (!image.ok()) return base::Annotate(image.status(), key);
  if (!image->imported) {
    return base::FailedPrecondition(key + ": " + name.ns + "/" + name.name +
                                    " cannot be used: " + image->problem);
  }
  return image;
}

bool IsFromImage(const harvester::VmBase::Disk& disk) { return disk.from_image; }

absl::StatusOr<std::vector<harvester::Image>> ReadDiskImages(const runtime::Context& context,
                                                             const PoolDependencies& deps,
                                                             const harvester::VmBase& base) {
  std::vector<harvester::Image> images;
  absl::Status problem;
  for (std::size_t i = 1; i < base.disks.size(); ++i) {
    if (!IsFromImage(base.disks[i])) continue;
    const harvester::Image& image = base.disks[i].image;
    auto read = ReadImage(context, deps, "vm_template: the image of another disk",
                          {.ns = image.ns, .name = image.name});
    AddProblem(read.status(), &problem);
    if (read.ok()) images.push_back(*std::move(read));
  }
  if (!problem.ok()) return problem;
  return images;
}

absl::StatusOr<std::vector<std::string>> ReadPublicKeys(const runtime::Context& context,
                                                        const PoolDependencies& deps,
                                                        const config::PoolPolicy& policy) {
  std::vector<std::string> keys;
  absl::Status problem;
  for (const config::NamespacedName& key : policy.ssh_keys) {
    auto text = deps.vms.PublicKey(context, key.ns, key.name);
    AddProblem(text.status(), &problem);
    if (text.ok()) keys.push_back(*std::move(text));
  }
  if (!problem.ok()) return base::Annotate(problem, "ssh_keys");
  return keys;
}

// Reads each class once, and checks every disk that uses it.
void CheckStorageClasses(const runtime::Context& context, const PoolDependencies& deps,
                         const config::PoolPolicy& policy, const harvester::VmBase& base,
                         CreationSources* sources) {
  using Facts = harvester::VmStore::ClassFacts;
  std::map<std::string, absl::StatusOr<Facts>> classes;
  absl::Status problem;
  const auto check = [&](const char* key, const std::string& name, bool once,
                         const std::string& cure) {
    if (name.empty()) return;
    auto [found, is_new] = classes.try_emplace(name, Facts());
    if (is_new) {
      found->second = deps.vms.ReadStorageClass(context, name);
      AddProblem(base::Annotate(found->second.status(), key), &problem);
      if (found->second.ok() && found->second->unknown) sources->unread_storage.push_back(name);
    }
    if (once || !found->second.ok() || !found->second->is_lvm) return;
    // harvester/harvester-ui-extension:pkg/harvester/edit/kubevirt.io.virtualmachine/
    // VirtualMachineVolume/type/volume.vue.
    AddProblem(
        base::FailedPrecondition(std::string(key) + ": storage class " + name +
                                 " is one of LVM, whose volumes only one host can write: " + cure),
        &problem);
  };
  for (const policy::DataDisk& disk : policy.data_disks) {
    check("data_disks", disk.storage_class, disk.read_write_once,
          "write " + base::FormatBinaryQuantity(disk.bytes) + "@" + disk.storage_class + ":rwo");
  }
  for (const harvester::VmBase::Disk& disk : base.disks) {
    if (IsFromImage(disk)) continue;
    check("vm_template", disk.storage_class, disk.read_write_once,
          "make its access mode ReadWriteOnce in the template");
  }
  sources->storage_classes = problem;
}

absl::StatusOr<std::optional<harvester::VmTemplate>> ReadBase(const runtime::Context& context,
                                                              const PoolDependencies& deps,
                                                              const config::TemplateRef& ref) {
  auto read = deps.vms.ResolveTemplate(context, ref.name.ns, ref.name.name, ref.version);
  if (!read.ok()) return base::Annotate(read.status(), "vm_template");
  return *std::move(read);
}

struct SourceCure {
  std::string_view key;
  std::string_view cure;
  std::string_view resources;  // empty: the right to read it is optional
};
constexpr SourceCure kSourceCures[] = {
    {"vm_template", "name one that `kubectl get virtualmachinetemplates.harvesterhci.io -A` lists",
     "virtualmachinetemplates and virtualmachinetemplateversions"},
    {"image",
     "upload it, wait for its import, or correct the key image: `kubectl get "
     "virtualmachineimages.harvesterhci.io -A` lists what there is",
     "virtualmachineimages"},
    {"networks", "create the VM network in Harvester, or correct the key networks",
     "network-attachment-definitions"},
    {"ssh_keys", "create the SSH key in Harvester, or correct the key ssh_keys", "keypairs"},
    {"storage_class", "create it, or correct its name", ""},
    {"priority_class", "create it, or correct its name", ""}};

}  // namespace

std::string CureOfSource(std::string_view key, const absl::Status& problem) {
  for (const SourceCure& source : kSourceCures) {
    if (source.key != key) continue;
    if (kube::IsForbidden(problem) || absl::IsPermissionDenied(problem)) {
      return source.resources.empty()
                 ? ""
                 : "grant get and list on " + std::string(source.resources) +
                       " in its namespace, as the second Role of examples/rbac.yaml does";
    }
    if (absl::IsNotFound(problem) || absl::IsFailedPrecondition(problem)) {
      return std::string(source.cure);
    }
  }
  return "";
}

void AddProblem(const absl::Status& problem, absl::Status* all) {
  if (problem.ok()) return;
  *all = all->ok()
             ? problem
             : base::MakeStatus(all->code(), base::Message(*all) + "; " + base::Message(problem));
}

WantedPolicy WantedOf(const config::PoolPolicy& policy, const CreationSources& sources) {
  WantedPolicy wanted{.policy = policy, .base = {}, .problem = sources.vm_template.status()};
  if (!wanted.problem.ok() || !sources.vm_template->has_value()) return wanted;
  const harvester::VmTemplate& base = **sources.vm_template;
  wanted.base = BaseFor(base, policy);
  wanted.problem = FillFrom(base, &wanted.policy);
  return wanted;
}

std::vector<std::string> UnreadClasses(const CreationSources& sources) {
  std::vector<std::string> unread;
  for (const std::string& name : sources.unread_storage) unread.push_back("storage class " + name);
  for (const std::string& name : sources.unread_priority) {
    unread.push_back("priority class " + name);
  }
  return unread;
}

CreationSources ReadSources(const runtime::Context& context, const PoolDependencies& deps,
                            const config::PoolPolicy& given) {
  CreationSources sources;
  if (given.vm_template.has_value()) {
    sources.vm_template = ReadBase(context, deps, *given.vm_template);
  }
  const WantedPolicy wanted = WantedOf(given, sources);
  const config::PoolPolicy& policy = wanted.policy;
  std::vector<std::function<void()>> reads;
  if (policy.image.name.empty()) {
    sources.image = harvester::Image();  // what the template lacks is its problem
  } else {
    reads.emplace_back([&] { sources.image = ReadImage(context, deps, "image", policy.image); });
  }
  reads.insert(reads.end(),
               {[&] { sources.networks = ReadNetworks(context, deps, policy); },
                [&] { sources.public_keys = ReadPublicKeys(context, deps, policy); },
                [&] { sources.quotas = deps.vms.ListQuotas(context); },
                [&] { CheckStorageClasses(context, deps, policy, wanted.base, &sources); }});
  if (std::any_of(wanted.base.disks.begin(), wanted.base.disks.end(), IsFromImage)) {
    reads.emplace_back([&] { sources.disk_images = ReadDiskImages(context, deps, wanted.base); });
  }
  if (const std::string name = policy::TextOf(policy.machine, "priority_class"); !name.empty()) {
    sources.priority_class = absl::UnknownError("not read");
    reads.emplace_back([&, name] {
      const auto read = deps.vms.ReadPriorityClass(context, name);
      sources.priority_class = base::Annotate(read.status(), "priority_class");
      if (read.ok() && read->unknown) sources.unread_priority = {name};
    });
  }
  if (!policy.gpus.empty()) {
    reads.emplace_back([&] {
      sources.gpus_are_host_devices = deps.vms.TakesGpusAsHostDevices(context);
      if (!sources.gpus_are_host_devices.ok()) {
        sources.gpus_are_host_devices =
            base::Annotate(sources.gpus_are_host_devices.status(), "gpus");
      }
    });
  }
  runtime::CallAtOnce(context, deps.executor, reads);
  return sources;
}

}  // namespace nomad_harvester::scaling
