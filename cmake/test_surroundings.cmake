# SPDX-License-Identifier: MIT
# Read by ctest before it runs a test: the settings of whoever calls it (UMS_PROCESSORS=1) are not the
# tests'. They choose their own, or their variants do, see unit_test.cmake. The seed alone stays
# (UMS_DEBUG=seed=7), which repeats a run, where no variant sets UMS_DEBUG itself.
execute_process(COMMAND env OUTPUT_VARIABLE surroundings)
string(REGEX MATCHALL "(^|\n)UMS_[A-Za-z0-9_]+=" settings "${surroundings}")
foreach(setting IN LISTS settings)
    string(REGEX MATCH "UMS_[A-Za-z0-9_]+" setting "${setting}")
    if(setting STREQUAL UMS_DEBUG AND "$ENV{UMS_DEBUG}" MATCHES "(^|,)(seed=[0-9]+)")
        set(ENV{UMS_DEBUG} ${CMAKE_MATCH_2})
    else()
        unset(ENV{${setting}})
    endif()
endforeach()
