// SPDX-License-Identifier: Apache-2.0
#include "system_waits.h"

#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/fake_clock.h"
#include "support/scripted_transport.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::cli {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using support::ScriptedTransport;
using support::StatusIs;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

ScriptedTransport::Function RepliesAfter(base::Duration wait) {
  return [wait](const runtime::Context& context,
                const http::HttpRequest& /*request*/) -> ScriptedTransport::Outcome {
    NH_RETURN_IF_ERROR(context.Sleep(wait));
    return support::Reply(200, {}, R"({"kid": []})");
  };
}

// A command whose Nomad hangs and whose Harvester has no such object.
class SystemWaitsTest : public testing::Test {
 protected:
  SystemWaitsTest() {
    config_->harvester.url = "https://10.0.0.4:6443";
    config_->harvester.skip_verify = true;
    config_->nomad.address = "http://10.0.0.5:4646";
    nomad_->Otherwise(RepliesAfter(hours(1)));
    harvester_->Otherwise([](const auto&, const auto&) { return support::Reply(404); });
  }
  void Connect() {
    clients_ = scaling::MakeClients(config_, waits_.Limit({harvester_, nomad_}, *config_),
                                    support::MakeSeededRandom(1), log::Logger());
  }
  // Returns what a read of Nomad ended with.
  absl::Status AskNomad() { return clients_.nomad->ReadClusterKeys(context_).status(); }
  absl::Status AskHarvester() { return clients_.kube->ServerVersion(context_).status(); }
  base::Duration Elapsed() const { return clock_.Now() - began_; }

  support::FakeClock clock_;
  const base::MonoTime began_ = clock_.Now();
  const runtime::Context context_ = runtime::Context::Background(clock_).WithTimeout(seconds(30));
  const std::shared_ptr<config::PluginConfig> config_ = std::make_shared<config::PluginConfig>();
  const std::shared_ptr<ScriptedTransport> harvester_ = std::make_shared<ScriptedTransport>();
  const std::shared_ptr<ScriptedTransport> nomad_ = std::make_shared<ScriptedTransport>();
  bool has_printed_ = false;
  std::ostringstream err_;
  SystemWaits waits_{clock_, [this] { return has_printed_; }, err_};
  scaling::Clients clients_;
};

TEST_F(SystemWaitsTest, L9_a_system_that_does_not_answer_is_named_within_ten_seconds) {
  Connect();
  const auto is_named = StatusIs(
      absl::StatusCode::kUnavailable,
      AllOf(HasSubstr("Nomad at http://10.0.0.5:4646 gave no reply within 8s to: read the ids of "
                      "Nomad's keys"),
            HasSubstr("check nomad_address (or NOMAD_ADDR), that Nomad runs"),
            Not(HasSubstr("Harvester"))));
  EXPECT_THAT(AskNomad(), is_named);
  EXPECT_EQ(Elapsed(), kAnswerLimit);
  EXPECT_THAT(nomad_->requests(), SizeIs(1)) << "it is not retried";
  EXPECT_THAT(AskNomad(), is_named);
  EXPECT_EQ(Elapsed(), kAnswerLimit) << "the rest of the read does not wait again";
  EXPECT_THAT(nomad_->requests(), SizeIs(1));
  EXPECT_THAT(AskHarvester(), StatusIs(absl::StatusCode::kNotFound)) << "it has its own limit";
}

TEST_F(SystemWaitsTest, L9_a_system_that_was_given_up_is_asked_again_later) {
  Connect();
  EXPECT_FALSE(AskNomad().ok());
  nomad_->Otherwise(RepliesAfter(seconds(1)));
  clock_.Advance(kAnswerLimit);
  AskNomad().IgnoreError();
  EXPECT_THAT(nomad_->requests(), SizeIs(1)) << "meanwhile the other system may have been silent";
  clock_.Advance(kAskAgainAfter - kAnswerLimit);
  AskNomad().IgnoreError();
  EXPECT_THAT(nomad_->requests(), SizeIs(2));
}

TEST_F(SystemWaitsTest, L9_attempts_without_a_reply_share_the_limit) {
  config_->request_timeout = seconds(3);
  Connect();
  EXPECT_THAT(AskNomad(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gave no reply")));
  EXPECT_GT(nomad_->requests().size(), 1U);
  EXPECT_LT(Elapsed(), seconds(10));
}

TEST_F(SystemWaitsTest, L9_after_a_write_without_a_reply_a_read_has_the_whole_limit) {
  harvester_->Otherwise(RepliesAfter(hours(1)));
  Connect();
  EXPECT_THAT(clients_.kube->MergePatch(context_, kube::kLeases, "default", "web", "{}").status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gave no reply")));
  harvester_->Otherwise(RepliesAfter(seconds(5)));
  EXPECT_THAT(base::Message(AskHarvester()), Not(HasSubstr("gave no reply")));
}

TEST_F(SystemWaitsTest, L9_a_system_that_answers_slowly_is_waited_for) {
  nomad_->Otherwise(RepliesAfter(seconds(5)));
  Connect();
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(base::Message(AskNomad()), Not(HasSubstr("gave no reply"))) << i;
  }
  EXPECT_EQ(Elapsed(), seconds(20));
}

TEST_F(SystemWaitsTest, L9_a_read_that_ends_sooner_than_a_slow_system_answers_is_no_silence) {
  nomad_->Otherwise(RepliesAfter(seconds(5)));
  Connect();
  AskNomad().IgnoreError();
  clients_.nomad->ListServers(context_.WithTimeout(seconds(3))).IgnoreError();
  EXPECT_THAT(base::Message(AskNomad()), Not(HasSubstr("gave no reply")));
  EXPECT_EQ(Elapsed(), seconds(13));
}

TEST_F(SystemWaitsTest, L9_a_system_that_answers_no_more_is_given_up_after_the_whole_limit) {
  nomad_->Otherwise(RepliesAfter(seconds(1)));
  Connect();
  AskNomad().IgnoreError();
  nomad_->Otherwise(RepliesAfter(hours(1)));
  clients_.nomad->ListServers(context_.WithTimeout(seconds(3))).IgnoreError();
  EXPECT_THAT(AskNomad(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gave no reply")));
  EXPECT_EQ(Elapsed(), seconds(1) + kAnswerLimit) << "the read that ended counts";
}

TEST_F(SystemWaitsTest, L9_the_error_names_what_was_asked_first_since_the_last_reply) {
  Connect();
  clients_.nomad->ReadClusterKeys(context_.WithTimeout(seconds(5))).IgnoreError();
  const auto servers = [this] { return clients_.nomad->ListServers(context_).status(); };
  EXPECT_THAT(servers(), StatusIs(absl::StatusCode::kUnavailable, Not(HasSubstr("Nomad's keys"))));
  EXPECT_EQ(Elapsed(), kAnswerLimit);
  EXPECT_THAT(servers(), StatusIs(absl::StatusCode::kUnavailable,
                                  HasSubstr("no reply within 8s to: read the ids of Nomad's keys")))
      << "nothing is sent";
  EXPECT_EQ(Elapsed(), kAnswerLimit);
}

TEST_F(SystemWaitsTest, L9_an_interrupt_as_the_limit_passes_blames_no_system) {
  nomad_->Otherwise([](const runtime::Context& context, const auto&) {
    context.Sleep(kAnswerLimit).IgnoreError();
    return absl::CancelledError("interrupted");
  });
  EXPECT_THAT(waits_.Limit({harvester_, nomad_}, *config_).nomad->Send(context_, {}),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("interrupted")));
}

TEST_F(SystemWaitsTest, L9_a_blocking_query_has_only_its_own_limit) {
  nomad_->Otherwise(RepliesAfter(seconds(20)));
  const auto nomad = waits_.Limit({harvester_, nomad_}, *config_).nomad;
  EXPECT_THAT(nomad->Send(context_, {.server_wait = seconds(25)}), support::IsOk());
  EXPECT_EQ(Elapsed(), seconds(20));
}

TEST_F(SystemWaitsTest, L9_whether_a_write_without_a_reply_was_done_is_not_known) {
  const auto nomad = waits_.Limit({harvester_, nomad_}, *config_).nomad;
  EXPECT_THAT(nomad->Send(context_, {.effect = http::Effect::kWrite, .purpose = "drain"}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("to: drain; whether it was done is not known; check")));
  clock_.Advance(kAnswerLimit);
  EXPECT_THAT(nomad->Send(context_.WithTimeout(hours(1)), {.purpose = "list nodes"}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("to: list nodes; check")));
}

TEST_F(SystemWaitsTest, L9_the_error_names_where_the_address_comes_from) {
  const auto ask = [this] {
    const auto harvester = waits_.Limit({nomad_, nomad_}, *config_).harvester;
    return base::Message(harvester->Send(context_, {.purpose = "list VMs"}).status());
  };
  EXPECT_THAT(ask(), HasSubstr("check harvester_url (or HARVESTER_URL), that Harvester runs"));
  config_->harvester.url.clear();
  config_->harvester.kubeconfig_path = "/nowhere";
  EXPECT_THAT(ask(), HasSubstr("check harvester_kubeconfig /nowhere, that Harvester runs"));
}

TEST_F(SystemWaitsTest, L9_of_a_system_that_cannot_be_reached_the_error_says_so_too) {
  http::HttpRequest request;
  const auto fails = [&](const absl::Status& status) {
    nomad_->Otherwise([status](const auto&, const auto&) { return status; });
    return waits_.Limit({harvester_, nomad_}, *config_).nomad->Send(context_, request).status();
  };
  EXPECT_THAT(
      fails(base::Unavailable("cannot connect to http://10.0.0.5:4646: Connection refused")),
      StatusIs(absl::StatusCode::kUnavailable,
               EndsWith("4646: Connection refused; check nomad_address (or NOMAD_ADDR), "
                        "and that Nomad runs")));
  EXPECT_THAT(base::Message(fails(base::FailedPrecondition("TLS failed"))), "TLS failed")
      << "it has its own cure";
  request.effect = http::Effect::kWrite;
  EXPECT_EQ(base::Message(fails(base::Unavailable("refused"))), "refused")
      << "a read follows, which says it";
}

TEST_F(SystemWaitsTest, L9_another_server_of_the_same_system_has_its_own_limit) {
  Connect();
  EXPECT_FALSE(AskNomad().ok());
  config_->nomad.address = "http://10.0.0.6:4646";
  nomad_->Otherwise(RepliesAfter(seconds(1)));
  EXPECT_THAT(waits_.Limit({harvester_, nomad_}, *config_).nomad->Send(context_, {}),
              support::IsOk());
}

TEST_F(SystemWaitsTest, L9_a_command_that_has_printed_nothing_says_once_what_it_waits_for) {
  nomad_->Otherwise(RepliesAfter(seconds(5)));
  Connect();
  clock_.Advance(kFirstLineAfter - seconds(1));
  EXPECT_EQ(err_.str(), "");
  AskNomad().IgnoreError();
  const std::string line =
      "waits for Nomad at http://10.0.0.5:4646: read the ids of Nomad's keys "
      "(/.well-known/jwks.json)\n";
  EXPECT_EQ(err_.str(), line);
  AskNomad().IgnoreError();
  EXPECT_EQ(err_.str(), line);
}

TEST_F(SystemWaitsTest, L9_a_request_that_begins_after_two_seconds_is_told_at_once) {
  Connect();
  clock_.Advance(kFirstLineAfter);
  EXPECT_EQ(err_.str(), "") << "nothing is waited for";
  AskHarvester().IgnoreError();
  EXPECT_EQ(err_.str(),
            "waits for Harvester at https://10.0.0.4:6443: get the version of the API server\n");
}

TEST_F(SystemWaitsTest, L9_a_command_that_has_printed_something_does_not_say_what_it_waits_for) {
  has_printed_ = true;
  Connect();
  AskNomad().IgnoreError();
  EXPECT_EQ(err_.str(), "");
}

}  // namespace
}  // namespace nomad_harvester::cli
