// SPDX-License-Identifier: Apache-2.0
#include "support/scoped_temp_dir.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <string_view>
#include <system_error>

namespace nomad_harvester::support {

ScopedTempDir::ScopedTempDir() {
  const char* parent = std::getenv("TMPDIR");
  path_ = std::string(parent == nullptr || *parent == '\0' ? "/tmp" : parent) + "/nh-test-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), path_);
  }
}

ScopedTempDir::~ScopedTempDir() {
  std::error_code ignored;  // a test may have changed permissions; each run has a new directory
  std::filesystem::remove_all(path_, ignored);
}

std::string ScopedTempDir::Path(std::string_view name) const {
  return path_ + "/" + std::string(name);
}

std::string ScopedTempDir::WriteFile(std::string_view name, std::string_view content) const {
  const std::string path = Path(name);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file;
  file.exceptions(std::ios::failbit | std::ios::badbit);
  file.open(path, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  return path;
}

}  // namespace nomad_harvester::support
