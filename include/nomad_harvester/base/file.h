// SPDX-License-Identifier: Apache-2.0
// Reads small files safely. Paths come from operators and may name a huge file, a device or a
// directory.
#ifndef NOMAD_HARVESTER_BASE_FILE_H_
#define NOMAD_HARVESTER_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/time.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::base {

inline constexpr std::size_t kMaxConfigFileBytes = 1024 * 1024;

// Returns the content of a regular file. Follows symbolic links; rejects a FIFO, device or
// directory without opening it. NOT_FOUND: no such file; PERMISSION_DENIED; INVALID_ARGUMENT: not a
// regular file; RESOURCE_EXHAUSTED: larger than max_bytes. Messages name the path. Blocks only on
// the file system.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     std::size_t max_bytes = kMaxConfigFileBytes);

// Identifies a version of a file: replacing or rewriting the file changes it.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  Duration modified{};
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
// nullopt if stat(2) fails.
std::optional<FileStamp> StampFile(const std::string& path);

// Returns the names (not paths) of the regular files in a directory, sorted; with kAndLinks also
// those of symbolic links that lead to none. NOT_FOUND, INVALID_ARGUMENT (not a directory) or
// PERMISSION_DENIED.
enum class Listed { kFiles, kAndLinks };
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path,
                                                       Listed listed = Listed::kFiles);

// Writes until nothing is left, however often a signal interrupts it. Returns 0, or errno with what
// was not written in `*left`.
int WriteAll(int fd, std::string_view* left);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_FILE_H_
