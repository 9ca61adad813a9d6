// SPDX-License-Identifier: Apache-2.0
// VmStore: the sources of VMs (images, networks, keys) and the quotas.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_store.h"

#include "image.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxNamesInError = 10;

absl::StatusOr<std::vector<Image>> ListImages(const kube::KubeClient& client,
                                              const runtime::Context& context,
                                              const std::string& ns, std::string selector) {
  kube::ListOptions options;
  options.label_selector = std::move(selector);
  options.drop = {"metadata.annotations", "metadata.finalizers", "spec.url", "status.backupTarget"};
  NH_ASSIGN_OR_RETURN(const kube::ObservedList list,
                      client.List(context, kube::kVirtualMachineImages, ns, options));
  std::vector<Image> images;
  for (const json& item : list.items) images.push_back(ParseImage(item));
  return images;
}

std::vector<Image> WithDisplayName(const std::vector<Image>& images, std::string_view name) {
  std::vector<Image> matching;
  for (const Image& image : images) {
    if (image.display_name == name) matching.push_back(image);
  }
  return matching;
}

std::string Listing(const std::vector<Image>& images) {
  std::string text;
  for (std::size_t i = 0; i < images.size() && i < kMaxNamesInError; ++i) {
    text += (i == 0 ? "" : ", ") + images[i].name + " (" + images[i].display_name + ")";
  }
  if (images.size() > kMaxNamesInError) text += ", ...";
  return text;
}

// Display names are in a label if Harvester set it; releases differ in when they do, so an empty
// list does not prove that there is no such image.
absl::StatusOr<Image> ResolveDisplayName(const kube::KubeClient& client,
                                         const runtime::Context& context, const std::string& ns,
                                         const std::string& name) {
  std::vector<Image> matching;
  if (base::IsLabelValue(name)) {
    NH_ASSIGN_OR_RETURN(
        const std::vector<Image> labelled,
        ListImages(client, context, ns, "harvesterhci.io/imageDisplayName=" + name));
    matching = WithDisplayName(labelled, name);
  }
  std::vector<Image> all;
  if (matching.empty()) {
    NH_ASSIGN_OR_RETURN(all, ListImages(client, context, ns, ""));
    matching = WithDisplayName(all, name);
  }
  if (matching.size() == 1) return matching.front();
  const std::string wanted = "\"" + name + "\" in namespace " + ns;
  if (!matching.empty()) {
    return base::FailedPrecondition(std::to_string(matching.size()) +
                                    " images have the display name " + wanted + ": " +
                                    Listing(matching) + "; use a resource name");
  }
  return base::FailedPrecondition(
      "no image has the resource name or display name " + wanted +
      (all.empty() ? "; the namespace has no images" : "; it has: " + Listing(all)));
}

std::string QualifiedName(const std::string& ns, const std::string& name) {
  return ns + "/" + name;
}

}  // namespace

absl::StatusOr<Image> VmStore::ResolveImage(const runtime::Context& context, const std::string& ns,
                                            const std::string& name) const {
  const std::string where = "image " + QualifiedName(ns, name);
  // A display name may contain characters that are not allowed in a path.
  if (base::IsDnsSubdomain(name)) {
    const auto observed = client_->Get(context, kube::kVirtualMachineImages, ns, name);
    if (observed.ok()) return ParseImage(observed->object);
    if (!kube::IsNotFound(observed.status())) return base::Annotate(observed.status(), where);
  }
  auto image = ResolveDisplayName(*client_, context, ns, name);
  if (!image.ok()) return base::Annotate(image.status(), where);
  return image;
}

absl::Status VmStore::CheckNetwork(const runtime::Context& context, const Network& network) const {
  if (network.management) return absl::OkStatus();
  return base::Annotate(
      client_->Get(context, kube::kNetworkAttachments, network.ns, network.name).status(),
      "network " + QualifiedName(network.ns, network.name));
}

absl::StatusOr<std::vector<ResourceQuota>> VmStore::ListQuotas(
    const runtime::Context& context) const {
  NH_ASSIGN_OR_RETURN(const kube::ObservedList list,
                      client_->List(context, kube::kResourceQuotas, ns_, {}));
  std::vector<ResourceQuota> quotas;
  for (const json& item : list.items) quotas.push_back(ParseResourceQuota(item));
  return quotas;
}

absl::StatusOr<std::string> VmStore::PublicKey(const runtime::Context& context,
                                               const std::string& ns,
                                               const std::string& name) const {
  const std::string where = "SSH key " + QualifiedName(ns, name);
  const auto observed = client_->Get(context, kube::kKeyPairs, ns, name);
  if (!observed.ok()) return base::Annotate(observed.status(), where);
  const json* spec = base::FindMember(observed->object, "spec");
  const std::string text = spec == nullptr ? "" : base::GetString(*spec, "publicKey");
  const std::string_view key = base::TrimAsciiSpace(text);
  if (key.empty()) return base::FailedPrecondition(where + " holds no public key");
  // Two lines would be two keys, of which only one was checked.
  if (key.find_first_of("\r\n") != std::string_view::npos) {
    return base::FailedPrecondition(where + " holds more than one line");
  }
  return std::string(key);
}

}  // namespace nomad_harvester::harvester
