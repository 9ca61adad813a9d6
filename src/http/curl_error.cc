// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/curl_transport.h"

#include "curl_exchange.h"
#include "request_text.h"

namespace nomad_harvester::http {
namespace {

// The key of the status payload that holds a TlsTrouble.
constexpr char kTlsTrouble[] = "nomad-harvester/tls-trouble";

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// True if the connection was lost during the handshake; false if the handshake was rejected.
// OpenSSL reports a lost connection as SSL_ERROR_SYSCALL or "unexpected eof".
bool HandshakeWasCut(std::string_view text) {
  return Contains(text, "SSL_ERROR_SYSCALL") || Contains(text, "unexpected eof") ||
         Contains(text, "reset by peer") || Contains(text, "SSL connection timeout");
}

// With TLS 1.3 a server verifies the client's certificate after the handshake, so its alert arrives
// instead of the reply. OpenSSL's names of such alerts (ssl/ssl_stat.c in openssl/openssl): "tlsv13
// alert certificate required", "sslv3 alert bad certificate", "tlsv1 alert unknown ca" …
bool IsAlertAboutCertificate(std::string_view text) {
  return Contains(text, " alert ") &&
         (Contains(text, "certificate") || Contains(text, "unknown ca") ||
          Contains(text, "access denied") || Contains(text, "handshake failure"));
}

bool IsTlsRefusal(const CurlFailure& failure) {
  switch (failure.code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CLIENTCERT:
      return true;
    case CURLE_SSL_CONNECT_ERROR:
      return !HandshakeWasCut(failure.text);
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
      return IsAlertAboutCertificate(failure.text);
    default:
      return false;
  }
}

// A server that speaks TLS answers a plain request by closing the connection, or by an alert.
bool MayBeTlsPort(const CurlFailure& failure) {
  return failure.peer.starts_with("http://") &&
         (failure.code == CURLE_GOT_NOTHING || failure.code == CURLE_UNSUPPORTED_PROTOCOL);
}

struct TlsAdvice {
  TlsTrouble trouble;
  std::string text;
};

// OpenSSL's text for what CheckCertificate of curl_exchange.cc refuses.
constexpr char kNoServerName[] = "application verification failure";

TlsAdvice AdviceOf(const CurlFailure& failure) {
  if (Contains(failure.text, kNoServerName)) {
    return {TlsTrouble::kServer,
            "the server's certificate has no name in subjectAltName, and its common name does not "
            "count: have it issued again with \"" +
                failure.server_name + "\" in subjectAltName"};
  }
  switch (failure.code) {
    case CURLE_PEER_FAILED_VERIFICATION:
      // OpenSSL's texts (openssl/openssl:crypto/x509/x509_txt.c).
      if (Contains(failure.text, "has expired") || Contains(failure.text, "not yet valid")) {
        return {TlsTrouble::kTime,
                "renew the server's certificate, unless this machine's clock is wrong"};
      }
      return {TlsTrouble::kServer,
              "check the CA certificate and the TLS server name (the server's certificate must be "
              "issued for \"" +
                  failure.server_name + "\")"};
    case CURLE_SSL_CACERT_BADFILE:
      return {TlsTrouble::kServer, "check the CA certificate"};
    case CURLE_SSL_CERTPROBLEM:
      return {TlsTrouble::kClient, "check the client certificate and its key"};
    default:
      break;
  }
  if (IsAlertAboutCertificate(failure.text)) {
    return {TlsTrouble::kClient,
            "the server rejected the client: check the client certificate and its key"};
  }
  // OpenSSL says this when it reads a reply in plain HTTP as a TLS record.
  if (Contains(failure.text, "wrong version number") ||
      Contains(failure.text, "packet length too long")) {
    return {TlsTrouble::kProtocol,
            "this port does not speak TLS: write http://, or the port that speaks TLS"};
  }
  return {TlsTrouble::kProtocol,
          "check that the server speaks TLS 1.2 or later on this port, and the TLS server name"};
}

absl::Status TlsRefusal(const CurlFailure& failure, const std::string& text) {
  const TlsAdvice advice = AdviceOf(failure);
  absl::Status status = base::FailedPrecondition("TLS with " + failure.peer + " failed: " + text +
                                                 "; " + advice.text);
  base::SetPayload(kTlsTrouble, std::to_string(static_cast<int>(advice.trouble)), &status);
  return status;
}

// Replaces libcurl's texts about a proxy, because they quote its address as the operator wrote it
// (curl/curl:lib/url.c, parse_proxy), and do not say whose name or reply they mean.
std::string WhyNotConnected(const CurlFailure& failure, const std::string& text) {
  if (failure.proxy.empty()) {
    // libcurl's text would repeat the host and append the attempt's milliseconds.
    return failure.code == CURLE_COULDNT_CONNECT && failure.os_error != 0
               ? std::generic_category().message(static_cast<int>(failure.os_error))
               : text;
  }
  const std::string proxy = "the proxy " + failure.proxy;
  if (failure.code == CURLE_COULDNT_RESOLVE_PROXY) return "the name of " + proxy + " is unknown";
  if (failure.connect_status == 407) {
    return proxy + " replied HTTP 407: check the user name and password in its address";
  }
  if (failure.connect_status >= 300) {
    return proxy + " refused the tunnel with HTTP " + std::to_string(failure.connect_status);
  }
  return "through " + proxy + ": " + text;
}

}  // namespace

std::optional<TlsTrouble> TlsTroubleOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kTlsTrouble);
  if (!payload.has_value()) return std::nullopt;
  return static_cast<TlsTrouble>(std::string(*payload).front() - '0');
}

absl::Status CurlErrorStatus(const CurlFailure& failure) {
  std::string text =
      CleanErrorText(failure.text.empty() ? curl_easy_strerror(failure.code) : failure.text);
  if (MayBeTlsPort(failure)) text += "; if this port speaks TLS, write https://";
  if (IsTlsRefusal(failure)) return TlsRefusal(failure, text);
  switch (failure.code) {
    case CURLE_FILESIZE_EXCEEDED:
      return base::MakeStatus(absl::StatusCode::kResourceExhausted,
                              "the reply of " + failure.peer + " is too large: " + text);
    case CURLE_URL_MALFORMAT:
      return base::InvalidArgument("malformed request to " + failure.peer + ": " + text);
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
      return base::Unavailable("the reply of " + failure.peer + " was cut short: " + text);
    case CURLE_OPERATION_TIMEDOUT:
      // Only connecting has a time limit in libcurl; the request is limited by its context.
      return base::Unavailable(
          TimedOutText(failure.connect_timeout, "connecting to " + failure.peer) + ": " + text);
    default:
      break;
  }
  if (!failure.connected) {
    return base::Unavailable("cannot connect to " + failure.peer + ": " +
                             WhyNotConnected(failure, text));
  }
  return base::Unavailable("the connection to " + failure.peer + " was lost: " + text);
}

}  // namespace nomad_harvester::http
