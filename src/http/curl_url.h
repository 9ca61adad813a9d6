// SPDX-License-Identifier: Apache-2.0
// libcurl's URL parser.
#ifndef NOMAD_HARVESTER_SRC_HTTP_CURL_URL_H_
#define NOMAD_HARVESTER_SRC_HTTP_CURL_URL_H_

#include <memory>
#include <string>

#include <curl/curl.h>

namespace nomad_harvester::http {

using UrlHandle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// Returns an empty string if the URL lacks the part, or if it cannot be expressed in the form of
// `flags`.
inline std::string UrlPart(const UrlHandle& url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK || text == nullptr) return "";
  std::string result(text);
  curl_free(text);
  return result;
}

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_CURL_URL_H_
