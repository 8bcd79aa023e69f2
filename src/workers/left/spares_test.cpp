// SPDX-License-Identifier: MIT
//
// Spare kernel threads that cannot be made, and a scheduler's own that is not free.

#include "workers/left/spares.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "arch/sanitizer.hpp"
#include "carry/detect/monitor_detector.hpp"
#include "support/child.hpp"
#include "support/gate.hpp"
#include "support/round_robin.hpp"

namespace {

std::atomic<int> refusals = 0, attempts = 0;

}  // namespace

#if !defined(UMS_ASAN) && !defined(UMS_TSAN)
namespace {

bool is_made_by_the_maker() {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    return std::strcmp(name, "ums maker") == 0;
}

}  // namespace

// Replaces the C library's function, also for the C++ library.
extern "C" int pthread_create(pthread_t* made, const pthread_attr_t* attributes,
                              void* (*function)(void*), void* argument) noexcept {
    using call = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static call* const real = reinterpret_cast<call*>(::dlsym(RTLD_NEXT, "pthread_create"));
    if (is_made_by_the_maker()) {
        const int n = ++attempts;
        attempts.notify_all();
        if (n <= refusals) return EAGAIN;
    }
    return real(made, attributes, function, argument);
}
#define CAN_REFUSE true
#else
#define CAN_REFUSE false
#endif

namespace {

// Returns 0, or how many attempts there were.
int be_refused_threads(const child_arguments&) {
    refusals = 3;
    ums::carry::monitor_detector detector;
    if (!detector.start().empty()) return 1;
    ums::scheduling::spares().start(detector);
    ums::scheduling::spares().want(1);
    // No thread takes a spare, so no thread tells the maker to look again.
    for (int n = 0; (n = attempts) <= refusals;) attempts.wait(n);
    ums::scheduling::spares().stop();
    detector.stop();
    return attempts == refusals + 1 ? 0 : attempts.load();
}

const child_program refused{"refused", &be_refused_threads};

TEST(spares_test, a_spare_that_could_not_be_made_is_made_later_and_one_line_says_so) {
    if (!CAN_REFUSE) GTEST_SKIP() << "a sanitizer has a pthread_create() of its own";
    const child_end end = run_child("refused");
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err_lines(), 1u) << end;
    EXPECT_TRUE(end.err.starts_with("ums: no spare kernel thread for a scheduler")) << end;
}

// Collects what is written to standard error from now on, line by line.
class error_lines {
public:
    error_lines() {
        must(::pipe(ends_));
        must(::dup2(ends_[1], STDERR_FILENO) < 0 ? -errno : 0);
    }
    [[nodiscard]] std::string next() const {
        std::string line;
        for (char c = 0; ::read(ends_[0], &c, 1) == 1 && c != '\n';) line += c;
        return line;
    }

private:
    int ends_[2];
};

int leave_while_a_worker_blocks(const child_arguments&) {
    const error_lines errors;
    raw_read_gate gate;
    completion_list list;
    test_worker w{list, [&gate] { must(gate.pass() ? 0 : -errno); }};
    const int tid = ums_thread_id();
    std::string said;
    // The worker continues only when the line has come, and so does the scheduler.
    std::thread opener{[&] {
        said = errors.next();
        gate.open();
    }};
    schedule(list, [&](ums_reason_t reason, std::uintptr_t, void*) {
        if (reason != UMS_REASON_STARTUP) return;
        ums_context_t c = 0;
        must(ums_completion_list_dequeue(list, UMS_NEVER, &c));
        (void)ums_worker_execute(c);
    });
    opener.join();
    if (::gettid() != tid) return 1;
    const std::string wanted = "ums: thread " + std::to_string(tid) +
                               " leaves scheduling mode and waits for its kernel thread: worker " +
                               std::to_string(ums_worker_tid(w.worker())) + " blocks there";
    if (!said.starts_with(wanted)) return 2;
    round_robin rest{list, 1};
    rest.run();
    return rest.ended == 1 ? 0 : 3;
}

const child_program leaves{"leaves", &leave_while_a_worker_blocks};

TEST(spares_test, a_scheduler_that_leaves_says_which_worker_blocks_on_its_kernel_thread) {
    const child_end end = run_child("leaves", {}, {{"UMS_BLOCK", "monitor"}});
    EXPECT_EQ(end.code, 0) << end;
}

}  // namespace
