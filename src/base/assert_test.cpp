// SPDX-License-Identifier: MIT
#include "base/assert.hpp"

#include <csignal>
#include <cstdio>
#include <string>

#include "support/child.hpp"

namespace {

const child_program failing{"failing", [](const child_arguments&) {
                                const int apples = 3;
                                UMS_ASSERT(apples == 4, "an apple is missing");
                                return 0;
                            }};

const child_program named{"named", [](const child_arguments&) {
                              ums::base::describe_caller = [](char* buffer,
                                                              unsigned long size) noexcept {
                                  std::snprintf(buffer, size, "fiber 7 \"apple\"");
                              };
                              UMS_ASSERT(false, "an apple is missing");
                              return 0;
                          }};

const child_program out_of_apples{"out_of_apples", [](const child_arguments&) {
                                      ums::base::fatal("out of %s: %d wanted", "apples", 5);
                                      return 0;
                                  }};

const child_program too_long{"too_long", [](const child_arguments&) {
                                 const std::string much(5000, 'x');
                                 ums::base::fatal("%s", much.c_str());
                                 return 0;
                             }};

TEST(assertion, one_that_holds_does_nothing) {
    int evaluated = 0;
    UMS_ASSERT(++evaluated == 1, "evaluated once");
    EXPECT_EQ(evaluated, 1);
}

TEST(assertion, one_that_fails_prints_a_line_and_aborts) {
    const child_end end = run_child("failing");
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_EQ(end.err.find("ums: an apple is missing (src/base/assert_test.cpp:"), 0u) << end;
    EXPECT_EQ(end.err_lines(), 1u) << end;
}

TEST(assertion, one_that_fails_names_the_fiber) {
    const child_end end = run_child("named");
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_NE(end.err.find(", in fiber 7 \"apple\"\n"), std::string::npos) << end;
}

TEST(assertion, a_fatal_error_prints_its_arguments_and_aborts) {
    const child_end end = run_child("out_of_apples");
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_EQ(end.err, "ums: out of apples: 5 wanted\n");
}

TEST(assertion, a_message_longer_than_the_buffer_is_cut) {
    const child_end end = run_child("too_long");
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_EQ(end.err.find("ums: xxxx"), 0u) << end;
    EXPECT_LT(end.err.size(), 700u);
}

}  // namespace
