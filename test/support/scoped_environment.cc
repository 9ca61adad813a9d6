// SPDX-License-Identifier: Apache-2.0
#include "support/scoped_environment.h"

#include <cstdlib>
#include <optional>
#include <string>

namespace nomad_harvester::support {

ScopedEnvironment::~ScopedEnvironment() {
  for (const auto& [name, value] : before_) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
}

void ScopedEnvironment::Set(const std::string& name, const std::string& value) {
  Remember(name);
  setenv(name.c_str(), value.c_str(), 1);
}

void ScopedEnvironment::Unset(const std::string& name) {
  Remember(name);
  unsetenv(name.c_str());
}

// emplace keeps the value from before the first change.
void ScopedEnvironment::Remember(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  before_.emplace(name, value == nullptr ? std::nullopt : std::optional<std::string>(value));
}

}  // namespace nomad_harvester::support
