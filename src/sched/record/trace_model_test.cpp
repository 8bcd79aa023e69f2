// SPDX-License-Identifier: MIT
//
// The text of trace_ring::write(), beside a reader, in every execution that C++20 allows, up to a
// bound: what the reader keeps is whole, and is what the ring's count says.

#include <array>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "internal/modelled/mutants.hpp"

namespace ums::modelled_stamps {

inline std::uint64_t time_stamp() noexcept { return 1; }

}  // namespace ums::modelled_stamps

#define base modelled_base
#define arch modelled_stamps
#define sched modelled

namespace ums::sched {

struct after_switch {};
inline bool is_probed() noexcept { return false; }
template <class... T>
void probe(const T&...) noexcept {}

#include "sched/record/trace.hpp"

inline void trace_ring::write_text(trace_event, std::uint64_t, std::string_view) noexcept {}

}  // namespace ums::sched

#undef base
#undef arch
#undef sched

namespace {

using ums::modelled::trace_event;
using ums::modelled::trace_record;
using ums::modelled::trace_ring;
using ums::tso::model;
namespace base = ums::base;

constexpr std::uint64_t capacity = 2;

struct machine {
    std::array<trace_record, capacity> records;
    trace_ring ring;

    // At one place in each execution; not destroyed, because its words disappeared with it.
    static machine& remade() {
        alignas(machine) static std::byte room[sizeof(machine)];
        auto& s = *new (room) machine;
        s.ring.records = s.records.data();
        s.ring.mask = capacity - 1;
        return s;
    }
    void write(std::uint64_t first, std::uint64_t n) {
        for (std::uint64_t i = first; i != first + n; ++i)
            ring.write(trace_event::mark, i, 10 + i, 20 + i);
    }
    // As a tool does, see sched/record/trace.hpp.
    void read() {
        struct copy {
            std::uint64_t number, what, argument, other;
        };
        // No memory of its own: an execution that is cut off leaves the strand's stack as it is.
        std::array<copy, capacity> all{};
        std::size_t n = 0;
        const std::uint64_t count = ring.count.load(base::acquire);
        for (std::uint64_t i = count > capacity ? count - capacity : 0; i < count; ++i) {
            const trace_record& r = records[i % capacity];
            all[n++] = {i, r.what.load(base::acquire), r.argument.load(base::acquire),
                        r.other.load(base::acquire)};
        }
        const std::uint64_t after = ring.count.load(base::acquire);
        for (const copy& c : std::span{all}.first(n)) {
            if (c.number + capacity < after + 1) continue;  // It may have been overwritten.
            if (c.what != (15ull << 56 | c.number) || c.argument != 10 + c.number ||
                c.other != 20 + c.number)
                model::running().fail("a record is torn");
        }
    }
};

// So many records are there before the strands run, and so many come beside the reader.
ums::tso::program with(const char* name, std::uint64_t before, std::uint64_t beside) {
    return {.name = name,
            .build =
                [before, beside](model& of) {
                    machine& s = machine::remade();
                    s.write(0, before);
                    of.strand("writer", [&s, before, beside] { s.write(before, beside); });
                    of.strand("reader", [&s] { s.read(); });
                    of.at_rest([&s, &of, all = before + beside]() -> std::string {
                        if (!of.are_all_done()) return "one waits for ever";
                        return of.at(s.ring.count.cell()) == all ? "" : "a record is not counted";
                    });
                },
            .preemptions = 3,
            .histories = true};
}

ums::tso::mutation_test all() {
    return {{with("the first record", 0, 1), with("a record", 1, 1), with("two records", 1, 2)},
            {
#include "trace_model_test.inc"
            },
            {{"trace_ring::write: store release to relaxed", "the reader does not keep the time"}}};
}

TEST(trace_model_test, what_is_read_is_whole) { all().text_is_correct(); }
TEST(trace_model_test, finds_each_mutant) { all().finds_each_mutant(); }
TEST(trace_model_test, its_orders_are_needed) { all().finds_each_order(); }

}  // namespace
