// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/strings/str_join.h"
#include "command.h"
#include "nlohmann/json.hpp"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using Json = nlohmann::ordered_json;
using scaling::Collection;
using scaling::PoolKey;
using scaling::ReconcileEvent;
using scaling::StepKind;

// Words for the same act, done and planned.
struct Verb {
  std::string_view past;
  std::string_view infinitive;
};

Verb VerbOf(const ReconcileEvent& event) {
  using Kind = ReconcileEvent::Kind;
  static constexpr std::pair<Kind, Verb> kOthers[] = {
      {Kind::kPurge, {"purged node", "purge node"}},
      {Kind::kDeleteClaim, {"deleted volume", "delete volume"}},
      {Kind::kDeleteSecret, {"deleted Secret", "delete Secret"}},
      {Kind::kSetSecretOwner, {"set the owner of Secret", "set the owner of Secret"}},
  };
  for (const auto& [kind, verb] : kOthers) {
    if (kind == event.kind) return verb;
  }
  const scaling::StepSpec& spec = scaling::SpecOf(event.step.kind);
  return {spec.past, spec.infinitive};
}

std::string_view WhyOf(const ReconcileEvent& event) {
  if (event.kind == ReconcileEvent::Kind::kStep) return event.step.reason;
  return event.kind == ReconcileEvent::Kind::kSetSecretOwner ? "its VM exists" : "it has no VM";
}

// True for a step of this kind.
bool Is(const ReconcileEvent& event, StepKind kind) {
  return event.kind == ReconcileEvent::Kind::kStep && event.step.kind == kind;
}

// "web-a: deleted the VM: it never joined Nomad"; dry run: "web-a: would delete the VM: …".
std::string EventLine(const ReconcileEvent& event, bool dry_run) {
  std::string text = event.vm + ": ";
  if (Is(event, StepKind::kWait)) {
    text += "waiting: " + event.step.reason;
  } else if (Is(event, StepKind::kReport)) {
    text += "left alone: " + event.step.reason;
  } else {
    const Verb verb = VerbOf(event);
    // Without an answer it may have been done; the next step reads it again (rule L9).
    const bool unknown =
        !dry_run && (absl::IsUnavailable(event.outcome) || absl::IsDeadlineExceeded(event.outcome));
    const bool in_past = unknown || (!dry_run && event.outcome.ok());
    if (unknown) text += "it is not known yet whether it ";
    if (!in_past) text += dry_run ? "would " : "could not ";
    text += in_past ? verb.past : verb.infinitive;
    if (event.kind != ReconcileEvent::Kind::kStep) text += " " + event.object;
    text += ": ";
    text += WhyOf(event);
    if (!event.outcome.ok()) text += ": " + base::Message(event.outcome);
  }
  return Printable(text);
}

Json DocumentOf(const ReconcileEvent& event) {
  return {{"vm", event.vm},
          {"what", Is(event, StepKind::kWait)     ? "wait"
                   : Is(event, StepKind::kReport) ? "leave alone"
                                                  : VerbOf(event).infinitive},
          {"object", event.object},
          {"why", WhyOf(event)}};
}

// True if the event deletes something of the pool, or leads to that.
bool Deletes(const ReconcileEvent& event) {
  if (event.kind != ReconcileEvent::Kind::kStep) {
    return event.kind != ReconcileEvent::Kind::kSetSecretOwner;
  }
  // A preview only reports that marked VMs wait.
  return scaling::IsRemoval(event.step.kind) || event.step.kind == StepKind::kStartDrain ||
         event.step.kind == StepKind::kWait;
}

class Gc {
 public:
  Gc(const CommandRun& run, const RepairArguments& arguments) : run_(run), arguments_(arguments) {}

  int Collect() {
    const Settings& settings = run_.settings;
    const auto found = run_.maintenance.FindPools(run_.context, settings.ns);
    if (!found.ok()) return run_.errors.Refuse(found.status(), kExitFailure);
    std::set<PoolKey> pools = *found;
    if (!settings.pool.empty()) {
      std::erase_if(pools, [&](const PoolKey& key) { return key.pool != settings.pool; });
    }
    if (const int answer = Confirm(pools); answer != kExitOk) return answer;
    const bool is_document = arguments_.output != kForPeople;
    if (pools.empty()) {
      const scaling::NamespaceView ns = run_.maintenance.ReadNamespace(run_.context, settings.ns);
      if (!ns.problem.empty()) {
        return run_.errors.Refuse("namespace " + settings.ns + ": " + ns.problem + "; " + ns.cure,
                                  kExitFailure);
      }
      if (!is_document) run_.out << NothingText();
    }
    int worst = kExitOk;
    Json documents = Json::array();
    for (const PoolKey& pool : pools) {
      worst = std::max(worst, is_document ? Describe(pool, &documents) : RunPool(pool));
      if (run_.context.Done()) break;
    }
    if (is_document) {
      run_.out << PrintableDocument(arguments_.output, {{"pools", std::move(documents)}});
    }
    return worst;
  }

 private:
  std::string NothingText() const {
    const Settings& settings = run_.settings;
    // Nobody named it: the pool may be in another one.
    const bool is_default = settings.pool.empty() && !settings.policy_block.contains("namespace");
    const std::string& why_none = settings.files.why_none;
    const std::string cure =
        why_none.empty() ? ": name the pool's with -n, or the policy with --policy"
                         : "; " + WithoutFiles(why_none, "", "the pool's namespace with -n");
    return "nothing of " + (settings.pool.empty() ? "the plugin" : "pool " + settings.pool) +
           " was found in namespace " + settings.ns +
           (is_default ? ", which is the default" + cure : "") + "\n";
  }

  // For a program: what would be done first in the pool.
  int Describe(const PoolKey& pool, Json* pools) const {
    Json steps = Json::array();
    const Collection preview = run_.maintenance.Preview(
        run_.context, pool, run_.settings.policy,
        [&](const ReconcileEvent& event) { steps.push_back(DocumentOf(event)); });
    Json unfinished = Json::array();
    for (const scaling::Unfinished& each : preview.unfinished) {
      unfinished.push_back({{"vm", each.vm}, {"why", each.why}});
    }
    const bool clean = preview.outcome.ok() && unfinished.empty();
    pools->push_back(
        {{"namespace", pool.ns},
         {"node_group_name", pool.pool},
         {"steps", std::move(steps)},
         {"unfinished", std::move(unfinished)},
         {"error", preview.outcome.ok() ? Json() : Json(base::Message(preview.outcome))}});
    return clean ? kExitOk : kExitFailure;
  }

  // First shows what would be done. If a pool was given by name and nothing of it is deleted, does
  // not ask: undoing and recording harm nothing.
  int Confirm(const std::set<PoolKey>& pools) {
    const Settings& settings = run_.settings;
    if (arguments_.dry_run || arguments_.yes || pools.empty()) return kExitOk;
    std::vector<std::string> names;
    std::ostringstream told;
    bool deletes = false;
    for (const PoolKey& pool : pools) {
      names.push_back(pool.pool);
      const auto before = told.tellp();
      const Collection preview = run_.maintenance.Preview(
          run_.context, pool, settings.policy, [&](const ReconcileEvent& event) {
            Print(told, pool, EventLine(event, /*dry_run=*/true));
            deletes |= Deletes(event);
          });
      if (preview.outcome.ok() && told.tellp() == before) Print(told, pool, "nothing to do");
      if (preview.outcome.ok()) continue;
      const int failure = Fail(pool.ToString(), preview.outcome);
      // If there are several pools, the others can still be collected.
      if (!settings.pool.empty() || run_.context.Done()) return failure;
    }
    if (!settings.pool.empty() && !deletes) return kExitOk;
    run_.out << told.str();
    const std::string act = "collect what is left of " +
                            std::string(names.size() == 1 ? "pool " : "pools ") +
                            absl::StrJoin(names, ", ") + " in namespace " + settings.ns;
    return cli::Confirm(run_, arguments_.yes, act);
  }

  int RunPool(const PoolKey& pool) {
    const bool dry_run = arguments_.dry_run;
    const std::optional<config::PoolPolicy>& policy = run_.settings.policy;
    int printed = 0;
    const auto print_event = [&](const ReconcileEvent& event) {
      // Items that had to be left alone are printed at the end.
      if (Is(event, StepKind::kReport) && !dry_run) return;
      Print(event.outcome.ok() ? run_.out : run_.err, pool, EventLine(event, dry_run));
      ++printed;
    };
    const auto print_wait = [&](const std::string& holder, base::WallTime until) {
      Print(run_.out, pool,
            "waiting for the Lease of " + holder +
                ", which no longer renews it; it is taken over by " + base::FormatRfc3339(until));
    };
    const Collection collection =
        dry_run ? run_.maintenance.Preview(run_.context, pool, policy, print_event)
                : run_.maintenance.Collect(run_.context, pool, policy, print_event, print_wait);
    if (!collection.outcome.ok()) return Fail(pool.ToString(), collection.outcome);
    for (const scaling::Unfinished& unfinished : collection.unfinished) {
      Print(run_.err, pool, unfinished.vm + ": not done: " + unfinished.why);
    }
    if (!collection.unfinished.empty()) return kExitFailure;
    if (!collection.not_made.empty()) {
      Print(run_.out, pool,
            "its Lease keeps the action of an interrupted growth, which has not made " +
                FirstFew(collection.not_made) + ": the next growth does, under the same names");
    }
    Print(run_.out, pool,
          !dry_run       ? "clean"
          : printed == 0 ? "nothing to do"
                         : "nothing was changed");
    return kExitOk;
  }

  int Fail(const std::string& what, const absl::Status& why) {
    if (absl::IsCancelled(why)) {
      run_.err << what << ": interrupted; the plugin's next Status or the next gc continues\n";
    } else {
      run_.err << what << (absl::IsAborted(why) ? ": skipped: " : ": not done: ")
               << Printable(base::Message(why)) << "\n";
    }
    return kExitFailure;
  }

  static void Print(std::ostream& to, const PoolKey& pool, const std::string& text) {
    to << pool.ToString() << ": " << Printable(text) << "\n" << std::flush;
  }

  const CommandRun& run_;
  const RepairArguments& arguments_;
};

}  // namespace

int CollectGarbage(const CommandRun& run, const RepairArguments& arguments) {
  return Gc(run, arguments).Collect();
}

void AddGcCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<RepairArguments>();
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "gc",
       .description =
           "Clean up after an interrupted action: marks, drains, partially created VMs, volumes, "
           "Secrets, nodes to purge; of one pool, or, with -n and neither a pool nor --policy, of "
           "every pool of the namespace.",
       .exit_codes = "Exit: 0 clean, 1 something was not done, 2 usage, 130 interrupted.",
       .use = PolicyUse::kOptional,
       .task = [arguments](const CommandRun& run) { return CollectGarbage(run, *arguments); }});
  CLI::Option* const dry_run =
      command->add_flag("--dry-run", arguments->dry_run,
                        "Only print what would be done first, and why; takes no Lease");
  AddOutputOption(*command, arguments->output)->needs(dry_run);
  command->add_flag("--yes", arguments->yes,
                    "Do not ask before it deletes something, or works on every pool");
}

namespace {

// It was made when Nomad had a higher index, so that this one was restored.
bool IsNewer(const scaling::SharedVm& vm, const scaling::Adoption& adoption) {
  return vm->nodes.has_value() && vm->nodes->index > adoption.index;
}

std::string TextOf(const scaling::Adoption& adoption) {
  std::string text;
  for (const scaling::SharedVm& vm : adoption.vms) {
    text += Printable(vm->name) + ": " +
            (IsNewer(vm, adoption) ? "made at a higher index than this Nomad has"
                                   : "recorded keys " + Printable(vm->nomad_cluster)) +
            "\n";
  }
  if (!adoption.lease_cluster.empty()) {
    text += "its Lease: recorded keys " + Printable(adoption.lease_cluster) + "\n";
  }
  if (!adoption.IsNeeded()) {
    return text + "pool " + adoption.key.ToString() + " belongs to this Nomad cluster\n";
  }
  return text + "this Nomad cluster has keys " + Printable(adoption.cluster) + "\nof the " +
         std::to_string(adoption.joined) + " VMs that had a node, it knows the nodes of " +
         std::to_string(adoption.known) + "\n";
}

Json DocumentOf(const scaling::Adoption& adoption) {
  Json vms = Json::array();
  for (const scaling::SharedVm& vm : adoption.vms) {
    vms.push_back(
        {{"vm", vm->name}, {"nomad_cluster", vm->nomad_cluster}, {"newer", IsNewer(vm, adoption)}});
  }
  return {{"namespace", adoption.key.ns},
          {"node_group_name", adoption.key.pool},
          {"needed", adoption.IsNeeded()},
          {"cluster", adoption.cluster},
          {"lease_cluster", adoption.lease_cluster},
          {"joined", adoption.joined},
          {"known", adoption.known},
          {"vms", std::move(vms)}};
}

}  // namespace

int AdoptPool(const CommandRun& run, const RepairArguments& arguments) {
  const PoolKey key = KeyOf(run);
  const auto adoption = run.maintenance.FindAdoption(run.context.WithTimeout(kOperatorBudget), key);
  if (!adoption.ok()) return run.errors.Refuse(adoption.status(), kExitFailure);
  run.out << (arguments.output == kForPeople
                  ? TextOf(*adoption)
                  : PrintableDocument(arguments.output, DocumentOf(*adoption)));
  if (!adoption->IsNeeded()) return kExitOk;
  if (adoption->joined > 0 && adoption->known == 0 && !arguments.without_nodes) {
    return run.errors.Refuse(
        base::FailedPrecondition(
            "this Nomad knows no node of the pool: once it is adopted, the next scale-ins would "
            "delete its VMs without a drain. Check nomad_address; after a rebuild wait until the "
            "clients have registered (nomad node status); if none of them will, give "
            "--without-nodes"),
        kExitFailure);
  }
  if (arguments.dry_run) return kExitOk;
  const std::string act = "record this Nomad cluster in " + std::to_string(adoption->vms.size()) +
                          " VMs" + (adoption->lease_cluster.empty() ? "" : " and on the Lease") +
                          " of pool " + key.ToString();
  if (const int answer = Confirm(run, arguments.yes, act); answer != kExitOk) return answer;
  const absl::Status written = run.maintenance.Adopt(run.context, *adoption);
  if (!written.ok()) return run.errors.Refuse(written, kExitFailure);
  run.out << "pool " << key.ToString() << " belongs to this Nomad cluster now\n";
  return kExitOk;
}

void AddAdoptCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<RepairArguments>();
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "adopt",
       .description =
           "After Nomad was rebuilt or restored: record the Nomad cluster that answers now in the "
           "VMs of a pool and on its Lease. While they name another one, the pool is not ready.",
       .exit_codes = "Exit: 0 the pool belongs to this cluster, 1 something was not done, 2 usage, "
                     "130 interrupted.",
       .use = PolicyUse::kRequired,
       .task = [arguments](const CommandRun& run) { return AdoptPool(run, *arguments); }});
  CLI::Option* const dry_run = command->add_flag("--dry-run", arguments->dry_run,
                                                 "Only print what belongs to another cluster");
  AddOutputOption(*command, arguments->output)->needs(dry_run);
  command->add_flag("--yes", arguments->yes, "Do not ask");
  command->add_flag("--without-nodes", arguments->without_nodes,
                    "Also if this Nomad knows no node of the pool's VMs");
}

}  // namespace nomad_harvester::cli
