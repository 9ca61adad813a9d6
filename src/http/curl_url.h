// SPDX-License-Identifier: Apache-2.0
// libcurl's URL parser.
#ifndef NOMAD_HARVESTER_SRC_HTTP_CURL_URL_H_
#define NOMAD_HARVESTER_SRC_HTTP_CURL_URL_H_

#include <cstddef>
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

// Returns what stands between "://" and the path, query or fragment, as it was written. Requires
// "://".
inline std::string AuthorityOf(const std::string& text) {
  const std::size_t begin = text.find("://") + 3;
  return text.substr(begin, text.find_first_of("/?#", begin) - begin);
}

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_CURL_URL_H_
