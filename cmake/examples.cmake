# SPDX-License-Identifier: MIT
# Every examples/NAME.cpp or NAME.c becomes the program examples/NAME in the build folder.
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp
    ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(source IN LISTS examples)
    get_filename_component(name ${source} NAME_WE)
    add_executable(example-${name} ${source})
    target_link_libraries(example-${name} PRIVATE ums::ums)
    set_target_properties(example-${name} PROPERTIES
        C_STANDARD 11 C_STANDARD_REQUIRED ON
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
endforeach()

# Every folder examples/NAME becomes the program examples/NAME-server: its main.cpp, and a library of the
# rest, which the tests beside the sources (NOUN_test.cpp) use too. Test programs: examples/NAME/.
function(ums_example_server name)  # ARGN: libraries
    set(folder ${PROJECT_SOURCE_DIR}/examples/${name})
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
    list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cpp$|/main\\.cpp$")
    add_library(example-${name}-parts STATIC ${sources})
    target_link_libraries(example-${name}-parts PUBLIC ums::ums ${ARGN})
    target_include_directories(example-${name}-parts PUBLIC ${folder})
    add_executable(example-${name} ${folder}/main.cpp)
    target_link_libraries(example-${name} PRIVATE example-${name}-parts)
    set_target_properties(example-${name} PROPERTIES
        OUTPUT_NAME ${name}-server RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
endfunction()

ums_example_server(memcached)
