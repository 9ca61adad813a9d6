// SPDX-License-Identifier: Apache-2.0
#include "versions.h"

#include "gtest/gtest.h"

namespace nomad_harvester::demand {
namespace {

struct VersionRow {
  const char* version;
  const char* constraints;
  bool as_version;
  bool as_semver;
};

TEST(MeetsVersions, follows_the_rules_of_version_and_of_semver) {
  const VersionRow rows[] = {
      {"1.6.3", "1.6.3", true, true},
      {"v1.6.3", "= 1.6.3", true, true},
      {"1.6", "= 1.6.0", true, true},
      {"1.6.3", "!= 1.6.2", true, true},
      {"1.10.0", ">= 1.9", true, true},
      {"1.10.0", "> 1.10", false, false},
      {"1.6.3", ">= 1.6, < 2.0", true, true},
      {"2.0.0", ">= 1.6, < 2.0", false, false},
      {"1.6.3+ent", "1.6.3", true, true},
      // A prerelease is older than its release.
      {"1.7.0-beta.1", "< 1.7.0-beta.2", true, true},
      {"1.7.0-beta.10", "> 1.7.0-beta.9", true, true},
      {"1.7.0-beta", "< 1.7.0-beta.1", true, true},
      {"1.7.0-rc.1", ">= 1.7.0-beta.1", true, true},
      // Only Semver orders it among other versions.
      {"1.7.0-beta.1", ">= 1.6", false, true},
      {"1.7.0-beta.1", "< 1.7", false, true},
      {"1.7.0-beta.1", "> 1.6.0-beta.1", false, true},
      {"1.7.0", "> 1.7.0-beta.1", true, true},
      // As Debian's kernels are called.
      {"6.1.0-18-amd64", ">= 5.0", false, true},
      // Without a dash, as in go-version.
      {"1.7.0beta1", "!= 1.7.0", true, true},
      {"1.7.0", "!= 1.7.0beta1", true, false},
      {"1.2.5", "~> 1.2.3", true, false},
      {"1.3.0", "~> 1.2.3", false, false},
      {"1.3.0", "~> 1.2", true, false},
      {"2.0.0", "~> 1.2", false, false},
      {"1.2.2", "~> 1.2.3", false, false},
      {"1.2.3", "~> 1.2.3-beta", false, false},
      // No version, or no constraint.
      {"", ">= 1", false, false},
      {"one", ">= 1", false, false},
      {"1..2", ">= 1", false, false},
      {"1.2.", ">= 1", false, false},
      {"1.2-", ">= 1", false, false},
      {"1.2+", ">= 1", false, false},
      {"99999999999999999999", ">= 1", false, false},
      {"1.2", "", false, false},
      {"1.2", ">= 1,", false, false},
      {"1.2", "=> 1", false, false},
  };
  for (const VersionRow& row : rows) {
    EXPECT_EQ(MeetsVersions(row.version, row.constraints, VersionRules::kVersion), row.as_version)
        << row.version << " " << row.constraints;
    EXPECT_EQ(MeetsVersions(row.version, row.constraints, VersionRules::kSemver), row.as_semver)
        << row.version << " " << row.constraints;
  }
}

}  // namespace
}  // namespace nomad_harvester::demand
