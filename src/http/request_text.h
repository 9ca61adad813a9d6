// SPDX-License-Identifier: Apache-2.0
// The text for a request in errors and logs.
#ifndef NOMAD_HARVESTER_SRC_HTTP_REQUEST_TEXT_H_
#define NOMAD_HARVESTER_SRC_HTTP_REQUEST_TEXT_H_

#include <string>

#include "nomad_harvester/http/message.h"

namespace nomad_harvester::http {

// The purpose, or else method and path. Without the query, which may hold a token.
inline std::string RequestText(const HttpRequest& request) {
  if (!request.purpose.empty()) return request.purpose;
  return std::string(MethodName(request.method)) + " " +
         request.target.substr(0, request.target.find('?'));
}

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_REQUEST_TEXT_H_
