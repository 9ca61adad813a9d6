// SPDX-License-Identifier: Apache-2.0
#include "resident_pages.h"

#include <cstddef>
#include <cstdint>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace nomad_harvester::plugin {
namespace {

// Called for the executable first: shared libraries, if there are any, belong to other processes,
// too.
int DropSegments(dl_phdr_info* object, std::size_t /*size*/, void* /*unused*/) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    // What was relocated is in a segment that was writable at first.
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
    const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    // Advice: a kernel that does not take it leaves the pages where they are. The first one is
    // about what is touched again: of a file that is in large folios, as one that was written in
    // one go, Linux would map 2 MiB for each touch (torvalds/linux:mm/memory.c, do_set_pmd).
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_NOHUGEPAGE);
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 1;
}

}  // namespace

void DropCodePages() { dl_iterate_phdr(DropSegments, nullptr); }

}  // namespace nomad_harvester::plugin
