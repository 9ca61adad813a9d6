// SPDX-License-Identifier: Apache-2.0
#include "what_exists.h"

#include <cstddef>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/error.h"

#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

constexpr std::size_t kMaxListed = 10;

std::string Others(const kube::KubeClient& client, const runtime::Context& context,
                   const kube::ResourceType& type, std::string_view what, const std::string& ns) {
  const auto list = client.List<ObjectMetadata>(context, type, ns, {}, MetadataFields());
  if (!list.ok()) return "";
  std::vector<std::string> names;
  names.reserve(list->value.size());
  for (const ObjectMetadata& metadata : list->value) names.push_back(metadata.name);
  const std::string place = ns.empty() ? "; the cluster has" : "; the namespace has";
  if (!names.empty()) return place + ": " + Listed(names);
  return place + " no " + std::string(what) + (what.ends_with('s') ? "es" : "s");
}

}  // namespace

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMaxListed; ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kMaxListed ? text + ", ..." : text;
}

absl::Status Existing(const absl::Status& read, const kube::KubeClient& client,
                      const runtime::Context& context, const kube::ResourceType& type,
                      std::string_view what, const std::string& ns, const std::string& name) {
  const std::string where = std::string(what) + " " + (ns.empty() ? "" : ns + "/") + name;
  if (!kube::IsNotFound(read)) return base::Annotate(read, where);
  return base::MakeStatus(absl::StatusCode::kNotFound,
                          where + " does not exist" + Others(client, context, type, what, ns));
}

}  // namespace nomad_harvester::harvester
