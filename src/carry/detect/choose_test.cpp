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
#include "ums/options.hpp"
#include "ums/run.hpp"

namespace {

using namespace ums;
using carry::choose;
using os::failing_calls;

class choose_test : public conserving_test {};

TEST_F(choose_test, the_best_that_works_is_chosen) {
    const auto chosen = choose(block_detection::automatic);
    EXPECT_NE(chosen.is, nullptr);
    EXPECT_EQ(chosen.reason, "the best there is");
}

TEST_F(choose_test, what_is_asked_for_is_chosen) {
    for (const auto& [wanted, looks] :
         {std::pair{block_detection::monitor, true}, {block_detection::off, false}}) {
        const auto chosen = choose(wanted);
        EXPECT_EQ(chosen.is != nullptr, looks);
        EXPECT_EQ(chosen.reason, "asked for");
    }
}

TEST_F(choose_test, where_nothing_works_it_is_off) {
    failing_calls failing;
    failing.fail(failing_calls::open_to_read, 1, ~std::uint64_t{0}, ENOENT);
    for (const auto wanted : {block_detection::automatic, block_detection::monitor}) {
        const auto chosen = choose(wanted);
        EXPECT_EQ(chosen.is, nullptr);
        EXPECT_EQ(chosen.reason.find("/proc/self/task"), 0u) << chosen.reason;
    }
}

TEST_F(choose_test, what_is_asked_for_and_refused_is_an_error) {
    failing_calls failing;
    failing.fail(failing_calls::open_to_read, 1, ~std::uint64_t{0}, ENOENT);
    EXPECT_EQ(error_of([&] { run({.processors = 1, .block = block_detection::monitor}, [] {}); }),
              std::errc::operation_not_supported);
}

}  // namespace
