// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/message.h"

#include <array>
#include <cstddef>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/reply_text.h"
#include "nomad_harvester/http/transport.h"

namespace nomad_harvester::http {

std::string_view MethodName(Method method) {
  constexpr std::array<std::string_view, 5> kNames = {"GET", "POST", "PUT", "PATCH", "DELETE"};
  return kNames[static_cast<std::size_t>(method)];
}

void Headers::Add(std::string_view name, std::string_view value) {
  fields_.emplace_back(name, value);
}

void Headers::Set(std::string_view name, std::string_view value) {
  // Copies first: the arguments may point into the fields that are erased.
  std::pair<std::string, std::string> field(name, value);
  std::erase_if(fields_, [&field](const auto& other) {
    return base::EqualsIgnoreCase(other.first, field.first);
  });
  fields_.push_back(std::move(field));
}

std::optional<std::string> Headers::Find(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (base::EqualsIgnoreCase(key, name)) return value;
  }
  return std::nullopt;
}

std::optional<base::WallTime> ServerDate(const HttpResponse& response) {
  return base::ToOptional(base::ParseHttpDate(response.headers.Find("Date").value_or("")));
}

absl::StatusOr<HttpResponse> SendReading(HttpTransport& transport, const runtime::Context& context,
                                         HttpRequest request, base::JsonListReader& list,
                                         std::string_view address_key) {
  request.list = &list;
  list.Begin();
  absl::StatusOr<HttpResponse> response = transport.Send(context, request);
  if (!response.ok() || !response->is_success()) return response;
  if (!response->body.empty()) {
    list.Begin();
    list.Write(response->body);
    response->body.clear();
  }
  const absl::Status read = list.Finish("the reply");
  return read.ok() ? response : Undecodable(request.purpose, *response, read, address_key);
}

}  // namespace nomad_harvester::http
