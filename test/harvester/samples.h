// SPDX-License-Identifier: Apache-2.0
// Sample values and objects for the tests of module harvester.
#ifndef NOMAD_HARVESTER_TEST_HARVESTER_SAMPLES_H_
#define NOMAD_HARVESTER_TEST_HARVESTER_SAMPLES_H_

#include <string>
#include <string_view>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/harvester/vm_spec.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {

// RFC 3339; any other text fails the test.
base::WallTime At(std::string_view text);

NodesRecord SampleNodes();
Mark SampleMark();
Image SampleImage();
VmSpec SampleVmSpec();
VmIdentity SampleIdentity();

// A VM of SampleVmSpec as Harvester returns it while its guest is running.
nlohmann::json SampleVmObject();

// A version of a template that uses what Harvester's UI offers, and what it writes for one VM.
nlohmann::json SampleTemplateVersion();

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_TEST_HARVESTER_SAMPLES_H_
