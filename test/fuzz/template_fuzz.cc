// SPDX-License-Identifier: Apache-2.0
// Templates of user data.
#include <string>

#include "nomad_harvester/harvester/vm_spec.h"

#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace harvester = nomad_harvester::harvester;
  namespace fuzz = nomad_harvester::fuzz;
  const std::string source(fuzz::Text(data, size));
  const std::string secret = std::string(fuzz::kSecretPrefix) + "{{name}}<&>";
  // A template that has the secret itself may be quoted.
  if (source.find(secret) != std::string::npos) return 0;
  const harvester::TemplateVariables variables = {
      {"name", "vm-1"}, {"index", "0"}, {"env.HARVESTER_TEMPLATE_TOKEN", secret}};
  const auto text = harvester::RenderTemplate(source, variables);
  if (!text.ok()) {
    fuzz::RequireHidden(secret, std::string(text.status().message()));
  } else if (source.find("{{") == std::string::npos) {
    fuzz::Require(*text == source, "a text without tags stays as it is");
  }
  const auto data_of_vm = harvester::ComposeUserData(source, variables, {"ssh-ed25519 AAAA fuzz"});
  if (!data_of_vm.ok()) fuzz::RequireHidden(secret, std::string(data_of_vm.status().message()));
  return 0;
}
