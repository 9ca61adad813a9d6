// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>

#include "values.h"

namespace nomad_harvester::config {
namespace {

namespace fs = std::filesystem;

fs::file_status Examine(const std::string& path, std::error_code* error) {
  return fs::status(fs::path(path), *error);
}

// Why `path` does not name a file (or directory) of the requested type; nullopt if it does.
std::optional<Fault> FindFault(const std::string& path, fs::file_type wanted) {
  std::error_code error;
  const fs::file_status status = Examine(path, &error);
  const bool directory = wanted == fs::file_type::directory;
  if (status.type() == fs::file_type::not_found) {
    return Fault{directory ? "no such directory" : "no such file",
                 "correct the path, as the autoscaler's agent sees it"};
  }
  if (status.type() == fs::file_type::none) {
    return Fault{"cannot be examined: " + error.message(), "let the agent's user read it"};
  }
  if (status.type() != wanted) {
    return Fault{directory ? "is not a directory" : "is not a regular file", "correct the path"};
  }
  return std::nullopt;
}

void ReadPath(ConfigReader& reader, std::string_view key, fs::file_type wanted, std::string* path) {
  reader.Read(
      key,
      [wanted](const std::string& text) -> ValueOr<std::string> {
        ValueOr<std::string> checked = Text(text);
        if (std::holds_alternative<Fault>(checked)) return checked;
        if (std::optional<Fault> fault = FindFault(text, wanted)) return *fault;
        return checked;
      },
      path);
}

// Whether the text is a path; a token does not start like one (a JWT starts with "ey", Rancher's
// and Nomad's tokens with letters or digits).
bool LooksLikePath(std::string_view text) {
  return !text.empty() &&
         (text.front() == '/' || text.substr(0, 2) == "./" || text.substr(0, 3) == "../");
}

}  // namespace

void ReadFilePath(ConfigReader& reader, std::string_view key, std::string* path) {
  ReadPath(reader, key, fs::file_type::regular, path);
}

void ReadKeyPairPaths(ConfigReader& reader, const std::string& cert_key, const std::string& key_key,
                      std::string* cert_path, std::string* key_path) {
  const bool has_cert = reader.Find(cert_key).has_value();
  const bool has_key = reader.Find(key_key).has_value();
  ReadFilePath(reader, cert_key, cert_path);
  ReadFilePath(reader, key_key, key_path);
  if (has_cert && !has_key) {
    reader.AddProblem(cert_key, "given without " + key_key, "give both");
  }
  if (has_key && !has_cert) {
    reader.AddProblem(key_key, "given without " + cert_key, "give both");
  }
}

void ReadDirectoryPath(ConfigReader& reader, std::string_view key, std::string* path) {
  ReadPath(reader, key, fs::file_type::directory, path);
}

void CheckTokenFile(ConfigReader& reader, std::string_view key, const Given& given,
                    std::string* path) {
  const ValueOr<std::string> checked = Text(given.value);
  if (const Fault* const fault = std::get_if<Fault>(&checked)) {
    reader.AddFault(key, *fault, given);
    return;
  }
  const bool shown = LooksLikePath(given.value);
  std::error_code error;
  if (Examine(given.value, &error).type() == fs::file_type::not_found) {
    reader.AddWarning(key, "no such file" + (shown ? " yet: " + Quote(given.value)
                                                   : std::string(" yet; the value is not shown, "
                                                                 "it may be the token itself")));
  } else if (std::optional<Fault> fault = FindFault(given.value, fs::file_type::regular)) {
    fault->show_value = shown;
    reader.AddFault(key, *fault, given);
    return;
  }
  *path = given.value;
}

}  // namespace nomad_harvester::config
