// SPDX-License-Identifier: MIT
#include "os/signal/code_map.hpp"

#include <gnu/libc-version.h>

#include <gtest/gtest.h>

namespace {

using ums::os::code_map;

std::uintptr_t address(const void* of) { return reinterpret_cast<std::uintptr_t>(of); }

TEST(code_map_test, it_is_unknown_until_it_has_been_learnt_and_while_it_is_learnt_again) {
    code_map map;
    EXPECT_FALSE(map.is_known());
    map.begin_learning();
    map.add({100, 200});
    EXPECT_FALSE(map.is_known());
    map.end_learning(true);
    EXPECT_TRUE(map.is_known());
    EXPECT_FALSE(map.has(99));
    EXPECT_TRUE(map.has(100));
    EXPECT_TRUE(map.has(199));
    EXPECT_FALSE(map.has(200));
    map.begin_learning();
    EXPECT_FALSE(map.is_known());
    map.end_learning(true);
    EXPECT_FALSE(map.has(100));
}

TEST(code_map_test, with_more_ranges_than_it_has_room_for_or_than_were_found_it_stays_unknown) {
    code_map map;
    map.begin_learning();
    for (std::uintptr_t i = 0; i < 1000; ++i) map.add({i * 10, i * 10 + 5});
    map.end_learning(true);
    EXPECT_FALSE(map.is_known());
    EXPECT_TRUE(map.has(3));
    map.begin_learning();
    map.end_learning(false);
    EXPECT_FALSE(map.is_known());
}

TEST(code_map_test, the_runtime_libraries_are_found_and_the_program_is_not) {
    code_map map;
    map.begin_learning();
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* into) {
            if (ums::os::is_runtime_library(object->dlpi_name))
                static_cast<code_map*>(into)->add(*object);
            return 0;
        },
        &map);
    map.end_learning(true);
    EXPECT_TRUE(map.is_known());
    void* const in_the_library = reinterpret_cast<void*>(&::gnu_get_libc_version);
    EXPECT_TRUE(map.has(address(in_the_library)));
    EXPECT_FALSE(map.has(address(reinterpret_cast<void*>(&address))));
}

}  // namespace
