// SPDX-License-Identifier: Apache-2.0
// The entry point of every test executable. A filter or shard that selects no test is a failure.

#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#ifdef __SANITIZE_THREAD__
// Debian's libabsl_status is not instrumented: ThreadSanitizer does not see that the last of the
// threads that share a status deletes it after the others have read it.
extern "C" const char* __tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {
  return "race:absl::debian3::Status::Unref\n";  // and UnrefNonInlined, which may leave no frame
}
#endif

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const int result = RUN_ALL_TESTS();
  if (result == 0 && ::testing::UnitTest::GetInstance()->test_to_run_count() == 0 &&
      !::testing::GTEST_FLAG(list_tests)) {
    std::fputs("no test was selected\n", stderr);
    return 1;
  }
  return result;
}
