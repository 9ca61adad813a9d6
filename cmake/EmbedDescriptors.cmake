# SPDX-License-Identifier: Apache-2.0
# cmake -D IN=FILE -D OUT=STEM -P: makes of a file STEM.h and STEM.cc, a function that returns its bytes.
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(..)" "\\\\x\\1" text "${bytes}")
# Short literals, one on a line, which the compiler joins.
string(REGEX REPLACE "((\\\\x..)(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?)" "\"\\1\"\n" text "${text}")
file(WRITE ${OUT}.h "#pragma once
#include <string_view>
namespace nomad_harvester::proto {
std::string_view FileDescriptorSetBytes();
}
")
cmake_path(GET OUT FILENAME name)
file(WRITE ${OUT}.cc "#include \"${name}.h\"
namespace nomad_harvester::proto {
std::string_view FileDescriptorSetBytes() {
  static constexpr char kBytes[] =
${text};
  return {kBytes, sizeof(kBytes) - 1};
}
}
")
