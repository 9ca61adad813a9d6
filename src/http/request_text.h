// SPDX-License-Identifier: Apache-2.0
// How a request is called in errors and logs.
#ifndef NOMAD_HARVESTER_SRC_HTTP_REQUEST_TEXT_H_
#define NOMAD_HARVESTER_SRC_HTTP_REQUEST_TEXT_H_

#include <string>

#include "nomad_harvester/http/message.h"

namespace nomad_harvester::http {

// The purpose; without one, method and path. The query stays out: it may hold a token.
inline std::string RequestText(const HttpRequest& request) {
  if (!request.purpose.empty()) return request.purpose;
  return std::string(MethodName(request.method)) + " " +
         request.target.substr(0, request.target.find('?'));
}

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_REQUEST_TEXT_H_
