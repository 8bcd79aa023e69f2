// SPDX-License-Identifier: MIT
#include "sched/run/unused_pages.hpp"

#include <algorithm>
#include <cstdint>
#include <sys/mman.h>
#include <utility>

#include "arch/sanitizer.hpp"
#include "mem/slab.hpp"
#include "os/memory.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/run/park.hpp"

namespace ums::sched {

namespace {

constexpr unsigned most_seen = 512, most_given = 32;  // In one part of a look.
// Code may use this much below the stack pointer (the psABI's red zone).
constexpr std::uintptr_t red_zone = 128;

// One carrier at a time looks. Guards what follows:
constinit base::atomic<bool> is_looking;
constinit const mem::slab* next_slab = nullptr;  // Where the next part begins.
constinit std::uint32_t next_index = 0;
constinit os::nanoseconds spent = 0;
constinit bool has_marked = false;

// The descriptor may be anything by now: free, without memory, or that of another fiber.
UMS_UNINSTRUMENTED std::uint32_t word_of(const fiber& f) noexcept {
    return __atomic_load_n(static_cast<const std::uint32_t*>(f.word.address()), __ATOMIC_RELAXED);
}
UMS_UNINSTRUMENTED std::uint32_t carved_in(const mem::slab& s) noexcept {
    return __atomic_load_n(&s.carved, __ATOMIC_ACQUIRE);
}

void give_back_of(fiber& f) noexcept {
    const auto bottom = reinterpret_cast<std::uintptr_t>(f.bottom());
    const auto sp = reinterpret_cast<std::uintptr_t>(f.context.sp) - red_zone;
    const std::uintptr_t end = sp / os::page_bytes * os::page_bytes;
    // An error (the program may have locked its memory) changes nothing.
    if (end > bottom)
        os::system.madvise(reinterpret_cast<void*>(bottom), end - bottom, MADV_DONTNEED);
}

// Returns whether it made a system call.
bool look_at(fiber& f) noexcept {
    std::uint32_t seen = word_of(f);
    if ((seen & parkable::any_parked) == 0 || (seen & parkable::has_given_back) != 0) return false;
    if ((seen & parkable::found_parked) == 0) {
        // relaxed: the mark only says that the parked bit has not been cleared since, and a
        // read-modify-write does not end what commit() has released. If the stack has become
        // another fiber's meanwhile, that one is parked as well.
        if (f.word.compare_exchange(seen, seen | parkable::found_parked, base::relaxed,
                                    base::relaxed))
            has_marked = true;
        return false;
    }
    const std::uint32_t bits = take_aside(f);
    if (bits == 0) return false;
    give_back_of(f);
    park_again(f, bits | parkable::has_given_back);
    return true;
}

}  // namespace

void unused_pages::note_run() noexcept {
    // seq_cst: pairs with end_look(), which stores `never`, then reads have_run_ again.
    have_run_.store(true, base::seq_cst);
    os::nanoseconds none = os::never;
    due_.compare_exchange(none, os::now() + period.load(base::relaxed), base::seq_cst, base::relaxed);
}

void unused_pages::end_look(os::nanoseconds now) noexcept {
    const os::nanoseconds again =
        now + std::max(period.load(base::relaxed), 99 * std::exchange(spent, 0));
    if (std::exchange(has_marked, false) || have_run_.load(base::relaxed)) {
        have_run_.store(false, base::relaxed);
        due_.store(again, base::relaxed);
        return;
    }
    due_.store(os::never, base::seq_cst);
    if (!have_run_.load(base::seq_cst)) return;
    os::nanoseconds none = os::never;
    due_.compare_exchange(none, again, base::relaxed, base::relaxed);
}

os::nanoseconds unused_pages::look_if_due(os::nanoseconds due) noexcept {
    const os::nanoseconds begun = os::now();
    if (due > begun) return due;
    // sync(unused_pages): sees where the part before has ended.
    if (is_looking.exchange(true, base::acquire)) return os::never;
    // sync(slab_list): sees the headers.
    if (next_slab == nullptr) next_slab = mem::slab_list.load(base::acquire);
    unsigned seen = 0, given = 0;
    for (; next_slab != nullptr; next_slab = next_slab->next, next_index = 0) {
        const std::uint32_t carved = carved_in(*next_slab);
        while (next_index < carved && seen < most_seen && given < most_given) {
            ++seen;
            given += look_at(*static_cast<fiber*>(next_slab->head(next_index++))) ? 1 : 0;
        }
        if (next_index < carved) break;
    }
    const os::nanoseconds now = os::now();
    spent += now - begun;
    if (next_slab == nullptr) end_look(now);
    const os::nanoseconds again = due_.load(base::relaxed);
    is_looking.store(false, base::release);  // sync(unused_pages): publishes the place.
    return again;
}

void unused_pages::begin(bool kept) noexcept {
    is_looking.store(false, base::relaxed);
    next_slab = nullptr;
    next_index = 0;
    spent = 0;
    has_marked = false;
    have_run_.store(kept, base::relaxed);  // Then note_run() is not called.
    due_.store(os::never, base::relaxed);
}

}  // namespace ums::sched
