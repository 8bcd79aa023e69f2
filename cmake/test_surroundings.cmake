# SPDX-License-Identifier: MIT
# ctest reads this before it runs a test: the caller's settings (UMS_PROCESSORS=1) do not apply to
# the tests. They choose their own, or their variants do, see unit_test.cmake. Only UMS_SEED stays,
# because it repeats a run.
execute_process(COMMAND env OUTPUT_VARIABLE surroundings)
string(REGEX MATCHALL "(^|\n)UMS_[A-Za-z0-9_]+=" settings "${surroundings}")
foreach(setting IN LISTS settings)
    string(REGEX MATCH "UMS_[A-Za-z0-9_]+" setting "${setting}")
    if(NOT setting STREQUAL UMS_SEED)
        unset(ENV{${setting}})
    endif()
endforeach()
