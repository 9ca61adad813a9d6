// SPDX-License-Identifier: Apache-2.0
// The annotations of VMs and of the pool's Lease: what was read is written and read again as it
// was.
#include "nomad_harvester/harvester/metadata.h"

#include "fuzz/fuzz.h"

namespace {

template <typename Parse>
void CheckRoundTrip(const Parse& parse, std::string_view text) {
  const auto value = parse(text);
  if (!value.ok()) return;
  const std::string written = nomad_harvester::harvester::ToAnnotation(*value);
  const auto again = parse(written);
  nomad_harvester::fuzz::Require(again.ok(), "what was written can be read");
  nomad_harvester::fuzz::Require(*again == *value, "what was written means what was read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace base = nomad_harvester::base;
  namespace harvester = nomad_harvester::harvester;
  const std::string_view text = nomad_harvester::fuzz::Text(data, size);
  CheckRoundTrip(&harvester::ParseMark, text);
  CheckRoundTrip(&harvester::ParseNodesRecord, text);
  CheckRoundTrip(&harvester::ParsePublishedHost, text);
  CheckRoundTrip(&harvester::ParseLeaseAction, text);
  CheckRoundTrip(&harvester::ParseBackOff, text);
  CheckRoundTrip(&harvester::ParsePolicyRecord, text);
  CheckRoundTrip(&harvester::ParseErrorRecord, text);
  const base::Hold hold = base::ParseHold(text);
  nomad_harvester::fuzz::Require(base::ParseHold(base::FormatHold(hold)) == hold,
                                 "a hold that was written means what was read");
  return 0;
}
