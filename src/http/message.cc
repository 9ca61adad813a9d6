// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/message.h"

#include <algorithm>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/http/transport.h"

namespace nomad_harvester::http {

std::string_view MethodName(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kPatch:
      return "PATCH";
    case Method::kDelete:
      return "DELETE";
  }
  return "GET";
}

void Headers::Add(std::string_view name, std::string_view value) {
  fields_.emplace_back(name, value);
}

void Headers::Set(std::string_view name, std::string_view value) {
  // Copies first: the arguments may point into the fields that are erased.
  std::pair<std::string, std::string> field(name, value);
  fields_.erase(std::remove_if(fields_.begin(), fields_.end(),
                               [&field](const auto& other) {
                                 return base::EqualsIgnoreCase(other.first, field.first);
                               }),
                fields_.end());
  fields_.push_back(std::move(field));
}

std::optional<std::string> Headers::Find(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (base::EqualsIgnoreCase(key, name)) return value;
  }
  return std::nullopt;
}

std::optional<base::WallTime> ServerDate(const HttpResponse& response) {
  const std::optional<std::string> text = response.headers.Find("Date");
  if (!text) return std::nullopt;
  const absl::StatusOr<base::WallTime> time = base::ParseHttpDate(*text);
  if (!time.ok()) return std::nullopt;
  return *time;
}

absl::StatusOr<HttpResponse> SendReading(HttpTransport& transport, const runtime::Context& context,
                                         HttpRequest request, const BodyReader& reader) {
  request.reader = &reader;
  reader.begin();
  absl::StatusOr<HttpResponse> response = transport.Send(context, request);
  if (!response.ok() || response->status < 200 || response->status > 299) return response;
  if (response->body.empty()) return response;
  reader.begin();
  reader.take(response->body);
  response->body.clear();
  return response;
}

}  // namespace nomad_harvester::http
