// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/decorators.h"

#include <utility>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/connection_parts.h"

#include "request_text.h"

namespace nomad_harvester::http {
namespace {

constexpr std::size_t kMaxTokenBytes = 64UL * 1024;

class StaticToken final : public TokenSource {
 public:
  explicit StaticToken(base::Secret token) : token_(std::move(token)) {}
  absl::StatusOr<base::Secret> Token() override { return token_; }
  void Refresh() override {}

 private:
  const base::Secret token_;
};

absl::StatusOr<base::Secret> ReadToken(const std::string& path) {
  NH_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxTokenBytes));
  const std::string_view token = base::TrimAsciiSpace(text);
  if (token.empty()) return base::FailedPrecondition("it is empty");
  if (!base::IsVisibleAscii(token)) {
    return base::FailedPrecondition("it must contain exactly one token, on one line");
  }
  return base::Secret(std::string(token), path);
}

constexpr char kTokenUnreadable[] = "nomad-harvester/token-unreadable";

class FileToken final : public TokenSource {
 public:
  FileToken(std::string path, base::Secret until_read)
      : path_(std::move(path)), token_(std::move(until_read)) {}

  absl::StatusOr<base::Secret> Token() override {
    // The stamp is read before the file, so that the next call detects a change in between.
    const std::optional<base::FileStamp> stamp = base::StampFile(path_);
    {
      const base::MutexLock lock(mutex_);
      if (!token_.empty() && stamp && stamp == stamp_) return token_;
    }
    return Read(stamp);
  }

  void Refresh() override { Read(base::StampFile(path_)).status().IgnoreError(); }

 private:
  absl::StatusOr<base::Secret> Read(const std::optional<base::FileStamp>& stamp) {
    absl::StatusOr<base::Secret> read = ReadToken(path_);
    const base::MutexLock lock(mutex_);
    if (read.ok()) {
      if (!(token_ == *read)) previous_ = std::exchange(token_, *read);
      stamp_ = stamp;
      return token_;
    }
    if (!token_.empty()) return token_;
    absl::Status unreadable = base::FailedPrecondition("cannot use the token file " + path_ + ": " +
                                                       base::Message(read.status()));
    base::SetPayload(kTokenUnreadable, path_, &unreadable);
    return unreadable;
  }

  const std::string path_;
  base::Mutex mutex_;
  base::Secret token_ NH_GUARDED_BY(mutex_);
  // Kept so that it is recognised in the text of a late reply (rule P3).
  base::Secret previous_ NH_GUARDED_BY(mutex_);
  std::optional<base::FileStamp> stamp_ NH_GUARDED_BY(mutex_);
};

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

    // Another thread may have refreshed the source meanwhile. The request is worth repeating only
    // if the token now differs from the rejected one.
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

class ObservedTransport final : public HttpTransport {
 public:
  ObservedTransport(std::shared_ptr<HttpTransport> inner, std::string system, log::Logger logger,
                    std::shared_ptr<metrics::Sink> sink)
      : inner_(std::move(inner)),
        system_(std::move(system)),
        logger_(std::move(logger)),
        sink_(std::move(sink)) {}

  absl::StatusOr<HttpResponse> Send(const runtime::Context& context,
                                    const HttpRequest& request) override {
    const base::MonoTime begin = context.clock().Now();
    absl::StatusOr<HttpResponse> outcome = inner_->Send(context, request);
    const base::Duration duration = context.clock().Now() - begin;
    if (sink_ != nullptr) {
      sink_->Observe(metrics::Metric::kApiRequest, {system_, VerbOf(request), CodeOf(outcome)},
                     duration);
    }
    Log(request, outcome, duration);
    return outcome;
  }

 private:
  // A blocking query gets its own verb, because its waiting time is not latency.
  static std::string VerbOf(const HttpRequest& request) {
    return request.server_wait > base::Duration::zero()
               ? "watch"
               : base::AsciiLower(std::string(MethodName(request.method)));
  }
  static std::string CodeOf(const absl::StatusOr<HttpResponse>& outcome) {
    return outcome.ok() ? std::to_string(outcome->status) : "none";
  }
  void Log(const HttpRequest& request, const absl::StatusOr<HttpResponse>& outcome,
           base::Duration duration) const {
    // Every tick causes successful reads, so they are logged at TRACE.
    const bool is_routine =
        request.effect == Effect::kRead && outcome.ok() && outcome->is_success();
    const log::Level level = is_routine ? log::Level::kTrace : log::Level::kDebug;
    if (!logger_.Enabled(level)) return;
    const log::Field result = outcome.ok() ? log::Field("status", outcome->status)
                                           : log::Field("error", outcome.status());
    logger_.Log(level, "HTTP request",
                {{"method", MethodName(request.method)},
                 {"target", RedactTarget(request.target)},
                 {"purpose", request.purpose},
                 {"duration", duration},
                 result});
  }

  const std::shared_ptr<HttpTransport> inner_;
  const std::string system_;
  const log::Logger logger_;
  const std::shared_ptr<metrics::Sink> sink_;
};

}  // namespace

std::shared_ptr<TokenSource> MakeStaticToken(base::Secret token) {
  return std::make_shared<StaticToken>(std::move(token));
}

bool IsTokenUnreadable(const absl::Status& status) {
  return status.GetPayload(kTokenUnreadable).has_value();
}

std::shared_ptr<TokenSource> MakeFileToken(std::string path, base::Secret until_read) {
  auto source = std::make_shared<FileToken>(std::move(path), std::move(until_read));
  source->Refresh();  // so that base::CredentialIn() knows the token before the first request
  return source;
}

std::shared_ptr<HttpTransport> WithToken(std::shared_ptr<HttpTransport> inner,
                                         std::shared_ptr<TokenSource> source, TokenHeader header) {
  return std::make_shared<TokenTransport>(std::move(inner), std::move(source), std::move(header));
}

std::shared_ptr<HttpTransport> WithLogAndMetrics(std::shared_ptr<HttpTransport> inner,
                                                 std::string system, const log::Logger& logger,
                                                 std::shared_ptr<metrics::Sink> sink) {
  log::Logger with_system = logger.With({{"system", system}});
  return std::make_shared<ObservedTransport>(std::move(inner), std::move(system),
                                             std::move(with_system), std::move(sink));
}

}  // namespace nomad_harvester::http
