# SPDX-License-Identifier: MIT
# Every examples/NAME.cpp or NAME.c becomes the program examples/NAME in the build folder.
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp
    ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(source IN LISTS examples)
    get_filename_component(name ${source} NAME_WE)
    add_executable(example-${name} ${source})
    target_link_libraries(example-${name} PRIVATE ums::ums)
    if(name MATCHES "^windows_")
        target_link_libraries(example-${name} PRIVATE ums::windows)
    endif()
    set_target_properties(example-${name} PROPERTIES
        C_STANDARD 11 C_STANDARD_REQUIRED ON
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
endforeach()
