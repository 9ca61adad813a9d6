// SPDX-License-Identifier: Apache-2.0
// The agent's files, which operators write and the commands read. The first line of the input is
// the file's name, whose suffix says which syntax it is.
#include <string>

#include "nomad_harvester/hcl/document.h"

#include "fuzz/fuzz.h"

namespace {

namespace fuzz = nomad_harvester::fuzz;
namespace hcl = nomad_harvester::hcl;

void RequirePlaces(const hcl::Source& source, const hcl::Body& body) {
  for (const hcl::Argument& argument : body.arguments) {
    fuzz::Require(argument.offset < source.text().size(), "an argument stands in its file");
    fuzz::Require(argument.value.offset < source.text().size(), "a value stands in its file");
  }
  for (const hcl::Block& block : body.blocks) RequirePlaces(source, block.body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::Text(data, size);
  const std::size_t end = input.find('\n');
  if (end == std::string_view::npos) return 0;
  const hcl::Source source(std::string(input.substr(0, end)), std::string(input.substr(end + 1)));
  const auto body =
      hcl::ReadDocument(source, {{"target", 1}, {"scaling", 1, {{"policy", 0, {{"target", 1}}}}}});
  if (body.ok()) {
    RequirePlaces(source, *body);
    return 0;
  }
  const std::string message(body.status().message());
  fuzz::Require(message.starts_with(source.name() + ":"), "an error names its file");
  fuzz::Require(message.size() < source.name().size() + 1000, "an error is short");
  return 0;
}
