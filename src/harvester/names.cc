// SPDX-License-Identifier: Apache-2.0
// Names, label selectors and `self` values of objects that belong to a VM or a pool.
#include <algorithm>
#include <string>
#include <string_view>

#include "nomad_harvester/harvester/metadata.h"

#include "absl/strings/ascii.h"

namespace nomad_harvester::harvester {
namespace {

constexpr std::string_view kDiskPrefix = "disk-";
constexpr std::string_view kDiskInfix = "-disk-";
constexpr std::string_view kRestoredPrefix = "restore-";

bool IsDigit(unsigned char c) { return absl::ascii_isdigit(c); }
bool IsLowerAlphanumeric(unsigned char c) { return IsDigit(c) || absl::ascii_islower(c); }

}  // namespace

std::string SelfValue(std::string_view name, std::string_view firmware_uuid) {
  return std::string(name) + "/" + std::string(firmware_uuid);
}

std::string SecretName(std::string_view vm_name) { return std::string(vm_name) + "-cloudinit"; }

std::string DiskName(std::size_t index) { return std::string(kDiskPrefix) + std::to_string(index); }

bool IsDiskName(std::string_view name) {
  if (name == kCloudInitDisk) return true;
  if (!name.starts_with(kDiskPrefix)) return false;
  const std::string_view index = name.substr(kDiskPrefix.size());
  return !index.empty() && std::all_of(index.begin(), index.end(), IsDigit);
}

std::string ClaimName(std::string_view vm_name, int disk, std::string_view random) {
  return std::string(vm_name) + std::string(kDiskInfix) + std::to_string(disk) + "-" +
         std::string(random);
}

// The random part contains no dash: otherwise the claims of a VM named "<vm>-disk-0" would match
// <vm>.
bool IsClaimNameOf(std::string_view claim, std::string_view vm_name) {
  if (vm_name.empty() || !claim.starts_with(vm_name)) return false;
  claim.remove_prefix(vm_name.size());
  if (!claim.starts_with(kDiskInfix)) return false;
  claim.remove_prefix(kDiskInfix.size());
  const std::size_t dash = claim.find('-');
  if (dash == std::string_view::npos) return false;
  const std::string_view disk = claim.substr(0, dash);
  const std::string_view random = claim.substr(dash + 1);
  return !disk.empty() && !random.empty() && std::all_of(disk.begin(), disk.end(), IsDigit) &&
         std::all_of(random.begin(), random.end(), IsLowerAlphanumeric);
}

std::string_view DiskOfClaim(std::string_view claim, std::string_view vm_name) {
  if (IsClaimNameOf(claim, vm_name)) {
    claim.remove_prefix(vm_name.size() + 1);
    return claim.substr(0, claim.rfind('-'));
  }
  if (!claim.starts_with(kRestoredPrefix)) return {};
  const std::size_t infix = claim.rfind(kDiskInfix);
  const std::string_view disk = infix == std::string_view::npos ? "" : claim.substr(infix + 1);
  return IsDiskName(disk) ? disk : "";
}

std::string LeaseName(std::string_view pool) {
  return "nomad-harvester-autoscaler-" + std::string(pool);
}

std::string ManagedSelector() { return std::string(kManagedByLabel) + "=" + kManagedByValue; }

}  // namespace nomad_harvester::harvester
