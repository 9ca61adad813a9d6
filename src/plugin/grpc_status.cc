// SPDX-License-Identifier: Apache-2.0
#include "grpc_status.h"

#include <string>
#include <string_view>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_replace.h"

namespace nomad_harvester::plugin {
namespace {

constexpr std::string_view kShortened = " ... (shortened; the plugin's log has it all)";

std::size_t EncodedSize(char c) { return c >= ' ' && c <= '~' && c != '%' ? 1 : 3; }

}  // namespace

std::string Scrub(std::string_view text) {
  return absl::StrReplaceAll(base::ToAbsl(text),
                             {{" EOF", " end of file"},
                              {"EOF", "EO-F"},
                              {"connection refused", "connection was refused"}});
}

std::size_t EncodedSize(std::string_view text) {
  std::size_t size = 0;
  for (const char c : text) size += EncodedSize(c);
  return size;
}

ErrorText MakeErrorText(std::string_view text) {
  ErrorText result;
  result.text = Scrub(base::EscapeUnseen(base::WithoutSecrets(std::string(text))));
  if (EncodedSize(result.text) <= kMaxEncodedMessage) return result;
  std::size_t room = kMaxEncodedMessage - EncodedSize(kShortened);
  std::size_t end = 0;
  for (; EncodedSize(result.text[end]) <= room; ++end) room -= EncodedSize(result.text[end]);
  result.text.resize(base::Utf8Prefix(result.text, end).size());
  result.text += kShortened;
  result.shortened = true;
  return result;
}

// The two sets of codes have the same numbers.
grpc::StatusCode ToGrpcCode(absl::StatusCode code, Aborted aborted) {
  static_assert(static_cast<int>(absl::StatusCode::kUnauthenticated) ==
                grpc::StatusCode::UNAUTHENTICATED);
  const bool known = code >= absl::StatusCode::kOk && code <= absl::StatusCode::kUnauthenticated &&
                     code != absl::StatusCode::kUnknown &&
                     // UNIMPLEMENTED would mean "no such method" in gRPC.
                     code != absl::StatusCode::kUnimplemented &&
                     (code != absl::StatusCode::kAborted || aborted == Aborted::kPasses);
  return known ? static_cast<grpc::StatusCode>(code) : grpc::StatusCode::INTERNAL;
}

grpc::Status StatusToGrpc(const absl::Status& status, Aborted aborted) {
  if (status.ok()) return grpc::Status::OK;
  return {ToGrpcCode(status.code(), aborted), MakeErrorText(base::ToStd(status.message())).text};
}

}  // namespace nomad_harvester::plugin
