// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/client.h"

#include "decode.h"
#include "exchange.h"
#include "paths.h"

namespace nomad_harvester::kube {
namespace {

// A continue token expires with etcd's compaction, by default after five minutes. A list that has
// been restarted this often is too slow to ever complete.
constexpr int kMaxRestarts = 3;
// Enough for a million objects in pages of 100: beyond that the server does not end its list.
constexpr int kMaxPages = 10'000;

class ListReader {
 public:
  ListReader(http::HttpTransport& transport, const runtime::Context& context, std::string path,
             std::string purpose, const ListOptions& options)
      : transport_(transport),
        context_(context),
        path_(std::move(path)),
        purpose_(std::move(purpose)),
        options_(options) {}

  absl::StatusOr<ObservedList> Read() {
    int requests = 0;
    for (int restarts = 0;; ++restarts) {
      absl::StatusOr<ObservedList> list = ReadOnce(requests);
      if (list.ok() || !absl::IsOutOfRange(list.status()) || restarts == kMaxRestarts) return list;
    }
  }

 private:
  absl::StatusOr<ObservedList> ReadOnce(int& requests) {
    ObservedList list;
    std::set<std::string> tokens;
    std::string token;
    for (int pages = 0; pages < kMaxPages; ++pages) {
      NH_ASSIGN_OR_RETURN(const http::HttpResponse response,
                          Exchange(transport_, context_, PageRequest(token, requests)));
      NH_ASSIGN_OR_RETURN(Page page, DecodePage(response, options_.drop, purpose_));
      if (pages == 0) {
        list.resource_version = page.resource_version;
        list.server_time = http::ServerDate(response);
      }
      list.items.insert(list.items.end(), std::make_move_iterator(page.items.begin()),
                        std::make_move_iterator(page.items.end()));
      if (page.continue_token.empty()) {
        list.requests = requests;
        return list;
      }
      token = page.continue_token;
      if (!tokens.insert(token).second) {
        return base::Internal(purpose_ + ": the server repeats a continue token");
      }
    }
    return base::Internal(purpose_ + ": the server never returns a last page");
  }

  http::HttpRequest PageRequest(const std::string& token, int& requests) const {
    ++requests;
    http::HttpRequest request;
    request.target =
        path_ + QueryString({{"limit", std::to_string(std::max(1, options_.page_size))},
                             {"continue", token},
                             {"labelSelector", options_.label_selector},
                             {"fieldSelector", options_.field_selector}});
    request.purpose = purpose_;
    return request;
  }

  http::HttpTransport& transport_;
  const runtime::Context& context_;
  const std::string path_;
  const std::string purpose_;
  const ListOptions& options_;
};

}  // namespace

absl::StatusOr<ObservedList> KubeClient::List(const runtime::Context& context,
                                              const ResourceType& type, const std::string& ns,
                                              const ListOptions& options) const {
  NH_ASSIGN_OR_RETURN(std::string path, CollectionPath(type, ns));
  return ListReader(*transport_, context, std::move(path), "list " + DescribeCollection(type, ns),
                    options)
      .Read();
}

}  // namespace nomad_harvester::kube
