// SPDX-License-Identifier: Apache-2.0
// Ownership of libcurl's objects.
#ifndef NOMAD_HARVESTER_SRC_HTTP_CURL_HANDLES_H_
#define NOMAD_HARVESTER_SRC_HTTP_CURL_HANDLES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <curl/curl.h>

#include "nomad_harvester/base/mutex.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::http {

// libcurl's one-time initialisation. Thread-safe; every factory calls it. It also makes the process
// ignore SIGPIPE, which a broken TLS connection would raise.
void InitCurl();

struct EasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct MultiDeleter {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};

class CurlList {
 public:
  CurlList() = default;
  ~CurlList() { curl_slist_free_all(list_); }
  CurlList(const CurlList&) = delete;
  CurlList& operator=(const CurlList&) = delete;
  // False: out of memory.
  bool Append(const std::string& text);
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

// The handles of one request in flight: a multi handle, because only that can be woken from another
// thread, and its easy handle. The connection lives in the multi handle.
struct CurlHandles {
  std::unique_ptr<CURLM, MultiDeleter> multi;
  std::unique_ptr<CURL, EasyDeleter> easy;
};

// Keeps handles and their connections for reuse. Take() prefers the most recently used one, so that
// few concurrent requests need few connections. Thread-safe; never blocks.
class CurlPool {
 public:
  class Lease {
   public:
    Lease(CurlPool& pool, std::unique_ptr<CurlHandles> handles)
        : pool_(&pool), handles_(std::move(handles)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    const CurlHandles& operator*() const { return *handles_; }

   private:
    CurlPool* pool_;
    std::unique_ptr<CurlHandles> handles_;
  };
  // UNAVAILABLE: out of memory.
  absl::StatusOr<Lease> Take();

 private:
  base::Mutex mutex_;
  std::vector<std::unique_ptr<CurlHandles>> idle_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_CURL_HANDLES_H_
