# SPDX-License-Identifier: MIT
# Tests take turns, because many of them keep all CPUs busy or look at the whole machine. A test
# that does neither runs beside the others, and ums_runs_beside(NAME...) says so. So the models, and
# what compiles, reads pages or looks at libraries, cost next to none of the suite's time.
#
# These do, too: they spend much of their time waiting, on ports that the kernel chooses and in
# files of their own, and expect nothing that a slow machine could not do, such as an end within
# 15 s.
set(ums_beside "^(src/(base|io|mem|sync|time)|tests/(capi|clients|idle|io|python|servers|sync))/|^examples/")
string(APPEND ums_beside "|^tests/sched/park_race|^tests/windows/programs?")

# In place of CMake's command.
function(add_test)
    _add_test(${ARGV})
    set(name ${ARGV0})
    if(name STREQUAL NAME)
        set(name ${ARGV1})
    endif()
    if(NOT name MATCHES "${ums_beside}")
        set_tests_properties(${name} PROPERTIES RESOURCE_LOCK cpus)
    endif()
    ums_note_test(${name} ${ARGN})
endfunction()

function(ums_runs_beside)
    set_tests_properties(${ARGV} PROPERTIES RESOURCE_LOCK "")
endfunction()
