// SPDX-License-Identifier: Apache-2.0
// A kubeconfig: its YAML, the entries of its current context, and what they hold.
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "kubeconfig.h"
#include "nlohmann/json.hpp"
#include "yaml.h"

namespace {

using nomad_harvester::fuzz::Require;
using nomad_harvester::kube::Json;

// A file in memory that holds each input in turn.
class File {
 public:
  File() : file_(memfd_create("kubeconfig", 0)) {}
  ~File() { close(file_); }
  void Write(std::string_view text) const {
    const bool written = ftruncate(file_, 0) == 0 && pwrite(file_, text.data(), text.size(), 0) ==
                                                         static_cast<ssize_t>(text.size());
    Require(written, "the input is stored");
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  const int file_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace kube = nomad_harvester::kube;
  namespace http = nomad_harvester::http;
  const std::string text(nomad_harvester::fuzz::Text(data, size));
  const auto value = kube::ParseYaml(text);
  if (value.ok() && value->is_object()) {
    // JSON is YAML: what was read says the same when it is written as JSON. Not so bytes that are
    // no UTF-8, which JSON cannot say.
    const std::string json = value->dump(-1, ' ', false, Json::error_handler_t::replace);
    if (json.find("\xEF\xBF\xBD") == std::string::npos) {
      const auto again = kube::ParseYaml(json);
      Require(again.ok(), "a value that was read can be read as JSON");
      Require(*again == *value, "a value that was read is the same as JSON");
    }
  }

  static const File kFile;
  kFile.Write(text);
  http::Problems problems;
  const auto context = kube::LoadKubeconfig(kFile.path(), "", problems);
  if (!context) return 0;
  kube::ReadCluster(*context, true, problems);
  const kube::UserCredentials user = kube::ReadUser(*context, true, problems);
  const std::string said(problems.ToStatus().message());
  for (const std::string& secret : {user.token.Reveal(), user.password.Reveal()}) {
    // Once in the text: a name or a path that equals the token may be quoted.
    if (text.find(secret) == text.rfind(secret)) {
      nomad_harvester::fuzz::RequireHidden(secret, said);
    }
  }
  return 0;
}
