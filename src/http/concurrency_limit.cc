// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/decorators.h"

#include "fifo_slots.h"
#include "request_text.h"
#include "timed_out.h"

namespace nomad_harvester::http {
namespace {

class LimitedTransport final : public HttpTransport {
 public:
  LimitedTransport(std::shared_ptr<HttpTransport> inner, std::size_t limit)
      : inner_(std::move(inner)), slots_(limit) {}

  absl::StatusOr<HttpResponse> Send(const runtime::Context& context,
                                    const HttpRequest& request) override {
    const base::Duration limit = context.Remaining();
    if (const absl::Status ended = slots_.Acquire(context); !ended.ok()) {
      return base::Annotate(TimedOut(ended, limit, "waiting for other requests"),
                            RequestText(request));
    }
    const SlotLease lease(slots_);
    return inner_->Send(context, request);
  }

 private:
  const std::shared_ptr<HttpTransport> inner_;
  FifoSlots slots_;
};

}  // namespace

std::shared_ptr<HttpTransport> WithConcurrencyLimit(std::shared_ptr<HttpTransport> inner,
                                                    std::size_t limit) {
  return std::make_shared<LimitedTransport>(std::move(inner), limit);
}

}  // namespace nomad_harvester::http
