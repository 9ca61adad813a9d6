// SPDX-License-Identifier: Apache-2.0
// The results of Maintenance::Check: one for each precondition of scaling a pool.
#ifndef NOMAD_HARVESTER_SCALING_CHECK_H_
#define NOMAD_HARVESTER_SCALING_CHECK_H_

#include <string>
#include <string_view>

#include "nomad_harvester/config/plugin_config.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

// The effect of a policy's dry-run on its pool, for messages.
inline constexpr char kDryRunMeans[] =
    "the policy sets dry-run: what the agent wants is logged, and not done";

enum class CheckOutcome {
  kPass,
  kFail,     // a Scale would fail, or the VMs that it makes would
  kWarn,     // works, at a cost that the text names
  kUnknown,  // the token lacks the right to read it, or nothing shows it
  kSkipped,  // something that it depends on has failed, as another result says
};

// Plain data. No text contains a secret of the configuration; texts of other systems are unchanged.
struct CheckResult {
  std::string id;       // "harvester.image": for programs, never changes
  std::string subject;  // the object: "image default/ubuntu-24.04"
  CheckOutcome outcome = CheckOutcome::kPass;
  std::string text;  // what was seen
  std::string cure;  // what to do; empty: nothing, or the text says it
};

// Who asks Nomad: "the token of nomad_token_file FILE", or "no token (…)".
std::string CredentialText(const config::NomadSettings& settings);
// The cure of a request that failed. `grant`: that of a token without a right; without any token it
// is to set one, because nobody should widen Nomad's anonymous policy.
std::string CureOfNomad(const absl::Status& failed, const config::NomadSettings& settings,
                        const std::string& grant);

// Says how an operator's annotation counts that is not written as it must be: `protect` (rule C7)
// or `delete-first` (C8) of a VM, `paused` of a Lease (L10). Empty: it is, or is missing.
std::string Misread(const config::StringMap& annotations, std::string_view key);

// Returns the first host name in `text` that only examples have: example.org, example.com or
// example.net, or a name below one (RFC 2606). Empty: there is none.
std::string PlaceholderIn(std::string_view text);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CHECK_H_
