// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/decorators.h"

namespace nomad_harvester::http {
namespace {

class TokenTransport final : public HttpTransport {
 public:
  TokenTransport(std::shared_ptr<HttpTransport> inner, std::shared_ptr<TokenSource> source,
                 TokenHeader header)
      : inner_(std::move(inner)), source_(std::move(source)), header_(std::move(header)) {}

  absl::StatusOr<HttpResponse> Send(const runtime::Context& context,
                                    const HttpRequest& request) override {
    NH_ASSIGN_OR_RETURN(const base::Secret token, source_->Token());
    absl::StatusOr<HttpResponse> outcome = inner_->Send(context, Signed(request, token));
    if (!outcome.ok() || !Refused(outcome->status)) return outcome;

    // Another thread may have refreshed the source in the meantime, so that Refresh() returns
    // false. Therefore compare the token with the rejected one.
    source_->Refresh();
    const absl::StatusOr<base::Secret> renewed = source_->Token();
    if (!renewed.ok() || *renewed == token) return outcome;
    // The server did not act on the request, so any request may be sent again. The write permits
    // apply to that attempt, too.
    if (request.effect == Effect::kWrite) NH_RETURN_IF_ERROR(context.CheckWrite());
    return inner_->Send(context, Signed(request, *renewed));
  }

 private:
  bool Refused(int status) const {
    return status == 401 || (status == 403 && header_.refresh_on_403);
  }

  HttpRequest Signed(const HttpRequest& request, const base::Secret& token) const {
    HttpRequest with_token = request;
    if (!token.empty()) with_token.headers.Set(header_.name, header_.prefix + token.Reveal());
    return with_token;
  }

  const std::shared_ptr<HttpTransport> inner_;
  const std::shared_ptr<TokenSource> source_;
  const TokenHeader header_;
};

}  // namespace

std::shared_ptr<HttpTransport> WithToken(std::shared_ptr<HttpTransport> inner,
                                         std::shared_ptr<TokenSource> source, TokenHeader header) {
  return std::make_shared<TokenTransport>(std::move(inner), std::move(source), std::move(header));
}

}  // namespace nomad_harvester::http
