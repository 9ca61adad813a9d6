// SPDX-License-Identifier: Apache-2.0
// Checks the files that a configuration names, without reading them.
#ifndef NOMAD_HARVESTER_SRC_CONFIG_FILES_H_
#define NOMAD_HARVESTER_SRC_CONFIG_FILES_H_

#include <optional>
#include <string>
#include <string_view>

#include "config_reader.h"

namespace nomad_harvester::config {

// Reads the path in `key` into *path: a problem unless it names a regular file, through symbolic
// links or not.
void ReadFilePath(ConfigReader& reader, std::string_view key, std::string* path);
// Likewise for a client certificate and its key; also a problem if only one of them is given.
void ReadKeyPairPaths(ConfigReader& reader, const std::string& cert_key, const std::string& key_key,
                      std::string* cert_path, std::string* key_path);
// Likewise for a directory.
void ReadDirectoryPath(ConfigReader& reader, std::string_view key, std::string* path);
// Likewise for a file with a token, except that a missing file is only a warning. The messages omit
// any value that could be the token itself, given in the wrong key.
void CheckTokenFile(ConfigReader& reader, std::string_view key, const Given& given,
                    std::string* path);

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_SRC_CONFIG_FILES_H_
