// SPDX-License-Identifier: Apache-2.0
// What protects the secrets in the memory of the process. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_PROCESS_GUARD_H_
#define NOMAD_HARVESTER_CLI_PROCESS_GUARD_H_

namespace nomad_harvester::cli {

// Call it first in the process, before any thread and any use of OpenSSL. It cannot be undone.
//
// - The memory is written to no core file, and only root may read it or attach a debugger
//   (RLIMIT_CORE, PR_SET_DUMPABLE).
// - OpenSSL loads no configuration. The host's openssl.cnf, or the file of OPENSSL_CONF, could
//   change the protocols that are accepted, and load shared objects into a static executable.
void GuardProcess();

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_PROCESS_GUARD_H_
