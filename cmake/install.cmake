# SPDX-License-Identifier: MIT
# Libraries, headers, CMake package and the files of pkg-config. All paths are relative: the tree
# may be moved.
include(CMakePackageConfigHelpers)

install(TARGETS ums_static ums_shared ums_compat ums_compat_shared ums_windows EXPORT ums-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# The files for the debuggers: what they share is put into both, because gdb loads a single file.
set(debuggers ${PROJECT_SOURCE_DIR}/tools/debuggers)
# gdb loads it with the library, from the build's folder as well.
set(gdb_file libums.so.${PROJECT_VERSION}-gdb.py)
file(READ ${debuggers}/fibers.py shared)
foreach(name IN ITEMS gdb lldb)
    file(READ ${debuggers}/for_${name}.py text)
    string(REPLACE "# INCLUDE fibers.py\n" "${shared}" text "${text}")
    set(target ${PROJECT_BINARY_DIR}/ums_lldb.py)
    if(name STREQUAL gdb)
        set(target ${PROJECT_BINARY_DIR}/${gdb_file})
    endif()
    file(CONFIGURE OUTPUT ${target} CONTENT "${text}" @ONLY)  # Written only if it differs.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${debuggers}/for_${name}.py)
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${debuggers}/fibers.py)
install(FILES ${PROJECT_BINARY_DIR}/${gdb_file} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_BINARY_DIR}/ums_lldb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/libums)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ums DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ums)
configure_package_config_file(cmake/ums-config.cmake.in ${PROJECT_BINARY_DIR}/ums-config.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ums-config-version.cmake
    COMPATIBILITY SameMinorVersion)  # Until 1.0 a minor version may break.
install(EXPORT ums-targets NAMESPACE ums:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/ums-config.cmake ${PROJECT_BINARY_DIR}/ums-config-version.cmake
    DESTINATION ${package_dir})

file(RELATIVE_PATH prefix_from_pc
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
foreach(dir IN ITEMS libdir includedir)
    string(TOUPPER CMAKE_INSTALL_${dir} given)
    set(pc_${dir} "\${prefix}/${${given}}")
    if(IS_ABSOLUTE "${${given}}")  # A packager's choice: only such a tree cannot be moved.
        set(pc_${dir} "${${given}}")
    endif()
endforeach()
foreach(name IN ITEMS ums ums-compat)
    configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/ums.pc ${PROJECT_BINARY_DIR}/ums-compat.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# `cmake --install --strip` strips programs and shared libraries; archives here. What it takes away,
# the component debug puts where debuggers look, and names it in the stripped files.
function(ums_installed dir out)
    set(at "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${dir}")
    if(IS_ABSOLUTE "${dir}")
        set(at "\$ENV{DESTDIR}${dir}")
    endif()
    set(${out} "${at}" PARENT_SCOPE)
endfunction()
ums_installed(${CMAKE_INSTALL_LIBDIR} lib_dir)
ums_installed(${CMAKE_INSTALL_BINDIR} bin_dir)
install(CODE "
    if(CMAKE_INSTALL_DO_STRIP)
        execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
            \"${lib_dir}/$<TARGET_FILE_NAME:ums_static>\" \"${lib_dir}/$<TARGET_FILE_NAME:ums_compat>\"
            COMMAND_ERROR_IS_FATAL ANY)
    endif()")
# Called again in tools/ums for the command.
function(ums_install_debug target dir)
    install(CODE "
        file(MAKE_DIRECTORY \"${dir}/.debug\")
        set(name \"$<TARGET_FILE_NAME:${target}>\")
        execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --only-keep-debug
            \"$<TARGET_FILE:${target}>\" \"${dir}/.debug/\${name}.debug\" COMMAND_ERROR_IS_FATAL ANY)
        if(EXISTS \"${dir}/\${name}\")
            execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --remove-section=.gnu_debuglink
                \"--add-gnu-debuglink=${dir}/.debug/\${name}.debug\" \"${dir}/\${name}\"
                COMMAND_ERROR_IS_FATAL ANY)
        endif()" COMPONENT debug EXCLUDE_FROM_ALL)
endfunction()
ums_install_debug(ums_shared ${lib_dir})
ums_install_debug(ums_compat_shared ${lib_dir})
