# SPDX-License-Identifier: MIT
# What the parts need that read other programs' memory and files. The tests and the fuzz targets
# build them too, without the libraries of the command.

# The names of the system calls, from the kernel's own header.
find_file(UMS_UNISTD_64 asm/unistd_64.h PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} REQUIRED)
file(STRINGS ${UMS_UNISTD_64} calls REGEX "^#define __NR_[a-z0-9_]+ [0-9]+")
list(TRANSFORM calls REPLACE "^#define __NR_([a-z0-9_]+) ([0-9]+).*" "{\\2, \"\\1\"},")
list(JOIN calls "\n" calls)
set(ums_system_calls_dir ${PROJECT_BINARY_DIR}/tools/ums)
file(CONFIGURE OUTPUT ${ums_system_calls_dir}/system_call_names.inc CONTENT "${calls}\n")

set(ums_reading_sources
    inspect/core_file.cpp inspect/descriptors.cpp inspect/fiber_record.cpp inspect/layout.cpp
    inspect/lock_graph.cpp inspect/memory.cpp inspect/notes.cpp inspect/printable.cpp
    inspect/regular_file.cpp inspect/snapshot.cpp inspect/wait_words.cpp trace/chrome.cpp
    trace/dump_file.cpp trace/fiber_times.cpp trace/live_rings.cpp trace/perfetto.cpp
    trace/record.cpp trace/summary.cpp trace/timeline.cpp)
list(TRANSFORM ums_reading_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
