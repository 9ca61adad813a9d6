# SPDX-License-Identifier: Apache-2.0
# Toolchain file: Debian's cross compiler against the packages that scripts/arm64-root has unpacked in
# NOMAD_HARVESTER_ARM64_ROOT, of the environment.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(arm64_root $ENV{NOMAD_HARVESTER_ARM64_ROOT})
set(CMAKE_SYSROOT ${arm64_root})
# The cross compiler has a C library and a C++ library of its own, which get no security updates. Those
# of the packages come first.
set(CMAKE_EXE_LINKER_FLAGS_INIT
  "-B${arm64_root}/usr/lib/aarch64-linux-gnu -L${arm64_root}/usr/lib/gcc/aarch64-linux-gnu/12 \
-L${arm64_root}/usr/lib/aarch64-linux-gnu")

set(CMAKE_FIND_ROOT_PATH ${arm64_root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)  # protoc and grpc_cpp_plugin run on this machine
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)  # what scripts/static-library has built is outside
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${arm64_root})
set(ENV{PKG_CONFIG_LIBDIR}
  ${arm64_root}/usr/lib/aarch64-linux-gnu/pkgconfig:${arm64_root}/usr/share/pkgconfig)
