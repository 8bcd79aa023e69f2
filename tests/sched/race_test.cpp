// SPDX-License-Identifier: MIT
//
// What ThreadSanitizer is told about fibers: in sync mode two fibers that share a processor are
// ordered by that; in no_sync mode a race between them is reported, although they never run in
// parallel. In an ordinary build the same programs just run.
#include <atomic>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::fiber;
namespace this_fiber = ums::this_fiber;

int shared = 0;

// Two fibers of one processor write to the same place, and nothing that a program may rely on
// orders them.
const child_program races{"races", [](const child_arguments&) {
                              ums::run(one_processor, [] {
                                  auto write = [] {
                                      for (int i = 0; i < 10; ++i) {
                                          ++shared;
                                          this_fiber::yield();
                                      }
                                  };
                                  fiber a{write}, b{write};
                                  a.join();
                                  b.join();
                              });
                              return shared == 20 ? 0 : 1;
                          }};

// The same, but what this library promises orders them: creation, join, unpark.
const child_program takes_turns{"takes_turns", [](const child_arguments&) {
                                    ums::run({.processors = 1}, [] {
                                        const auto main = this_fiber::ref();
                                        fiber f{[main] {
                                            for (int i = 0; i < 10; ++i) {
                                                ++shared;
                                                main.unpark();
                                                this_fiber::park();
                                            }
                                            ++shared;
                                        }};
                                        for (int i = 0; i < 10; ++i) {
                                            this_fiber::park();
                                            ++shared;
                                            f.ref().unpark();
                                        }
                                        f.join();
                                        ++shared;
                                    });
                                    return shared == 22 ? 0 : 1;
                                }};

constexpr int reported = 66;  // ThreadSanitizer's exit code.

TEST(race_test, a_race_between_fibers_of_one_processor_is_reported_in_no_sync_mode) {
    const child_end end = run_child("races", {}, {{"UMS_DEBUG", "tsan=no_sync"}});
    EXPECT_EQ(end.code, under_tsan ? reported : 0) << end;
    EXPECT_EQ(end.err.find("data race") != end.err.npos, under_tsan) << end;
}

TEST(race_test, in_sync_mode_the_processor_orders_them) {
    const child_end end = run_child("races", {}, {{"UMS_DEBUG", "tsan=sync"}});
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err, "");
}

TEST(race_test, what_the_library_orders_is_no_race_in_any_mode) {
    for (const char* mode : {"sync", "no_sync"}) {
        const child_end end =
            run_child("takes_turns", {}, {{"UMS_DEBUG", std::string{"tsan="} + mode}});
        EXPECT_EQ(end.code, 0) << mode << ": " << end;
        EXPECT_EQ(end.err, "") << mode;
    }
}

}  // namespace
