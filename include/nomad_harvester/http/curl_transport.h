// SPDX-License-Identifier: Apache-2.0
// HTTP over libcurl.
#ifndef NOMAD_HARVESTER_HTTP_CURL_TRANSPORT_H_
#define NOMAD_HARVESTER_HTTP_CURL_TRANSPORT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/http/transport.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::http {

// For https addresses only; other addresses ignore it.
struct TlsOptions {
  std::string ca_pem{};  // PEM certificates, concatenated; empty: those of LoadSystemCas()
  std::string client_cert_pem{};
  base::Secret client_key_pem{};
  std::string server_name{};  // for SNI and verification, instead of the URL's host
  bool skip_verify = false;
};

struct CurlOptions {
  // "https://host[:port][/prefix]", "http://…", or "unix:///path/to.sock". A path prefix is kept.
  std::string base_url{};
  TlsOptions tls{};
  // http://, https:// or socks5://, with or without user name and password; overrides NO_PROXY.
  // Empty: use the environment's proxy, except for hosts in NO_PROXY and for loopback addresses.
  // Unix sockets never use a proxy.
  std::string proxy_url{};
  std::string basic_auth_user{};  // may be empty even with a password
  base::Secret basic_auth_password{};
  std::size_t max_response_bytes = 64U * 1024U * 1024U;
  base::Duration connect_timeout = std::chrono::seconds(5);
};

// HTTP/1.1, keep-alive, gzip; http and https only; never follows redirects; TLS 1.2 or later. A
// request in flight is cancelled within a millisecond. INVALID_ARGUMENT names the invalid option,
// or says why the client's certificate and key cannot work; the factory does not connect. The
// transport is thread-safe. Each request in flight has its own connection and never waits for
// another one. Idle connections are kept until the server closes them, so there are never more
// connections than the highest number of requests that were in flight at once, which the FifoSlots
// of RetryOptions limit.
//
// Time limits use the system clock; a context with a fake clock is still cancelled immediately. A
// request with Idempotency::kOnce uses a new connection. The first call makes the process ignore
// SIGPIPE, unless a handler is installed, because OpenSSL writes to broken connections.
absl::StatusOr<std::shared_ptr<HttpTransport>> MakeCurlTransport(CurlOptions options);

// The part of TLS that failed. TlsTroubleOf extracts it from a request's FAILED_PRECONDITION;
// nullopt: the error has another cause.
enum class TlsTrouble {
  kServer,   // its certificate is untrusted or has another name; or the CAs are unusable
  kClient,   // our certificate and key are unusable, or the server rejects them
  kTime,     // its certificate has expired or is not valid yet, or the clock is wrong
  kProtocol  // no TLS, or no version that both support
};
std::optional<TlsTrouble> TlsTroubleOf(const absl::Status& status);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_CURL_TRANSPORT_H_
