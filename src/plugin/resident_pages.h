// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_RESIDENT_PAGES_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_RESIDENT_PAGES_H_

namespace nomad_harvester::plugin {

// Unmaps the pages of the executable that nothing was written to: code and constants. The kernel
// maps them again, from its cache of the file, when they are used. A start touches most of the
// libraries once, and the kernel maps sixteen pages for each that is touched: they would count as
// resident for as long as the process runs. Thread-safe; does not block.
void DropCodePages();

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_RESIDENT_PAGES_H_
