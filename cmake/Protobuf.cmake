# SPDX-License-Identifier: Apache-2.0
# nomad_harvester_add_proto_library(<target> <file.proto>...)
# Generates the C++ of messages and services with protoc and grpc_cpp_plugin, for protobuf's lite library:
# the full one describes each message to itself at every start of the process. Files of google/protobuf that
# the files import come with protobuf, and are generated like them. Paths of files and headers are relative to
# the project's root: "proto/target.grpc.pb.h". What the files and their imports describe is linked in, for
# reflection: "proto/descriptor_set.h". The project's warnings do not apply to generated code.
function(nomad_harvester_add_proto_library target)
  set(out ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out}/proto)
  set(protoc protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR})
  # Every file depends on all of them: they are few and import each other.
  set(own ${ARGN})
  list(FILTER own EXCLUDE REGEX "^google/")
  list(TRANSFORM own PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE all)
  set(sources "")
  foreach(proto IN LISTS ARGN)
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(generated ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
    set(services "")
    if(proto IN_LIST own)
      list(APPEND generated ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
      set(services --grpc_out=${out} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN})
    endif()
    add_custom_command(
      OUTPUT ${generated}
      COMMAND ${protoc} --cpp_out=lite:${out} ${services} ${proto}
      DEPENDS ${all}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      COMMENT "protoc ${proto}"
      VERBATIM)
    list(APPEND sources ${generated})
  endforeach()
  set(descriptors ${out}/proto/descriptor_set)
  add_custom_command(
    OUTPUT ${descriptors}.cc ${descriptors}.h
    COMMAND ${protoc} --include_imports --descriptor_set_out=${descriptors}.bin ${own}
    COMMAND ${CMAKE_COMMAND} -D IN=${descriptors}.bin -D OUT=${descriptors}
      -P ${PROJECT_SOURCE_DIR}/cmake/EmbedDescriptors.cmake
    DEPENDS ${all} ${PROJECT_SOURCE_DIR}/cmake/EmbedDescriptors.cmake
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMENT "protoc: descriptors"
    VERBATIM)
  add_custom_target(${target}_files DEPENDS ${sources} ${descriptors}.cc ${descriptors}.h)  # for scripts/lint
  add_library(${target} STATIC ${sources} ${descriptors}.cc)
  # Files of messages do not support unity builds; those of services do.
  list(FILTER sources EXCLUDE REGEX "\\.grpc\\.pb\\.(cc|h)$")
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_include_directories(${target} SYSTEM PUBLIC ${out})
  target_link_libraries(${target} PUBLIC nomad_harvester_grpc)
endfunction()
