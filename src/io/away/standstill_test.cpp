// SPDX-License-Identifier: MIT
//
// The pool when its calls wait for each other. No test here sets its limit.

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <latch>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "io/away/offload.hpp"
#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "ums/ums.hpp"

namespace {

using namespace ums;

class standstill_test : public conserving_test {
protected:
    ~standstill_test() override {
        io::offload_pool::asleep_ns.store(10'000'000, base::relaxed);
        io::offload_pool::idle_ns.store(10'000'000'000, base::relaxed);
    }
    static void end_idle_threads_at_once() { io::offload_pool::idle_ns.store(1, base::relaxed); }
    static void wait_until_one_thread_is_left() {
        yield_until([] { return offload_stats().threads == 1; });
    }
};

// FIFOs in a folder of their own.
class fifos {
public:
    explicit fifos(int count) : count_{count} {
        EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
        for (int i = 0; i < count; ++i) EXPECT_EQ(::mkfifo(path(i).c_str(), 0600), 0);
    }
    ~fifos() {
        for (int i = 0; i < count_; ++i) ::unlink(path(i).c_str());
        ::rmdir(folder_.c_str());
    }
    fifos(const fifos&) = delete;
    fifos& operator=(const fifos&) = delete;
    [[nodiscard]] std::string path(int i) const { return folder_ + "/" + std::to_string(i); }

private:
    std::string folder_ = "/tmp/ums-standstill-XXXXXX";
    const int count_;
};

TEST_F(standstill_test, more_fifos_than_the_limit_are_opened_by_both_ends) {
    end_idle_threads_at_once();
    const int count = static_cast<int>(offload_stats().most) + 6;
    const fifos all{count};
    run([&] {
        std::vector<fiber> openers;
        const auto open_all = [&](int how) {
            for (int i = 0; i < count; ++i)
                openers.emplace_back([&all, i, how] {
                    io::close(io::open(all.path(i).c_str(), how).value()).value();
                });
        };
        open_all(O_RDONLY);
        yield_until([] { return offload_stats().queued != 0; });
        open_all(O_WRONLY);
        for (fiber& f : openers) f.join();
        EXPECT_GT(offload_stats().waited, 0u);
        wait_until_one_thread_is_left();
    });
}

TEST_F(standstill_test, calls_of_the_program_hold_up_none_of_ours) {
    // None of the program's calls is excused.
    io::offload_pool::asleep_ns.store(1'000'000'000, base::relaxed);
    run([] {
        std::atomic<bool> is_over{false};
        std::vector<fiber> callers;
        for (unsigned i = 0; i < offload_stats().most + 1; ++i)
            callers.emplace_back([&] { offload([&] { is_over.wait(false); }); });
        yield_until([] {
            const offload_statistics now = offload_stats();
            return now.busy == now.most && now.queued == 1;
        });
        const int fd = io::open("/dev/null", O_WRONLY).value();
        EXPECT_TRUE(net::resolve("127.0.0.1", "80"));
        io::close(fd).value();
        EXPECT_EQ(offload_stats().queued, 1u);
        is_over = true;
        is_over.notify_all();
        for (fiber& f : callers) f.join();
    });
}

TEST_F(standstill_test, calls_of_the_program_that_wait_for_a_queued_one_get_it) {
    io::offload_pool::asleep_ns.store(100'000, base::relaxed);
    end_idle_threads_at_once();
    run([] {
        std::latch all_begun{static_cast<std::ptrdiff_t>(2 * offload_stats().most)};
        std::vector<fiber> callers;
        for (unsigned i = 0; i < 2 * offload_stats().most; ++i)
            callers.emplace_back([&] { offload([&] { all_begun.arrive_and_wait(); }); });
        for (fiber& f : callers) f.join();
        wait_until_one_thread_is_left();
    });
}

}  // namespace
