# SPDX-License-Identifier: Apache-2.0
# The libraries of the project, from the packages of Debian 12 or 13. scripts/lib.sh lists the packages with
# their reasons.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(GTest REQUIRED)

# The static build uses its own libcurl (HTTP only, with c-ares): scripts/build passes its CMake
# package in CURL_DIR.
if(NOMAD_HARVESTER_STATIC)
  find_package(CURL CONFIG REQUIRED)
else()
  find_package(CURL REQUIRED)
endif()

# spdlog and fmt are used header-only in the static build, as libraries otherwise.
find_package(spdlog REQUIRED)
if(NOMAD_HARVESTER_STATIC)
  # Debian's spdlog links the shared fmt even when it is used header-only.
  set_target_properties(spdlog::spdlog_header_only PROPERTIES
    INTERFACE_LINK_LIBRARIES "Threads::Threads;fmt::fmt-header-only")
endif()
find_package(yaml-cpp REQUIRED)

# The push parser and, as headers, the HTTP server. The package has both kinds of library.
set(Boost_USE_STATIC_LIBS ${NOMAD_HARVESTER_STATIC})
find_package(Boost 1.81 REQUIRED COMPONENTS json)

# prometheus-cpp's core. Debian has a shared library only; scripts/build passes the CMake package of a
# static one, that of its source package (docs/adr/0026). Debian's own CMake package would also ask for
# the libraries of the parts that are not used.
if(NOMAD_HARVESTER_STATIC)
  find_package(prometheus-cpp CONFIG REQUIRED)
  set(NOMAD_HARVESTER_PROMETHEUS prometheus-cpp::core)
else()
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
  set(NOMAD_HARVESTER_PROMETHEUS PkgConfig::PROMETHEUS)
endif()

# gRPC by its CMake package: pkg-config follows what gRPC, RE2 and Abseil require of each other, which takes seconds
# on Debian 13, and CMake asks several times. The package would ask it for RE2, unless that target exists.
find_library(RE2_LIBRARY re2 REQUIRED)
add_library(re2::re2 UNKNOWN IMPORTED)
set_target_properties(re2::re2 PROPERTIES IMPORTED_LOCATION ${RE2_LIBRARY})
set(re2_FOUND TRUE)
find_package(OpenSSL REQUIRED)
if(NOMAD_HARVESTER_WITH_GRPC)
  find_package(Protobuf 3.21 REQUIRED)
  find_package(gRPC CONFIG REQUIRED)
  find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
  add_library(nomad_harvester_grpc INTERFACE)
  target_link_libraries(nomad_harvester_grpc INTERFACE gRPC::grpc++_reflection gRPC::grpc++
    protobuf::libprotobuf Threads::Threads)
endif()

# The CMake packages of Debian name shared libraries. For the static executable this replaces them by
# the archives in the same directory.
if(NOMAD_HARVESTER_STATIC)
  get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS imported)
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(SHARED|UNKNOWN)_LIBRARY$")
      continue()
    endif()
    foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE)
      get_target_property(location ${target} ${property})
      if(NOT location)
        continue()
      endif()
      string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${location}")
      if(EXISTS "${archive}")
        set_target_properties(${target} PROPERTIES ${property} "${archive}")
      endif()
    endforeach()
  endforeach()
endif()
