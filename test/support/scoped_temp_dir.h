// SPDX-License-Identifier: Apache-2.0
// A directory for the duration of a test.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_SCOPED_TEMP_DIR_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_SCOPED_TEMP_DIR_H_

#include <string>
#include <string_view>

namespace nomad_harvester::support {

// Initially empty, mode 0700, under TMPDIR or /tmp; the destructor removes it recursively.
class ScopedTempDir {
 public:
  // Throws std::system_error if the directory cannot be created.
  ScopedTempDir();
  ~ScopedTempDir();
  ScopedTempDir(const ScopedTempDir&) = delete;
  ScopedTempDir& operator=(const ScopedTempDir&) = delete;

  const std::string& path() const { return path_; }
  // The path of an entry, which need not exist.
  std::string Path(std::string_view name) const;
  // Writes (or overwrites) a file, creates its parent directories, and returns its path.
  std::string WriteFile(std::string_view name, std::string_view content) const;

 private:
  std::string path_;
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_SCOPED_TEMP_DIR_H_
