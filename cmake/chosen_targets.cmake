# SPDX-License-Identifier: MIT
# cmake -Dmap=FILE -Dtests=REGEX -Dskip=REGEX -P chosen_targets.cmake: prints a colon and the
# targets that these tests need, or nothing if no test has such a name. In CMake, because its
# regular expressions are ctest's. FILE is by cmake/test_needs.cmake.
cmake_minimum_required(VERSION 3.22)
foreach(regex IN LISTS tests skip)  # if(MATCHES) goes on with one that is none.
    string(REGEX MATCH "${regex}" ignored "${regex}")
endforeach()
file(STRINGS ${map} lines)
set(count 0)
set(targets "")
foreach(line IN LISTS lines)
    string(REGEX MATCH "^[^ ]+" name "${line}")
    if((NOT tests OR name MATCHES "${tests}") AND NOT (skip AND name MATCHES "${skip}"))
        math(EXPR count "${count} + 1")
        string(REGEX REPLACE "^[^ ]+ *(.*)$" "\\1" needs "${line}")
        string(REPLACE " " ";" needs "${needs}")
        list(APPEND targets ${needs})
    endif()
endforeach()
if(count)
    if("all" IN_LIST targets)
        set(targets all)
    endif()
    list(REMOVE_DUPLICATES targets)
    list(JOIN targets " " targets)
    execute_process(COMMAND ${CMAKE_COMMAND} -E echo ": ${targets}")
endif()
