// SPDX-License-Identifier: Apache-2.0
// Dynamic metadata of Nomad's clients, and its endpoint (test/e2e/README.md, "Metadata of a
// client").
#include "nomad_harvester/base/json.h"

#include "kube_reply.h"
#include "nomad_api.h"

namespace nomad_harvester::simulator {
namespace {

using Json = nlohmann::json;

constexpr base::Duration kMetadataDelay = std::chrono::seconds(7);

NomadReply MetadataError(int status, std::string text) {
  return {TextReply(status, std::move(text)), 0};
}

}  // namespace

NodeSpec NomadState::SpecOf(const Client& client) {
  NodeSpec spec = client.spec;
  for (const auto& [key, value] : client.dynamic_meta) {
    if (value.has_value()) {
      spec.meta[key] = *value;
    } else {
      spec.meta.erase(key);
    }
  }
  return spec;
}

std::optional<NomadState::ClientMeta> NomadState::MetaOf(const std::string& id) const {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return std::nullopt;
  return ClientMeta{.all = SpecOf(client->second).meta,
                    .dynamic = client->second.dynamic_meta,
                    .fixed = client->second.spec.meta};
}

// The client stores it at once, and registers again with it some seconds later
// (hashicorp/nomad:client/meta_endpoint.go, Apply; client/client.go, watchNodeUpdates). A key of
// its configuration that is removed stays so.
NomadState::Metadata NomadState::SetMeta(const std::string& id, const DynamicMeta& changes) {
  const auto found = clients_.find(id);
  if (FindNode(id) == nullptr || found == clients_.end()) return Metadata::kUnknownNode;
  Client& client = found->second;
  if (!client.alive) return Metadata::kNotConnected;
  if (changes.empty()) return Metadata::kDone;
  for (const auto& [key, value] : changes) {
    if (!value.has_value() && !client.spec.meta.contains(key)) {
      client.dynamic_meta.erase(key);
    } else {
      client.dynamic_meta[key] = value;
    }
  }
  world_.After(kMetadataDelay, [this, id] {
    const auto node = nodes_.find(id);
    const auto now = clients_.find(id);
    if (node == nodes_.end() || now == clients_.end() || !now->second.alive) return;
    NodeSpec spec = SpecOf(now->second);
    if (spec.meta == node->second.spec.meta) return;
    node->second.spec = std::move(spec);
    Touch(node->second);
    EmitNode(EventKind::kNodeRegistered, node->second);
    Schedule();
  });
  return Metadata::kDone;
}

NomadReply NomadApi::Metadata(const NomadCall& call, http::Method method, const std::string& text) {
  if (method != http::Method::kGet && method != http::Method::kPost) {
    return MetadataError(405, "Invalid method");
  }
  if (call.id.empty()) return MetadataError(400, "No local Node and node_id not provided");
  NomadState::DynamicMeta changes;
  if (call.write) {
    if (text.empty()) return MetadataError(400, "Request body is empty");
    const auto body = base::ParseJson(text, "the body");
    const Json* meta = body.ok() ? base::FindMember(*body, "Meta") : nullptr;
    if (meta == nullptr || !meta->is_object() || meta->empty()) {
      return MetadataError(400, "missing required Meta object");
    }
    for (const auto& [key, value] : meta->items()) {
      changes[key] = value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
    }
  }
  switch (state_.SetMeta(call.id, changes)) {
    case NomadState::Metadata::kUnknownNode:
      return MetadataError(500, "Unknown node " + call.id);
    case NomadState::Metadata::kNotConnected:
      return MetadataError(404, "No path to node");
    case NomadState::Metadata::kDone:
      break;
  }
  const NomadState::ClientMeta meta = *state_.MetaOf(call.id);
  Json dynamic = Json::object();
  for (const auto& [key, value] : meta.dynamic) dynamic[key] = value ? Json(*value) : Json(nullptr);
  return {JsonReply(200, {{"Meta", meta.all}, {"Dynamic", dynamic}, {"Static", meta.fixed}}), 0};
}

}  // namespace nomad_harvester::simulator
