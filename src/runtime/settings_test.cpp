// SPDX-License-Identifier: MIT
#include "runtime/settings.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "internal/failing_calls.hpp"
#include "mem/stack_depot.hpp"
#include "os/cpu/cpu_quota.hpp"
#include "os/cpu/topology.hpp"
#include "sched/policies/built_in.hpp"
#include "support/child.hpp"
#include "support/error_of.hpp"
#include "support/no_descriptors.hpp"
#include "support/scale.hpp"
#include "ums/run.hpp"
#include "ums/stats.hpp"

namespace {

using namespace ums;
using os::failing_calls;
using rt::settle;

class settings_test : public ::testing::Test {
protected:
    // Each test looks at one setting.
    settings_test() { forget_all(); }
    ~settings_test() override { forget_all(); }

    static void forget_all() {
        std::vector<std::string> names;
        for (char** at = environ; *at != nullptr; ++at)
            if (std::strncmp(*at, "UMS_", 4) == 0)
                names.emplace_back(*at, static_cast<std::size_t>(std::strchr(*at, '=') - *at));
        for (const std::string& name : names) ::unsetenv(name.c_str());
    }
    static options with(const char* variable, const char* value, const options& asked = {}) {
        ::setenv(variable, value, 1);
        const options chosen = settle(asked).chosen;
        ::unsetenv(variable);
        return chosen;
    }
    static std::errc error_of(const options& asked) {
        return ::error_of([&] { (void)settle(asked); }, "ums: ");
    }
};

TEST_F(settings_test, by_default_there_is_a_processor_for_each_cpu) {
    EXPECT_EQ(settle({}).chosen.processors,
              os::whole_cpus(os::find_cpu_quota(), os::usable_cpus()));
    EXPECT_EQ(settle({.processors = 7}).chosen.processors, 7u);
    EXPECT_NE(settle({.processors = 7}).processors_reason.find("asked for"), std::string::npos);
}

TEST_F(settings_test, by_default_there_is_a_processor_for_each_cpu_that_is_named) {
    const std::string first = std::to_string(os::nth_usable_cpu(0));
    const rt::settings one = settle({.cpus = first});
    EXPECT_EQ(one.chosen.processors, 1u);
    EXPECT_EQ(one.cpus, std::vector{os::nth_usable_cpu(0)});
    EXPECT_EQ(one.processors_reason, "1 CPUs by \"" + first + "\"");
    EXPECT_EQ(settle({.processors = 3, .cpus = first}).chosen.processors, 3u);
    EXPECT_EQ(settle({.cpus = "auto"}).cpus.size(), os::usable_cpus());
    EXPECT_TRUE(settle({}).cpus.empty());
    EXPECT_EQ(error_of({.cpus = "some"}), std::errc::invalid_argument);
    EXPECT_EQ(error_of({.cpus = "1023"}), std::errc::operation_not_supported);
}

TEST_F(settings_test, by_default_there_are_no_more_processors_than_the_quota_of_the_control_group) {
    char root[] = "/tmp/ums-root-XXXXXX";
    ASSERT_NE(::mkdtemp(root), nullptr);
    const auto put = [&](const std::string& name, const char* text) {
        const std::filesystem::path path{root + name};
        std::filesystem::create_directories(path.parent_path());
        std::ofstream{path} << text;
    };
    put("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
    put("/proc/self/cgroup", "0::/half\n");
    put("/sys/fs/cgroup/half/cpu.max", "50000 100000\n");
    ::setenv("UMS_DEBUG", (std::string{"system_root="} + root).c_str(), 1);
    const ums::rt::settings half = settle({});
    EXPECT_EQ(half.chosen.processors, 1u);
    EXPECT_NE(half.processors_reason.find("a quota of 0.5 by /sys/fs/cgroup/half/cpu.max"),
              std::string::npos)
        << half.processors_reason;
    EXPECT_EQ(settle({.processors = 7}).chosen.processors, 7u);
    if (!under_asan) {  // UBSan needs a descriptor.
        const no_descriptors left;
        const ums::rt::settings blind = settle({});
        EXPECT_EQ(blind.chosen.processors, os::usable_cpus());
        EXPECT_NE(blind.processors_reason.find("any quota unknown"), std::string::npos)
            << blind.processors_reason;
    }
    put("/sys/fs/cgroup/half/cpu.max", "max 100000\n");
    EXPECT_EQ(settle({}).chosen.processors, os::usable_cpus());
    ::unsetenv("UMS_DEBUG");
    std::filesystem::remove_all(root);
}

TEST_F(settings_test, the_stack_size_is_rounded_up_to_a_power_of_two) {
    EXPECT_EQ(settle({}).chosen.stack_bytes, 256u * 1024);
    EXPECT_EQ(settle({.stack_bytes = 16 * 1024}).chosen.stack_bytes, 16u * 1024);
    EXPECT_EQ(settle({.stack_bytes = 65 * 1024}).chosen.stack_bytes, 128u * 1024);
    EXPECT_EQ(settle({.stack_bytes = (std::size_t{1} << 29) + 1}).chosen.stack_bytes, 1u << 30);
}

TEST_F(settings_test, options_out_of_range_are_refused) {
    EXPECT_EQ(error_of({.processors = 1025}), std::errc::invalid_argument);
    EXPECT_EQ(error_of({.processors = ~0u}), std::errc::invalid_argument);
    EXPECT_EQ(error_of({.stack_bytes = 0}), std::errc::invalid_argument);
    EXPECT_EQ(error_of({.stack_bytes = 16 * 1024 - 1}), std::errc::invalid_argument);
    EXPECT_EQ(error_of({.stack_bytes = (std::size_t{1} << 30) + 1}), std::errc::invalid_argument);
    EXPECT_EQ(error_of({.stack_bytes = ~std::size_t{0}}), std::errc::invalid_argument);
    EXPECT_EQ(error_of({.spin_ns = 1'000'000'001}), std::errc::invalid_argument);
    EXPECT_EQ(error_of({.processors = 1024, .stack_bytes = 1 << 30, .spin_ns = 1'000'000'000}),
              std::errc{});
}

TEST_F(settings_test, each_variable_overrides_its_option) {
    EXPECT_EQ(with("UMS_PROCESSORS", "3", {.processors = 2}).processors, 3u);
    EXPECT_EQ(with("UMS_PROCESSORS", "1024").processors, 1024u);
    EXPECT_EQ(with("UMS_STACK_BYTES", "256K", {.stack_bytes = 16384}).stack_bytes, 256u * 1024);
    EXPECT_EQ(with("UMS_DEBUG", "guard=mprotect").guard, guard_kind::mprotect);
    EXPECT_EQ(with("UMS_DEBUG", "guard=auto", {.guard = guard_kind::mprotect}).guard,
              guard_kind::automatic);
    for (const auto& one : sched::built_in_policies()) {
        EXPECT_EQ(with("UMS_POLICY", one.name).policy, one.kind);
        EXPECT_EQ(name_of(one.kind), one.name);
        EXPECT_EQ(make_policy(one.kind) == nullptr, one.kind == policy_kind::work_stealing);
    }
    EXPECT_TRUE(with("UMS_PIN", "1").pin);
    EXPECT_FALSE(with("UMS_PIN", "0", {.pin = true}).pin);
    EXPECT_TRUE(with("UMS_FOLLOW_CPUS", "1").follow_cpus);
    EXPECT_EQ(error_of({.follow_cpus = true, .block = block_detection::off}),
              std::errc::operation_not_supported);
    EXPECT_EQ(with("UMS_CPUS", "auto", {.cpus = "0"}).cpus, "auto");
    EXPECT_EQ(with("UMS_SPIN_NS", "0").spin_ns, 0u);
    EXPECT_EQ(with("UMS_SPIN_NS", "123").spin_ns, 123u);
    EXPECT_EQ(with("UMS_CARRIERS", "2").carriers, 2u);
    EXPECT_EQ(with("UMS_TIME_SLICE_US", "0", {.time_slice_us = 100}).time_slice_us, 0u);
    EXPECT_EQ(with("UMS_TIME_SLICE_US", "100").time_slice_us, 100u);
    EXPECT_EQ(with("UMS_SIGNAL", "0", {.signal = 40}).signal, 0);
    EXPECT_EQ(with("UMS_SIGNAL", "64").signal, 64);
    EXPECT_EQ(with("UMS_WARM_STACKS", "0").warm_stacks, 0u);
    EXPECT_EQ(with("UMS_WARM_STACKS", "77").warm_stacks, 77u);
    EXPECT_TRUE(with("UMS_DEBUG", "migrate").migrate);
    EXPECT_FALSE(with("UMS_DEBUG", "migrate=off", {.migrate = true}).migrate);
    EXPECT_TRUE(with("UMS_DEBUG", "measure_stacks").measure_stacks);
    EXPECT_EQ(with("UMS_DEBUG", "deadlock").deadlock, deadlock_check::report);
    EXPECT_EQ(with("UMS_DEBUG", "deadlock=report").deadlock, deadlock_check::report);
    EXPECT_EQ(with("UMS_DEBUG", "deadlock=abort").deadlock, deadlock_check::abort);
    EXPECT_EQ(with("UMS_DEBUG", "deadlock=off", {.deadlock = deadlock_check::abort}).deadlock,
              deadlock_check::off);
    EXPECT_FALSE(with("UMS_DEBUG", "membarrier=off").membarrier);
    EXPECT_TRUE(with("UMS_DEBUG", "membarrier=on", {.membarrier = false}).membarrier);
    const options several = with("UMS_DEBUG", "migrate,seed=9,deadlock,guard=mprotect");
    EXPECT_TRUE(several.migrate && several.seed == 9);
    EXPECT_TRUE(several.deadlock == deadlock_check::report &&
                several.guard == guard_kind::mprotect);
    EXPECT_EQ(with("UMS_BLOCK", "monitor").block, block_detection::monitor);
    EXPECT_EQ(with("UMS_BLOCK", "off").block, block_detection::off);
    EXPECT_EQ(with("UMS_BLOCK", "auto", {.block = block_detection::off}).block,
              block_detection::automatic);
    EXPECT_EQ(with("UMS_DEBUG", "seed=18446744073709551615").seed, ~std::uint64_t{0});
    with("UMS_DEBUG", "tsan=no_sync");
    with("UMS_DEBUG", "tsan=sync");
}

TEST_F(settings_test, a_policy_from_the_environment_wins_over_the_applications_own) {
    const options own{.make_policy = [] { return std::unique_ptr<policy>{}; }};
    EXPECT_TRUE(with("UMS_DEBUG", "seed=1", own).make_policy);
    EXPECT_FALSE(with("UMS_POLICY", "work_stealing", own).make_policy);
}

TEST_F(settings_test, the_guard_is_what_the_kernel_can_do) {
    EXPECT_EQ(settle({.guard = guard_kind::mprotect}).guard, mem::guard_kind::mprotect);
    if (mem::has_lightweight_guards()) {
        EXPECT_EQ(settle({}).guard, mem::guard_kind::lightweight);
        EXPECT_EQ(settle({.guard = guard_kind::lightweight}).guard, mem::guard_kind::lightweight);
    }
    failing_calls calls;
    calls.fail(failing_calls::madvise, 1, ~std::uint64_t{0}, EINVAL);
    EXPECT_EQ(settle({}).guard, mem::guard_kind::mprotect);
    EXPECT_EQ(error_of({.guard = guard_kind::lightweight}), std::errc::operation_not_supported);
}

// Starts a runtime, as a program would.
const child_program starts{"starts", [](const child_arguments&) { return run([] { return 0; }); }};
const child_program asks{"asks", [](const child_arguments&) { return info().empty() ? 1 : 0; }};

TEST_F(settings_test, a_bad_value_of_any_variable_ends_the_program_with_one_line) {
    const std::string too_long = "/" + std::string(5'000, 'a');
    const struct {
        const char* variable;
        std::vector<const char*> values;
    } cases[] = {
        {"UMS_PROCESSORS", {"", "0", "1025", "two", "-1"}},
        {"UMS_STACK_BYTES", {"", "16383", "2G", "64k", "big"}},
        {"UMS_BLOCK", {"", "on", "MONITOR", "off "}},
        {"UMS_POLICY", {"", "lifo", "own"}},
        {"UMS_PIN", {"", "2", "yes"}},
        {"UMS_CPUS", {"", "all", "0-", "node:", "1 2"}},
        {"UMS_FOLLOW_CPUS", {"", "2", "yes"}},
        {"UMS_SPIN_NS", {"", "-1", "1000000001", "5us"}},
        {"UMS_CARRIERS", {"", "0", "1", "1000001", "some"}},
        {"UMS_TIME_SLICE_US", {"", "-1", "1", "99", "60000001", "10ms"}},
        {"UMS_SIGNAL", {"", "-1", "1", "31", "32", "33", "65", "RTMIN"}},
        {"UMS_STATS_FILES", {"", "1", "no"}},
        {"UMS_STATS_DIRECTORY", {"", "here", "./here"}},
        {"UMS_WARM_STACKS", {"", "-1", "4294967296", "many"}},
        {"UMS_DEBUG",
         {"guard=",
          "guard=none",
          "guard=MPROTECT",
          "times=2",
          "system_root",
          "system_root=here",
          "migrate=1",
          "migrate=",
          "measure_stacks=true",
          "deadlock=1",
          "deadlock=on",
          "deadlock=Report",
          "membarrier=no",
          "seed",
          "seed=-1",
          "seed=18446744073709551616",
          "seed=random",
          "tsan=nosync",
          "1",
          "migrate,",
          "migrate;times"}},
        {"UMS_TRACE", {"", "here", "64K", "1X:on", too_long.c_str()}},
        {"UMS_PROCESORS", {"", "1"}},
    };
    for (const auto& c : cases) {
        for (const char* value : c.values) {
            for (const char* program : {"starts", "asks"}) {
                const child_end end = run_child(program, {}, {{c.variable, value}});
                SCOPED_TRACE(::testing::Message() << c.variable << "=" << value << ": " << end);
                EXPECT_EQ(end.code, 2);
                EXPECT_EQ(end.err_lines(), 1u);
                EXPECT_EQ(end.err.find("ums: " + std::string{c.variable}), 0u);
            }
        }
    }
}

TEST_F(settings_test, good_values_of_every_variable_are_accepted_together) {
    const child_end end = run_child("starts", {},
                                    {{"UMS_PROCESSORS", "2"},
                                     {"UMS_STACK_BYTES", "128K"},
                                     {"UMS_POLICY", "global_fifo"},
                                     {"UMS_PIN", "1"},
                                     {"UMS_CPUS", "auto"},
                                     {"UMS_FOLLOW_CPUS", "1"},
                                     {"UMS_SPIN_NS", "1000"},
                                     {"UMS_CARRIERS", "64"},
                                     {"UMS_TIME_SLICE_US", "0"},
                                     {"UMS_SIGNAL", "40"},
                                     {"UMS_STATS_FILES", "off"},
                                     {"UMS_STATS_DIRECTORY", "/tmp"},
                                     {"UMS_WARM_STACKS", "10"},
                                     {"UMS_BLOCK", "monitor"},
                                     {"UMS_TRACE", "off"},
                                     {"UMS_DEBUG",
                                      "guard=mprotect,times,migrate,measure_stacks,deadlock=abort,"
                                      "membarrier=off,seed=42,tsan=sync,system_root=/"}});
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err, "");
}

}  // namespace
