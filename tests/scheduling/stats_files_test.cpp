// SPDX-License-Identifier: MIT
//
// The tree of files, in a directory of the test's own.

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <semaphore>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/child.hpp"
#include "support/no_detection.hpp"
#include "support/round_robin.hpp"
#include "support/scale.hpp"

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& at) {
    std::ifstream file{at};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

fs::path own_tree() {
    return fs::path{std::getenv("XDG_RUNTIME_DIR")} / "ums" / std::to_string(::getpid());
}

// Runs in the child: returns 0, or which look failed.
int look_around() {
    completion_list list;
    int wrong = 0;
    const auto look = [&](bool is, int which) {
        if (!is && wrong == 0) wrong = which;
    };
    {
        test_worker w{
            list, [&] {
                ums_worker_yield(nullptr);
                look(ums_scheduling_write_stats(), 1);
                const fs::path s = own_tree() / "schedulers/0";
                const std::string info = text_of(s / "info"), tid = std::to_string(ums_thread_id());
                look(info.find("pid: " + std::to_string(::getpid()) + "\n") != info.npos, 2);
                look(info.find("state: running\n") != info.npos, 3);
                look(info.find("worker: " + tid + "\n") != info.npos, 4);
                look(info.find("switches: 2\n") != info.npos, 5);
                look(info.find("mean switch ns: ") != info.npos, 6);
                const std::string mine = text_of(s / "workers" / tid);
                look(mine.find("state: running\n") != mine.npos, 7);
                look(mine.find("yields: 1\n") != mine.npos, 8);
                struct stat is = {};
                look(::stat((s / "info").c_str(), &is) == 0 && (is.st_mode & 0777) == 0400, 9);
            }};
        round_robin{list, 1}.run();
    }
    look(ums_scheduling_write_stats(), 10);
    look(fs::is_empty(own_tree() / "schedulers"), 11);
    return wrong;
}

// Waits, without asking for the statistics, until they have been brought up to date.
int keep_workers() {
    completion_list list;
    std::binary_semaphore go{0};
    const fs::path s = own_tree() / "schedulers/0";
    int wrong = 0;
    bool is_over = false;
    {
        test_worker w{list, [&] {
                          ums_worker_blocking_enter();
                          go.acquire();
                          ums_worker_blocking_leave();
                          is_over = true;
                      }};
        const fs::path its = s / "workers" / std::to_string(ums_worker_tid(w.worker()));
        schedule(list, [&](ums_reason_t reason, std::uintptr_t, void*) {
            ums_context_t c = 0;
            if (reason == UMS_REASON_STARTUP) {
                must(ums_completion_list_dequeue(list, UMS_NEVER, &c));
                ums_worker_execute(c);
            }
            if (is_over) return;  // The worker's kernel thread may still be ending.
            ums_scheduling_write_stats();
            if (!fs::exists(its)) wrong = 1;
            struct stat before = {}, now = {};
            must(::stat((s / "info").c_str(), &before));
            do {
                (void)!ums_completion_list_dequeue(list, ums_deadline_after(1'000'000), &c);
                must(::stat((s / "info").c_str(), &now));
            } while (now.st_ino == before.st_ino && now.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
            if (!fs::exists(its)) wrong = 2;
            go.release();
            must(ums_completion_list_dequeue(list, UMS_NEVER, &c));
            ums_worker_execute(c);
        });
        w.join();
        ums_context_t c = 0;
        must(ums_completion_list_dequeue(list, 0, &c));
    }
    ums_scheduling_write_stats();
    if (fs::exists(s)) wrong = 3;
    return wrong;
}

// A worker, its scheduler and a thread want the tree at the same time. There is so much to look
// through that the worker waits for the others, and is stopped, again and again.
int write_at_once() {
    ::alarm(120);  // Instead of a deadlock.
    std::vector<ums_context_t> contexts(2000);
    for (ums_context_t& c : contexts) must(ums_context_create(&c));
    completion_list list;
    std::atomic<int> writes = 0;
    const auto write = [&writes] {
        ums_scheduling_write_stats();
        return ++writes < scaled(3000, 300);
    };
    {
        test_worker w{list, [&] {
                          while (write()) {
                          }
                      }};
        std::thread plain{[&] {
            while (write()) {
            }
        }};
        int ended = 0;
        schedule(list, [&](ums_reason_t, std::uintptr_t, void*) {
            while (ended == 0) {
                write();
                ums_context_t c = 0;
                (void)!ums_completion_list_dequeue(list, ums_deadline_after(100'000), &c);
                if (c != 0 && is_terminated(c))
                    ++ended;
                else if (c != 0)
                    ums_worker_execute(c);
            }
        });
        plain.join();
    }
    for (const ums_context_t c : contexts) must(ums_context_destroy(c));
    return 0;
}

const child_program looks{"looks", [](const child_arguments&) { return look_around(); }};
const child_program keeps{"keeps", [](const child_arguments&) { return keep_workers(); }};
const child_program at_once{"at_once", [](const child_arguments&) { return write_at_once(); }};
const child_program exits{"exits", [](const child_arguments&) {
                              // It must outlive this call.
                              static std::atomic<bool> has_begun = false;
                              for (int i = 0; i < 2; ++i)
                                  std::thread{[] {
                                      for (;;) {
                                          ums_scheduling_write_stats();
                                          has_begun = true;
                                      }
                                  }}.detach();
                              while (!has_begun) std::this_thread::yield();
                              return 0;
                          }};
const child_program off{"off", [](const child_arguments&) {
                            completion_list list;
                            {
                                test_worker w{list, [] {}};
                                round_robin{list, 1}.run();
                            }
                            return ums_scheduling_write_stats() || fs::exists(own_tree()) ? 1 : 0;
                        }};
// Without /proc no process can be looked up there, and none has a number for its namespace.
int write_without_proc() {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::umount2("/proc", MNT_DETACH) != 0)
        return 77;
    return ums_scheduling_write_stats() ? 0 : 1;
}
const child_program without_proc{"without_proc",
                                 [](const child_arguments&) { return write_without_proc(); }};

class stats_files_test : public ::testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/ums-test-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        directory = name;
    }
    void TearDown() override { fs::remove_all(directory); }
    // Leaves the tree of a process that is gone; its namespace is this one, or `further` away.
    void leave_tree(const char* number, unsigned further = 0) const {
        struct stat here {};
        ASSERT_EQ(::stat("/proc/self/ns/pid", &here), 0);
        fs::create_directories(directory / "ums" / number / "schedulers/0");
        std::ofstream{directory / "ums" / number / ".pid_namespace"} << here.st_ino + further
                                                                     << '\n';
    }
    fs::path directory;
};

TEST_F(stats_files_test, the_tree_says_what_goes_on_and_goes_with_the_process) {
    leave_tree("999999999");
    fs::create_directories(directory / "ums" / std::to_string(::getpid()));
    const child_end end = run_child("looks", {}, {{"XDG_RUNTIME_DIR", directory.string()}});
    EXPECT_EQ(end.code, 0) << end;
    int left = 0;
    for (const auto& entry : fs::directory_iterator{directory / "ums"}) {
        EXPECT_EQ(entry.path().filename(), std::to_string(::getpid()))
            << "only that of one who lives";
        ++left;
    }
    EXPECT_EQ(left, 1);
}

// The number of such a process means nothing here.
TEST_F(stats_files_test, the_tree_of_a_process_of_another_pid_namespace_stays) {
    leave_tree("999999998");
    leave_tree("999999999", 1);
    const child_end end = run_child("looks", {}, {{"XDG_RUNTIME_DIR", directory.string()}});
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_TRUE(fs::exists(directory / "ums/999999999/schedulers/0"));
    EXPECT_FALSE(fs::exists(directory / "ums/999999998"));
}

TEST_F(stats_files_test, a_process_without_proc_takes_nobody_for_gone) {
    const fs::path mine = directory / "ums" / std::to_string(::getpid());
    fs::create_directories(mine / "schedulers/0");
    std::ofstream{mine / ".pid_namespace"} << "";
    // LeakSanitizer needs /proc.
    const child_end end =
        run_child("without_proc", {},
                  {{"XDG_RUNTIME_DIR", directory.string()}, {"ASAN_OPTIONS", "detect_leaks=0"}});
    if (end.code == 77) GTEST_SKIP() << "unmounting is for root";
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_TRUE(fs::exists(mine / "schedulers/0"));
}

TEST_F(stats_files_test, a_scheduler_that_waits_leaves_the_files_of_workers) {
    const child_end end = run_child("keeps", {}, {{"XDG_RUNTIME_DIR", directory.string()}});
    EXPECT_EQ(end.code, 0) << end;
}

TEST_F(stats_files_test, a_worker_and_its_scheduler_write_at_once) {
    const child_end end = run_child(
        "at_once", {}, {{"XDG_RUNTIME_DIR", directory.string()}, {"UMS_BLOCK", "monitor"}});
    EXPECT_EQ(end.code, 0) << end;
}

TEST_F(stats_files_test, nothing_is_left_by_a_process_that_ends_while_others_write) {
    for (int i = 0; i < 20; ++i) {
        const child_end end = run_child("exits", {}, {{"XDG_RUNTIME_DIR", directory.string()}});
        EXPECT_EQ(end.code, 0) << end;
        EXPECT_TRUE(fs::is_empty(directory / "ums"));
    }
}

TEST_F(stats_files_test, it_can_be_turned_off) {
    const child_end end =
        run_child("off", {}, {{"XDG_RUNTIME_DIR", directory.string()}, {"UMS_STATS_FILES", "off"}});
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_TRUE(fs::is_empty(directory));
}

TEST_F(stats_files_test, a_directory_that_others_can_write_to_is_not_used) {
    fs::create_directories(directory / "ums");
    ::chmod((directory / "ums").c_str(), 0777);
    const child_end end = run_child("off", {}, {{"XDG_RUNTIME_DIR", directory.string()}});
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_TRUE(fs::is_empty(directory / "ums"));
}

TEST_F(stats_files_test, a_wrong_value_ends_the_program_and_is_named) {
    const child_end end = run_child("off", {}, {{"UMS_STATS_FILES", "maybe"}});
    EXPECT_EQ(end.code, 2);
    EXPECT_NE(end.err.find("UMS_STATS_FILES=maybe"), end.err.npos) << end;
}

}  // namespace
