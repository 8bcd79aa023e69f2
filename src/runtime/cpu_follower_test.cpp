// SPDX-License-Identifier: MIT
#include "runtime/cpu_follower.hpp"

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "carry/detect/detector.hpp"
#include "os/cpu/topology.hpp"
#include "sched/block/detection.hpp"
#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/fake_root.hpp"
#include "support/no_descriptors.hpp"
#include "support/scale.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

// A root of the file system with a control group, whose quota can change.
class cpu_follower_test : public conserving_test {
protected:
    cpu_follower_test() {
        set_quota("max 100000\n");
        ::setenv("UMS_DEBUG", ("system_root=" + root_.path).c_str(), 1);
        ums::rt::cpu_follower::period = 1'000'000;
    }
    ~cpu_follower_test() override {
        ums::rt::cpu_follower::period = 1'000'000'000;
        ::unsetenv("UMS_DEBUG");
    }
    void set_quota(const std::string& text) const { root_.put("/sys/fs/cgroup/job/cpu.max", text); }

    static bool detects() {
        return ums::carry::choose(ums::block_detection::automatic).is != nullptr;
    }

    // Something runs meanwhile, because otherwise the follower does not look.
    static void wait_for(unsigned processors) {
        while (ums::cluster::standard().processors() != processors) ums::this_fiber::yield();
    }

private:
    fake_root root_{
        {{"/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"},
         {"/proc/self/cgroup", "0::/job\n"}}};
};

TEST_F(cpu_follower_test, the_processors_follow_the_quota_and_no_fiber_is_lost) {
    if (!detects()) GTEST_SKIP() << "no detector works here";
    const unsigned cpus = ums::os::usable_cpus();
    if (cpus < 2) GTEST_SKIP() << "one CPU only";
    ums::run({.follow_cpus = true}, [&] {
        std::atomic<bool> stop{false};
        std::vector<ums::fiber> all;
        for (int i = 0; i < 20; ++i)
            all.emplace_back([&] {
                while (!stop) ums::this_fiber::yield();
            });
        EXPECT_EQ(ums::cluster::standard().processors(), cpus);
        for (int round = 0; round < 3; ++round) {
            set_quota("50000 100000\n");
            wait_for(1);
            set_quota("max 100000\n");
            wait_for(cpus);
        }
        stop = true;
        for (auto& f : all) f.join();
    });
}

// Counts what the detector asks of the follower.
std::atomic<int> asked{0};
void (*on_look)(ums::os::nanoseconds) noexcept;

TEST_F(cpu_follower_test, without_a_descriptor_to_look_with_the_processors_stay) {
    if (!detects()) GTEST_SKIP() << "no detector works here";
    if (ums::os::usable_cpus() < 2) GTEST_SKIP() << "one CPU only";
    if (under_asan) GTEST_SKIP() << "UBSan needs a descriptor";
    set_quota("50000 100000\n");
    ums::run({.follow_cpus = true}, [&] {
        EXPECT_EQ(ums::cluster::standard().processors(), 1u);
        const no_descriptors left;
        using ums::sched::detection;
        asked = 0;
        on_look = detection::on_look.load(ums::base::acquire);
        detection::on_look.store(
            [](ums::os::nanoseconds now) noexcept {
                on_look(now);
                ++asked;
            },
            ums::base::release);
        while (asked < 100) ums::this_fiber::yield();
        EXPECT_EQ(ums::cluster::standard().processors(), 1u);
    });
}

TEST_F(cpu_follower_test, there_are_never_more_processors_than_asked_for) {
    if (!detects()) GTEST_SKIP() << "no detector works here";
    if (ums::os::usable_cpus() < 2) GTEST_SKIP() << "one CPU only";
    ums::run({.processors = 1, .follow_cpus = true}, [&] {
        EXPECT_EQ(ums::cluster::standard().processors(), 1u);
        // One more than allowed: the next look takes it away.
        ums::cluster::standard().add_processor();
        wait_for(1);
    });
}

TEST_F(cpu_follower_test, without_a_detector_it_is_refused) {
    EXPECT_EQ(error_of([] {
                  ums::run({.follow_cpus = true, .block = ums::block_detection::off}, [] {});
              }),
              std::errc::operation_not_supported);
}

}  // namespace
