// SPDX-License-Identifier: Apache-2.0
// The settings of the plugin block for Harvester and for Nomad.
#ifndef NOMAD_HARVESTER_SRC_CONFIG_PLUGIN_SECTIONS_H_
#define NOMAD_HARVESTER_SRC_CONFIG_PLUGIN_SECTIONS_H_

#include "nomad_harvester/config/plugin_config.h"

#include "config_reader.h"

namespace nomad_harvester::config {

void ReadHarvesterSettings(ConfigReader& reader, HarvesterSettings* settings);
void ReadNomadSettings(ConfigReader& reader, NomadSettings* settings);

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_SRC_CONFIG_PLUGIN_SECTIONS_H_
