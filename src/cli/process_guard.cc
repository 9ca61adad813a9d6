// SPDX-License-Identifier: Apache-2.0
#include "process_guard.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <openssl/crypto.h>

namespace nomad_harvester::cli {

void GuardProcess() {
  // Whichever of these cannot be set leaves the process as safe as it was started.
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  // The first initialisation decides for the process; gRPC and libcurl ask for the configuration
  // later, in vain (openssl/openssl:crypto/init.c, OPENSSL_init_crypto).
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

}  // namespace nomad_harvester::cli
