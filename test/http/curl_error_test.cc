// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/curl_transport.h"

#include "curl_exchange.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct CurlErrorRow {
  std::string name;
  CURLcode code;
  bool connected;
  std::string text;
  StatusCode want;
  std::string says;
  std::optional<TlsTrouble> trouble = std::nullopt;
};

class CurlErrorTable : public testing::TestWithParam<CurlErrorRow> {};

TEST_P(CurlErrorTable, is_reported_as_documented) {
  const CurlErrorRow& row = GetParam();
  CurlFailure failure;
  failure.code = row.code;
  failure.text = row.text;
  failure.peer = "https://h:443";
  failure.server_name = "vip.test";
  failure.connected = row.connected;
  failure.connect_timeout = std::chrono::seconds(5);
  const absl::Status status = base::Annotate(CurlErrorStatus(failure), "a request");
  EXPECT_THAT(status, StatusIs(row.want, AllOf(HasSubstr("https://h:443"), HasSubstr(row.says))));
  EXPECT_EQ(TlsTroubleOf(status), row.trouble);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, CurlErrorTable,
    testing::Values(
        CurlErrorRow{"name", CURLE_COULDNT_RESOLVE_HOST, false, "Could not resolve host: h",
                     StatusCode::kUnavailable,
                     "cannot connect to https://h:443: Could not resolve"},
        CurlErrorRow{"connect", CURLE_COULDNT_CONNECT, false, "", StatusCode::kUnavailable,
                     "cannot connect to https://h:443"},
        CurlErrorRow{"connect_time", CURLE_OPERATION_TIMEDOUT, false, "Resolving timed out",
                     StatusCode::kUnavailable,
                     "timed out after 5s connecting to https://h:443: Resolving timed out"},
        CurlErrorRow{"proxy", CURLE_PROXY, false, "", StatusCode::kUnavailable, "cannot connect"},
        CurlErrorRow{"tunnel", CURLE_RECV_ERROR, false, "CONNECT tunnel failed, response 407",
                     StatusCode::kUnavailable,
                     "cannot connect to https://h:443: CONNECT tunnel failed"},
        CurlErrorRow{"reset", CURLE_RECV_ERROR, true, "Recv failure: Connection reset by peer",
                     StatusCode::kUnavailable, "was lost"},
        CurlErrorRow{"send", CURLE_SEND_ERROR, true, "", StatusCode::kUnavailable, "was lost"},
        CurlErrorRow{"nothing", CURLE_GOT_NOTHING, true, "", StatusCode::kUnavailable, "cut short"},
        CurlErrorRow{"partial", CURLE_PARTIAL_FILE, true, "", StatusCode::kUnavailable,
                     "cut short"},
        CurlErrorRow{"encoding", CURLE_BAD_CONTENT_ENCODING, true, "", StatusCode::kUnavailable,
                     "was lost"},
        CurlErrorRow{"not_http", CURLE_UNSUPPORTED_PROTOCOL, true,
                     "Received HTTP/0.9 when not allowed", StatusCode::kUnavailable, "HTTP/0.9"},
        CurlErrorRow{"large", CURLE_FILESIZE_EXCEEDED, true, "", StatusCode::kResourceExhausted,
                     "too large"},
        CurlErrorRow{"url", CURLE_URL_MALFORMAT, false, "", StatusCode::kInvalidArgument,
                     "malformed"},
        CurlErrorRow{"verification", CURLE_PEER_FAILED_VERIFICATION, false,
                     "self-signed certificate", StatusCode::kFailedPrecondition,
                     "CA certificate and the TLS server name", TlsTrouble::kServer},
        CurlErrorRow{"verification_name", CURLE_PEER_FAILED_VERIFICATION, false, "no match",
                     StatusCode::kFailedPrecondition, "\"vip.test\"", TlsTrouble::kServer},
        CurlErrorRow{"expired", CURLE_PEER_FAILED_VERIFICATION, false,
                     "SSL certificate problem: certificate has expired",
                     StatusCode::kFailedPrecondition, "renew the server's certificate",
                     TlsTrouble::kTime},
        CurlErrorRow{"not_yet_valid", CURLE_PEER_FAILED_VERIFICATION, false,
                     "SSL certificate problem: certificate is not yet valid",
                     StatusCode::kFailedPrecondition, "clock is wrong", TlsTrouble::kTime},
        CurlErrorRow{"ca", CURLE_SSL_CACERT_BADFILE, false, "", StatusCode::kFailedPrecondition,
                     "CA certificate", TlsTrouble::kServer},
        CurlErrorRow{"client_certificate", CURLE_SSL_CERTPROBLEM, false, "",
                     StatusCode::kFailedPrecondition, "client certificate and its key",
                     TlsTrouble::kClient},
        CurlErrorRow{
            "alert_after_handshake", CURLE_RECV_ERROR, true,
            "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required",
            StatusCode::kFailedPrecondition, "rejected the client", TlsTrouble::kClient},
        CurlErrorRow{"alert_in_handshake", CURLE_SSL_CONNECT_ERROR, false,
                     "error:0A000412:SSL routines::sslv3 alert bad certificate",
                     StatusCode::kFailedPrecondition, "rejected the client", TlsTrouble::kClient},
        CurlErrorRow{"no_tls", CURLE_SSL_CONNECT_ERROR, false,
                     "error:0A00010B:SSL routines::wrong version number",
                     StatusCode::kFailedPrecondition, "does not speak TLS: write http://",
                     TlsTrouble::kProtocol},
        CurlErrorRow{"handshake_cut", CURLE_SSL_CONNECT_ERROR, false,
                     "OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to h:443",
                     StatusCode::kUnavailable, "cannot connect"},
        CurlErrorRow{"handshake_closed", CURLE_SSL_CONNECT_ERROR, false,
                     "error:0A000126:SSL routines::unexpected eof while reading",
                     StatusCode::kUnavailable, "end of stream"}),
    [](const auto& row) { return row.param.name; });

// Texts as of libcurl 7.88.
TEST(CurlError, P3_what_fails_at_a_proxy_is_told_in_our_own_words) {
  CurlFailure failure;
  failure.peer = "https://h:443";
  failure.proxy = "http://proxy:3128";
  failure.code = CURLE_COULDNT_RESOLVE_PROXY;
  failure.text = "Could not resolve proxy: hush";
  EXPECT_THAT(CurlErrorStatus(failure),
              StatusIs(StatusCode::kUnavailable,
                       "cannot connect to https://h:443: the name of the proxy http://proxy:3128 "
                       "is unknown"));
  failure.code = CURLE_RECV_ERROR;
  failure.text = "CONNECT tunnel failed, response 403";
  failure.connect_status = 403;
  EXPECT_THAT(CurlErrorStatus(failure),
              StatusIs(StatusCode::kUnavailable,
                       HasSubstr("the proxy http://proxy:3128 refused the tunnel with HTTP 403")));
}

TEST(CurlError, of_a_plain_request_to_a_port_of_tls_says_to_write_https) {
  CurlFailure failure;
  failure.connected = true;
  failure.peer = "http://h:6443";
  for (const CURLcode code : {CURLE_GOT_NOTHING, CURLE_UNSUPPORTED_PROTOCOL}) {
    failure.code = code;
    EXPECT_THAT(
        CurlErrorStatus(failure),
        StatusIs(StatusCode::kUnavailable, HasSubstr("; if this port speaks TLS, write https://")));
  }
  failure.peer = "https://h:443";
  EXPECT_THAT(CurlErrorStatus(failure),
              StatusIs(StatusCode::kUnavailable, Not(HasSubstr("write https"))));
}

TEST(CurlError, P3_user_and_password_of_an_address_are_not_repeated) {
  CurlFailure failure;
  failure.code = CURLE_COULDNT_CONNECT;
  failure.text = "Unsupported proxy scheme for 'bogus://user:hush@proxy'";
  EXPECT_THAT(CurlErrorStatus(failure), StatusIs(StatusCode::kUnavailable, Not(HasSubstr("hush"))));
}

TEST(CurlError, P4_never_contains_a_phrase_that_restarts_policies) {
  CurlFailure failure;
  failure.code = CURLE_COULDNT_CONNECT;
  failure.text = "connect to ::1 port 1: Connection refused";
  EXPECT_THAT(CurlErrorStatus(failure),
              StatusIs(StatusCode::kUnavailable, Not(HasSubstr("refused"))));
}

}  // namespace
}  // namespace nomad_harvester::http
