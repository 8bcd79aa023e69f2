// SPDX-License-Identifier: MIT
#pragma once

// scheduling/stats_files.hpp: the statistics as a tree of files, of the shape that the Linux module had in /proc/ums.
//
//   DIRECTORY/PID/schedulers/N/info          one line for each figure, "name: value"
//   DIRECTORY/PID/schedulers/N/workers/TID   the workers it executed last, at most 1000: by
//                                            ums_scheduling_write_stats() only, for there may be many
//
// DIRECTORY is $UMS_STATS_DIRECTORY, else $XDG_RUNTIME_DIR/ums, else /tmp/ums-UID. It is made with mode 0700, and
// not used if anybody else may write to it. Plain files, so they are as old as the last time somebody wrote them: a scheduler does when it
// enters, when it leaves, and when it waits for workers and the files are older than a second;
// ums_scheduling_write_stats() does at any time. No thread and no timer exists for this.
// The tree of the process is removed at its exit, those of processes that are gone by the next one that makes
// its own. Each tree names its PID namespace: one of another namespace, whose number means nothing here, stays. Of two
// processes with one number the second has none. UMS_STATS_FILES=off: nothing of all this. Whatever fails turns it off
// silently.

namespace ums::scheduling::stats_files {

// Now. False: they are turned off.
bool write() noexcept;

// If they are older than a second.
void write_if_old() noexcept;

// DIRECTORY; empty: they are turned off. For the thread until its next call.
const char* directory() noexcept;

}  // namespace ums::scheduling::stats_files
