// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/decorators.h"

namespace nomad_harvester::http {
namespace {

constexpr std::size_t kMaxTokenBytes = 64UL * 1024;

class StaticToken final : public TokenSource {
 public:
  explicit StaticToken(base::Secret token) : token_(std::move(token)) {}
  absl::StatusOr<base::Secret> Token() override { return token_; }
  bool Refresh() override { return false; }

 private:
  const base::Secret token_;
};

absl::StatusOr<base::Secret> ReadToken(const std::string& path) {
  NH_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxTokenBytes));
  const std::string_view token = base::TrimAsciiSpace(text);
  if (token.empty()) return base::FailedPrecondition("it is empty");
  // A header field cannot hold other characters.
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (!printable) return base::FailedPrecondition("it must contain exactly one token, on one line");
  return base::Secret(std::string(token));
}

class FileToken final : public TokenSource {
 public:
  explicit FileToken(std::string path) : path_(std::move(path)) {}

  absl::StatusOr<base::Secret> Token() override {
    // The stamp is read before the file, so that the next call detects a change in between.
    const std::optional<base::FileStamp> stamp = base::StampFile(path_);
    {
      const base::MutexLock lock(mutex_);
      if (!token_.empty() && stamp && stamp == stamp_) return token_;
    }
    return Read(stamp);
  }

  bool Refresh() override {
    base::Secret before;
    {
      const base::MutexLock lock(mutex_);
      before = token_;
    }
    const absl::StatusOr<base::Secret> after = Read(base::StampFile(path_));
    return after.ok() && *after != before;
  }

 private:
  absl::StatusOr<base::Secret> Read(const std::optional<base::FileStamp>& stamp) {
    absl::StatusOr<base::Secret> read = ReadToken(path_);
    const base::MutexLock lock(mutex_);
    if (read.ok()) {
      token_ = *read;
      stamp_ = stamp;
      return token_;
    }
    if (!token_.empty()) return token_;
    return base::FailedPrecondition("cannot use the token file " + path_ + ": " +
                                    base::Message(read.status()));
  }

  const std::string path_;
  base::Mutex mutex_;
  base::Secret token_ NH_GUARDED_BY(mutex_);
  std::optional<base::FileStamp> stamp_ NH_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<TokenSource> MakeStaticToken(base::Secret token) {
  return std::make_shared<StaticToken>(std::move(token));
}

std::shared_ptr<TokenSource> MakeFileToken(std::string path) {
  return std::make_shared<FileToken>(std::move(path));
}

}  // namespace nomad_harvester::http
