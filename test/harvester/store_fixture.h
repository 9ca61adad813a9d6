// SPDX-License-Identifier: Apache-2.0
// A VmStore of namespace "nomad" on a simulated Harvester, whose clock differs from the caller's.
#ifndef NOMAD_HARVESTER_TEST_HARVESTER_STORE_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_HARVESTER_STORE_FIXTURE_H_

#include <memory>
#include <string>
#include <string_view>

#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/simulator/cluster.h"

#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "nlohmann/json.hpp"
#include "simulator/request_script.h"
#include "support/fake_clock.h"
#include "support/seeded_random.h"

namespace nomad_harvester::harvester {

using simulator::Fault;

class StoreTest : public testing::Test {
 protected:
  static constexpr char kNs[] = "nomad";
  static constexpr char kServerTime[] = "2026-11-21T02:03:04Z";

  StoreTest() { server_clock_.Advance(At(kServerTime) - server_clock_.WallNow()); }

  // Stores an object as an administrator does: the server sets uid, resourceVersion and
  // creationTimestamp.
  void Put(const kube::ResourceType& type, const std::string& ns, nlohmann::json object) {
    object["apiVersion"] =
        std::string(type.group) + (type.group.empty() ? "" : "/") + std::string(type.version);
    object["kind"] = type.kind;
    object["metadata"]["namespace"] = ns;
    EXPECT_TRUE(cluster_.PutObject(object)) << type.kind;
  }
  // The same, but terminating: a finalizer keeps the object.
  void PutTerminating(const kube::ResourceType& type, const std::string& ns,
                      nlohmann::json object) {
    object["metadata"]["finalizers"] = {"example.org/hold"};
    const std::string name = kube::NameOf(object);
    Put(type, ns, std::move(object));
    Remove(type, ns, name);
  }
  // Null if there is none.
  nlohmann::json Find(const kube::ResourceType& type, const std::string& ns,
                      const std::string& name) const {
    const auto found = spectator_.Get(context_, type, ns, name);
    return found.ok() ? found->object : nlohmann::json();
  }
  // Changes the resourceVersion, as any write does.
  void Touch(const kube::ResourceType& type, const std::string& ns, const std::string& name) {
    nlohmann::json object = Find(type, ns, name);
    object["metadata"]["annotations"]["example.org/touched"] = std::to_string(++touched_);
    Put(type, ns, std::move(object));
  }
  void Remove(const kube::ResourceType& type, const std::string& ns, const std::string& name) {
    EXPECT_TRUE(cluster_.DeleteObject(Find(type, ns, name))) << name;
  }
  static Fault Refusal(int status, std::string_view reason, std::string_view message) {
    const nlohmann::json body = {{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"},
                                 {"reason", reason}, {"code", status},     {"message", message}};
    return Fault::Answer(status, body.dump());
  }

  support::FakeClock clock_;
  support::FakeClock server_clock_;
  const runtime::Context context_ = runtime::Context::Background(clock_);
  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_{server_clock_, *random_};
  simulator::RequestScript script_{cluster_};
  const VmStore store_{std::make_shared<kube::KubeClient>(cluster_.HarvesterTransport()), kNs};

 private:
  const kube::KubeClient spectator_{cluster_.HarvesterTransport("spectator")};
  int touched_ = 0;
};

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_TEST_HARVESTER_STORE_FIXTURE_H_
