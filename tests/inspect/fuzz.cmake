# SPDX-License-Identifier: MIT
# What the command reads of other programs, under libFuzzer: NOUN_fuzz.cpp becomes fuzz/NOUN. The
# seeds are in tests/fuzz/NOUN.
set(tool ${PROJECT_SOURCE_DIR}/tools/ums)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(UMS_PROTOZERO protozero/pbf_writer.hpp REQUIRED)
include(${tool}/reading.cmake)
add_library(fuzz-inspect-parts OBJECT EXCLUDE_FROM_ALL ${ums_reading_sources})
target_include_directories(fuzz-inspect-parts PUBLIC ${tool} ${ums_system_calls_dir})
target_include_directories(fuzz-inspect-parts SYSTEM PRIVATE ${UMS_PROTOZERO})
target_link_libraries(fuzz-inspect-parts PUBLIC fmt::fmt nlohmann_json::nlohmann_json)
foreach(name IN ITEMS image core trace unwind)
    add_executable(fuzz-${name} ${CMAKE_CURRENT_LIST_DIR}/${name}_fuzz.cpp)
    target_link_libraries(fuzz-${name} PRIVATE fuzz-inspect-parts)
    target_link_options(fuzz-${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(fuzz-${name} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
endforeach()
target_sources(fuzz-unwind PRIVATE ${tool}/inspect/unwinder.cpp)
