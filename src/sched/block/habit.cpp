// SPDX-License-Identifier: MIT
#include "sched/block/habit.hpp"

#include <algorithm>
#include <bit>

#include "base/atomic.hpp"
#include "sched/fiber/fiber.hpp"

namespace ums::sched {

namespace {

// One word for each, so that an entry and its level never come apart. The address of code has 48
// bits.
constexpr unsigned table_bits = 8;
base::atomic<std::uint64_t> table[1U << table_bits];

std::uint64_t key_of(void (*run)(void*)) noexcept {
    return (std::bit_cast<std::uintptr_t>(run) & 0xffff'ffff'ffffU) << 8;
}

base::atomic<std::uint64_t>& place_of(std::uint64_t key) noexcept {
    return table[(key * 0x9e37'79b9'7f4a'7c15U) >> (64 - table_bits)];
}

std::uint32_t learned(std::uint64_t key) noexcept {
    const std::uint64_t word = place_of(key).load(base::relaxed);  // relaxed: a hint.
    return (word & ~std::uint64_t{0xff}) == key ? static_cast<std::uint32_t>(word & 0xff) : 0;
}

void learn(std::uint64_t key, std::uint32_t level) noexcept {
    place_of(key).store(key | level,
                        // relaxed: a hint. Of two stores at the same time, one is lost.
                        base::relaxed);
}

}  // namespace

void habit::found(fiber& f) noexcept {
    blocking_note& note = f.blocks;
    const std::uint64_t key = key_of(f.run);
    const std::uint32_t others = learned(key);
    const std::uint32_t was = note.level.get();
    const os::nanoseconds since = note.went_on.get();
    note.went_on.set(0);
    if (since != 0 && os::now() - since >= soon) {
        note.level.set(std::max(1U, was / 2));
        if (others > 1) learn(key, others - 1);
        return;
    }
    // The stop was useless, which counts twice.
    const std::uint32_t more = since != 0 ? 2 : 1;
    note.level.set(std::min(std::max(was + more, others), highest));
    if (note.level.get() > others) learn(key, note.level.get());
}

void habit::went_on(fiber& f) noexcept { f.blocks.went_on.set(os::now()); }

os::nanoseconds habit::grace(const fiber& f) noexcept {
    return shortest_grace << std::min(f.blocks.level.get(), highest);
}

std::uint32_t habit::of_entry(void (*run)(void*)) noexcept { return learned(key_of(run)); }

}  // namespace ums::sched
