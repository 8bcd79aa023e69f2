# SPDX-License-Identifier: MIT
# ums_unit_tests(SOURCE...): the test programs, and their variants.
#
# A SOURCE is src/X/NOUN_test.cpp, tests/X/NOUN_test.cpp or examples/X/NOUN_test.cpp, from the root
# of the project. The program lands at the same path in the build folder; its test is called
# src/X/NOUN.
#
# Up to three neighbours below src/X, tests/X or examples/X are compiled as one unit, because most
# of a file's compilation is headers. They are one program; the paths of the three are links to it,
# and it runs the tests of the file whose name it was called by (support/main.cpp). A file that
# replaces a function of the system, and a model, is a program alone.
#
# The variant clang is the program compiled by the other compiler, see ums_clang_test().
#
# A line `// variants: mprotect p1` in SOURCE also runs the program as src/X/NOUN@mprotect and
# src/X/NOUN@p1. A variant is an environment variable, beside TEST_VARIANT, which says that it is
# one (support/variant.hpp):

set(ums_variant_mprotect UMS_DEBUG=guard=mprotect)
set(ums_variant_migrate UMS_DEBUG=migrate)
set(ums_variant_fifo UMS_POLICY=global_fifo)
foreach(policy IN ITEMS local_locked local_mpsc local_mpsc_intrusive priority earliest_deadline_first fair_share)
    set(ums_variant_${policy} UMS_POLICY=${policy})
endforeach()
# `policies` stands for these. It leaves out fair_share, under which a yield continues unless
# another fiber has run less.
set(ums_variants_policies local_locked local_mpsc local_mpsc_intrusive priority earliest_deadline_first)
set(ums_variant_monitor UMS_BLOCK=monitor)
set(ums_variant_p1 UMS_PROCESSORS=1)
set(ums_variant_deadlock UMS_DEBUG=deadlock=abort)
set(ums_variant_nomembarrier UMS_DEBUG=membarrier=off)
set(ums_variant_nosync UMS_DEBUG=tsan=no_sync)  # Only where TSan is.

# The options the sanitizers run with. There are no suppressions.
set(ums_test_environment "")
if(UMS_SANITIZE)
    find_program(UMS_SYMBOLIZER NAMES llvm-symbolizer-19 llvm-symbolizer)
    set(symbolizer "")
    if(UMS_SYMBOLIZER)
        set(symbolizer ":external_symbolizer_path=${UMS_SYMBOLIZER}")
    endif()
    set(ums_test_environment
        ASAN_OPTIONS=detect_stack_use_after_return=1:detect_leaks=1:strict_string_checks=1${symbolizer}
        UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1${symbolizer}
        TSAN_OPTIONS=halt_on_error=1:history_size=2${symbolizer})
endif()

# The launcher ends a test that hangs, after it has shown its fibers; ctest's own limit is for a
# launcher that hangs. The command `ums` is used if it is there, and not built for this.
function(ums_register_test name target)  # ARGN: environment
    set(program $<TARGET_FILE:${target}>)
    get_target_property(link ${target} ums_link)
    if(link)  # To the program that the file is a part of.
        set(program ${link})
        ums_test_needs(${name} NEEDS ${target})
    endif()
    add_test(NAME ${name} COMMAND tests-launcher 500 ${PROJECT_BINARY_DIR}/ums ${program})
    set_tests_properties(${name} PROPERTIES
        TIMEOUT 600 ENVIRONMENT "${ums_test_environment};${ARGN}")
    if(name MATCHES "_model$")
        ums_runs_beside(${name})
    endif()
endfunction()

# A test whose program is not built here shows as skipped.
function(ums_skipped_test name why)
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${why}")
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped")
    ums_test_needs(${name} NEEDS)
endfunction()

# What the test program of SOURCE links with: ums::internals, which is linked once for all of them.
# The archive, where a test replaces a part of the library: a model has a copy of the library's text
# in it, and the examples' tests link with libraries that have the archive in them.
function(ums_test_library result source)
    set(${result} ums::internals PARENT_SCOPE)
    if(source MATCHES "_model_test\\.cpp$|^examples/")
        set(${result} ums::ums PARENT_SCOPE)
    endif()
endfunction()

option(UMS_TEST_UNITS "Compile several files of tests as one unit" ON)
add_library(ums_test_main STATIC ${PROJECT_SOURCE_DIR}/tests/support/main.cpp)
target_include_directories(ums_test_main PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(ums_test_main PUBLIC GTest::gtest)

function(ums_unit_tests)
    set(keys "")
    foreach(source IN LISTS ARGN)
        file(STRINGS ${PROJECT_SOURCE_DIR}/${source} replaced LIMIT_COUNT 1
            REGEX "^(extern \"C\" .*\\(|void\\*? operator new|\\[\\[gnu::noinline\\]\\] void\\* operator new)")
        if(replaced OR NOT UMS_TEST_UNITS OR source MATCHES "_model_test|^tests/(threads|clients|python)/")
            ums_unit_test(${source})
            continue()
        endif()
        string(REGEX MATCH "^[^/]+/[^/]+" key ${source})
        list(APPEND keys ${key})
        list(APPEND unit_${key} ${source})
        list(LENGTH unit_${key} count)
        if(count EQUAL 3)
            ums_unit_test(${unit_${key}})
            unset(unit_${key})
        endif()
    endforeach()
    list(REMOVE_DUPLICATES keys)
    foreach(key IN LISTS keys)
        if(unit_${key})
            ums_unit_test(${unit_${key}})
        endif()
    endforeach()
endfunction()

# The program of one file, or of several.
function(ums_unit_test source)  # ARGN: further sources
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(program ${source} NAME_WE)
    string(REPLACE "/" "-" target ${folder}/${program})
    set(sources ${source} ${ARGN})
    set(where ${PROJECT_BINARY_DIR}/${folder})
    if(ARGN)
        string(APPEND target -unit)
        string(APPEND where /unit)
    endif()

    list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
    add_executable(${target} ${paths})
    ums_test_library(library ${source})
    target_link_libraries(${target} PRIVATE ${library} ums_test_main)
    ums_lines_only(${target})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${program} RUNTIME_OUTPUT_DIRECTORY ${where})
    if(ARGN)
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
        target_compile_options(${target} PRIVATE -Wno-shadow)  # Of another file's names.
    endif()
    # For support/ and internal/.
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    if(source MATCHES "^src/")  # tests/ sees the public headers only.
        target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    endif()
    if(EXISTS ${PROJECT_SOURCE_DIR}/tests/internal/modelled/${program}.mutants)
        ums_model_text(${target} ${program})
    endif()
    if(source MATCHES "^examples/([^/]+)/")
        target_link_libraries(${target} PRIVATE example-${CMAKE_MATCH_1}-parts)
        target_compile_definitions(${target} PRIVATE
            EXAMPLE_SERVER="$<TARGET_FILE:example-${CMAKE_MATCH_1}>"
            EXAMPLE_FOLDER="${PROJECT_SOURCE_DIR}/${folder}")
        add_dependencies(${target} example-${CMAKE_MATCH_1})
    endif()
    if(source MATCHES "^tests/windows/")
        target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include/ums/compat/windows)
    endif()
    if(source MATCHES "^tests/clients/")
        target_link_libraries(${target} PRIVATE PkgConfig::UMS_CLIENTS)
    endif()
    if(source MATCHES "^tests/python/")
        target_link_libraries(${target} PRIVATE PkgConfig::UMS_PYTHON)
    endif()
    foreach(source IN LISTS sources)
        string(REGEX REPLACE "_test\\.cpp$" "" name ${source})
        set(own ${target})
        if(ARGN)
            string(REPLACE "/" "-" own ${name}_test)
            set(link ${PROJECT_BINARY_DIR}/${name}_test)
            get_filename_component(folder ${link} DIRECTORY)
            file(MAKE_DIRECTORY ${folder})
            file(CREATE_LINK ${where}/${program} ${link} SYMBOLIC)
            add_custom_target(${own} DEPENDS ${target})
            set_target_properties(${own} PROPERTIES ums_link ${link} ums_unit ${target})
        endif()
        ums_register_test(${name} ${own})
        ums_variants(${PROJECT_SOURCE_DIR}/${source} ${name} ${own})
    endforeach()
endfunction()

# The library's text for a model, with the mutants that tests/internal/modelled/PROGRAM.mutants
# lists.
function(ums_model_text target program)
    set(from ${PROJECT_SOURCE_DIR}/tests/internal/modelled)
    set(list ${from}/${program}.mutants)
    set(text ${CMAKE_CURRENT_BINARY_DIR}/${program})
    file(STRINGS ${list} files REGEX "^@file ")
    list(TRANSFORM files REPLACE "^@file " "${PROJECT_SOURCE_DIR}/src/")
    add_custom_command(OUTPUT ${text}/${program}.inc VERBATIM
        COMMAND ${from}/generate.py ${PROJECT_SOURCE_DIR}/src ${text} ${list}
        DEPENDS ${from}/generate.py ${list} ${files} COMMENT "Writing the mutants of ${program}")
    target_sources(${target} PRIVATE ${text}/${program}.inc)
    target_include_directories(${target} BEFORE PRIVATE ${text} ${from})
endfunction()

# Registers the variants that the file `source` names.
function(ums_variants source name target)
    set_property(GLOBAL APPEND PROPERTY ums_variant_sources ${source})
    file(STRINGS ${source} line LIMIT_COUNT 1 REGEX "^// variants: ")
    string(REGEX MATCHALL "[^ ]+" variants "${line}")
    list(REMOVE_ITEM variants "//" "variants:")
    if("policies" IN_LIST variants)
        list(REMOVE_ITEM variants policies)
        list(APPEND variants ${ums_variants_policies})
    endif()
    foreach(variant IN LISTS variants)
        if(variant STREQUAL clang)
            ums_clang_test(${source} ${name} ${target})
            continue()
        endif()
        if(NOT DEFINED ums_variant_${variant})
            message(FATAL_ERROR "${source}: there is no variant ${variant}")
        endif()
        if(NOT variant STREQUAL nosync OR UMS_SANITIZE MATCHES thread)
            ums_register_test(${name}@${variant} ${target} ${ums_variant_${variant}} TEST_VARIANT=${variant})
        endif()
    endforeach()
endfunction()

# Configures again when a line of variants has changed, and not whenever a test has: ninja updates a
# list of the lines first, and leaves it alone if it is the same.
function(ums_watch_variants)
    get_property(sources GLOBAL PROPERTY ums_variant_sources)
    set(list ${PROJECT_BINARY_DIR}/variants.txt)
    # A test that is gone is no error here: the sources are a DEPFILE's, and not DEPENDS.
    set(update sh -c "echo \"$0: $*\" >$0.d && (grep -s -m1 '^// variants: ' \"$@\" >$0.new || true) \
&& (cmp -s $0.new $0 || cp $0.new $0)" ${list} ${sources})
    execute_process(COMMAND ${update})
    add_custom_command(OUTPUT ${list} COMMAND ${update} DEPFILE ${list}.d VERBATIM
        COMMENT "Looking for changed variants of tests")
    add_custom_target(tests-variants DEPENDS ${list})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
endfunction()

# NAME@clang: the test program TARGET with its SOURCE (absolute) compiled by clang, where the rest
# is compiled by another. A clang that is missing shows as a skipped test. Nothing to do where all
# is compiled by clang.
find_program(UMS_CLANGXX NAMES clang++-19 clang++)
function(ums_clang_test source name target)
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
        return()
    endif()
    if(NOT UMS_CLANGXX)
        ums_skipped_test(${name}@clang "there is no clang++ here (tools/setup clang)")
        return()
    endif()
    set(language -std=c++20)
    if(source MATCHES "\\.c$")
        set(language -x c -std=c11 -pedantic)
    endif()
    get_target_property(like ${target} ums_unit)
    if(NOT like)
        set(like ${target})
    endif()
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}-clang.o)
    add_custom_command(OUTPUT ${object} VERBATIM COMMAND_EXPAND_LISTS
        COMMAND ${UMS_CLANGXX} ${language} -O1 -g1 -fPIC -Wall -Wextra -Wshadow $<$<BOOL:${UMS_WERROR}>:-Werror>
            "-I$<JOIN:$<TARGET_PROPERTY:${like},INCLUDE_DIRECTORIES>,;-I>"
            "-isystem$<JOIN:$<TARGET_PROPERTY:GTest::gtest,INTERFACE_INCLUDE_DIRECTORIES>,;-isystem>"
            -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
        DEPENDS ${source} DEPFILE ${object}.d COMMENT "Building ${name} with clang")
    add_executable(${target}-clang ${object})
    target_link_libraries(${target}-clang PRIVATE ums::internals)
    if(NOT source MATCHES "\\.c$")
        target_link_libraries(${target}-clang PRIVATE ums_test_main)
    endif()
    get_target_property(link ${target} ums_link)
    if(link)
        get_filename_component(output ${link} NAME)
        get_filename_component(folder ${link} DIRECTORY)
    else()
        get_target_property(output ${target} OUTPUT_NAME)
        get_target_property(folder ${target} RUNTIME_OUTPUT_DIRECTORY)
    endif()
    set_target_properties(${target}-clang PROPERTIES LINKER_LANGUAGE CXX
        OUTPUT_NAME ${output}-clang RUNTIME_OUTPUT_DIRECTORY ${folder})
    ums_register_test(${name}@clang ${target}-clang)
endfunction()
