# SPDX-License-Identifier: MIT
# ctest reads this before it runs a test: the caller's settings (UMS_PROCESSORS=1) do not apply to
# the tests. They choose their own, or their variants do, see unit_test.cmake. Only the seed stays
# (UMS_DEBUG=seed=7), because it repeats a run, unless a variant sets UMS_DEBUG itself.
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

# The scripts use modules of Debian's packages (tools/setup), which another Python that comes first
# in the path does not have: a part of their tests would be skipped.
if(EXISTS /usr/bin/python3)
    set(ENV{PATH} "/usr/bin:$ENV{PATH}")
endif()
