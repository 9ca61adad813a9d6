// SPDX-License-Identifier: Apache-2.0
// VmStore: the sources of VMs (images, networks, keys, classes), the quotas and the version.
#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/runtime/workers.h"

#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

struct ImageRecord : Image {
  bool deleted = false;
  std::optional<std::int64_t> progress;  // in percent; unset without a status
  std::vector<Condition> conditions;
};

bool IsCondition(const Condition* condition, std::string_view status) {
  return condition != nullptr && condition->status == status;
}

std::string WithMessage(std::string text, const Condition* condition) {
  if (condition != nullptr && !condition->message.empty()) text += ": " + condition->message;
  return text;
}

// The conditions are set by harvester/harvester:pkg/image/common/operator.go, stateTransit: while a
// failed import is retried, only RetryLimitExceeded has the cause.
std::string ImportProblem(const ImageRecord& record) {
  const Condition* imported = FindCondition(record.conditions, "Imported");
  const Condition* initialized = FindCondition(record.conditions, "Initialized");
  const Condition* retry = FindCondition(record.conditions, "RetryLimitExceeded");
  if (IsCondition(imported, "False")) return WithMessage("its import failed", imported);
  if (IsCondition(initialized, "False")) {
    return WithMessage("its initialisation failed", initialized);
  }
  if (IsCondition(retry, "True")) return WithMessage("its import was given up", retry);
  std::string text = "it is still being imported";
  if (record.progress) text += " (" + std::to_string(*record.progress) + " %)";
  return WithMessage(std::move(text), retry);
}

std::string FindProblem(const ImageRecord& record) {
  if (record.deleted) return "it is being deleted";
  if (!record.imported) return ImportProblem(record);
  const Condition* missing = FindCondition(record.conditions, "BackingImageMissing");
  if (IsCondition(missing, "True")) return WithMessage("its backing image is missing", missing);
  if (record.storage_class.empty()) return "Harvester has not given it a storage class yet";
  return "";
}

void Complete(ImageRecord& record, const base::JsonEvent& /*end*/) {
  record.imported = IsCondition(FindCondition(record.conditions, "Imported"), "True");
  record.problem = FindProblem(record);
}

const base::JsonFields<ImageRecord>& ImageFields() {
  using base::JsonEvent;
  using Record = ImageRecord;
  static const auto* const kFields = new base::JsonFields<Record>(WithConditions<Record>({
      {"metadata.namespace", &base::SetText<&Image::ns, Record>},
      {"metadata.name", &base::SetText<&Image::name, Record>},
      {"metadata.deletionTimestamp",
       [](Record& r, const JsonEvent& e) { r.deleted = TimeOf(e).has_value(); }},
      {"spec.displayName", &base::SetText<&Image::display_name, Record>},
      {"status",
       [](Record& r, const JsonEvent& e) {
         if (e.kind == JsonEvent::Kind::kObject) r.progress = 0;
       }},
      {"status.progress", [](Record& r, const JsonEvent& e) { r.progress = e.integer; }},
      {"status.storageClassName", &base::SetText<&Image::storage_class, Record>},
      {"status.virtualSize", [](Record& r, const JsonEvent& e) { r.virtual_size = e.integer; }},
      {"", &Complete},
  }));
  return *kFields;
}

absl::StatusOr<std::vector<Image>> ListImages(const kube::KubeClient& client,
                                              const runtime::Context& context,
                                              const std::string& ns,
                                              const kube::Selector& selector) {
  NH_ASSIGN_OR_RETURN(auto list,
                      (client.List<Image, ImageRecord>(context, kube::kVirtualMachineImages, ns,
                                                       selector, ImageFields())));
  return std::move(list.value);
}

std::vector<Image> WithDisplayName(std::vector<Image> images, std::string_view name) {
  std::erase_if(images, [name](const Image& image) { return image.display_name != name; });
  return images;
}

std::string Listing(const std::vector<Image>& images) {
  std::vector<std::string> names;
  names.reserve(images.size());
  for (const Image& image : images) names.push_back(image.name + " (" + image.display_name + ")");
  return Listed(names);
}

// Finds images by the label with their display name. Harvester releases differ in when they set it,
// so an empty list does not prove that there is no such image.
absl::StatusOr<std::vector<Image>> ListByDisplayNameLabel(const kube::KubeClient& client,
                                                          const runtime::Context& context,
                                                          const std::string& ns,
                                                          const std::string& name) {
  if (!base::IsLabelValue(name)) return std::vector<Image>();
  NH_ASSIGN_OR_RETURN(
      std::vector<Image> labelled,
      ListImages(client, context, ns, {.labels = "harvesterhci.io/imageDisplayName=" + name}));
  return WithDisplayName(std::move(labelled), name);
}

absl::StatusOr<Image> OnlyOne(const std::vector<Image>& matching, const std::vector<Image>& all,
                              const std::string& ns, const std::string& name) {
  if (matching.size() == 1) return matching.front();
  const std::string quoted = "\"" + name + "\"";
  if (!matching.empty()) {
    return base::FailedPrecondition(std::to_string(matching.size()) +
                                    " images have the display name " + quoted + " in namespace " +
                                    ns + ": " + Listing(matching) + "; use a resource name");
  }
  return base::FailedPrecondition(
      quoted + " not found in namespace " + ns + ", by resource name or display name" +
      (all.empty() ? "; the namespace has no images" : "; there is: " + Listing(all)));
}

// A class that the token lacks the right to read is unknown, not missing.
absl::StatusOr<VmStore::ClassFacts> ReadClass(const kube::KubeClient& client,
                                              const runtime::Context& context,
                                              const kube::ResourceType& type, std::string_view what,
                                              const std::string& name) {
  // harvester/harvester:pkg/util/constants.go, CSIProvisionerLVM.
  constexpr char kLvm[] = "lvm.driver.harvesterhci.io";
  const auto read = client.Get(context, type, "", name);
  if (read.ok()) {
    return VmStore::ClassFacts{.is_lvm = base::GetString(read->object, "provisioner") == kLvm};
  }
  if (kube::IsForbidden(read.status())) return VmStore::ClassFacts{.unknown = true};
  return Existing(read.status(), client, context, type, what, "", name);
}

// Lists all namespaces, or those of `namespaces` that may be listed.
template <typename T>
absl::StatusOr<std::vector<T>> ListWhereAllowed(
    const std::vector<std::string>& namespaces,
    const std::function<absl::StatusOr<std::vector<T>>(const std::string& ns)>& list) {
  auto all = list("");
  if (!kube::IsForbidden(all.status())) return all;
  std::vector<T> found;
  for (const std::string& ns : namespaces) {
    auto some = list(ns);
    if (kube::IsForbidden(some.status())) continue;
    NH_RETURN_IF_ERROR(some);
    std::move(some->begin(), some->end(), std::back_inserter(found));
  }
  return found;
}

absl::StatusOr<std::vector<std::string>> ListNames(const kube::KubeClient& client,
                                                   const runtime::Context& context,
                                                   const kube::ResourceType& type,
                                                   const std::string& ns) {
  NH_ASSIGN_OR_RETURN(const auto list,
                      client.List<ObjectMetadata>(context, type, ns, {}, MetadataFields()));
  std::vector<std::string> names;
  names.reserve(list.value.size());
  for (const ObjectMetadata& object : list.value) {
    names.push_back((object.ns.empty() ? "" : object.ns + "/") + object.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::StatusOr<Choices> ListChoices(const runtime::Context& context, const kube::KubeClient& client,
                                    const std::vector<std::string>& namespaces) {
  const auto names = [&](const kube::ResourceType& type) {
    return ListWhereAllowed<std::string>(
        namespaces, [&](const std::string& ns) { return ListNames(client, context, type, ns); });
  };
  Choices choices;
  NH_ASSIGN_OR_RETURN(choices.images,
                      ListWhereAllowed<Image>(namespaces, [&](const std::string& ns) {
                        return ListImages(client, context, ns, {});
                      }));
  std::sort(choices.images.begin(), choices.images.end(), [](const Image& a, const Image& b) {
    return std::tie(a.ns, a.display_name, a.name) < std::tie(b.ns, b.display_name, b.name);
  });
  NH_ASSIGN_OR_RETURN(choices.networks, names(kube::kNetworkAttachments));
  NH_ASSIGN_OR_RETURN(choices.ssh_keys, names(kube::kKeyPairs));
  auto all = ListNames(client, context, kube::kNamespaces, "");
  if (!all.ok() && !kube::IsForbidden(all.status())) return all.status();
  if (all.ok()) choices.namespaces = *std::move(all);
  return choices;
}

// harvester/harvester#10026: since 1.8, PCI devices and vGPUs are host devices.
bool IsVersionWithGpusAsHostDevices(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  const std::vector<std::string> parts =
      absl::StrSplit(base::ToAbsl(version), absl::ByAnyChar(".-+"));
  const auto major = base::ParseInt(parts[0]);
  const auto minor = base::ParseInt(parts.size() > 1 ? parts[1] : "");
  if (!major.ok() || !minor.ok()) return true;
  return std::pair(*major, *minor) >= std::pair<std::int64_t, std::int64_t>(1, 8);
}

absl::StatusOr<Image> VmStore::ResolveImage(const runtime::Context& context,
                                            runtime::Executor& executor, const std::string& ns,
                                            const std::string& name) const {
  const std::string where = "image " + ns + "/" + name;
  absl::StatusOr<std::vector<Image>> labelled = base::Unavailable("not read");
  absl::StatusOr<kube::Observed> named = base::Unavailable("not read");
  std::vector<std::function<void()>> reads = {
      [&] { labelled = ListByDisplayNameLabel(*client_, context, ns, name); }};
  if (base::IsDnsSubdomain(name)) {
    reads.emplace_back(
        [&] { named = client_->Get(context, kube::kVirtualMachineImages, ns, name); });
  }
  runtime::CallAtOnce(context, executor, reads);
  NH_RETURN_IF_ERROR(context.Check());
  // A display name may contain characters that are not allowed in a path.
  if (base::IsDnsSubdomain(name)) {
    if (named.ok()) return Image(ImageFields().Read(named->object));
    if (!kube::IsNotFound(named.status())) return base::Annotate(named.status(), where);
  }
  if (!labelled.ok()) return base::Annotate(labelled.status(), where);
  std::vector<Image> all;
  std::vector<Image> matching = *std::move(labelled);
  if (matching.empty()) {
    auto listed = ListImages(*client_, context, ns, {});
    if (!listed.ok()) return base::Annotate(listed.status(), where);
    all = *std::move(listed);
    matching = WithDisplayName(all, name);
  }
  return OnlyOne(matching, all, ns, name);
}

absl::Status VmStore::CheckNetwork(const runtime::Context& context, const Network& network) const {
  if (network.management) return absl::OkStatus();
  return Existing(
      client_->Get(context, kube::kNetworkAttachments, network.ns, network.name).status(), *client_,
      context, kube::kNetworkAttachments, "network", network.ns, network.name);
}

absl::StatusOr<VmStore::ClassFacts> VmStore::ReadStorageClass(const runtime::Context& context,
                                                              const std::string& name) const {
  return ReadClass(*client_, context, kube::kStorageClasses, "storage class", name);
}

absl::StatusOr<VmStore::ClassFacts> VmStore::ReadPriorityClass(const runtime::Context& context,
                                                               const std::string& name) const {
  return ReadClass(*client_, context, kube::kPriorityClasses, "priority class", name);
}

// The value and the default are members of the object itself
// (harvester/harvester:pkg/apis/harvesterhci.io/v1beta1/setting.go).
absl::StatusOr<bool> VmStore::TakesGpusAsHostDevices(const runtime::Context& context) const {
  const auto setting = client_->Get(context, kube::kSettings, "", "server-version");
  if (kube::IsForbidden(setting.status()) || kube::IsNotFound(setting.status())) return true;
  if (!setting.ok()) return base::Annotate(setting.status(), "the version of Harvester");
  const std::string value = base::GetString(setting->object, "value");
  return IsVersionWithGpusAsHostDevices(value.empty() ? base::GetString(setting->object, "default")
                                                      : value);
}

absl::StatusOr<std::vector<ResourceQuota>> VmStore::ListQuotas(
    const runtime::Context& context) const {
  auto list = client_->List<ResourceQuota, ResourceQuotaRecord>(context, kube::kResourceQuotas, ns_,
                                                                {}, ResourceQuotaFields());
  NH_RETURN_IF_ERROR(list);
  return std::move(list->value);
}

absl::StatusOr<std::string> VmStore::PublicKey(const runtime::Context& context,
                                               const std::string& ns,
                                               const std::string& name) const {
  const std::string where = "SSH key " + ns + "/" + name;
  const auto observed = client_->Get(context, kube::kKeyPairs, ns, name);
  NH_RETURN_IF_ERROR(
      Existing(observed.status(), *client_, context, kube::kKeyPairs, "SSH key", ns, name));
  const std::string text = base::TextAt(observed->object, {"spec", "publicKey"});
  const std::string_view key = base::TrimAsciiSpace(text);
  if (key.empty()) return base::FailedPrecondition(where + " holds no public key");
  // Two lines would be two keys, and only one of them was checked.
  if (key.find_first_of("\r\n") != std::string_view::npos) {
    return base::FailedPrecondition(where + " holds more than one line");
  }
  return std::string(key);
}

}  // namespace nomad_harvester::harvester
