// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/demand/query.h"
#include "nomad_harvester/demand/room_reader.h"

#include "absl/strings/str_join.h"
#include "command.h"
#include "demand_view.h"
#include "nlohmann/json.hpp"
#include "text.h"

namespace nomad_harvester::cli {

namespace {

int ShowRoom(const DemandRun& run, const std::string& output, const demand::HomePool& pool) {
  if (run.harvester == nullptr) {
    return run.errors.Refuse(std::string("room ") + demand::kNeedsHarvester, kExitUsage);
  }
  const auto read = run.harvester->Read(run.context.WithTimeout(kOperatorBudget), pool);
  if (!read.ok()) return run.errors.Refuse(read.status(), kExitFailure);
  const harvester::Room& room = read->room;
  if (output != kForPeople) {
    run.out << PrintableDocument(output, {{"pool", demand::ToString(pool)},
                                          {"vms", read->vms},
                                          {"room", room.vms},
                                          {"limited_by", room.forecast.why}});
    return kExitOk;
  }
  run.out << "Pool:      " << Printable(demand::ToString(pool)) << ", " << Counted(read->vms, "VM")
          << "\nRoom:      for " << room.vms << " more\n";
  if (!room.forecast.why.empty()) {
    run.out << "Limit:     " << Printable(room.forecast.why) << "\n";
  }
  return kExitOk;
}

// One word that was meant to be a pool, and is none; empty: it may be a query.
std::string WhatIsNeither(const std::vector<std::string>& query, const OperatorFiles& files) {
  if (query.size() != 1 || query.front().find_first_of(" \t=") != std::string::npos) return "";
  const std::string neither = GivenWord(query.front()) + " is neither a query nor a pool";
  if (!files.hint.empty()) return neither + files.hint + files.unread;
  const std::vector<std::string> subjects = {"nodes-needed", "overflow", "room"};
  if (base::NearestName(query.front(), subjects).has_value()) return "";
  if (!files.AreGiven()) return WithoutFiles(files.why_none, query.front(), kQueryInstead);
  if (files.labels.empty()) return files.unread.empty() ? "" : neither + files.unread;
  return neither + "; there are " + FirstFew(files.labels) + files.unread;
}

}  // namespace

int ShowDemand(const DemandRun& run, const DemandArguments& arguments) {
  std::vector<AnsweredQuery> queries;
  std::vector<UnreadPolicy> unread = run.unread;
  if (!arguments.query.empty()) {
    AnsweredQuery given{.text = absl::StrJoin(arguments.query, " ")};
    auto query = demand::ParseQuery(given.text);
    if (!query.ok()) return run.errors.Refuse(query.status(), kExitUsage);
    if (query->subject == demand::Subject::kRoom) {
      return ShowRoom(run, arguments.output, query->home);
    }
    given.query = *std::move(query);
    queries.push_back(std::move(given));
  } else {
    auto of_files = QueriesOf(run.pools, &unread);
    if (!of_files.ok()) return run.errors.Refuse(of_files.status(), kExitUsage);
    queries = *std::move(of_files);
  }
  const auto reading = Answer(run, &queries);
  if (!reading.ok()) return run.errors.Refuse(reading.status(), kExitFailure);
  const int exit_code = unread.empty() ? kExitOk : kExitFailure;
  if (arguments.output != kForPeople) {
    nlohmann::ordered_json document = DemandDocument(queries);
    for (const UnreadPolicy& each : unread) document["pools"].push_back(UnreadDocument(each));
    run.out << PrintableDocument(arguments.output, std::move(document));
    return exit_code;
  }
  for (const AnsweredQuery& each : queries) {
    run.out << (&each == &queries.front() ? "" : "\n") << DemandTable(each, run.terminal.width);
  }
  run.out << (unread.empty() ? "" : "\n") << UnreadText(unread);
  return exit_code;
}

void AddDemandCommand(CLI::App& app, const Invocation& invocation) {
  const auto settings = std::make_shared<SettingArguments>();
  const auto arguments = std::make_shared<DemandArguments>();
  CLI::App* const command = app.add_subcommand(
      "demand",
      "Show how many nodes the work in Nomad needs now, and what becomes of each job that waits: "
      "what the apm block answers, without idle_for. Reads Nomad, and Harvester for the queries "
      "overflow and room.");
  command->add_option(
      "POOL|QUERY", arguments->query,
      "The pool, by the label of its enabled policy or its name, or a query, such as "
      "'nodes-needed node_class=web'; default: the demand queries of the policies' checks, or, of "
      "a policy without one, the nodes of its target block");
  AddFileOptions(*command, settings->files);
  AddSetOption(*command, settings->pairs,
               "KEY=VALUE of the apm's block; repeatable, the last one of a key counts; takes "
               "precedence over the environment (NOMAD_ADDR, NOMAD_TOKEN, ...) and over the files");
  AddOutputOption(*command, arguments->output);
  command->footer(
      "Exit: 0 answered, 1 Nomad, Harvester or one of several policies cannot be read, 2 usage, "
      "130 interrupted.");
  command->callback([settings, arguments, invocation] {
    settings->files = FindAgentFiles(settings->files, invocation.environment);
    TakePolicyName(&settings->files, &arguments->query);
    const ErrorWriter errors = invocation.Errors("demand");
    if (const std::string text = WhatIsNeither(arguments->query, settings->files); !text.empty()) {
      invocation.exit_code = errors.Refuse(text, kExitUsage);
      return;
    }
    invocation.exit_code =
        RunDemand(errors, *settings, {.policies = arguments->query.empty(), .harvester = false},
                  invocation.environment,
                  [arguments](const DemandRun& run) { return ShowDemand(run, *arguments); });
  });
}

}  // namespace nomad_harvester::cli
