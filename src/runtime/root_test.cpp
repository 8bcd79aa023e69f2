// SPDX-License-Identifier: MIT
// variants: mprotect migrate p1
#include "runtime/root.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <link.h>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/ums.hpp"

namespace {

using namespace ums;

// Reads this process as a debugger would: by address, through the kernel, with the offsets of
// ums_root and nothing else from the library.
class reader {
public:
    reader() : memory_{::open("/proc/self/mem", O_RDONLY | O_CLOEXEC)} { EXPECT_GE(memory_, 0); }
    ~reader() { ::close(memory_); }
    reader(const reader&) = delete;
    reader& operator=(const reader&) = delete;

    struct found {
        std::string name;
        std::uintptr_t stack_pointer;
        std::uintptr_t bottom, top;  // The ends of its stack.
        std::uintptr_t descriptor;
    };

    // The fibers by id. Fails the test if one appears twice.
    std::map<std::uint64_t, found> fibers() {
        std::map<std::uint64_t, found> all;
        slabs = stacks = 0;
        const std::size_t factor = value("slab.colour_factor"), colours = value("slab.colours");
        for (auto s = get<std::uintptr_t>(place("slabs")); s != 0;
             s = get<std::uintptr_t>(s + value("slab.next"))) {
            ++slabs;
            const auto first = get<std::uintptr_t>(s + value("slab.stacks"));
            const auto stride = get<std::uint64_t>(s + value("slab.stride"));
            const auto guard = get<std::uint64_t>(s + value("slab.guard_bytes"));
            const auto head_bytes = get<std::uint64_t>(s + value("slab.head_bytes"));
            const auto carved = get<std::uint32_t>(s + value("slab.carved"));
            EXPECT_LE(carved, get<std::uint32_t>(s + value("slab.count")));
            for (std::uint64_t i = 0; i < carved; ++i) {
                ++stacks;
                const std::uint64_t colour = i * factor % colours * 64;
                const std::uintptr_t fiber =
                    (first + (i + 1) * stride - colour - head_bytes) & ~std::uintptr_t{63};
                const auto id = get<std::uint64_t>(fiber + value("fiber.id"));
                if (id == 0) continue;
                const bool is_new =
                    all.emplace(id,
                                found{text(get<std::uintptr_t>(fiber + value("fiber.name"))),
                                      get<std::uintptr_t>(fiber + value("fiber.sp")),
                                      first + i * stride + guard, first + (i + 1) * stride, fiber})
                        .second;
                EXPECT_TRUE(is_new) << id;
            }
        }
        return all;
    }

    const rt::root& root() const { return root_; }

    std::size_t value(std::string_view name) const {
        for (unsigned i = 0; i < root_.value_count; ++i)
            if (name == root_.values[i].name) return root_.values[i].value;
        ADD_FAILURE() << name;
        return 0;
    }
    std::uintptr_t place(std::string_view name) const {
        for (unsigned i = 0; i < root_.place_count; ++i)
            if (name == root_.places[i].name)
                return reinterpret_cast<std::uintptr_t>(root_.places[i].at);
        ADD_FAILURE() << name;
        return 0;
    }

    std::size_t slabs = 0, stacks = 0;  // Those that fibers() has seen.

    template <class T>
    T get(std::uintptr_t at) {
        T value{};
        EXPECT_EQ(::pread(memory_, &value, sizeof value, static_cast<off_t>(at)),
                  static_cast<ssize_t>(sizeof value))
            << std::hex << at;
        return value;
    }

private:
    std::string text(std::uintptr_t at) {
        std::string all;
        for (; const char c = get<char>(at); ++at) all += c;
        return all;
    }

    int memory_;
    rt::root root_ = ums_root;
};

class root_test : public conserving_test {};

TEST_F(root_test, says_what_it_is) {
    const reader r;
    EXPECT_STREQ(r.root().magic, "umsroot");
    EXPECT_EQ(r.root().version, 2u);
    EXPECT_EQ(r.root().bytes, sizeof(rt::root));
}

// A reader finds it in this way that has only the file, or the memory, of a stripped program.
TEST_F(root_test, is_named_by_a_note_of_the_program) {
    std::vector<const void*> found;
    ::dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* into) {
            for (int i = 0; i < object->dlpi_phnum; ++i) {
                const auto& part = object->dlpi_phdr[i];
                if (part.p_type != PT_NOTE) continue;
                // Also in a segment of 8, see tools/ums/inspect/notes.cpp.
                const auto up = [](std::size_t n) { return (n + 3) / 4 * 4; };
                const char* at = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
                for (const char* const end = at + part.p_memsz; at < end;) {
                    const auto& n = *reinterpret_cast<const ElfW(Nhdr)*>(at);
                    const char* const what = at + up(sizeof n + n.n_namesz);
                    if (n.n_namesz == 7 && std::memcmp(at + sizeof n, "libums", 7) == 0 &&
                        n.n_type == 1 && n.n_descsz == 8) {
                        std::int64_t distance;
                        std::memcpy(&distance, what, sizeof distance);
                        static_cast<std::vector<const void*>*>(into)->push_back(what + distance);
                    }
                    at = what + up(n.n_descsz);
                }
            }
            return 0;
        },
        &found);
    EXPECT_EQ(found, std::vector<const void*>{&ums_root});
}

TEST_F(root_test, names_each_thing_once) {
    std::set<std::string> names;
    for (unsigned i = 0; i < ums_root.value_count; ++i)
        EXPECT_TRUE(names.insert(ums_root.values[i].name).second) << ums_root.values[i].name;
    for (unsigned i = 0; i < ums_root.place_count; ++i)
        EXPECT_TRUE(names.insert(ums_root.places[i].name).second) << ums_root.places[i].name;
}

// tests/inspect reads the rest of the descriptor from outside.
TEST_F(root_test, tells_where_a_fiber_was_spawned_and_what_it_waits_for) {
    run(one_processor, [] {
        counting_semaphore<> s{0};
        fiber waits{[&s] { s.acquire(); }};
        this_fiber::yield();
        reader r;
        const auto seen = r.fibers();
        const auto at = seen.at(waits.get_id().value()).descriptor;
        EXPECT_EQ(r.get<std::uint64_t>(at + r.value("fiber.spawner")),
                  this_fiber::get_id().value());
        constexpr std::uint64_t semaphore = 4;
        EXPECT_EQ(r.get<std::uint64_t>(at + r.value("fiber.mark")),
                  semaphore << r.value("fiber.mark_shift") | reinterpret_cast<std::uintptr_t>(&s));
        s.release();
        waits.join();
    });
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
        // A thousand fibers park; then some end, and their stacks are reused, or lose their memory.
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
    run(one_processor, [] {
        std::vector<fiber> all;
        std::set<std::uint64_t> parked;
        for (int i = 0; i < 100; ++i) {
            all.emplace_back([] { this_fiber::park(); });
            parked.insert(all.back().get_id().value());
        }
        // They run on one processor in the order of their arrival, so all have run when the last
        // has.
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
