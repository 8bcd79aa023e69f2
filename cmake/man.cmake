# SPDX-License-Identifier: MIT
# The manual pages: of the C API, made of its headers' comments; of the command, made of its --help.

find_package(Python3 COMPONENTS Interpreter)
if(NOT PROJECT_IS_TOP_LEVEL OR NOT Python3_Interpreter_FOUND OR UMS_SANITIZE)
    return()
endif()

set(man_dir ${PROJECT_BINARY_DIR}/man)
file(GLOB headers CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/include/ums/*.h ${PROJECT_SOURCE_DIR}/include/ums/*.hpp)
file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/man/*)
# The old pages go first: functions may be gone.
add_custom_command(OUTPUT ${man_dir}/man3/ums.3 VERBATIM
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${man_dir}/man3
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/man/functions.py
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_VERSION} ${man_dir}
    DEPENDS ${headers} ${scripts} COMMENT "Manual pages of the C API")
set(pages ${man_dir}/man3/ums.3)
if(TARGET ums_command)
    add_custom_command(OUTPUT ${man_dir}/man1/ums.1 VERBATIM
        COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/man/command.py
            $<TARGET_FILE:ums_command> ${man_dir}
        DEPENDS ums_command ${scripts} COMMENT "Manual page of the ums command")
    list(APPEND pages ${man_dir}/man1/ums.1)
endif()
add_custom_target(ums_man ALL DEPENDS ${pages})
# Optional: a build of some targets only can be installed, too.
install(DIRECTORY ${man_dir}/ DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
