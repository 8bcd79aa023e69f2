# SPDX-License-Identifier: MIT
# Tests take turns, because most of them keep all CPUs busy or look at the whole machine. A test
# that computes on one CPU without looking at anything else runs beside the others:
# ums_runs_beside(NAME...). So the models, and what compiles, reads pages or looks at libraries,
# cost next to none of the suite's time.

# In place of CMake's command.
function(add_test)
    _add_test(${ARGV})
    set(name ${ARGV0})
    if(name STREQUAL NAME)
        set(name ${ARGV1})
    endif()
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK cpus)
    ums_note_test(${name} ${ARGN})
endfunction()

function(ums_runs_beside)
    set_tests_properties(${ARGV} PROPERTIES RESOURCE_LOCK "")
endfunction()
