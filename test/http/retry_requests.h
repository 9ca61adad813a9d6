// SPDX-License-Identifier: Apache-2.0
// What the tests of retries and of slots share.
#ifndef NOMAD_HARVESTER_TEST_HTTP_RETRY_REQUESTS_H_
#define NOMAD_HARVESTER_TEST_HTTP_RETRY_REQUESTS_H_

#include <cstddef>
#include <thread>

#include "nomad_harvester/http/message.h"
#include "nomad_harvester/http/retry.h"

namespace nomad_harvester::http {

inline HttpRequest WriteRequest() {
  HttpRequest request;
  request.method = Method::kPut;
  request.effect = Effect::kWrite;
  request.purpose = "purge a node";
  return request;
}

// Returns when `count` callers wait; the test's time limit is the protection against hangs.
inline void AwaitWaiting(const FifoSlots& slots, std::size_t count) {
  while (slots.waiting() < count) std::this_thread::yield();
}

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_TEST_HTTP_RETRY_REQUESTS_H_
