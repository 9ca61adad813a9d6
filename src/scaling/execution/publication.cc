// SPDX-License-Identifier: Apache-2.0
#include "execution/publication.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::scaling {
namespace {

// docs/configuration.md, publish_host: operators spread jobs over them.
constexpr char kHostKey[] = "harvester_host";
constexpr char kZoneKey[] = "harvester_zone";

// A client that is connected replies within milliseconds; one that hangs, after half a minute.
constexpr base::Duration kPublicationLimit = std::chrono::seconds(5);
constexpr base::Duration kZoneLimit = std::chrono::seconds(2);

std::optional<std::string> UnlessEmpty(std::string text) {
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace

Effect Publish(const runtime::Context& asking, const runtime::Context& writing,
               const PoolDependencies& deps, const VmView& view, const Step& step) {
  const runtime::Context limited = asking.WithTimeout(kPublicationLimit);
  // Without a value, the key and the annotation are removed.
  std::map<std::string, std::optional<std::string>> meta = {{kHostKey, std::nullopt},
                                                            {kZoneKey, std::nullopt}};
  std::optional<std::string> annotation;
  if (step.kind == StepKind::kPublishHost) {
    // A host that cannot be read costs its zone, which follows once it is known.
    auto zone = deps.hosts.ZoneOf(asking.WithTimeout(kZoneLimit), view.host);
    harvester::PublishedHost published =
        view.vm->published_host.value_or(harvester::PublishedHost());
    published.node_id = step.node_id;
    published.host = view.host;
    published.zone = UnlessEmpty(std::move(zone).value_or(""));
    meta = {{kHostKey, published.host}, {kZoneKey, published.zone}};
    annotation = harvester::ToAnnotation(published);
  }
  absl::Status posted = deps.clients.nomad_urgent->SetNodeMeta(limited, step.node_id, meta);
  if (!posted.ok()) return EffectOf(std::move(posted));
  return EffectOf(deps.vms
                      .Annotate(writing.WithTimeout(kPublicationLimit), view.vm->name,
                                view.vm->resource_version,
                                {{harvester::kPublishedHostAnnotation, std::move(annotation)}})
                      .status());
}

}  // namespace nomad_harvester::scaling
