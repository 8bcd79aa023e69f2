// SPDX-License-Identifier: MIT
#include "mem/slab.hpp"

#include <cstring>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "internal/failing_calls.hpp"
#include "internal/probe.hpp"
#include "support/seed.hpp"

namespace {

using namespace ums;
using mem::slab;
using os::failing_calls;
using os::page_bytes;

constexpr std::size_t kib = 1024;

// Makes slabs, and gives all of them back.
class slab_test : public ::testing::Test {
protected:
    ~slab_test() override {
        mem::release_all_slabs();
        EXPECT_EQ(calls.mapped_bytes(), 0);
    }

    static char* end(const slab& s) {
        return reinterpret_cast<char*>(const_cast<slab*>(&s)) + s.bytes;
    }

    failing_calls calls;
};

TEST_F(slab_test, stacks_guards_and_header_do_not_overlap) {
    std::mt19937_64 rng{test_seed()};
    for (int round = 0; round < 100; ++round) {
        const std::size_t usable = 16 * kib << rng() % 8;
        const std::size_t guard = page_bytes * (1 + rng() % 32);
        const std::size_t head_bytes = sizeof(mem::stack_head) + rng() % 512;
        const auto count = static_cast<std::uint32_t>(1 + rng() % 200);
        slab* s = slab::make(3, usable, guard, head_bytes, count);
        ASSERT_NE(s, nullptr);
        EXPECT_EQ(s->count, count);
        EXPECT_EQ(s->size_class, 3u);
        EXPECT_EQ(s->usable(), usable);
        EXPECT_EQ(s->carved, 0u);
        EXPECT_TRUE(s->has_free());
        char* next_guard = s->stacks;
        EXPECT_GE(next_guard, reinterpret_cast<char*>(s->cold() + count));
        for (std::uint32_t i = 0; i < count; ++i) {
            EXPECT_EQ(s->bottom(i), next_guard + guard);
            char* const top = s->bottom(i) + usable;
            auto* const head = reinterpret_cast<char*>(s->head(i));
            // The head is whole and aligned, within the last page of its own stack.
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(head) % 64, 0u);
            ASSERT_LE(head + head_bytes, top);
            ASSERT_GE(head, top - page_bytes);
            next_guard = top;
        }
        EXPECT_LE(next_guard, end(*s));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s->stacks) % page_bytes, 0u);
    }
}

TEST_F(slab_test, the_cold_list_has_room_for_every_stack) {
    for (const std::uint32_t count : {1u, 16u, 1'000u, 1'001u, 4'096u}) {
        slab* s = slab::make(0, 16 * kib, 4 * kib, 64, count);
        ASSERT_NE(s, nullptr);
        for (std::uint32_t i = 0; i < count; ++i) s->cold()[i] = i;
        EXPECT_LE(reinterpret_cast<char*>(s->cold() + count), s->stacks);
        EXPECT_EQ(s->count, count);
    }
}

// Tops at equal offsets within a page would all compete for the same sets of the first-level cache.
TEST_F(slab_test, neighbouring_heads_have_different_colours) {
    slab* s = slab::make(0, 16 * kib, 4 * kib, 256, 512);
    ASSERT_NE(s, nullptr);
    constexpr std::uint32_t neighbours = 32;
    for (std::uint32_t first = 0; first + neighbours <= s->count; first += neighbours) {
        std::set<std::uintptr_t> offsets;
        for (std::uint32_t i = first; i < first + neighbours; ++i)
            offsets.insert(reinterpret_cast<std::uintptr_t>(s->head(i)) % page_bytes);
        EXPECT_EQ(offsets.size(), neighbours);
    }
}

TEST_F(slab_test, a_new_one_uses_no_memory_but_for_its_header) {
    slab* s = slab::make(0, 64 * kib, 64 * kib, 256, 100);
    ASSERT_NE(s, nullptr);
    for (std::uint32_t i = 0; i < s->count; ++i) EXPECT_FALSE(mem::is_resident(s->head(i)));
}

TEST_F(slab_test, all_are_linked_newest_first) {
    std::vector<slab*> made;
    for (int i = 0; i < 10; ++i) made.push_back(slab::make(0, 16 * kib, 4 * kib, 64, 4));
    for (const slab* s = mem::slab_list.load(base::acquire); s != nullptr; s = s->next) {
        ASSERT_FALSE(made.empty());
        EXPECT_EQ(s, made.back());
        made.pop_back();
    }
    EXPECT_TRUE(made.empty());
    mem::release_all_slabs();
    EXPECT_EQ(mem::slab_list.load(base::acquire), nullptr);
}

TEST_F(slab_test, none_is_made_without_address_space) {
    calls.fail(failing_calls::mmap, 1);
    EXPECT_EQ(slab::make(0, 16 * kib, 4 * kib, 64, 4), nullptr);
    EXPECT_EQ(mem::slab_list.load(base::acquire), nullptr);
    calls.heal();
    calls.fail(failing_calls::madvise, 1, 1, EINVAL);  // As on a kernel without huge pages.
    EXPECT_NE(slab::make(0, 16 * kib, 4 * kib, 64, 4), nullptr);
}

TEST_F(slab_test, locate_finds_the_stack_and_the_guard_of_every_address) {
    std::vector<slab*> made;
    for (const std::size_t usable : {16 * kib, 64 * kib, 256 * kib})
        made.push_back(slab::make(0, usable, 12 * kib, 64, 20));
    for (slab* s : made) {
        for (std::uint32_t i = 0; i < s->count; ++i) {
            char* const bottom = s->bottom(i);
            const struct {
                char* address;
                bool in_guard;
            } cases[] = {{bottom - s->guard_bytes, true},
                         {bottom - 1, true},
                         {bottom, false},
                         {reinterpret_cast<char*>(s->head(i)), false},
                         {bottom + s->usable() - 1, false}};
            for (const auto& c : cases) {
                mem::located found{};
                ASSERT_TRUE(mem::locate(c.address, found));
                ASSERT_EQ(found.in, s);
                ASSERT_EQ(found.index, i);
                ASSERT_EQ(found.in_guard, c.in_guard);
            }
        }
    }
}

TEST_F(slab_test, locate_finds_nothing_elsewhere) {
    slab* s = slab::make(0, 16 * kib, 4 * kib, 64, 4);
    ASSERT_NE(s, nullptr);
    mem::located found{};
    int on_this_stack = 0;
    for (const void* elsewhere :
         {static_cast<const void*>(nullptr), static_cast<const void*>(s),
          static_cast<const void*>(s->stacks - 1), static_cast<const void*>(end(*s)),
          static_cast<const void*>(&on_this_stack),
          reinterpret_cast<const void*>(~std::uintptr_t{0})})
        EXPECT_FALSE(mem::locate(elsewhere, found)) << elsewhere;
    EXPECT_EQ(end(*s), s->bottom(3) + s->usable());
    void* const inside = s->bottom(0);
    mem::release_all_slabs();
    EXPECT_FALSE(mem::locate(inside, found));
}

}  // namespace
