// SPDX-License-Identifier: Apache-2.0
// One request and its reply on leased handles.
#ifndef NOMAD_HARVESTER_SRC_HTTP_CURL_EXCHANGE_H_
#define NOMAD_HARVESTER_SRC_HTTP_CURL_EXCHANGE_H_

#include <array>
#include <cstddef>
#include <string_view>

#include "nomad_harvester/http/message.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"
#include "curl_handles.h"
#include "endpoint.h"

namespace nomad_harvester::http {

// Used once, by one thread. All arguments must outlive it.
class CurlExchange {
 public:
  CurlExchange(const Endpoint& endpoint, const CurlHandles& handles, const HttpRequest& request);
  ~CurlExchange();
  CurlExchange(const CurlExchange&) = delete;
  CurlExchange& operator=(const CurlExchange&) = delete;

  absl::StatusOr<HttpResponse> Run(const runtime::Context& context);

 private:
  template <typename T>
  void Set(CURLoption option, T value);
  void SetBlob(CURLoption option, const std::string& text);
  void SetConnection();
  void SetTls();
  void SetProxy();
  void SetRequest();
  void SetHeaders();
  void SetCallbacks();

  // The outcome of the transfer; an error if the context ended first.
  absl::StatusOr<CURLcode> Drive(const runtime::Context& context);
  absl::Status Failure(CURLcode code);
  bool IsConnected() const;

  static std::size_t OnHeader(char* data, std::size_t size, std::size_t count, void* self) noexcept;
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self) noexcept;
  bool TakeHeader(std::string_view line);
  bool TakeBody(std::string_view piece);

  const Endpoint& endpoint_;
  const CurlHandles& handles_;
  const HttpRequest& request_;
  CurlList headers_;
  CurlList connect_to_;
  CURLcode set_result_ = CURLE_OK;
  std::array<char, CURL_ERROR_SIZE> error_{};

  HttpResponse response_;
  bool in_headers_ = false;
  std::size_t header_bytes_ = 0;
  bool too_large_ = false;
};

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_CURL_EXCHANGE_H_
