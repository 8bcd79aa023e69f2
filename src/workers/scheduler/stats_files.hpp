// SPDX-License-Identifier: MIT
#pragma once

// workers/scheduler/stats_files.hpp: the statistics as a tree of files, of the shape that the Linux
// module had in /proc/ums.
//
//   DIRECTORY/PID/schedulers/N/info          one line for each figure, "name: value"
//   DIRECTORY/PID/schedulers/N/workers/TID   the workers it executed last, at most 1000: by
//                                            ums_scheduling_write_stats() only, for there may be
//                                            many
//
// DIRECTORY is $UMS_STATS_DIRECTORY, else $XDG_RUNTIME_DIR/ums, else /tmp/ums-UID. It is made with
// mode 0700, and not used if another user may write to it. The files are plain, so they are as old
// as the last write. A scheduler writes them when it enters, when it leaves, and when it waits for
// workers and the files are older than a second; ums_scheduling_write_stats() writes them at any
// time. No thread and no timer exists for this. The process removes its tree at its exit; the trees
// of processes that are gone are removed by the next process that makes its own. Each tree names
// its PID namespace: a tree of another namespace, whose number means nothing here, stays. Of two
// processes with one number the second has no tree. UMS_STATS_FILES=off turns all of this off, and
// so does any failure, silently.

namespace ums::scheduling::stats_files {

// Writes the files now. Returns false if they are turned off.
bool write() noexcept;

// Writes the files if they are older than a second.
void write_if_old() noexcept;

// Returns DIRECTORY; empty: the files are turned off. Valid for the calling thread until its next
// call.
const char* directory() noexcept;

}  // namespace ums::scheduling::stats_files
