// SPDX-License-Identifier: Apache-2.0
#include "metric_query.h"

#include <memory>
#include <string>
#include <utility>

#include "nomad_harvester/runtime/clock.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/loopback_server.h"
#include "support/scoped_temp_dir.h"

namespace nomad_harvester::cli {
namespace {

using http::LoopbackServer;
using http::ServerReply;
using scaling::CheckOutcome;
using scaling::CheckResult;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

MetricQuery QueryAt(const std::string& address) {
  MetricQuery query{
      .policy = "web",
      .from_zero = true,
      .check = {.name = "load", .source = "prometheus", .query = "sum(up{job=\"a b\"})"},
      .apm = AgentPlugin{.driver = "prometheus", .config = {}},
      .apms_are_known = true};
  query.apm->config.values["address"] = address;
  return query;
}

CheckResult Check(const MetricQuery& query) {
  const auto clock = runtime::MakeSystemClock();
  const auto results = CheckMetricQueries(runtime::Context::Background(*clock), {query});
  EXPECT_EQ(results.size(), 1U);
  return results.front();
}

// What Prometheus answers with these series.
ServerReply Series(const std::string& series) {
  return {.body =
              R"({"status":"success","data":{"resultType":"matrix","result":[)" + series + "]}}"};
}

CheckResult CheckWith(const ServerReply& reply) {
  const LoopbackServer server(reply);
  return Check(QueryAt(server.url()));
}

TEST(MetricQuery, that_answers_with_one_series_passes_with_its_newest_value) {
  const LoopbackServer server(Series(R"({"metric":{},"values":[[1,"2"],[2,"3.5"]]})"));
  const CheckResult result = Check(QueryAt(server.url()));
  EXPECT_EQ(result.id, "metrics.query");
  EXPECT_EQ(result.subject, "check \"load\" of policy \"web\"");
  EXPECT_EQ(result.outcome, CheckOutcome::kPass);
  EXPECT_EQ(result.text, "answers 3.5, at " + server.url());
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(server.requests()[0].method, "GET");
  EXPECT_THAT(
      server.requests()[0].target,
      AllOf(StartsWith("/api/v1/query_range?query=sum%28up%7Bjob%3D%22a%20b%22%7D%29&start="),
            EndsWith("&step=1")));
}

TEST(MetricQuery, is_asked_for_its_window_and_offset) {
  const LoopbackServer server(Series(R"({"values":[[1,"2"]]})"));
  MetricQuery query = QueryAt(server.url());
  query.check.window = std::chrono::minutes(5);
  query.check.offset = std::chrono::hours(1);
  const auto before = std::chrono::system_clock::now() - std::chrono::hours(1);
  Check(query);
  const std::string target = server.requests().at(0).target;
  const auto number = [&](const std::string& name) {
    return std::stoll(target.substr(target.find("&" + name + "=") + name.size() + 2));
  };
  EXPECT_EQ(number("end") - number("start"), 300);
  EXPECT_NEAR(static_cast<double>(number("end")),
              static_cast<double>(std::chrono::system_clock::to_time_t(before)), 30);
}

// plugin.go, QueryMultiple, parseScalar and parseVector.
TEST(MetricQuery, of_an_instant_is_asked_for_it_alone) {
  const auto check = [](const std::string& type, const std::string& result) {
    const LoopbackServer server(
        ServerReply{.body = R"({"status":"success","data":{"resultType":")" + type +
                            R"(","result":)" + result + "}}"});
    MetricQuery query = QueryAt(server.url());
    query.check.instant = true;
    query.check.query = "q";
    query.check.offset = std::chrono::hours(1);
    const auto before = std::chrono::system_clock::now() - std::chrono::hours(1);
    CheckResult verdict = Check(query);
    const std::string start = "/api/v1/query?query=q&time=";
    const std::string target = server.requests().at(0).target;
    EXPECT_THAT(target, StartsWith(start));
    EXPECT_NEAR(std::stod(target.substr(start.size())),
                static_cast<double>(std::chrono::system_clock::to_time_t(before)), 30);
    return verdict;
  };
  EXPECT_THAT(check("vector", R"([{"metric":{},"value":[1,"2.5"]}])").text,
              StartsWith("answers 2.5, at"));
  EXPECT_EQ(check("scalar", R"([1,"2.5"])").outcome, CheckOutcome::kPass);
  EXPECT_THAT(check("scalar", R"([1,"2.5"])").text, StartsWith("answers 2.5, at"));
  EXPECT_THAT(check("matrix", R"([{"values":[[1,"2"],[2,"3"]]}])").text,
              StartsWith("answers 3, at"));
  EXPECT_EQ(check("vector", "[]").outcome, CheckOutcome::kWarn);
  const CheckResult two = check("vector", R"([{"value":[1,"2"]},{"value":[1,"3"]}])");
  EXPECT_EQ(two.outcome, CheckOutcome::kWarn);
  EXPECT_THAT(two.text, HasSubstr("with 2 series, which the agent takes for values of one"));
  for (const auto& [type, result] :
       {std::pair("vector", R"([{"value":[1,"NaN"]}])"), std::pair("scalar", R"([1,"NaN"])"),
        std::pair("string", R"([1,"x"])")}) {
    EXPECT_EQ(check(type, result).outcome, CheckOutcome::kFail) << type;
  }
}

TEST(MetricQuery, is_asked_with_the_credentials_of_the_apm_block_which_are_in_no_text) {
  const LoopbackServer server(ServerReply{.status = 401, .body = "who are you, hush-hush-1?"});
  MetricQuery query = QueryAt(server.url());
  query.apm->config.values["basic_auth_user"] = "me";
  query.apm->config.values["basic_auth_password"] = "hush-hush-1";
  query.apm->config.values["header_X-Scope"] = "hush-hush-2";
  const CheckResult result = Check(query);
  EXPECT_EQ(server.requests().at(0).headers.Find("Authorization"), "Basic bWU6aHVzaC1odXNoLTE=");
  EXPECT_EQ(server.requests().at(0).headers.Find("X-Scope"), "hush-hush-2");
  EXPECT_EQ(result.outcome, CheckOutcome::kFail);
  EXPECT_THAT(result.text,
              AllOf(HasSubstr("refuses with HTTP 401: the credentials are those of "
                              "basic_auth_user and basic_auth_password, header_X-Scope"),
                    Not(HasSubstr("hush"))));
}

TEST(MetricQuery, is_asked_with_the_login_of_its_address_which_is_in_no_text) {
  const LoopbackServer server(ServerReply{.status = 401, .body = "who are you, hush-hush-1?"});
  const std::string address = "http://me:hush%2Dhush-1@" + server.url().substr(7);
  MetricQuery query = QueryAt(address);
  query.apm->config.values["basic_auth_user"] = "another";
  const CheckResult result = Check(query);
  EXPECT_EQ(server.requests().at(0).headers.Find("Authorization"), "Basic bWU6aHVzaC1odXNoLTE=");
  EXPECT_THAT(result.text,
              AllOf(StartsWith(server.url() + " refuses"),
                    HasSubstr("the credentials are those of address"), Not(HasSubstr("hush"))));
  for (const char* wrong : {"ftp://me:hush-hush-1@x", "http://me:hush-hush-1@x y",
                            "http://me:hush/hush-1@x", "me:hush-hush-1@x"}) {
    EXPECT_THAT(Check(QueryAt(wrong)).text, AllOf(HasSubstr(": "), Not(HasSubstr("hush"))));
  }
}

TEST(MetricQuery, is_asked_with_the_user_of_the_apm_block_if_the_login_of_its_address_is_empty) {
  const LoopbackServer server(ServerReply{.status = 401});
  MetricQuery query = QueryAt("http://@" + server.url().substr(7));
  query.apm->config.values["basic_auth_user"] = "me";
  query.apm->config.values["basic_auth_password"] = "hush-hush-1";
  EXPECT_THAT(Check(query).text, HasSubstr("those of basic_auth_user and basic_auth_password"));
  EXPECT_EQ(server.requests().at(0).headers.Find("Authorization"), "Basic bWU6aHVzaC1odXNoLTE=");
}

TEST(MetricQuery, shows_no_token_that_its_source_tells_back_without_its_scheme) {
  const LoopbackServer server(ServerReply{.status = 500, .body = "no such token: hush-hush-1"});
  MetricQuery query = QueryAt(server.url());
  query.apm->config.values["header_Authorization"] = "Bearer hush-hush-1";
  const CheckResult result = Check(query);
  EXPECT_EQ(server.requests().at(0).headers.Find("Authorization"), "Bearer hush-hush-1");
  EXPECT_THAT(result.text, AllOf(HasSubstr("no such token"), Not(HasSubstr("hush"))));
}

TEST(MetricQuery, without_data_is_a_warning_because_the_agent_takes_it_as_an_error) {
  const CheckResult result = CheckWith(Series(""));
  EXPECT_EQ(result.outcome, CheckOutcome::kWarn);
  EXPECT_THAT(result.text, HasSubstr("answers, but with no data"));
  EXPECT_THAT(result.cure, HasSubstr("are the metrics scraped"));
}

struct Wrong {
  std::string name;
  ServerReply reply;
  std::string says;
};
class WrongAnswer : public testing::TestWithParam<Wrong> {};

TEST_P(WrongAnswer, fails_and_says_what_came) {
  const CheckResult result = CheckWith(GetParam().reply);
  EXPECT_EQ(result.outcome, CheckOutcome::kFail);
  EXPECT_THAT(result.text, HasSubstr(GetParam().says));
  EXPECT_THAT(result.cure, Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, WrongAnswer,
    testing::Values(
        Wrong{"two_series", Series(R"({"values":[[1,"2"]]},{"values":[[1,"2"]]})"),
              "with 2 series"},
        Wrong{"not_a_number", Series(R"({"values":[[1,"2"],[2,"NaN"]]})"), "no number (NaN)"},
        Wrong{"not_a_number_at_first", Series(R"({"values":[[1,"NaN"],[2,"2"]]})"),
              "no number (NaN)"},
        Wrong{"refused",
              {.status = 400,
               .body = R"({"status":"error","errorType":"bad_data","error":"parse error: x"})"},
              "Prometheus refuses the query: bad_data: parse error: x"},
        Wrong{"page",
              {.body = "<html><title>Login</title></html>"},
              "is no Prometheus: HTTP 200, an HTML page: Login"},
        Wrong{"broken", {.status = 502, .body = "bad gateway"}, "HTTP 502, bad gateway"},
        Wrong{"moved",
              {.status = 302, .headers = {{"Location", "https://sso.test/login?t=1"}}},
              "redirected to https://sso.test/login"},
        Wrong{"forbidden", {.status = 403}, "HTTP 403: the apm block has no credentials"},
        Wrong{"other_json", {.body = R"({"status":"success"})"}, "is none of Prometheus"},
        Wrong{"no_json", {.body = "[1"}, "is no Prometheus"}),
    [](const auto& test) { return test.param.name; });

TEST(MetricQuery, of_a_source_out_of_reach_fails_with_its_address) {
  std::string url;
  {
    const LoopbackServer server(Series(""));
    url = server.url();
  }
  const CheckResult result = Check(QueryAt(url));
  EXPECT_EQ(result.outcome, CheckOutcome::kFail);
  EXPECT_THAT(result.text, HasSubstr("cannot connect to " + url));
  EXPECT_THAT(result.cure, HasSubstr("apm block \"prometheus\""));
}

TEST(MetricQuery, of_an_apm_block_that_cannot_be_used_fails) {
  EXPECT_THAT(Check(QueryAt("")).text, HasSubstr("it has no address"));
  EXPECT_THAT(Check(QueryAt("ftp://x")).text, HasSubstr("ftp://x: "));
  MetricQuery query = QueryAt("https://localhost:1");
  query.apm->config.values["ca_cert"] = "/nowhere/ca.pem";
  EXPECT_THAT(Check(query).text, HasSubstr("/nowhere/ca.pem"));
  query.apm->config.values = {{"address", "http://localhost:1"}, {"skip_verify", "perhaps"}};
  EXPECT_EQ(Check(query).outcome, CheckOutcome::kFail);
}

TEST(MetricQuery, of_a_source_that_the_agent_does_not_have_fails) {
  MetricQuery query = QueryAt("");
  query.apm.reset();
  EXPECT_EQ(Check(query).outcome, CheckOutcome::kFail);
  EXPECT_THAT(Check(query).text, HasSubstr("has no apm block \"prometheus\""));
  query.apms_are_known = false;
  EXPECT_EQ(Check(query).outcome, CheckOutcome::kUnknown);
  EXPECT_THAT(Check(query).cure, HasSubstr("--agent-config"));
}

TEST(MetricQuery, of_nomads_own_data_cannot_scale_from_zero) {
  MetricQuery query = QueryAt("");
  query.check.source = "nomad-apm";
  query.apm->driver = "nomad-apm";
  EXPECT_EQ(Check(query).outcome, CheckOutcome::kWarn);
  EXPECT_THAT(Check(query).text, HasSubstr("raises min to 1"));
  query.from_zero = false;
  EXPECT_EQ(Check(query).outcome, CheckOutcome::kUnknown);
  query.apm->driver = "datadog";
  EXPECT_THAT(Check(query).text, HasSubstr("(driver datadog)"));
}

TEST(MetricQuery, of_a_fixed_value_is_asked_of_nobody) {
  const LoopbackServer server(Series(""));
  MetricQuery query = QueryAt(server.url());
  query.check.strategy = "fixed-value";
  EXPECT_EQ(Check(query).outcome, CheckOutcome::kPass);
  EXPECT_THAT(server.requests(), IsEmpty());
  query.apm.reset();
  EXPECT_EQ(Check(query).outcome, CheckOutcome::kPass) << "the agent does not look for the source";
  query.apms_are_known = false;
  EXPECT_EQ(Check(query).outcome, CheckOutcome::kPass);
  query.check.source = "nomad-apm";
  EXPECT_EQ(Check(query).outcome, CheckOutcome::kWarn) << "min is raised whatever the strategy is";
}

TEST(MetricQuery, comes_from_the_files_with_the_agents_defaults) {
  const support::ScopedTempDir dir;
  const std::string agent = dir.WriteFile("agent.hcl",
                                          "apm \"prom\" {\n  driver = \"prometheus\"\n"
                                          "  config = { address = \"http://p:9090\" }\n}\n"
                                          "target \"harvester\" { driver = \"harvester\" }\n");
  const std::string policy = dir.WriteFile(
      "policy.hcl",
      "scaling \"web\" {\n  max = 5\n  min = 1\n  policy {\n"
      "    check \"a\" {\n      source = \"prom\"\n      query = \"q\"\n      query_window = "
      "\"5m\"\n"
      "      query_window_offset = \"1m\"\n      strategy \"pass-through\" {}\n    }\n"
      "    check \"b\" {\n      query = \"r\"\n      query_window = \"instant\"\n"
      "      strategy \"pass-through\" {}\n    }\n"
      "    target \"harvester\" {}\n  }\n}\n");
  const auto files = ReadOperatorFiles(
      {.agent_config = agent, .policy = policy, .policy_name = "web", .needs_policy = true});
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->queries.size(), 2U);
  const MetricQuery& first = files->queries[0];
  EXPECT_EQ(first.policy, "web");
  EXPECT_FALSE(first.from_zero);
  EXPECT_EQ(first.check.query, "q");
  EXPECT_EQ(first.check.window, std::chrono::minutes(5));
  EXPECT_EQ(first.check.offset, std::chrono::minutes(1));
  EXPECT_THAT(first.check.where, HasSubstr("policy.hcl:5:"));
  ASSERT_TRUE(first.apm.has_value());
  EXPECT_EQ(first.apm->config.values.at("address"), "http://p:9090");
  EXPECT_EQ(files->queries[1].check.source, "nomad-apm");
  EXPECT_FALSE(first.check.instant);
  EXPECT_TRUE(files->queries[1].check.instant);
  EXPECT_EQ(files->queries[1].apm.value().driver, "nomad-apm");
}

// MutatePolicy of the agent's policy/mutators.go.
TEST(MetricQuery, is_of_a_pool_that_scales_from_zero_only_in_a_policy_of_a_cluster) {
  const support::ScopedTempDir dir;
  const auto from_zero = [&](const std::string& arguments) {
    const auto files = ReadOperatorFiles(
        {.policy =
             dir.WriteFile("policy.hcl", "scaling \"web\" {\n  max = 5\n" + arguments +
                                             "  policy {\n    check \"a\" {\n      strategy "
                                             "\"pass-through\" {}\n    }\n    target \"harvester\" "
                                             "{}\n  }\n}\n"),
         .policy_name = "web"});
    EXPECT_TRUE(files.ok()) << files.status();
    return files->queries.at(0).from_zero;
  };
  EXPECT_TRUE(from_zero(""));
  EXPECT_TRUE(from_zero("  type = \"cluster\"\n"));
  EXPECT_FALSE(from_zero("  min = 1\n"));
  EXPECT_FALSE(from_zero("  type = \"horizontal\"\n"));
}

}  // namespace
}  // namespace nomad_harvester::cli
