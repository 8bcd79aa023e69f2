// SPDX-License-Identifier: MIT

// Which detector is chosen, and why.
#include "carry/detect/detector.hpp"

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

#include "internal/failing_calls.hpp"
#include "support/conservation.hpp"
#include "support/error_of.hpp"

namespace {

using namespace ums;
using carry::choose;
using carry::detector_kind;
using carry::preference;
using carry::would_choose;
using os::failing_calls;

class choose_test : public conserving_test {};

TEST_F(choose_test, the_best_that_works_is_chosen) {
    const auto chosen = choose(preference::automatic);
    EXPECT_EQ(chosen.is->kind(), detector_kind::monitor);
    EXPECT_EQ(chosen.reason, "the best there is");
    const auto verdict = would_choose(preference::automatic);
    EXPECT_EQ(verdict.kind, chosen.is->kind());
    EXPECT_EQ(verdict.reason, chosen.reason);
    EXPECT_TRUE(verdict.is_possible);
}

TEST_F(choose_test, what_is_asked_for_is_chosen) {
    for (const auto& [wanted, kind] : {std::pair{preference::monitor, detector_kind::monitor},
                                       {preference::off, detector_kind::none}}) {
        const auto chosen = choose(wanted);
        EXPECT_EQ(chosen.is->kind(), kind);
        EXPECT_EQ(chosen.reason, "asked for");
        EXPECT_EQ(would_choose(wanted).kind, kind);
    }
}

TEST_F(choose_test, where_nothing_works_it_is_off) {
    failing_calls failing;
    failing.fail(failing_calls::open_to_read, 1, ~std::uint64_t{0}, ENOENT);
    const auto chosen = choose(preference::automatic);
    EXPECT_EQ(chosen.is->kind(), detector_kind::none);
    EXPECT_EQ(chosen.reason.find("/proc/self/task"), 0u) << chosen.reason;
    EXPECT_EQ(would_choose(preference::automatic).kind, detector_kind::none);
}

TEST_F(choose_test, what_is_asked_for_and_refused_is_an_error) {
    failing_calls failing;
    failing.fail(failing_calls::open_to_read, 1, ~std::uint64_t{0}, ENOENT);
    EXPECT_FALSE(would_choose(preference::monitor).is_possible);
    EXPECT_EQ(error_of([&] { (void)choose(preference::monitor); }),
              std::errc::operation_not_supported);
}

}  // namespace
