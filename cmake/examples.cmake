# SPDX-License-Identifier: MIT
# Every examples/NAME.cpp or NAME.c becomes the program examples/NAME in the build folder.
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp
    ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(source IN LISTS examples)
    get_filename_component(name ${source} NAME_WE)
    add_executable(example-${name} ${source})
    target_link_libraries(example-${name} PRIVATE ums::ums)
    ums_lines_only(example-${name})
    if(name MATCHES "^windows_")
        target_link_libraries(example-${name} PRIVATE ums::windows)
    elseif(name MATCHES "^linux_ums_")
        target_link_libraries(example-${name} PRIVATE ums::compat)
    endif()
    set_target_properties(example-${name} PROPERTIES
        C_STANDARD 11 C_STANDARD_REQUIRED ON
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
endforeach()

# What the servers share.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/support/*.cpp)
list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
add_library(example-support-parts STATIC ${sources})
target_link_libraries(example-support-parts PUBLIC ums::ums)
ums_lines_only(example-support-parts)
target_include_directories(example-support-parts PUBLIC ${PROJECT_SOURCE_DIR}/examples/support)

# Every folder examples/NAME becomes the program examples/NAME-server: its main.cpp, and a library
# of the rest, which the tests beside the sources (NOUN_test.cpp) use too. Test programs:
# examples/NAME/.
function(ums_example_server name)  # ARGN: libraries
    set(folder ${PROJECT_SOURCE_DIR}/examples/${name})
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
    list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cpp$|/main\\.cpp$")
    add_library(example-${name}-parts STATIC ${sources})
    target_link_libraries(example-${name}-parts PUBLIC example-support-parts ${ARGN})
    target_include_directories(example-${name}-parts PUBLIC ${folder})
    add_executable(example-${name} ${folder}/main.cpp)
    target_link_libraries(example-${name} PRIVATE example-${name}-parts)
    ums_lines_only(example-${name} example-${name}-parts)
    set_target_properties(example-${name} PROPERTIES
        OUTPUT_NAME ${name}-server RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    if(UMS_BUILD_BENCH)  # As peers of the installed `ums bench`.
        install(TARGETS example-${name} RUNTIME DESTINATION libexec/ums/bench COMPONENT bench)
    endif()
endfunction()

ums_example_server(memcached)

# llhttp, Node's parser, from its C sources (Debian: node-llhttp); strict mode is a choice at
# compile time.
set(UMS_LLHTTP_DIR /usr/share/llhttp CACHE PATH "C sources of llhttp")
set(UMS_LLHTTP_INCLUDE_DIR /usr/share/include/llhttp CACHE PATH "Folder of llhttp.h")
if(EXISTS ${UMS_LLHTTP_DIR}/llhttp.c AND EXISTS ${UMS_LLHTTP_INCLUDE_DIR}/llhttp.h)
    add_library(llhttp STATIC ${UMS_LLHTTP_DIR}/llhttp.c ${UMS_LLHTTP_DIR}/api.c ${UMS_LLHTTP_DIR}/http.c)
    target_include_directories(llhttp SYSTEM PUBLIC ${UMS_LLHTTP_INCLUDE_DIR})
    target_compile_definitions(llhttp PUBLIC LLHTTP_STRICT_MODE=1)
    target_compile_options(llhttp PRIVATE -w)  # Its warnings are not ours.
    ums_example_server(http llhttp)
else()
    message(STATUS "No llhttp in ${UMS_LLHTTP_DIR}: the HTTP server is left out (tools/setup installs it)")
endif()

# The fuzz targets, with clang's libFuzzer: examples/NAME/session_fuzz.cpp becomes fuzz/NAME.
option(UMS_BUILD_FUZZ "Build the fuzz targets (clang)" OFF)
if(UMS_BUILD_FUZZ)
    foreach(name IN ITEMS http memcached)
        if(TARGET example-${name}-parts)
            add_executable(fuzz-${name} ${PROJECT_SOURCE_DIR}/examples/${name}/session_fuzz.cpp)
            target_link_libraries(fuzz-${name} PRIVATE example-${name}-parts)
            target_link_options(fuzz-${name} PRIVATE -fsanitize=fuzzer)
            set_target_properties(fuzz-${name} PROPERTIES
                OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
        endif()
    endforeach()
endif()
