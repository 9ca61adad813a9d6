// SPDX-License-Identifier: Apache-2.0
// Environment variables for the duration of a test.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_SCOPED_ENVIRONMENT_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_SCOPED_ENVIRONMENT_H_

#include <map>
#include <optional>
#include <string>

namespace nomad_harvester::support {

// The destructor restores the previous values. Not safe while other threads read the environment.
class ScopedEnvironment {
 public:
  ScopedEnvironment() = default;
  ScopedEnvironment(const std::string& name, const std::string& value) { Set(name, value); }
  ~ScopedEnvironment();
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

  void Set(const std::string& name, const std::string& value);
  void Unset(const std::string& name);

 private:
  void Remember(const std::string& name);

  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_SCOPED_ENVIRONMENT_H_
