# SPDX-License-Identifier: MIT
# The library: compiled once, as position-independent code, then linked as libums.a and libums.so.

file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/src/*/*.cpp ${PROJECT_SOURCE_DIR}/src/*/*.S
    ${PROJECT_SOURCE_DIR}/src/*/*/*.cpp ${PROJECT_SOURCE_DIR}/src/*/*/*.S)
list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
list(FILTER sources EXCLUDE REGEX "^src/preload/")  # Of its own: it replaces pthread symbols.

# Of src/arch/CPU/, only the CPU we build for.
set(other_cpus ${sources})
list(FILTER other_cpus INCLUDE REGEX "^src/arch/[^/]+/")
list(FILTER other_cpus EXCLUDE REGEX "^src/arch/${CMAKE_SYSTEM_PROCESSOR}/")
list(REMOVE_ITEM sources ${other_cpus})
list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/)

add_library(ums_objects OBJECT ${sources})
target_include_directories(ums_objects
    PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(ums_objects PRIVATE Threads::Threads)
# A project that has libums inside may build everything else as it likes. The names in these files
# are not unique; and assembler text refers to symbols of four, which link-time optimisation would
# not see.
set_target_properties(ums_objects PROPERTIES UNITY_BUILD OFF)
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/os/thread_slot.cpp ${PROJECT_SOURCE_DIR}/src/runtime/root.cpp
    ${PROJECT_SOURCE_DIR}/src/sched/record/probe.cpp ${PROJECT_SOURCE_DIR}/src/workers/root.cpp
    APPEND PROPERTY COMPILE_OPTIONS -fno-lto)
# For the files that include runtime/version.hpp: a new version does not compile the others again.
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/runtime/metrics.cpp ${PROJECT_SOURCE_DIR}/src/runtime/root.cpp
    ${PROJECT_SOURCE_DIR}/src/runtime/stats.cpp ${PROJECT_SOURCE_DIR}/src/workers/root.cpp
    APPEND PROPERTY COMPILE_DEFINITIONS "UMS_VERSION=\"${PROJECT_VERSION}\"")
# initial-exec: the one thread-local pointer costs no call to __tls_get_addr in the shared library
# either. It fits into the surplus that the C library keeps for dlopen().
target_compile_options(ums_objects PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ftls-model=initial-exec>)
set_target_properties(ums_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)

# Half of a source's compilation is these. ON in the presets of gcc's builds; the sanitizers' builds
# see that each file still includes what it uses.
option(UMS_PRECOMPILE "Precompile headers of the standard library for the library" OFF)
if(UMS_PRECOMPILE)
    target_precompile_headers(ums_objects PRIVATE <algorithm> <atomic> <chrono> <csignal> <functional>
        <memory> <optional> <span> <stop_token> <string> <string_view> <system_error> <vector>)
    # For ccache.
    target_compile_options(ums_objects PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()

add_library(ums_static STATIC $<TARGET_OBJECTS:ums_objects>)
add_library(ums_shared SHARED $<TARGET_OBJECTS:ums_objects>)
add_library(ums::ums ALIAS ums_static)
add_library(ums::shared ALIAS ums_shared)
foreach(library IN ITEMS ums_static ums_shared)
    target_include_directories(${library} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_compile_features(${library} INTERFACE cxx_std_20)
    # A frame that is larger than the guard of a fiber's stack then touches the guard.
    target_compile_options(${library} INTERFACE
        $<$<COMPILE_LANG_AND_ID:C,GNU,Clang>:-fstack-clash-protection>
        $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:-fstack-clash-protection>)
    target_link_libraries(${library} PUBLIC Threads::Threads)
    set_target_properties(${library} PROPERTIES OUTPUT_NAME ums LINKER_LANGUAGE CXX)
endforeach()
set_target_properties(ums_static PROPERTIES EXPORT_NAME ums)
set_target_properties(ums_shared PROPERTIES EXPORT_NAME shared
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
# Nothing of the C++ library's templates leaks out; C symbols have a version.
target_link_options(ums_shared PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/ums.map)
set_target_properties(ums_shared PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/ums.map)
