# SPDX-License-Identifier: MIT
# Which targets each test needs, so that `make test TESTS=...` builds these and no others. Those
# that are in its command, TARGET or $<TARGET_FILE:TARGET>, are known. What else it needs at run
# time, it says: ums_test_needs(NAME... NEEDS TARGET...), and a test that needs no target at all
# says so too, with an empty list. A test of which nothing is known needs all. The file
# tests.targets in the build folder has a line for each test: its name, its targets.

function(ums_test_needs)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" NEEDS)
    foreach(name IN LISTS arg_UNPARSED_ARGUMENTS)
        set_property(GLOBAL PROPERTY "ums_declared_${name}" ON)
        set_property(GLOBAL APPEND PROPERTY "ums_needs_${name}" ${arg_NEEDS})
    endforeach()
endfunction()

# The test NAME with its command, as add_test() has it.
function(ums_note_test name)
    set_property(GLOBAL APPEND PROPERTY ums_test_names ${name})
    list(FIND ARGN COMMAND at)
    if(at GREATER_EQUAL 0)
        math(EXPR at "${at} + 1")
        list(GET ARGN ${at} program)
        if(TARGET ${program})
            ums_test_needs(${name} NEEDS ${program})
        endif()
    endif()
    string(REGEX MATCHALL "\\$<TARGET_FILE(_DIR)?:[^>]+>" files "${ARGN}")
    list(TRANSFORM files REPLACE "\\$<TARGET_FILE(_DIR)?:([^>]+)>" "\\2")
    if(files)
        ums_test_needs(${name} NEEDS ${files})
    endif()
endfunction()

function(ums_write_needs)
    get_property(names GLOBAL PROPERTY ums_test_names)
    set(lines "")
    foreach(name IN LISTS names)
        get_property(is_declared GLOBAL PROPERTY "ums_declared_${name}")
        get_property(needs GLOBAL PROPERTY "ums_needs_${name}")
        if(NOT is_declared)
            set(needs all)
        endif()
        list(REMOVE_DUPLICATES needs)
        list(JOIN needs " " needs)
        string(APPEND lines "${name} ${needs}\n")
    endforeach()
    file(WRITE ${PROJECT_BINARY_DIR}/tests.targets "${lines}")
endfunction()
