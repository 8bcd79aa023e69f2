# SPDX-License-Identifier: MIT
# An overlay port: `vcpkg install libums --overlay-ports=packaging/vcpkg/ports` builds what is
# checked out or was unpacked. A port in a registry would get it with vcpkg_from_git() instead.

get_filename_component(SOURCE_PATH ${CMAKE_CURRENT_LIST_DIR}/../../../.. ABSOLUTE)
vcpkg_cmake_configure(SOURCE_PATH ${SOURCE_PATH}
    OPTIONS -DUMS_BUILD_TESTS=OFF -DUMS_BUILD_BENCH=OFF -DUMS_BUILD_TOOLS=OFF -DUMS_BUILD_EXAMPLES=OFF
        # An MPI of this machine would make the package depend on it.
        -DUMS_BUILD_MPI=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME ums CONFIG_PATH lib/cmake/ums)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/debug/include ${CURRENT_PACKAGES_DIR}/debug/share)
vcpkg_install_copyright(FILE_LIST ${SOURCE_PATH}/LICENSE)
