# SPDX-License-Identifier: MIT
# cmake -DPORT_FOLDER=... -DFOLDER=... -P vcpkg.cmake: runs a portfile without vcpkg, which no test
# can download. The functions below have the names of vcpkg's functions, and do what those do for
# x64-linux: they build a release tree and a debug tree. The package lands in FOLDER/packages.
cmake_minimum_required(VERSION 3.22)

get_filename_component(PORT ${PORT_FOLDER} NAME)
set(CURRENT_PACKAGES_DIR ${FOLDER}/packages)
set(TREES release debug)
set(PREFIX_release ${CURRENT_PACKAGES_DIR})
set(PREFIX_debug ${CURRENT_PACKAGES_DIR}/debug)
set(TYPE_release Release)
set(TYPE_debug Debug)
# What a triplet sets, beside VCPKG_CMAKE_CONFIGURE_OPTIONS. The flags are those of the project's
# own builds, so a compiler cache has most of it already.
set(VCPKG_CXX_FLAGS_RELEASE "-O2 -g -DNDEBUG")
set(VCPKG_CXX_FLAGS_DEBUG "-O2 -g -DNDEBUG")

# As in vcpkg: an argument that a function does not know is an error.
macro(parse one_value lists)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "${one_value}" "${lists}")
    if(DEFINED arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "${CMAKE_CURRENT_FUNCTION} does not know ${arg_UNPARSED_ARGUMENTS}")
    endif()
endmacro()

function(vcpkg_cmake_configure)
    parse("SOURCE_PATH" "OPTIONS;OPTIONS_RELEASE;OPTIONS_DEBUG")
    foreach(tree IN LISTS TREES)
        string(TOUPPER ${tree} upper)
        execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${arg_SOURCE_PATH} -B ${FOLDER}/${tree}
            -DCMAKE_BUILD_TYPE=${TYPE_${tree}} -DCMAKE_INSTALL_PREFIX=${PREFIX_${tree}}
            -DBUILD_SHARED_LIBS=OFF -DCMAKE_INSTALL_LIBDIR:STRING=lib
            -DCMAKE_INSTALL_BINDIR:STRING=bin -DCMAKE_ERROR_ON_ABSOLUTE_INSTALL_DESTINATION=ON
            -DCMAKE_CXX_FLAGS_${upper}=${VCPKG_CXX_FLAGS_${upper}}
            ${VCPKG_CMAKE_CONFIGURE_OPTIONS} ${arg_OPTIONS} ${arg_OPTIONS_${upper}}
            ECHO_OUTPUT_VARIABLE ECHO_ERROR_VARIABLE ERROR_VARIABLE errors
            COMMAND_ERROR_IS_FATAL ANY)
        # The project need not know the options above, but must know the portfile's.
        foreach(option IN LISTS arg_OPTIONS)
            string(REGEX REPLACE "^-D([^:=]*).*" "\\1" name ${option})
            if(errors MATCHES "not used by the project:.*[\n ]${name}\n")
                message(FATAL_ERROR "the project has no ${name}")
            endif()
        endforeach()
    endforeach()
endfunction()

function(vcpkg_cmake_install)
    parse("" "")
    foreach(tree IN LISTS TREES)
        execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/${tree} --target install
            COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
endfunction()

# One package for both trees, in share/NAME: two folders below the prefix.
function(vcpkg_cmake_config_fixup)
    parse("PACKAGE_NAME;CONFIG_PATH" "")
    set(to ${PREFIX_release}/share/${arg_PACKAGE_NAME})
    file(GLOB of_release ${PREFIX_release}/${arg_CONFIG_PATH}/*)
    file(GLOB of_debug ${PREFIX_debug}/${arg_CONFIG_PATH}/*-debug.cmake)
    file(COPY ${of_release} DESTINATION ${to})
    foreach(file IN LISTS of_debug)
        file(READ ${file} text)
        string(REPLACE "\${_IMPORT_PREFIX}/lib" "\${_IMPORT_PREFIX}/debug/lib" text "${text}")
        get_filename_component(name ${file} NAME)
        file(WRITE ${to}/${name} "${text}")
    endforeach()
    foreach(tree IN LISTS TREES)
        get_filename_component(parent ${PREFIX_${tree}}/${arg_CONFIG_PATH} DIRECTORY)
        file(REMOVE_RECURSE ${parent})
    endforeach()

    set(up "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
    file(GLOB files ${to}/*.cmake)
    foreach(file IN LISTS files)
        file(READ ${file} text)
        string(REPLACE "${up}${up}${up}" "${up}${up}" text "${text}")
        string(REPLACE "/../../../\" ABSOLUTE" "/../../\" ABSOLUTE" text "${text}")
        file(WRITE ${file} "${text}")
    endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
    parse("" "")
    file(GLOB files ${PREFIX_debug}/lib/pkgconfig/*.pc)  # Both trees share the headers.
    foreach(file IN LISTS files)
        file(READ ${file} text)
        string(REPLACE "\${prefix}/include" "\${prefix}/../include" text "${text}")
        file(WRITE ${file} "${text}")
    endforeach()
endfunction()

function(vcpkg_install_copyright)
    parse("" "FILE_LIST")
    file(READ ${arg_FILE_LIST} text)
    file(WRITE ${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright "${text}")
endfunction()

include(${PORT_FOLDER}/portfile.cmake)
