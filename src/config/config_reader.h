// SPDX-License-Identifier: Apache-2.0
// Reads one configuration map: collects every problem instead of stopping at the first.
#ifndef NOMAD_HARVESTER_SRC_CONFIG_CONFIG_READER_H_
#define NOMAD_HARVESTER_SRC_CONFIG_CONFIG_READER_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/config/option_table.h"
#include "nomad_harvester/config/plugin_config.h"

#include "absl/status/status.h"

namespace nomad_harvester::config {

// A value and its source.
struct GivenValue {
  std::string value;
  std::string variable;  // the environment variable; empty: the map
};

// A problem of a value, and the fix: "key: <what> (got "x"); <hint>".
struct Fault {
  std::string what;
  std::string hint;
  // False if the value may contain a secret, or `what` already quotes it.
  bool show_value = true;
};

template <typename T>
using ValueOr = std::variant<T, Fault>;

// Returns text for a message: quoted, shortened, with control characters and invalid UTF-8 escaped.
std::string Quote(std::string_view text);

// Usage: Read() every key of the section, then Finish(), which reports the map's other keys as
// unknown. Not thread-safe; one reader per map.
class ConfigReader {
 public:
  // `values` must outlive the reader.
  ConfigReader(Section section, const StringMap& values, StringMap environment = {});

  // Parses the value of `key` into *target: from the map or the environment, in the order defined
  // by the option table, or else from the table's default. *target is unchanged if there is no
  // default either, or if the value is invalid: an invalid value is an error and never replaced by
  // the default. `parse` takes a const std::string& and returns ValueOr<T>.
  template <typename Target, typename Parse>
  void Read(std::string_view key, Parse parse, Target* target) {
    const std::optional<GivenValue> given = Find(key);
    if (!given) {
      if (const std::optional<std::string> text = DefaultOf(key)) Take(key, parse(*text), target);
      return;
    }
    Take(key, parse(given->value), target, *given);
  }

  // Stores a parsed value in *target, or reports its fault.
  template <typename T, typename Target>
  void Take(std::string_view key, ValueOr<T> parsed, Target* target, const GivenValue& given = {}) {
    if (const Fault* const fault = std::get_if<Fault>(&parsed)) {
      AddFault(key, *fault, given);
    } else {
      *target = std::get<T>(std::move(parsed));
    }
  }

  // Returns the unparsed value, from the source defined by the table; an absent required key is an
  // error.
  std::optional<GivenValue> Find(std::string_view key);
  // Return the value from one source only, for keys with special rules.
  std::optional<GivenValue> FindInMap(std::string_view key);
  std::optional<GivenValue> FindInEnvironment(std::string_view key) const;

  // The message quotes `given`, unless the option is a secret or the fault hides the value.
  void AddFault(std::string_view key, const Fault& fault, const GivenValue& given);
  // Reports an error that does not concern a single value.
  void AddProblem(std::string_view key, std::string_view what, std::string_view hint);
  void AddWarning(std::string_view key, std::string_view text);

  // Adds a value that may be a secret although its key is not one. `credential`: as in
  // base::Secret.
  void AddSecret(const std::string& value, const std::string& credential = {}) {
    secrets_.emplace_back(value, credential);
  }

  // Returns all values of secret keys, from both sources, valid or not, and the added ones.
  // Problems and warnings omit them.
  std::vector<base::Secret> TakeSecrets() { return std::move(secrets_); }
  std::vector<std::string> TakeWarnings() { return std::move(warnings_); }
  // OK, or INVALID_ARGUMENT with one line per problem, in the order of the option table, unknown
  // keys last. Adds what follows from Option::needs, also warnings.
  absl::Status Finish();

 private:
  void CheckNeeds();
  std::optional<std::string> DefaultOf(std::string_view key) const;
  std::size_t OrderOf(std::string_view key) const;

  Section section_;
  const StringMap& values_;
  const StringMap environment_;
  std::set<std::string, std::less<>> consumed_;
  std::multimap<std::size_t, std::string> problems_;  // by the key's place in the option table
  std::vector<std::string> warnings_;
  std::vector<base::Secret> secrets_;
};

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_SRC_CONFIG_CONFIG_READER_H_
