# SPDX-License-Identifier: MIT
# Read by ctest before it runs a test: the settings of whoever calls it (UMS_PROCESSORS=1) are not the
# tests'. They choose their own, or their variants do, see unit_test.cmake. UMS_SEED alone stays: it
# repeats a run.
execute_process(COMMAND env OUTPUT_VARIABLE surroundings)
string(REGEX MATCHALL "(^|\n)UMS_[A-Za-z0-9_]+=" settings "${surroundings}")
foreach(setting IN LISTS settings)
    string(REGEX MATCH "UMS_[A-Za-z0-9_]+" setting "${setting}")
    if(NOT setting STREQUAL UMS_SEED)
        unset(ENV{${setting}})
    endif()
endforeach()
