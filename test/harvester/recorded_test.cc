// SPDX-License-Identifier: Apache-2.0
// Annotations as earlier versions wrote them (test/recorded/VERSION, recorded by
// test/contract/recorded_test.go): this version must finish what they describe, and they must be
// able to read what this version writes.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/harvester/vm_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "support/source_tree.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

std::filesystem::path Directory() { return support::SourcePath("test/recorded"); }

// The annotations without their prefix.
std::map<std::string, std::string> Recorded(const std::string& version, const std::string& object) {
  std::ifstream file(Directory() / version / (object + ".json"));
  return json::parse(file).get<std::map<std::string, std::string>>();
}

// What every recorded annotation is tested with.
struct Sample {
  std::string version;
  std::string object;
  std::string annotation;
  std::string text;
};

std::vector<Sample> AllSamples() {
  std::vector<Sample> samples;
  for (const auto& file : std::filesystem::recursive_directory_iterator(Directory())) {
    if (file.path().extension() != ".json") continue;
    const std::string version = file.path().parent_path().filename();
    const std::string object = file.path().stem();
    if (object.starts_with("drain")) continue;  // of a node, not an annotation
    for (const auto& [annotation, text] : Recorded(version, object)) {
      samples.push_back({version, object, annotation, text});
    }
  }
  return samples;
}

// The values that 382e361, the first recorded version, meant.
constexpr char kFirst[] = "382e361";

NodesRecord NodesOfFirst() {
  NodesRecord nodes;
  nodes.node_class = "harvester";
  nodes.datacenter = "dc1";
  nodes.node_pool = "default";
  nodes.index = 1;
  return nodes;
}

TEST(Recorded, C10_a_mark_of_a_scale_in_means_what_it_meant) {
  const auto mark = ParseMark(Recorded(kFirst, "vm-of-scale-in").at("scale-in"));
  ASSERT_THAT(mark, IsOk());
  Mark meant;
  meant.action = "djxlczm94zm6";
  meant.reason = MarkReason::kScaleIn;
  meant.vm_uid = "8b2e0244-5e4b-40f5-bf8c-59bb003553c1";
  meant.node_id = "c09a1a81-7914-4fbc-88b8-94e1401ed25b";
  meant.marked_at = At("2026-11-24T08:27:49Z");
  meant.drain_deadline = {DrainDeadline::Kind::kAt, At("2026-11-24T08:28:14Z")};
  meant.grace = std::chrono::seconds(10);
  meant.purge = true;
  meant.nodes = NodesOfFirst();
  EXPECT_EQ(*mark, meant);
}

TEST(Recorded, C10_a_mark_of_a_broken_VM_has_no_node) {
  const auto mark = ParseMark(Recorded(kFirst, "broken-vm").at("scale-in"));
  ASSERT_THAT(mark, IsOk());
  EXPECT_EQ(mark->reason, MarkReason::kBroken);
  EXPECT_EQ(mark->node_id, "");
  EXPECT_EQ(mark->unknown_members, "");
}

TEST(Recorded, C10_a_VM_that_has_joined_has_its_node_its_action_and_its_nodes) {
  const auto annotations = Recorded(kFirst, "joined-vm");
  json object = SampleVmObject();
  json& of_vm = object["metadata"]["annotations"];
  for (const auto& [key, text] : annotations) of_vm["nomad-harvester-autoscaler/" + key] = text;
  const VirtualMachine vm = ParseVirtualMachine(object);
  EXPECT_EQ(vm.action_id, "mzjtkgcd56nj");
  EXPECT_EQ(vm.joined_node_id, annotations.at("nomad-node-id"));
  EXPECT_EQ(vm.joined_at, At(annotations.at("joined-at")));
  EXPECT_EQ(vm.nodes, NodesOfFirst());
  ASSERT_TRUE(vm.join_timeout.has_value());
  EXPECT_EQ(vm.join_timeout->limit, std::chrono::minutes(15));
  EXPECT_FALSE(vm.has_mark);
  EXPECT_FALSE(vm.has_published_host);
}

TEST(Recorded, C10_a_Lease_names_what_its_action_makes_and_what_it_removes) {
  const auto growth = ParseLeaseAction(Recorded(kFirst, "lease-of-growth").at("action"));
  ASSERT_THAT(growth, IsOk());
  EXPECT_EQ(growth->id, "mzjtkgcd56nj");
  EXPECT_EQ(growth->from, 0);
  EXPECT_EQ(growth->to, 3);
  EXPECT_THAT(growth->names, ElementsAre("pool-5gk7j27h", "pool-st9dbkv7", "pool-w67k6k4f"));
  EXPECT_THAT(growth->create, SizeIs(3));
  EXPECT_THAT(growth->create, Contains(Pair("pool-st9dbkv7", "mzjtkgcd56nj")));
  const auto removal = ParseLeaseAction(Recorded(kFirst, "lease-of-scale-in").at("action"));
  ASSERT_THAT(removal, IsOk());
  EXPECT_EQ(removal->from, 3);
  EXPECT_EQ(removal->to, 1);
  EXPECT_THAT(removal->names, ElementsAre("pool-5gk7j27h", "pool-w67k6k4f"));
  EXPECT_THAT(removal->create, IsEmpty());
}

TEST(Recorded, C12_a_Lease_tells_what_failed_and_until_when_it_waits) {
  const auto back_off = ParseBackOff(Recorded(kFirst, "lease-of-a-back-off").at("back-off"));
  ASSERT_THAT(back_off, IsOk());
  EXPECT_THAT(*back_off,
              ElementsAre(Pair("join", BackOffEntry{1, At("2026-11-24T08:28:55Z"), ""})));
}

TEST(Recorded, S4_L11_a_Lease_at_rest_has_its_last_change_and_its_policy) {
  const auto lease = Recorded(kFirst, "lease-at-rest");
  const auto policy = ParsePolicyRecord(lease.at("policy"));
  ASSERT_THAT(policy, IsOk());
  EXPECT_EQ(policy->id, "c4dbd1b6-7b3b-4f5f-9e0f-0a7d1c3b9a51");
  EXPECT_EQ(policy->at, At("2026-11-24T08:27:48Z"));
  EXPECT_EQ(At(lease.at("last-event")), At("2026-11-24T08:27:49Z"));
}

template <typename Record>
absl::StatusOr<std::string> Rewrite(absl::StatusOr<Record> (*parse)(std::string_view),
                                    const std::string& text) {
  const absl::StatusOr<Record> record = parse(text);
  if (!record.ok()) return record.status();
  return ToAnnotation(*record);
}

struct Format {
  absl::StatusOr<std::string> (*rewrite)(const std::string& text);
  std::string fullest;  // as this version writes it, with every member that it has
};

LeaseAction FullestAction() {
  return {.id = "a-2",
          .from = 1,
          .to = 3,
          .names = {"web-a"},
          .create = {{"web-a", "a-2"}},
          .back = {"web-b"},
          .unknown_members = ""};
}

// The annotations that are JSON.
const std::map<std::string, Format>& Formats() {
  const base::WallTime at = At("2026-11-21T02:03:04Z");
  static const auto* const kFormats = new std::map<std::string, Format>{
      {"scale-in",
       {[](const std::string& text) { return Rewrite(ParseMark, text); },
        ToAnnotation(SampleMark())}},
      {"nodes",
       {[](const std::string& text) { return Rewrite(ParseNodesRecord, text); },
        ToAnnotation(SampleNodes())}},
      {"action",
       {[](const std::string& text) { return Rewrite(ParseLeaseAction, text); },
        ToAnnotation(FullestAction())}},
      {"back-off",
       {[](const std::string& text) { return Rewrite(ParseBackOff, text); },
        ToAnnotation(BackOff{{"join", {.failures = 1, .retry_at = at}}})}},
      {"policy",
       {[](const std::string& text) { return Rewrite(ParsePolicyRecord, text); },
        ToAnnotation(PolicyRecord{.id = "p", .at = at})}},
      {"published-host",
       {[](const std::string& text) { return Rewrite(ParsePublishedHost, text); },
        ToAnnotation(PublishedHost{.node_id = "n", .host = "h", .zone = "z"})}},
      {"last-error",
       {[](const std::string& text) { return Rewrite(ParseErrorRecord, text); },
        ToAnnotation(ErrorRecord{.action = "a", .at = at, .text = "t"})}},
  };
  return *kFormats;
}

// Every member that `earlier` has is there, of the same type.
void ExpectMembersOf(const json& earlier, const json& now, const std::string& where) {
  EXPECT_STREQ(now.type_name(), earlier.type_name()) << where;
  if (!earlier.is_object() || !now.is_object()) return;
  for (const auto& [member, value] : earlier.items()) {
    const std::string path = where + "/" + member;
    if (where.ends_with("/create")) continue;  // by name of a VM
    ASSERT_TRUE(now.contains(member)) << path << " is no longer written";
    ExpectMembersOf(value, now[member], path);
  }
}

TEST(Recorded, C10_of_each_version_there_is_everything_that_it_writes) {
  std::map<std::string, std::map<std::string, int>> annotations;
  for (const Sample& sample : AllSamples()) ++annotations[sample.version][sample.annotation];
  ASSERT_THAT(annotations, Not(IsEmpty()));
  for (const auto& [version, names] : annotations) {
    for (const char* name : {"scale-in", "nodes", "action", "back-off", "last-event", "policy"}) {
      EXPECT_THAT(names, Contains(Key(name))) << version;
    }
  }
}

TEST(Recorded, C10_S5_an_earlier_annotation_is_read_and_written_back_as_it_was) {
  for (const Sample& sample : AllSamples()) {
    const auto format = Formats().find(sample.annotation);
    if (format == Formats().end()) {
      EXPECT_FALSE(json::accept(sample.text) && json::parse(sample.text).is_object())
          << "nothing reads " << sample.annotation << " of " << sample.version;
      continue;
    }
    const auto rewritten = format->second.rewrite(sample.text);
    ASSERT_THAT(rewritten, IsOk()) << sample.version << " " << sample.object;
    EXPECT_EQ(json::parse(*rewritten), json::parse(sample.text))
        << sample.version << " " << sample.object;
  }
}

TEST(Recorded, C10_this_version_writes_every_member_that_an_earlier_one_requires) {
  for (const Sample& sample : AllSamples()) {
    const auto format = Formats().find(sample.annotation);
    if (format == Formats().end()) continue;
    ExpectMembersOf(json::parse(sample.text), json::parse(format->second.fullest),
                    sample.version + "/" + sample.object + "/" + sample.annotation);
  }
}

TEST(Recorded, C10_a_VM_and_its_Secret_have_every_annotation_that_an_earlier_version_gives_them) {
  const std::vector<std::string> later = {"nomad-node-id", "joined-at", "scale-in"};
  const json vm = BuildVirtualMachine(SampleVmSpec(), SampleIdentity());
  const json secret = BuildSecret(SampleVmSpec(), SampleIdentity(), {.user_data = "#cloud-config"});
  for (const Sample& sample : AllSamples()) {
    if (std::count(later.begin(), later.end(), sample.annotation) != 0) continue;
    if (sample.object.starts_with("lease")) continue;
    const json& now = sample.object == "secret" ? secret : vm;
    const json& annotations = now["metadata"]["annotations"];
    EXPECT_TRUE(annotations.contains("nomad-harvester-autoscaler/" + sample.annotation))
        << sample.version << " " << sample.object << " " << sample.annotation;
  }
}

}  // namespace
}  // namespace nomad_harvester::harvester
