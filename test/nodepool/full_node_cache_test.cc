// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/full_node_cache.h"

#include <thread>

#include "gtest/gtest.h"
#include "nodepool/builders.h"

namespace nomad_harvester::nodepool {
namespace {

nomad::Node Full(std::uint64_t modify_index = 70) {
  return NodeBuilder("n1")
      .CreateIndex(7)
      .ModifyIndex(modify_index)
      .HostName("web-1")
      .Meta("harvester_vm_uuid", "r1");
}
nomad::Node Stub(std::uint64_t modify_index = 70) {
  return NodeBuilder("n1").CreateIndex(7).ModifyIndex(modify_index).Name("web-1");
}

TEST(FullNodeCache, completes_a_stub_with_what_it_remembers) {
  FullNodeCache cache;
  cache.Remember(Full());
  nomad::Node stub = Stub();
  stub.eligible = false;
  ASSERT_TRUE(cache.Complete(&stub));
  EXPECT_TRUE(stub.full);
  EXPECT_EQ(stub.attributes.at("unique.hostname"), "web-1");
  EXPECT_EQ(stub.meta.at("harvester_vm_uuid"), "r1");
  EXPECT_FALSE(stub.eligible) << "what changes comes from the list";
}

TEST(FullNodeCache, I7_keeps_only_what_the_rules_read_of_a_node) {
  FullNodeCache cache;
  cache.Need("meta.machine");
  nomad::Node full = Full();
  for (int i = 0; i < 1000; ++i) full.meta["key-" + std::to_string(i)] = std::string(400, 'x');
  full.meta["machine"] = "web-1";
  full.attributes["os.name"] = "debian";
  full.attributes["unique.host_id"] = std::string(100'000, 'x');
  cache.Remember(full);
  nomad::Node stub = Stub();
  ASSERT_TRUE(cache.Complete(&stub));
  std::size_t bytes = 0;
  for (const auto* values : {&stub.attributes, &stub.meta}) {
    for (const auto& [key, value] : *values) bytes += key.size() + value.size();
  }
  EXPECT_LT(bytes, 500U);
  EXPECT_EQ(stub.meta.at("machine"), "web-1");
  EXPECT_EQ(stub.meta.at("harvester_vm_uuid"), "r1");
  cache.Need("meta.other");
  nomad::Node again = Stub();
  EXPECT_FALSE(cache.Complete(&again)) << "it was kept without that";
}

TEST(FullNodeCache, leaves_a_stub_alone_that_it_does_not_know) {
  const FullNodeCache cache;
  nomad::Node stub = Stub();
  EXPECT_FALSE(cache.Complete(&stub));
  EXPECT_FALSE(stub.full);
}

// Its CreateIndex stays: 7.
TEST(FullNodeCache, C6_a_client_that_registers_again_under_its_id_is_read_again) {
  FullNodeCache cache;
  cache.Remember(Full());
  nomad::Node stub = Stub(71);
  EXPECT_FALSE(cache.Complete(&stub));
  EXPECT_FALSE(stub.full);
  nomad::Node renamed = Full(71);
  renamed.attributes["unique.hostname"] = "web-2";
  cache.Remember(renamed);
  ASSERT_TRUE(cache.Complete(&stub));
  EXPECT_EQ(stub.attributes.at("unique.hostname"), "web-2");
}

TEST(FullNodeCache, C6_a_stub_of_an_older_version_is_not_completed_with_a_newer_one) {
  FullNodeCache cache;
  cache.Remember(Full());
  nomad::Node stub = Stub(69);
  EXPECT_FALSE(cache.Complete(&stub)) << "a restored Nomad counts from an older index";
}

TEST(FullNodeCache, a_restored_nomad_is_believed_once_its_node_was_read) {
  FullNodeCache cache;
  cache.Remember(Full());
  cache.Remember(Full(20));
  nomad::Node stub = Stub(20);
  EXPECT_TRUE(cache.Complete(&stub));
}

TEST(FullNodeCache, a_later_reading_replaces_an_earlier_one) {
  FullNodeCache cache;
  cache.Remember(Full());
  nomad::Node changed = Full();
  changed.meta["harvester_vm_uuid"] = "r2";
  cache.Remember(changed);
  nomad::Node stub = Stub();
  ASSERT_TRUE(cache.Complete(&stub));
  EXPECT_EQ(stub.meta.at("harvester_vm_uuid"), "r2");
}

TEST(FullNodeCache, C6_only_what_differs_from_what_it_remembers_is_a_new_version) {
  FullNodeCache cache;
  cache.Remember(Full());
  const std::uint64_t version = cache.version();
  cache.Remember(Full());
  EXPECT_EQ(cache.version(), version);
  nomad::Node changed = Full();
  changed.meta["harvester_vm_uuid"] = "r2";
  cache.Remember(changed);
  EXPECT_GT(cache.version(), version);
}

TEST(FullNodeCache, does_not_remember_a_stub) {
  FullNodeCache cache;
  cache.Remember(Stub());
  nomad::Node stub = Stub();
  EXPECT_FALSE(cache.Complete(&stub));
}

TEST(FullNodeCache, leaves_a_node_that_is_full_as_it_is) {
  FullNodeCache cache;
  cache.Remember(Full());
  nomad::Node fresh = Full();
  fresh.meta["harvester_vm_uuid"] = "r3";
  EXPECT_TRUE(cache.Complete(&fresh));
  EXPECT_EQ(fresh.meta.at("harvester_vm_uuid"), "r3");
}

TEST(FullNodeCache, forgets_nodes_that_a_list_no_longer_names) {
  FullNodeCache cache;
  cache.Remember(Full());
  cache.Keep({Stub(), NodeBuilder("other")});
  nomad::Node stub = Stub();
  EXPECT_TRUE(cache.Complete(&stub));
  cache.Keep({NodeBuilder("other")});
  stub = Stub();
  EXPECT_FALSE(cache.Complete(&stub));
}

TEST(FullNodeCache, forgets_a_node_that_the_list_has_in_a_newer_version) {
  FullNodeCache cache;
  cache.Remember(Full());
  cache.Keep({Stub(71)});
  nomad::Node stub = Stub();
  EXPECT_FALSE(cache.Complete(&stub));
}

TEST(FullNodeCache, keeps_a_node_that_was_read_after_an_older_list_began) {
  FullNodeCache cache;
  cache.Remember(Full());
  cache.Keep({Stub(69)});
  nomad::Node stub = Stub();
  EXPECT_TRUE(cache.Complete(&stub));
}

TEST(FullNodeCache, serves_several_threads) {
  FullNodeCache cache;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache] {
      for (int i = 0; i < 200; ++i) {
        cache.Remember(Full());
        nomad::Node stub = Stub();
        cache.Complete(&stub);
        cache.Keep({Stub()});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  nomad::Node stub = Stub();
  EXPECT_TRUE(cache.Complete(&stub));
}

}  // namespace
}  // namespace nomad_harvester::nodepool
