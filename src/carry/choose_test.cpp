// SPDX-License-Identifier: MIT

// Which detector is chosen, and why.
#include "carry/detector.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <linux/audit.h>
#include <string>
#include <sys/prctl.h>
#include <system_error>

#include "carry/perf_detector.hpp"
#include "internal/subject.hpp"
#include "internal/failing_calls.hpp"
#include "os/membarrier.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/refused_call.hpp"

namespace {

using namespace ums;
using carry::choose;
using carry::detector_kind;
using carry::preference;
using carry::would_choose;
using os::failing_calls;

bool has_perf() {
    const char* call = nullptr;
    return os::try_switch_records(call) == 0;
}

class choose_test : public conserving_test {
protected:
    carry::thread_maker maker_;
};

TEST_F(choose_test, the_best_that_works_is_chosen) {
    const auto chosen = choose(preference::automatic, maker_.tid());
    EXPECT_EQ(chosen.is->kind(), has_perf() ? detector_kind::perf : detector_kind::monitor);
    EXPECT_FALSE(chosen.reason.empty());
    const auto verdict = would_choose(preference::automatic);
    EXPECT_EQ(verdict.kind, chosen.is->kind());
    EXPECT_EQ(verdict.reason, chosen.reason);
    EXPECT_TRUE(verdict.is_possible);
}

TEST_F(choose_test, what_is_asked_for_is_chosen) {
    for (const auto& [wanted, kind] : {std::pair{preference::perf, detector_kind::perf},
                                       {preference::monitor, detector_kind::monitor},
                                       {preference::off, detector_kind::none}}) {
        if (kind == detector_kind::perf && !has_perf()) continue;
        const auto chosen = choose(wanted, maker_.tid());
        EXPECT_EQ(chosen.is->kind(), kind);
        EXPECT_EQ(chosen.reason, "asked for");
        EXPECT_EQ(would_choose(wanted).kind, kind);
    }
}

TEST_F(choose_test, where_perf_is_refused_it_is_the_monitor_and_says_why) {
    for (const int error : {EACCES, EPERM, ENOSYS, EMFILE, ENOMEM, EINVAL}) {
        for (const auto call : {failing_calls::perf_event_open, failing_calls::perf_map}) {
            // Nothing is mapped where the kernel itself refuses the event.
            if (call == failing_calls::perf_map && !has_perf()) continue;
            failing_calls failing;
            failing.fail(call, 1, ~std::uint64_t{0}, error);
            const auto chosen = choose(preference::automatic, maker_.tid());
            EXPECT_EQ(chosen.is->kind(), detector_kind::monitor);
            EXPECT_NE(chosen.reason.find(std::generic_category().message(error)), std::string::npos)
                << chosen.reason;
            EXPECT_EQ(would_choose(preference::automatic).reason, chosen.reason);
        }
    }
}

TEST_F(choose_test, where_nothing_works_it_is_off) {
    failing_calls failing;
    failing.fail(failing_calls::perf_event_open, 1, ~std::uint64_t{0}, EPERM);
    failing.fail(failing_calls::open_to_read, 1, ~std::uint64_t{0}, ENOENT);
    const auto chosen = choose(preference::automatic, maker_.tid());
    EXPECT_EQ(chosen.is->kind(), detector_kind::none);
    EXPECT_EQ(chosen.reason.find("perf_event_open: Operation not permitted"), 0u) << chosen.reason;
    EXPECT_EQ(would_choose(preference::automatic).kind, detector_kind::none);
}

TEST_F(choose_test, what_is_asked_for_and_refused_is_an_error) {
    failing_calls failing;
    failing.fail(failing_calls::perf_event_open, 1, ~std::uint64_t{0}, EPERM);
    failing.fail(failing_calls::open_to_read, 1, ~std::uint64_t{0}, ENOENT);
    for (const auto wanted : {preference::perf, preference::monitor}) {
        EXPECT_FALSE(would_choose(wanted).is_possible);
        EXPECT_EQ(error_of([&] { (void)choose(wanted, maker_.tid()); }),
                  std::errc::operation_not_supported);
    }
}

// Docker's default profile does this.
const child_program confined{
    "confined", [](const child_arguments&) {
        if (!refuse_call(SYS_perf_event_open, EPERM)) return 77;
        os::enable_asymmetric_fence(true);
        carry::thread_maker maker;
        const auto chosen = choose(preference::automatic, maker.tid());
        std::fprintf(stderr, "%s: %s", carry::name_of(chosen.is->kind()), chosen.reason.c_str());
        if (chosen.is->kind() != detector_kind::monitor) return 1;
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return 2;
        const carry::watched_thread blocks{maker, *chosen.is,
                                           [&](carry::subject& self) {
                                               self.busy(*chosen.is, [&] {
                                                   char byte;
                                                   while (::read(ends[0], &byte, 1) != 1) {
                                                   }
                                               });
                                           },
                                           [&](const carry::notice&) {
                                               if (::write(ends[1], "x", 1) != 1) std::abort();
                                           }};
        return 0;
    }};

TEST_F(choose_test, a_seccomp_filter_leaves_the_monitor) {
    const child_end end = run_child("confined");
    if (end.code == 77) GTEST_SKIP() << "no seccomp filters here";
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err.find("monitor: perf_event_open: Operation not permitted"), 0u) << end;
}

}  // namespace

int main(int argc, char** argv) { return child_main(argc, argv); }
