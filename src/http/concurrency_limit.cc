#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/decorators.h"

#include "fifo_slots.h"
#include "request_text.h"

namespace nomad_harvester::http {
namespace {

class LimitedTransport final : public HttpTransport {
 public:
  LimitedTransport(std::shared_ptr<HttpTransport> inner, std::size_t limit)
      : inner_(std::move(inner)), slots_(limit) {}

  absl::StatusOr<HttpResponse> Send(const runtime::Context& context,
                                    const HttpRequest& request) override {
    if (absl::Status status = slots_.Acquire(context); !status.ok()) {
      return base::Annotate(status, RequestText(request) + ": waiting for other requests");
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
