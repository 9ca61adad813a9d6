// SPDX-License-Identifier: Apache-2.0
#include "curl_handles.h"

#include <csignal>
#include <mutex>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::http {
namespace {

// OpenSSL writes with write(2), and with CURLOPT_NOSIGNAL libcurl leaves SIGPIPE alone. An
// installed handler is kept.
void IgnoreSigpipe() {
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

std::unique_ptr<CurlHandles> MakeHandles() {
  auto handles = std::make_unique<CurlHandles>();
  handles->multi.reset(curl_multi_init());
  handles->easy.reset(curl_easy_init());
  if (handles->multi == nullptr || handles->easy == nullptr) return nullptr;
  curl_multi_setopt(handles->multi.get(), CURLMOPT_MAXCONNECTS, 1L);
  return handles;
}

}  // namespace

void InitCurl() {
  static std::once_flag once;
  std::call_once(once, [] {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    IgnoreSigpipe();
  });
}

bool CurlList::Append(const std::string& text) {
  curl_slist* longer = curl_slist_append(list_, text.c_str());
  if (longer == nullptr) return false;
  list_ = longer;
  return true;
}

absl::StatusOr<CurlPool::Lease> CurlPool::Take() {
  std::unique_ptr<CurlHandles> handles;
  {
    const base::MutexLock lock(mutex_);
    if (!idle_.empty()) {
      handles = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (handles == nullptr) handles = MakeHandles();
  if (handles == nullptr) return base::Unavailable("out of memory for another connection");
  return Lease(*this, std::move(handles));
}

CurlPool::Lease::~Lease() {
  if (handles_ == nullptr) return;  // moved from
  const base::MutexLock lock(pool_->mutex_);
  pool_->idle_.push_back(std::move(handles_));
}

}  // namespace nomad_harvester::http
