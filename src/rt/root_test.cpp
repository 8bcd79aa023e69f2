// SPDX-License-Identifier: MIT
// variants: mprotect migrate p1
#include "rt/root.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <random>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/ums.hpp"

namespace {

using namespace ums;

// Reads this process as a debugger would: by address, through the kernel, with the offsets of ums_root
// and nothing else of the library's.
class reader {
public:
    reader() : memory_{::open("/proc/self/mem", O_RDONLY | O_CLOEXEC)} {
        EXPECT_GE(memory_, 0);
        root_ = get<rt::root>(reinterpret_cast<std::uintptr_t>(&ums_root));
    }
    ~reader() { ::close(memory_); }
    reader(const reader&) = delete;
    reader& operator=(const reader&) = delete;

    struct found {
        std::string name;
        std::uintptr_t stack_pointer;
        std::uintptr_t bottom, top;  // Of its stack.
    };

    // By id. Fails the test if one appears twice.
    std::map<std::uint64_t, found> fibers() {
        std::map<std::uint64_t, found> all;
        slabs = stacks = 0;
        for (auto s = get<std::uintptr_t>(reinterpret_cast<std::uintptr_t>(root_.slabs)); s != 0;
             s = get<std::uintptr_t>(s + root_.slab_next)) {
            ++slabs;
            const auto first = get<std::uintptr_t>(s + root_.slab_stacks);
            const auto stride = get<std::uint64_t>(s + root_.slab_stride);
            const auto guard = get<std::uint64_t>(s + root_.slab_guard);
            const auto head_bytes = get<std::uint64_t>(s + root_.slab_head_bytes);
            const auto carved = get<std::uint32_t>(s + root_.slab_carved);
            EXPECT_LE(carved, get<std::uint32_t>(s + root_.slab_count));
            for (std::uint64_t i = 0; i < carved; ++i) {
                ++stacks;
                const std::uintptr_t fiber =
                    (first + (i + 1) * stride - i * root_.colour_factor % root_.colours * 64 -
                     head_bytes) &
                    ~std::uintptr_t{63};
                const auto id = get<std::uint64_t>(fiber + root_.fiber_id);
                if (id == 0) continue;
                const bool is_new =
                    all.emplace(id, found{text(get<std::uintptr_t>(fiber + root_.fiber_name)),
                                          get<std::uintptr_t>(fiber + root_.fiber_context),
                                          first + i * stride + guard, first + (i + 1) * stride})
                        .second;
                EXPECT_TRUE(is_new) << id;
            }
        }
        return all;
    }

    const rt::root& root() const { return root_; }

    std::size_t slabs = 0, stacks = 0;  // That fibers() has seen.

private:
    template <class T>
    T get(std::uintptr_t at) {
        T value{};
        EXPECT_EQ(::pread(memory_, &value, sizeof value, static_cast<off_t>(at)),
                  static_cast<ssize_t>(sizeof value))
            << std::hex << at;
        return value;
    }
    std::string text(std::uintptr_t at) {
        std::string all;
        for (; const char c = get<char>(at); ++at) all += c;
        return all;
    }

    int memory_;
    rt::root root_;
};

class root_test : public conserving_test {};

TEST_F(root_test, says_what_it_is) {
    const reader r;
    EXPECT_STREQ(r.root().magic, "umsroot");
    EXPECT_EQ(r.root().version, 1u);
    EXPECT_EQ(r.root().bytes, sizeof(rt::root));
}

TEST_F(root_test, without_a_runtime_there_are_no_slabs) {
    reader r;
    EXPECT_TRUE(r.fibers().empty());
    EXPECT_EQ(r.slabs, 0u);
    run([] {});
    EXPECT_TRUE(r.fibers().empty());
    EXPECT_EQ(r.slabs, 0u);
}

TEST_F(root_test, shows_exactly_the_live_fibers_with_their_names_and_ids) {
    std::mt19937_64 rng{test_seed()};
    run({.processors = 2}, [&rng] {
        constexpr std::size_t sizes[] = {0, 0, 0, 16 * 1024, 256 * 1024};
        std::map<std::uint64_t, std::string> expected{{this_fiber::get_id().value(), "main"}};
        std::vector<fiber> alive;
        std::atomic<int> parked = 0;
        reader r;
        auto check = [&] {
            const auto seen = r.fibers();
            EXPECT_EQ(seen.size(), expected.size());
            for (const auto& [id, name] : expected) {
                const auto at = seen.find(id);
                ASSERT_NE(at, seen.end()) << id;
                EXPECT_EQ(at->second.name, name);
            }
            EXPECT_EQ(r.slabs, stats().slabs);
            EXPECT_EQ(r.stacks, stats().stacks_made);
        };
        // A thousand that park; then some end, their stacks are reused, or lose their memory.
        for (int round = 0; round < 4; ++round) {
            while (alive.size() < 1'000) {
                std::string name;
                if (rng() % 4 != 0)
                    name = std::string(1 + rng() % 250, 'a') + std::to_string(rng());
                alive.emplace_back(
                    fiber_options{.name = name, .stack_bytes = sizes[rng() % std::size(sizes)]},
                    [&parked] {
                        ++parked;
                        this_fiber::park();
                        --parked;
                    });
                expected[alive.back().get_id().value()] = name.substr(0, 256);
            }
            while (parked.load() < 1'000) this_fiber::yield();
            check();
            for (int i = 0; i < 400; ++i) {
                std::swap(alive[rng() % alive.size()], alive.back());
                expected.erase(alive.back().get_id().value());
                alive.back().ref().unpark();
                alive.back().join();
                alive.pop_back();
            }
            check();
            trim();
            check();
        }
        for (fiber& f : alive) f.ref().unpark();
        for (fiber& f : alive) f.join();
        alive.clear();
        expected = {{this_fiber::get_id().value(), "main"}};
        check();
    });
}

TEST_F(root_test, the_stack_pointer_of_a_parked_fiber_lies_on_its_stack) {
    run({.processors = 1}, [] {
        std::vector<fiber> all;
        std::set<std::uint64_t> parked;
        for (int i = 0; i < 100; ++i) {
            all.emplace_back([] { this_fiber::park(); });
            parked.insert(all.back().get_id().value());
        }
        // On one processor and in the order of their arrival: all have run when the last has.
        fiber{[] { this_fiber::yield(); }}.join();
        reader r;
        int seen = 0;
        for (const auto& [id, f] : r.fibers()) {
            if (parked.count(id) == 0) continue;
            ++seen;
            EXPECT_GE(f.stack_pointer, f.bottom);
            EXPECT_LT(f.stack_pointer, f.top);
        }
        EXPECT_EQ(seen, 100);
        for (fiber& f : all) f.ref().unpark();
        for (fiber& f : all) f.join();
    });
}

// Nothing is stopped for a reader: what it sees may be old, but it is never led astray.
TEST_F(root_test, can_be_read_while_fibers_come_and_go) {
    runtime started{{.processors = 2}};
    std::atomic<bool> done = false;
    fiber busy{[&done] {
        while (!done.load()) {
            std::vector<fiber> some;
            for (int i = 0; i < 100; ++i) some.emplace_back([] { this_fiber::yield(); });
            for (fiber& f : some) f.join();
        }
    }};
    const std::uint64_t id = busy.get_id().value();
    for (int round = 0; round < scaled(100, 20); ++round) {
        reader r;
        const auto seen = r.fibers();
        EXPECT_EQ(seen.count(id), 1u);
    }
    done = true;
    busy.join();
}

}  // namespace
