// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/json_reader.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::kube {
namespace {

absl::Status Undecodable(std::string_view purpose, std::string_view why) {
  return base::Internal(std::string(purpose) +
                        ": the reply cannot be decoded: " + std::string(why));
}

absl::StatusOr<Json> ReadObject(const http::HttpResponse& response, const base::DropTree& drop,
                                std::string_view purpose) {
  absl::StatusOr<Json> document = base::ParseJson(response.body, "the body", drop);
  if (!document.ok()) return Undecodable(purpose, base::Message(document.status()));
  if (!document->is_object()) return Undecodable(purpose, "it is not a JSON object");
  return document;
}

}  // namespace

absl::StatusOr<Observed> DecodeObject(const http::HttpResponse& response,
                                      std::string_view purpose) {
  const base::DropTree drop = {"metadata.managedFields"};
  NH_ASSIGN_OR_RETURN(Json object, ReadObject(response, drop, purpose));
  return Observed{std::move(object), http::ServerDate(response)};
}

absl::StatusOr<Page> DecodePage(const http::HttpResponse& response,
                                const std::vector<std::string>& drop, std::string_view purpose) {
  base::DropTree tree = {"items.metadata.managedFields"};
  for (const std::string& path : drop) tree.Add("items." + path);
  NH_ASSIGN_OR_RETURN(Json list, ReadObject(response, tree, purpose));

  const auto items = list.find("items");
  if (items == list.end()) return Undecodable(purpose, "it is not a list");
  Page page;
  // Go encodes a nil slice as null.
  if (items->is_array()) {
    page.items = std::move(*items->get_ptr<Json::array_t*>());
  } else if (!items->is_null()) {
    return Undecodable(purpose, "its items are not an array");
  }
  if (!std::all_of(page.items.begin(), page.items.end(),
                   [](const Json& item) { return item.is_object(); })) {
    return Undecodable(purpose, "an item is not an object");
  }
  if (const Json* metadata = base::FindMember(list, "metadata"); metadata != nullptr) {
    page.resource_version = base::GetString(*metadata, "resourceVersion");
    page.continue_token = base::GetString(*metadata, "continue");
    // If an unreadable token were taken for the last page, objects would seem to be deleted.
    const Json* token = base::FindMember(*metadata, "continue");
    if (token != nullptr && !token->is_string() && !token->is_null()) {
      return Undecodable(purpose, "its continue token is not a string");
    }
  }
  return page;
}

std::string NameOf(const Json& object) {
  const Json* name = base::FindPath(object, {"metadata", "name"});
  return name != nullptr && name->is_string() ? name->get<std::string>() : std::string();
}

std::string ResourceVersionOf(const Json& object) {
  const Json* version = base::FindPath(object, {"metadata", "resourceVersion"});
  return version != nullptr && version->is_string() ? version->get<std::string>() : std::string();
}

}  // namespace nomad_harvester::kube
