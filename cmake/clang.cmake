# SPDX-License-Identifier: Apache-2.0
# Toolchain file: the Clang that the project's checks use, by Debian's name for its version: 14 on Debian 12, which has
# a newer one, too, and 19 on Debian 13 (scripts/lib.sh).
find_program(CMAKE_CXX_COMPILER NAMES clang++-14 clang++-19 clang++ REQUIRED)
