// SPDX-License-Identifier: Apache-2.0
#include "nodes_record.h"

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "json_object_reader.h"

namespace nomad_harvester::harvester {

using nlohmann::json;

json NodesToJson(const NodesRecord& nodes) {
  json object = {{"node_attribute", nodes.node_attribute}, {"index", nodes.index}};
  if (!nodes.region.empty()) object["region"] = nodes.region;
  if (nodes.node_class) object["node_class"] = *nodes.node_class;
  if (nodes.datacenter) object["datacenter"] = *nodes.datacenter;
  if (nodes.node_pool) object["node_pool"] = *nodes.node_pool;
  return object;
}

absl::StatusOr<NodesRecord> NodesFromJson(const json& object) {
  JsonObjectReader reader(object, "nodes");
  NodesRecord nodes;
  nodes.region = reader.OptionalText("region").value_or("");
  nodes.node_class = reader.OptionalText("node_class");
  nodes.datacenter = reader.OptionalText("datacenter");
  nodes.node_pool = reader.OptionalText("node_pool");
  nodes.node_attribute = reader.Text("node_attribute");
  nodes.index = reader.Index("index");
  NH_RETURN_IF_ERROR(reader.status());
  return nodes;
}

std::string ToAnnotation(const NodesRecord& nodes) { return base::DumpJson(NodesToJson(nodes)); }

absl::StatusOr<NodesRecord> ParseNodesRecord(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const json object, ParseObject(text, "nodes"));
  return NodesFromJson(object);
}

}  // namespace nomad_harvester::harvester
