// SPDX-License-Identifier: MIT
#include "os/source_lines.hpp"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

using ums::os::call_list;
using ums::os::source_lines;

// "1 2 [x5] 3": what came so many times more is in brackets, with its period if it is not 1.
std::string folded(const std::vector<std::uintptr_t>& calls) {
    const auto list = std::make_unique<call_list>();
    for (const std::uintptr_t at : calls)
        if (!list->add(at)) break;
    std::string text;
    for (unsigned i = 0; i < list->size(); ++i) {
        const call_list::call& c = (*list)[i];
        text += (i == 0 ? "" : " ") + std::to_string(c.at);
        if (c.again != 0)
            text += " [" + (c.of == 1 ? "" : std::to_string(c.of) + "*") + "x" +
                    std::to_string(c.again) + "]";
    }
    return text;
}

TEST(call_list_test, different_calls_are_all_kept) {
    EXPECT_EQ(folded({}), "");
    EXPECT_EQ(folded({1, 2, 3, 1, 2, 4}), "1 2 3 1 2 4");
}

TEST(call_list_test, equal_calls_become_one) {
    EXPECT_EQ(folded({1, 1}), "1 [x1]");
    EXPECT_EQ(folded({7, 1, 1, 1, 1, 2}), "7 1 [x3] 2");
    EXPECT_EQ(folded({1, 1, 1, 2, 2, 1, 1}), "1 [x2] 2 [x1] 1 [x1]");
}

TEST(call_list_test, calls_in_turns_become_one_turn) {
    EXPECT_EQ(folded({1, 2, 1, 2, 1, 2, 9}), "1 2 [2*x2] 9");
    EXPECT_EQ(folded({1, 2, 1, 2, 1, 9}), "1 2 [2*x1] 1 9");
    EXPECT_EQ(folded({5, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 5}), "5 1 2 3 4 [4*x1] 1 2 3 5");
}

TEST(call_list_test, a_recursion_of_any_depth_has_room) {
    std::vector<std::uintptr_t> calls(100'000, 1);
    calls.push_back(2);
    EXPECT_EQ(folded(calls), "1 [x99999] 2");
}

TEST(call_list_test, what_has_no_room_ends_the_list) {
    call_list list;
    unsigned n = 0;
    while (list.add(++n)) {
    }
    EXPECT_EQ(n, call_list::most + 1);
    EXPECT_EQ(list.size(), call_list::most);
}

TEST(source_lines_test, an_address_of_nothing_is_only_written) {
    std::string text;
    const auto lines = std::make_unique<source_lines>(
        [](void* to, const char* more, std::size_t n) {
            static_cast<std::string*>(to)->append(more, n);
        },
        &text);
    lines->want(16);
    lines->look_up();
    lines->write(16, "at ");
    lines->write(17, "at ");  // Nobody has asked for it before.
    lines->write_commands();
    EXPECT_EQ(text, "at 0x10\nat 0x11\n");
}

}  // namespace
