# SPDX-License-Identifier: Apache-2.0
# Compiler options of the project, on an INTERFACE target, so that they do not apply to generated code.

option(NOMAD_HARVESTER_WITH_GRPC "Build the plugin module and the executable (they need gRPC)" ON)
option(NOMAD_HARVESTER_STATIC "Link one fully static executable" OFF)
set(NOMAD_HARVESTER_SANITIZE "" CACHE STRING
    "Sanitizers: empty, address;undefined, or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Every preset except clang uses unity builds, which take at most half the time. scripts/lint compiles
# each file alone with the preset clang, which finds missing includes.

# ccache treats paths below the base directory as relative, so that clones and build directories share
# their cache entries. Google Test's macros have the path of their file, which must be relative, too.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros ${CCACHE_PROGRAM})
endif()

add_library(nomad_harvester_options INTERFACE)
target_compile_options(nomad_harvester_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Wimplicit-fallthrough -Werror
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)

# Members that are left out have their initializers. Clang 19 has an own warning for them.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-Wmissing-designated-field-initializers NOMAD_HARVESTER_WARNS_OF_LEFT_OUT)
if(NOMAD_HARVESTER_WARNS_OF_LEFT_OUT)
  target_compile_options(nomad_harvester_options INTERFACE
    -Wno-missing-designated-field-initializers)
endif()

# GCC 12 reports false positives of these two inside libstdc++'s and nlohmann's inlined code.
target_compile_options(nomad_harvester_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict>)

# In a unity build a name can shadow one of another file; the preset clang compiles each file alone.
if(CMAKE_UNITY_BUILD)
  target_compile_options(nomad_harvester_options INTERFACE -Wno-shadow)
endif()

# Hardening. Flags of the code generator are global: they must reach generated code, too.
# scripts/check-static proves what they are for.
add_compile_options(-fstack-protector-strong)
add_compile_definitions(_GLIBCXX_ASSERTIONS)
if(NOT NOMAD_HARVESTER_SANITIZE)
  add_compile_options($<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
endif()
add_link_options(-Wl,-z,relro,-z,now)
if(NOMAD_HARVESTER_STATIC)
  # A static PIE needs no code that a shared library could replace (-fPIC), and the linker drops the
  # sections that nothing refers to (src/cli).
  add_compile_options(-fPIE -ffunction-sections -fdata-sections)
else()
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()

if(NOMAD_HARVESTER_SANITIZE)
  if("thread" IN_LIST NOMAD_HARVESTER_SANITIZE AND "address" IN_LIST NOMAD_HARVESTER_SANITIZE)
    message(FATAL_ERROR "NOMAD_HARVESTER_SANITIZE: thread and address exclude each other")
  endif()
  foreach(sanitizer IN LISTS NOMAD_HARVESTER_SANITIZE)
    add_compile_options(-fsanitize=${sanitizer})
    if(sanitizer STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Boost.Asio's queues have mutexes as well as the fences, which ThreadSanitizer does not know.
      add_compile_options(-Wno-tsan)
    endif()
    add_link_options(-fsanitize=${sanitizer})
  endforeach()
  if("undefined" IN_LIST NOMAD_HARVESTER_SANITIZE)
    # Checks of each access to a member, up to a third of the compilation: AddressSanitizer finds those that matter.
    add_compile_options(-fno-sanitize=null,alignment,vptr)
  endif()
  add_compile_options(-fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_compile_definitions(NOMAD_HARVESTER_SANITIZED)
  # Debian's Abseil is compiled without sanitizers. With this macro its hash tables keep the layout that the
  # library expects (abseil/abseil-cpp:absl/container/internal/raw_hash_set.h; newer than Debian 12's). Their
  # headers also poison free slots, which the library does not undo: hence allow_user_poisoning=0 where tests run.
  add_compile_definitions(NDEBUG_SANITIZER)
endif()

# For the directories of what no fuzzer runs: without libFuzzer's coverage, a quarter of its compilation.
macro(nomad_harvester_without_coverage)
  if("fuzzer-no-link" IN_LIST NOMAD_HARVESTER_SANITIZE)
    # The list of what has no coverage is unused then.
    add_compile_options(-fno-sanitize=fuzzer-no-link -Wno-unused-command-line-argument)
  endif()
endmacro()
