#!/bin/sh
set -e
cmake --preset "${1:-clang-linux-release}" .
cmake --build ./build --parallel
