// SPDX-License-Identifier: MIT
#pragma once

// support/conservation.hpp: nothing is left behind.
//
// A `conservation` notes what the process holds when it is made and fails the running test if, when
// it goes, a runtime still runs or there are more kernel threads, file descriptors or (roughly)
// mappings.
//
//   class my_test : public ::testing::Test { conservation nothing_left_; };
//
// or derive from `conserving_test`. Every test that starts a runtime uses it.

#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <sched.h>
#include <set>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/scale.hpp"
#include "ums/fiber.hpp"

class conservation {
public:
    conservation() {
        // A sanitizer starts a thread of its own beside the program's first one.
        [[maybe_unused]] static const bool first = (std::thread{[] {}}.join(), true);
        threads_ = threads();
        fds_ = fds();
        mappings_ = mappings();
    }
    conservation(const conservation&) = delete;
    conservation& operator=(const conservation&) = delete;

    ~conservation() {
        EXPECT_FALSE(runtime_runs()) << "a runtime was left running";
        for (const std::string& tid : minus(threads(), threads_))
            ADD_FAILURE() << "a thread was left: " << line_of(tid);
        for (const std::string& fd : minus(fds(), fds_))
            ADD_FAILURE() << "a file descriptor was left: " << fd << ", "
                          << target_of(fd.substr(0, fd.find(' ')));
        // The C library keeps the stacks and the arenas of ended threads, and ThreadSanitizer keeps
        // what it knows of ended fibers. A test that wants to be exact compares mappings() after a
        // warm-up.
        if (!under_tsan) {
            EXPECT_LE(mappings(), mappings_ + 200) << "mappings were left";
        }
    }

    // The kernel threads of this process. The kernel may list a joined thread a moment longer, so
    // threads on their way out are not counted. Nor is a thread of the lowest class that was told
    // to end and waits for a CPU to do so, because nothing waits for it
    // (carry/detect/sentinel.hpp).
    static std::set<std::string> threads() {
        std::set<std::string> found;
        for (const std::string& tid : entries("/proc/self/task")) {
            const std::string line = line_of(tid);
            // After the name in parentheses: state ppid pgrp session tty tpgid flags.
            char state = 0;
            unsigned flags = 0;
            constexpr unsigned exiting = 4;  // PF_EXITING
            const std::size_t name_end = line.rfind(')');
            if (name_end == line.npos) continue;  // Gone meanwhile.
            std::sscanf(line.c_str() + name_end + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags);
            if (state == 'R' && policy_of(tid) == SCHED_IDLE) continue;
            if ((flags & exiting) == 0 && state != 'Z' && state != 'X') found.insert(tid);
        }
        return found;
    }

    static int policy_of(const std::string& tid) {
        return ::sched_getscheduler(std::stoi(tid)) & ~SCHED_RESET_ON_FORK;
    }

    // The descriptors, each with what it refers to. A file is named by its number, because an
    // inherited one (the program that runs the tests keeps a log) may be renamed or removed
    // meanwhile.
    static std::set<std::string> fds() {
        std::set<std::string> found;
        for (const std::string& fd : entries("/proc/self/fd")) {
            struct stat is {};
            const std::string target = target_of(fd);
            // It is gone meanwhile.
            if (target.empty() || ::fstat(std::stoi(fd), &is) != 0) continue;
            found.insert(fd + " -> " +
                         (S_ISREG(is.st_mode) ? "file " + std::to_string(is.st_dev) + ":" +
                                                    std::to_string(is.st_ino)
                                              : target));
        }
        return found;
    }

    // The lines of /proc/self/maps.
    static std::size_t mappings() {
        std::ifstream file{"/proc/self/maps"};
        std::size_t lines = 0;
        for (std::string line; std::getline(file, line);) ++lines;
        return lines;
    }

    static bool runtime_runs() {
        try {
            ums::fiber{[] {}}.join();
            return true;
        } catch (const std::system_error&) {
            return false;
        }
    }

private:
    static std::string target_of(const std::string& fd) {
        char target[256];
        const ssize_t n = ::readlink(("/proc/self/fd/" + fd).c_str(), target, sizeof target);
        return {target, n > 0 ? static_cast<std::size_t>(n) : 0};
    }
    static std::set<std::string> entries(const char* folder) {
        std::set<std::string> found;
        DIR* open = ::opendir(folder);
        if (open == nullptr) std::abort();
        const std::string own = std::to_string(::dirfd(open));
        while (const dirent* entry = ::readdir(open))
            if (entry->d_name[0] != '.') found.insert(entry->d_name);
        ::closedir(open);
        if (std::string{folder} == "/proc/self/fd") found.erase(own);
        return found;
    }

    static std::set<std::string> minus(std::set<std::string> now,
                                       const std::set<std::string>& before) {
        for (const std::string& one : before) now.erase(one);
        return now;
    }
    // What the kernel says of it: its number, its name in parentheses, its state, flags and so on.
    static std::string line_of(const std::string& tid) {
        std::ifstream file{"/proc/self/task/" + tid + "/stat"};
        std::string line;
        std::getline(file, line);
        return line;
    }

    std::set<std::string> threads_;
    std::set<std::string> fds_;
    std::size_t mappings_;
};

// A fixture that does nothing else.
class conserving_test : public ::testing::Test {
    conservation nothing_left_;
};
