# SPDX-License-Identifier: Apache-2.0
# The Debian packages whose code is in the static executable (of another build: that it was compiled
# against), for `nomad-harvester version` and scripts/check-updates: NOMAD_HARVESTER_COMPONENTS has lines
# "SOURCE VERSION PACKAGE", and NOMAD_HARVESTER_COMPONENTS_FILE is a file with these lines that changes
# only when they do. scripts/check-static compares the list with what the linker and the compiler read.

set(boost ${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR})
set(packages
  libabsl-dev libboost-container${boost}-dev libboost-json${boost}-dev libboost${boost}-dev libc-ares-dev
  libc6-dev libcli11-dev libcurl4-openssl-dev libfmt-dev
  libgrpc-dev libgrpc++-dev libprotobuf-dev libre2-dev libspdlog-dev
  libssl-dev libyaml-cpp-dev nlohmann-json3-dev prometheus-cpp-dev zlib1g-dev)
find_program(DPKG_QUERY dpkg-query REQUIRED)
set(dpkg_database ${CMAKE_SYSROOT}/var/lib/dpkg)

# The compiler's own libraries: the version is part of the packages' names. For another architecture they
# are those that cmake/arm64.cmake puts first.
if(CMAKE_CROSSCOMPILING)
  string(REGEX MATCH "^[0-9]+" major ${CMAKE_CXX_COMPILER_VERSION})
  list(APPEND packages libstdc++-${major}-dev libgcc-${major}-dev)
else()
  foreach(archive libstdc++.a libgcc.a)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${archive}
      OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    file(REAL_PATH "${path}" path)
    execute_process(COMMAND ${DPKG_QUERY} --search ${path}
      OUTPUT_VARIABLE owner COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX REPLACE ":.*" "" owner "${owner}")
    list(APPEND packages ${owner})
  endforeach()
endif()

execute_process(
  COMMAND ${DPKG_QUERY} --admindir=${dpkg_database} --show
    "--showformat=\${source:Package} \${Version} \${Package}\\n" ${packages}
  OUTPUT_VARIABLE NOMAD_HARVESTER_COMPONENTS COMMAND_ERROR_IS_FATAL ANY)

# Two are built from Debian's source packages (scripts/static-library), which may be older than what is
# installed now.
if(NOMAD_HARVESTER_STATIC)
  file(READ ${CURL_DIR}/../../../debian-version curl_version)
  file(READ ${prometheus-cpp_DIR}/../../../debian-version prometheus_version)
  string(STRIP "${curl_version}" curl_version)
  string(STRIP "${prometheus_version}" prometheus_version)
  string(REGEX REPLACE "(^|\n)curl [^ ]+" "\\1curl ${curl_version}" NOMAD_HARVESTER_COMPONENTS
    "${NOMAD_HARVESTER_COMPONENTS}")
  string(REGEX REPLACE "(^|\n)prometheus-cpp [^ ]+" "\\1prometheus-cpp ${prometheus_version}"
    NOMAD_HARVESTER_COMPONENTS "${NOMAD_HARVESTER_COMPONENTS}")
endif()

# One line each, sorted.
string(STRIP "${NOMAD_HARVESTER_COMPONENTS}" NOMAD_HARVESTER_COMPONENTS)
string(REPLACE "\n" ";" lines "${NOMAD_HARVESTER_COMPONENTS}")
list(SORT lines)
list(JOIN lines "\n" NOMAD_HARVESTER_COMPONENTS)
set(NOMAD_HARVESTER_COMPONENTS_FILE ${CMAKE_BINARY_DIR}/components)
file(CONFIGURE OUTPUT ${NOMAD_HARVESTER_COMPONENTS_FILE} CONTENT "@NOMAD_HARVESTER_COMPONENTS@\n" @ONLY)

# An installed or upgraded package runs this again.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${dpkg_database}/status)

set(NOMAD_HARVESTER_LINKED shared)
if(NOMAD_HARVESTER_STATIC)
  set(NOMAD_HARVESTER_LINKED static)
endif()
