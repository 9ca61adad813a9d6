// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "absl/cleanup/cleanup.h"

namespace nomad_harvester::base {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
      return absl::StatusCode::kPermissionDenied;
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status FileError(const std::string& path, int error) {
  return MakeStatus(CodeOf(error), path + ": " + std::generic_category().message(error));
}

// A path with a NUL would name a different file than the message.
absl::Status CheckPath(const std::string& path) {
  if (path.empty()) return InvalidArgument("the path of a file is empty");
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("the path of a file contains a NUL character");
  }
  return absl::OkStatus();
}

absl::Status CheckRegular(const std::string& path, const struct stat& info) {
  if (S_ISREG(info.st_mode)) return absl::OkStatus();
  if (S_ISDIR(info.st_mode)) return InvalidArgument(path + ": is a directory, not a file");
  return InvalidArgument(path + ": is not a regular file");
}

// Does not use the size from stat(), which is 0 for files in /proc, and files may grow.
absl::StatusOr<std::string> ReadAll(const std::string& path, int fd, std::size_t max_bytes) {
  std::string content;
  std::array<char, 16 * 1024> buffer;
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(path, errno);
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(got));
    if (content.size() > max_bytes) {
      return MakeStatus(absl::StatusCode::kResourceExhausted,
                        path + ": is larger than " + std::to_string(max_bytes) + " bytes");
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t max_bytes) {
  NH_RETURN_IF_ERROR(CheckPath(path));
  // Before open: opening a FIFO or a device can block or have an effect.
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return FileError(path, errno);
  NH_RETURN_IF_ERROR(CheckRegular(path, info));
  // O_NONBLOCK in case a FIFO has replaced the file since stat().
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return FileError(path, errno);
  const absl::Cleanup closer = [fd] { close(fd); };
  if (fstat(fd, &info) != 0) return FileError(path, errno);
  NH_RETURN_IF_ERROR(CheckRegular(path, info));
  return ReadAll(path, fd, max_bytes);
}

std::optional<FileStamp> StampFile(const std::string& path) {
  struct stat info {};
  if (!CheckPath(path).ok() || stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileStamp{
      .device = info.st_dev,
      .inode = info.st_ino,
      .size = info.st_size,
      .modified = std::chrono::seconds(info.st_mtim.tv_sec) +
                  std::chrono::nanoseconds(info.st_mtim.tv_nsec),
  };
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path, Listed listed) {
  NH_RETURN_IF_ERROR(CheckPath(path));
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (error) return FileError(path, error.value());
  if (status.type() != std::filesystem::file_type::directory) {
    return InvalidArgument(path + ": is not a directory");
  }
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    // Follows symbolic links, because mounted ConfigMaps and Secrets consist of them.
    std::error_code broken;
    const bool counts = entry->is_regular_file(broken) ||
                        (listed == Listed::kAndLinks && entry->is_symlink(broken));
    if (counts) names.push_back(entry->path().filename().string());
  }
  if (error) return FileError(path, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

int WriteAll(int fd, std::string_view* left) {
  while (!left->empty()) {
    const ssize_t written = write(fd, left->data(), left->size());
    if (written >= 0) {
      left->remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace nomad_harvester::base
