# SPDX-License-Identifier: Apache-2.0
# nomad_harvester_add_proto_library(<target> <file.proto>...)
# Generates the C++ of messages and services with protoc and grpc_cpp_plugin. Paths of files and headers are
# relative to the project's root: "proto/target.grpc.pb.h". The project's warnings do not apply to generated
# code.
function(nomad_harvester_add_proto_library target)
  set(out ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out}/proto)
  # Every file depends on all of them: they are few and import each other.
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE all)
  set(sources "")
  foreach(proto IN LISTS ARGN)
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(generated ${out}/${stem}.pb.cc ${out}/${stem}.pb.h ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
    add_custom_command(
      OUTPUT ${generated}
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${out} --grpc_out=${out}
        --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${proto}
      DEPENDS ${all}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      COMMENT "protoc ${proto}"
      VERBATIM)
    list(APPEND sources ${generated})
  endforeach()
  add_custom_target(${target}_files DEPENDS ${sources})  # for scripts/lint
  add_library(${target} STATIC ${sources})
  # Files of messages do not support unity builds; those of services do.
  list(FILTER sources EXCLUDE REGEX "\\.grpc\\.pb\\.(cc|h)$")
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_include_directories(${target} SYSTEM PUBLIC ${out})
  target_link_libraries(${target} PUBLIC nomad_harvester_grpc)
endfunction()
