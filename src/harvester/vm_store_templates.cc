// SPDX-License-Identifier: Apache-2.0
// VmStore: templates and their versions.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/harvester/vm_template.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/kube/observed.h"

#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

struct VersionRecord : ObjectMetadata {
  std::string template_id;
  std::int64_t version = 0;  // 0: not numbered yet
};

const base::JsonFields<VersionRecord>& TemplateVersionFields() {
  using base::JsonEvent;
  static const auto* const kFields =
      new base::JsonFields<VersionRecord>(WithMetadata<VersionRecord>({
          {"spec.templateId", &base::SetText<&VersionRecord::template_id>},
          {"status.version", [](VersionRecord& r, const JsonEvent& e) { r.version = e.integer; }},
      }));
  return *kFields;
}

// Sorted by number.
absl::StatusOr<std::vector<VersionRecord>> ListVersions(const kube::KubeClient& client,
                                                        const runtime::Context& context,
                                                        const std::string& ns,
                                                        const std::string& id) {
  NH_ASSIGN_OR_RETURN(
      auto list, client.List<VersionRecord>(context, kube::kVirtualMachineTemplateVersions, ns, {},
                                            TemplateVersionFields()));
  std::vector<VersionRecord> versions = std::move(list.value);
  std::erase_if(versions, [&id](const VersionRecord& v) { return v.template_id != id; });
  std::sort(versions.begin(), versions.end(),
            [](const VersionRecord& a, const VersionRecord& b) { return a.version < b.version; });
  return versions;
}

std::string VersionsIn(const std::vector<VersionRecord>& versions) {
  std::vector<std::string> numbers;
  for (const VersionRecord& version : versions) {
    if (version.version > 0) numbers.push_back(std::to_string(version.version));
  }
  return numbers.empty() ? "it has no versions yet" : "it has: " + Listed(numbers);
}

// Returns the name of the version's object.
absl::StatusOr<std::string> FindVersion(const kube::KubeClient& client,
                                        const runtime::Context& context, const std::string& ns,
                                        const std::string& id, std::int64_t wanted) {
  NH_ASSIGN_OR_RETURN(const std::vector<VersionRecord> versions,
                      ListVersions(client, context, ns, id));
  for (const VersionRecord& version : versions) {
    if (version.version == wanted) return version.name;
  }
  return base::MakeStatus(
      absl::StatusCode::kNotFound,
      "there is no version " + std::to_string(wanted) + "; " + VersionsIn(versions));
}

// Both conditions are set in one update; "ready" once every image of the version is imported
// (harvester/harvester:pkg/controller/master/template/template_version_controller.go). If a release
// does not know "ready", the images are checked instead.
absl::Status CheckReady(const json& version) {
  struct Record {
    std::vector<Condition> conditions;
  };
  static const auto* const kFields = new base::JsonFields<Record>(WithConditions<Record>({}));
  if (base::FindPath(version, {"metadata", "deletionTimestamp"}) != nullptr) {
    return base::FailedPrecondition("it is being deleted");
  }
  const Record record = kFields->Read(version);
  const Condition* const ready = FindCondition(record.conditions, "ready");
  const Condition* const assigned = FindCondition(record.conditions, "assigned");
  if (assigned == nullptr || assigned->status != "True") {
    return base::FailedPrecondition("Harvester has not given it a number yet");
  }
  if (ready != nullptr && ready->status != "True") {
    return base::FailedPrecondition("it is not ready: not all images of its volumes are imported" +
                                    (ready->message.empty() ? "" : ": " + ready->message));
  }
  return absl::OkStatus();
}

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

absl::StatusOr<VmTemplate> VmStore::ResolveTemplate(const runtime::Context& context,
                                                    const std::string& ns, const std::string& name,
                                                    std::optional<std::int64_t> version) const {
  const std::string id = ns + "/" + name;
  const std::string where = "template " + id;
  const auto found = client_->Get(context, kube::kVirtualMachineTemplates, ns, name);
  NH_RETURN_IF_ERROR(Existing(found.status(), *client_, context, kube::kVirtualMachineTemplates,
                              "template", ns, name));
  std::string object_name;
  if (version.has_value()) {
    auto of_number = FindVersion(*client_, context, ns, id, *version);
    if (!of_number.ok()) return base::Annotate(of_number.status(), where);
    object_name = *std::move(of_number);
  } else {
    const std::string full = base::TextAt(found->object, {"spec", "defaultVersionId"});
    const std::size_t slash = full.find('/');
    object_name = slash == std::string::npos ? "" : full.substr(slash + 1);
    // A version is in its template's namespace
    // (harvester/harvester:pkg/webhook/resources/templateversion/validator.go).
    if (object_name.empty() || full.substr(0, slash) != ns) {
      const auto versions = ListVersions(*client_, context, ns, id);
      return base::FailedPrecondition(where + " has no default version; " +
                                      (versions.ok() ? VersionsIn(*versions) : "name one"));
    }
  }
  const std::string what = where + ", version " + object_name;
  const auto object = client_->Get(context, kube::kVirtualMachineTemplateVersions, ns, object_name);
  if (!object.ok()) return base::Annotate(object.status(), what);
  const absl::Status ready = CheckReady(object->object);
  if (!ready.ok()) return base::Annotate(ready, what + " cannot be used");
  auto read = ReadVmTemplate(object->object, ns_);
  if (!read.ok()) return base::Annotate(read.status(), what + " cannot be used for a pool");
  return read;
}

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
