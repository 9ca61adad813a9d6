// SPDX-License-Identifier: Apache-2.0
// Decides when a refused or failed attempt is repeated, and tracks how long it has failed (rules
// L2, L3).
#ifndef NOMAD_HARVESTER_SCALING_RETRIES_H_
#define NOMAD_HARVESTER_SCALING_RETRIES_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/scaling/facts.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

enum class Verdict {
  kDone,
  kNotWanted,   // a fresh read no longer asks for it; nothing was written
  kConflict,    // the object was changed in between: observe again
  kRefused,     // repeating will hardly change the answer
  kFailed,      // any other failure; an unanswered write may still have taken effect
  kUnsuitable,  // a fresh read shows that the VM must not be a victim
  kCancelled,   // the context ended, or it is too late to begin
};
struct Effect {
  Verdict verdict = Verdict::kNotWanted;
  absl::Status status{};  // OK for kDone and kNotWanted
  bool sent = true;       // false: a read before the write failed, so the write was not sent
};
// Classifies the status of a request by the errors of both systems.
Effect EffectOf(absl::Status status);
// Of a step that was accepted although the next observation still asks for it (rule L2).
Effect WithoutEffect();

// Keys of Retries for work that is not a step of the rules.
inline constexpr std::string_view kDeleteClaim = "delete-claim";
inline constexpr std::string_view kDeleteSecret = "delete-secret";
inline constexpr std::string_view kSetSecretOwner = "set-secret-owner";

// The failed attempts of one pool, by kind of work and object. Kept between runs in this process;
// after a restart the times start anew. Not thread-safe: the pool's gate lets one loop use it at a
// time.
class Retries {
 public:
  struct Key {
    Key(std::string_view kind, std::string of, std::string node_and_value = {})
        : what(kind), object(std::move(of)), write(std::move(node_and_value)) {}
    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(a.what, a.object) < std::tie(b.what, b.object);
    }

    std::string_view what;  // the kind of work: "start-drain"
    std::string object;     // the VM's uid, the name of a claim, …
    // The node and the value of a step. Not compared: another write waits for its next attempt and
    // is refused like this one, but it is not asked for again because this one had no effect.
    std::string write;
  };

  explicit Retries(runtime::Random& random) : random_(random) {}

  // False while the object waits for its next attempt.
  bool MayTry(const Key& key, base::MonoTime now) const;
  // Records the effect of an attempt. True if it is worth a log line: the trouble has begun, has
  // doubled its wait, or (for a success) has ended.
  bool Record(const Key& key, const Effect& effect, base::MonoTime now);

  // True if the last attempt was accepted before an observation that began at `observed`. If that
  // observation still asks for the work, the write had no effect: record kWithoutEffect (rule L2).
  bool WasAccepted(const Key& key, base::MonoTime observed) const;
  // True if the last attempts were accepted without effect; another acceptance proves nothing.
  bool LacksEffect(const Key& key) const;
  // The observation no longer asks for the other work that was accepted before it: that had its
  // effect. A sweep observes the clean-up, every other observation the rest.
  void ConfirmAccepted(base::MonoTime observed, bool of_sweep);

  // Drops the object's failures: the next one counts as the first.
  void Forget(const Key& key) { troubles_.erase(key); }

  // The time since the first refusal. It ends only with success or when the work is no longer
  // wanted, not with conflicts or transient failures. Zero: not refused.
  base::Duration RefusedFor(const Key& key, base::MonoTime now) const;
  // The time from the first refusal to the last one, so that a single refusal, retried a minute
  // later, does not count as lasting.
  base::Duration RefusedAgainFor(const Key& key) const;
  bool IsRefusedForGood(const Key& key, base::MonoTime now) const {
    return RefusedFor(key, now) >= kRefusedForGood;
  }
  // The time since the first failure of any kind.
  base::Duration FailingFor(const Key& key, base::MonoTime now) const;
  // The last error; OK if there is no trouble.
  absl::Status LastOf(const Key& key) const;
  // When it may be tried again; unset: at once, or its last attempt was refused.
  std::optional<base::MonoTime> RetryOf(const Key& key) const;
  // The earliest attempt due later than `after`, the time at which everything due was tried.
  // Ignores work that was due but skipped (rule L2).
  std::optional<base::MonoTime> NextAttempt(base::MonoTime after) const;

  // Drops the failures of objects that are not in the set. With `and_clean_up`, keeps those of
  // claims and Secrets, because only a sweep knows their names.
  void KeepOnly(const std::set<std::string>& objects, bool and_clean_up);
  // Fills in what every VM was refused.
  void Apply(base::MonoTime now, Observation* observation) const;

 private:
  struct Trouble {
    std::optional<base::MonoTime> refused_since;
    base::MonoTime refused_last{};
    base::MonoTime failing_since{};
    base::Duration wait{};
    base::MonoTime next{};
    absl::Status last;    // OK: the work has not failed
    bool logged = false;  // conflicts alone are not logged
    // When the last attempt was accepted, until an observation shows whether it had an effect.
    std::optional<base::MonoTime> accepted;
    std::string write{};          // what was accepted then
    bool without_effect = false;  // `last` is WithoutEffect
  };
  const Trouble* Find(const Key& key) const;

  runtime::Random& random_;
  std::map<Key, Trouble> troubles_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RETRIES_H_
