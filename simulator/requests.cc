// SPDX-License-Identifier: Apache-2.0
// Handling of a request: counters, faults, refusals, the effect, blocking queries.
#include <algorithm>
#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"

#include "absl/time/time.h"
#include "cluster_impl.h"
#include "kube_reply.h"
#include "request_info.h"

namespace nomad_harvester::simulator {
namespace {

// The fixed form of RFC 9110 5.6.7.
std::string HttpDate(base::WallTime time) {
  return absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::FromChrono(time), absl::UTCTimeZone());
}

http::HttpResponse FaultAnswer(System system, const Fault& fault) {
  http::HttpResponse response;
  if (!fault.body.empty()) {
    response = AnyReply(fault.status, fault.body);
  } else if (fault.status == 429) {
    // kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/server/filters/maxinflight.go, and
    // Nomad's limits.http_max_conns_per_client.
    response = TextReply(429, system == System::kHarvester
                                  ? "Too many requests, please try again later."
                                  : "Your IP is issuing too many concurrent connections, please "
                                    "rate limit your calls");
  } else if (system == System::kHarvester) {
    response =
        StatusReply(fault.status, fault.status == 503 ? "ServiceUnavailable" : "InternalError",
                    "the simulated API server was told to refuse this");
  } else {
    response = TextReply(fault.status, fault.status == 500 ? "No cluster leader" : "refused");
  }
  if (!fault.retry_after.empty()) response.headers.Set("Retry-After", fault.retry_after);
  if (!fault.nomad_index.empty()) response.headers.Set("X-Nomad-Index", fault.nomad_index);
  return response;
}

absl::Status Lost(System system) {
  return base::Unavailable("no answer from the simulated " + std::string(SystemName(system)));
}

}  // namespace

RequestInfo Cluster::Impl::Count(const Caller& caller, const http::HttpRequest& request) {
  RequestInfo info = Describe(caller.system, request);
  info.client = caller.client;
  info.sequence = ++requests;
  if (info.has_effect) info.effect_sequence = ++effects;
  ++counts[std::string(SystemName(caller.system)) + " " + info.verb + " " + info.resource];
  return info;
}

absl::Status Cluster::Impl::CheckLine(const Caller& caller) const {
  base::MutexLock lock(mutex);
  const bool reached = reachable[caller.system == System::kHarvester ? 0 : 1];
  if (dead.contains(caller.client) || !reached) return Lost(caller.system);
  return absl::OkStatus();
}

base::Duration Cluster::Impl::NextSkew(System system) {
  if (system != System::kHarvester || clock_skews.empty()) return {};
  return clock_skews[next_server++ % clock_skews.size()];
}

NomadReply Cluster::Impl::Answer(const Caller& caller, const http::HttpRequest& request) {
  const System system = caller.system;
  NomadReply reply;
  world.SetSkew(NextSkew(system));
  if (auto refused = refusals.AnswerTo(system, request)) {
    reply.response = *std::move(refused);
  } else if (system == System::kHarvester) {
    reply.response = kube_api.Handle(request);
  } else {
    reply = nomads.At(caller.nomad).api.Handle(request);
  }
  reply.response.headers.Set("Date", HttpDate(world.server_time()));
  return reply;
}

NomadReply Cluster::Impl::Apply(const Caller& caller, const http::HttpRequest& request) {
  NomadReply reply;
  Act(Actor::kApi, [&]() NH_REQUIRES(mutex) { reply = Answer(caller, request); });
  return reply;
}

std::uint64_t Cluster::Impl::NomadIndex(const Caller& caller) {
  ApplyDue();
  base::MutexLock lock(mutex);
  return nomads.At(caller.nomad).state.index();
}

// A blocking query waits until the index exceeds its own (hashicorp/nomad:nomad/rpc.go,
// blockingRPC).
absl::StatusOr<http::HttpResponse> Cluster::Impl::ApplyAndWait(const runtime::Context& context,
                                                               const Caller& caller,
                                                               const http::HttpRequest& request,
                                                               base::Duration step) {
  const System system = caller.system;
  if (system == System::kHarvester || request.method != http::Method::kGet) {
    return Apply(caller, request).response;
  }
  const NomadWait wait = ParseNomadWait(request);
  if (wait.refusal) return *wait.refusal;
  const base::MonoTime deadline = context.clock().Now() + wait.wait;
  while (true) {
    // Read before the reply: a change in between is in the reply, one after it ends the wait below.
    const std::uint64_t index = NomadIndex(caller);
    NomadReply reply = Apply(caller, request);
    const base::MonoTime now = context.clock().Now();
    if (wait.index == 0 || reply.index == 0 || reply.index > wait.index || now >= deadline) {
      return std::move(reply.response);
    }
    // Avoids building the same reply repeatedly.
    while (NomadIndex(caller) == index && context.clock().Now() < deadline) {
      const base::MonoTime at = context.clock().Now();
      base::MonoTime until = std::min(deadline, at + step);
      {
        base::MutexLock lock(mutex);
        if (const auto due = world.NextDue(); due && *due > at) until = std::min(until, *due);
      }
      NH_RETURN_IF_ERROR(context.Sleep(until - at));
      NH_RETURN_IF_ERROR(CheckLine(caller));
    }
  }
}

// A delayed request arrives even if its client has given up.
absl::StatusOr<http::HttpResponse> Cluster::Impl::ServeLate(const runtime::Context& context,
                                                            const Caller& caller,
                                                            const http::HttpRequest& request,
                                                            base::Duration delay,
                                                            base::Duration step) {
  const base::MonoTime due = context.clock().Now() + delay;
  const absl::Status slept = context.Sleep(delay);
  if (slept.ok()) return ApplyAndWait(context, caller, request, step);
  {
    base::MutexLock lock(mutex);
    world.BeginStep(world.clock.Now(), Actor::kApi);
    world.After(due - world.now(), [this, caller, request]() NH_REQUIRES(mutex) {
      world.BeginStep(world.now(), Actor::kApi);
      Answer(caller, request);
    });
  }
  return base::Annotate(slept, request.purpose);
}

absl::StatusOr<http::HttpResponse> Cluster::Impl::Serve(const runtime::Context& context,
                                                        const Caller& caller,
                                                        const http::HttpRequest& request,
                                                        base::Duration step) {
  const System system = caller.system;
  NH_RETURN_IF_ERROR(context.Check());
  RequestInfo info;
  std::function<Fault(const RequestInfo&)> hook;
  base::Duration latency{};
  {
    base::MutexLock lock(mutex);
    if (dead.contains(caller.client)) return Lost(system);
    info = Count(caller, request);
    hook = fault_hook;
    latency = world.options.request_latency + refusals.TimeOf(system, request);
  }
  const Fault fault = hook ? hook(info) : Fault::None();
  if (fault.kind == Fault::Kind::kDie || fault.kind == Fault::Kind::kApplyThenDie) {
    if (fault.kind == Fault::Kind::kApplyThenDie) Apply(caller, request);
    base::MutexLock lock(mutex);
    dead.insert(caller.client);
    return Lost(system);
  }
  NH_RETURN_IF_ERROR(CheckLine(caller));
  if (latency > base::Duration::zero()) NH_RETURN_IF_ERROR(context.Sleep(latency));
  switch (fault.kind) {
    case Fault::Kind::kDrop:
      return Lost(system);
    case Fault::Kind::kDropReply:
      Apply(caller, request);
      return Lost(system);
    case Fault::Kind::kAnswer: {
      http::HttpResponse answer = FaultAnswer(system, fault);
      base::MutexLock lock(mutex);
      answer.headers.Set("Date", HttpDate(context.clock().WallNow() + NextSkew(system)));
      return answer;
    }
    case Fault::Kind::kDelay:
      return ServeLate(context, caller, request, fault.delay, step);
    default:
      break;
  }
  NH_RETURN_IF_ERROR(context.Check());
  auto reply = ApplyAndWait(context, caller, request, step);
  if (fault.before_reply) fault.before_reply();
  if (fault.kind == Fault::Kind::kCutReply && reply.ok()) {
    reply->body.resize(reply->body.size() / 2);
  }
  return reply;
}

}  // namespace nomad_harvester::simulator
