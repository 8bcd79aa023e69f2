# SPDX-License-Identifier: MIT
# Other systems' names on the public headers: those of Windows (windows.h) and of the Linux modules.
# Users link with ums::windows, which also finds windows.h, or with ums::compat or
# ums::compat_shared.

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/compat/*/*.cpp)
add_library(ums_compat_objects OBJECT ${sources})
target_include_directories(ums_compat_objects
    PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/compat)
set_target_properties(ums_compat_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

add_library(ums_compat STATIC $<TARGET_OBJECTS:ums_compat_objects>)
add_library(ums_compat_shared SHARED $<TARGET_OBJECTS:ums_compat_objects>)
target_link_libraries(ums_compat PUBLIC ums_static)
target_link_libraries(ums_compat_shared PUBLIC ums_shared)
target_link_options(ums_compat_shared
    PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/compat.map)
set_target_properties(ums_compat_shared PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/compat.map
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    # It finds libums beside itself: a program's own RUNPATH is not searched for what its libraries
    # need.
    INSTALL_RPATH "$ORIGIN")
set_target_properties(ums_compat ums_compat_shared PROPERTIES OUTPUT_NAME ums_compat LINKER_LANGUAGE CXX)
set_target_properties(ums_compat PROPERTIES EXPORT_NAME compat)
set_target_properties(ums_compat_shared PROPERTIES EXPORT_NAME compat_shared)

# The folder with windows.h, for programs that were written for Windows.
add_library(ums_windows INTERFACE)
target_include_directories(ums_windows INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/ums/compat/windows>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/ums/compat/windows>)
target_link_libraries(ums_windows INTERFACE ums_compat)
set_target_properties(ums_windows PROPERTIES EXPORT_NAME windows)

add_library(ums::compat ALIAS ums_compat)
add_library(ums::compat_shared ALIAS ums_compat_shared)
add_library(ums::windows ALIAS ums_windows)
