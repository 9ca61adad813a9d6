# SPDX-License-Identifier: Apache-2.0
# The modules, and which lower modules each one may use (ARCHITECTURE.md, "Modules").
#
# A module's public headers are reachable only by linking it: every module has its own
# include directory with a link to include/nomad_harvester/<module>. An include that the
# table below does not allow therefore fails to compile.

set(NOMAD_HARVESTER_MAY_USE_base "")
set(NOMAD_HARVESTER_MAY_USE_runtime base)
set(NOMAD_HARVESTER_MAY_USE_log base)
set(NOMAD_HARVESTER_MAY_USE_metrics base runtime log)
set(NOMAD_HARVESTER_MAY_USE_policy "")
set(NOMAD_HARVESTER_MAY_USE_hcl base)
set(NOMAD_HARVESTER_MAY_USE_http base runtime log metrics)
set(NOMAD_HARVESTER_MAY_USE_config base policy http)
set(NOMAD_HARVESTER_MAY_USE_kube base runtime log http config)
set(NOMAD_HARVESTER_MAY_USE_nomad base runtime log http config)
set(NOMAD_HARVESTER_MAY_USE_harvester base policy runtime log http kube)
set(NOMAD_HARVESTER_MAY_USE_nodepool base policy runtime log http nomad)
set(NOMAD_HARVESTER_MAY_USE_scaling base policy runtime log metrics config http kube nomad harvester
    nodepool demand)
set(NOMAD_HARVESTER_MAY_USE_demand base policy runtime log metrics http config kube nomad harvester
    nodepool)
set(NOMAD_HARVESTER_MAY_USE_simulator base runtime log http)
set(NOMAD_HARVESTER_MAY_USE_plugin base runtime log config demand scaling)
set(NOMAD_HARVESTER_MAY_USE_cli base policy runtime log metrics config hcl http kube nomad harvester
    nodepool demand scaling plugin simulator)

# nomad_harvester_add_module(<name> SOURCES <file>... [USES <module>...] [LIBS <target>...]
#                            [PRIVATE_LIBS <target>...])
# Sources are named explicitly, relative to the calling directory.
function(nomad_harvester_add_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES;LIBS;PRIVATE_LIBS")
  if(NOT DEFINED NOMAD_HARVESTER_MAY_USE_${name})
    message(FATAL_ERROR "module '${name}' is not in the table of cmake/Modules.cmake")
  endif()
  foreach(used IN LISTS arg_USES)
    if(NOT used IN_LIST NOMAD_HARVESTER_MAY_USE_${name})
      message(FATAL_ERROR "module '${name}' may not use '${used}' (cmake/Modules.cmake)")
    endif()
  endforeach()
  set(headers ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${headers}/nomad_harvester)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include/nomad_harvester/${name}
    ${headers}/nomad_harvester/${name} SYMBOLIC)

  add_library(harvester_${name} STATIC ${arg_SOURCES})
  target_include_directories(harvester_${name}
    PUBLIC ${headers}
    PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  list(TRANSFORM arg_USES PREPEND harvester_)
  target_link_libraries(harvester_${name}
    PUBLIC ${arg_USES} ${arg_LIBS}
    PRIVATE ${arg_PRIVATE_LIBS} nomad_harvester_options)
endfunction()

# nomad_harvester_add_test(<name> SOURCES <file>... [THREADED <file>...] USES <module>...
#                          [LIBS <target>...] [LABELS <label>...] [TIMEOUT <seconds>] [SHARDS <n>])
# One executable, one ctest entry: the result of each case goes to a JSON file that scripts/test
# counts. THREADED: the sources whose cases use several threads; ThreadSanitizer, which would find
# nothing in the others, runs these alone. SHARDS: the number of entries, each with a part of the
# cases, that can run in parallel. The label "long": before a release only (scripts/test --long).
function(nomad_harvester_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;SHARDS" "SOURCES;THREADED;USES;LIBS;LABELS")
  if("thread" IN_LIST NOMAD_HARVESTER_SANITIZE)
    set(arg_SOURCES "")
  endif()
  list(APPEND arg_SOURCES ${arg_THREADED})
  if(NOT arg_SOURCES)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  add_executable(${name} ${arg_SOURCES})
  if("long" IN_LIST arg_LABELS)
    add_dependencies(long_tests ${name})
  else()
    add_dependencies(tests ${name})
    if("scenario" IN_LIST arg_LABELS AND NOT "sweep" IN_LIST arg_LABELS)
      add_dependencies(scenarios ${name})
    endif()
  endif()
  # What is tested is optimized; a test itself need not be, the sweeps aside, which run for minutes: a third of
  # its compilation.
  if(NOT "sweep" IN_LIST arg_LABELS)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0;-U_FORTIFY_SOURCE>)
  endif()
  list(TRANSFORM arg_USES PREPEND harvester_)
  target_link_libraries(${name} PRIVATE ${arg_USES} ${arg_LIBS} GTest::gmock GTest::gtest
    harvester_test_main nomad_harvester_options)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/test)
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    set(entry ${name})
    if(arg_SHARDS GREATER 1)
      set(entry ${name}_${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${entry} COMMAND ${name}
      --gtest_shuffle --gtest_random_seed=1 --gtest_output=json:${CMAKE_BINARY_DIR}/test-results/${entry}.json)
    set_tests_properties(${entry} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
