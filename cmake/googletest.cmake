# SPDX-License-Identifier: MIT
# GoogleTest from source, so that it gets the flags of the preset: a sanitizer that sees only half
# of the program reports races and overflows that are not there.

set(UMS_GOOGLETEST_DIR /usr/src/googletest CACHE PATH "Sources of GoogleTest")
if(NOT TARGET GTest::gtest_main)
    if(NOT EXISTS ${UMS_GOOGLETEST_DIR}/CMakeLists.txt)
        message(FATAL_ERROR "No GoogleTest sources in ${UMS_GOOGLETEST_DIR}: "
            "run tools/setup, or set UMS_GOOGLETEST_DIR, or UMS_BUILD_TESTS=OFF.")
    endif()
    set(INSTALL_GTEST OFF)
    set(BUILD_GMOCK OFF)
    set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)  # The two lines above win over its options.
    add_subdirectory(${UMS_GOOGLETEST_DIR} ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
endif()
