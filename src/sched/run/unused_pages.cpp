// SPDX-License-Identifier: MIT
//
// Why a fiber parked by park_holding() does not run while its pages go. Its waker clears is_held,
// then reads the word. A look that finds is_held sets found_parked, executes a heavy fence, and
// looks at is_held again; if it is false by then, the mark goes. So a waker that comes after the
// fence sees the mark, and one that came before is seen by the second look (the argument of
// os/cpu/membarrier.hpp; where there is no asymmetric fence, such fibers are left alone). Hence as
// long as the mark is there, nobody has ended this park: the waker that sees the mark removes it in
// a compare-and-swap, and only then the fiber may run. The next look turns found_parked into
// is_looked_at in a compare-and-swap. A waker that comes later finds that, leaves is_awaited, and
// the look makes the fiber ready at its end.
//
// Why its registers are saved: is_held is set before the switch, and a switch lies within the
// ownership of a processor. Before a look touches pages, it sees each processor outside its
// ownership once, after all marks of the look before.
#include "sched/run/unused_pages.hpp"

#include <algorithm>
#include <cstdint>
#include <sys/mman.h>
#include <utility>

#include "arch/sanitizer.hpp"
#include "mem/slab.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/memory.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/park.hpp"
#include "sched/run/wake.hpp"

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
constinit bool all_have_left = false;           // Since the look before.
constinit fiber* just_marked[most_given] = {};  // Parked by park_holding().
constinit unsigned marked_count = 0;

// The descriptor may be anything by now: free, without memory, or that of another fiber.
UMS_UNINSTRUMENTED std::uint32_t word_of(const fiber& f) noexcept {
    return __atomic_load_n(static_cast<const std::uint32_t*>(f.word.address()), __ATOMIC_RELAXED);
}
UMS_UNINSTRUMENTED bool is_held(const fiber& f) noexcept {
    return *reinterpret_cast<const volatile bool*>(&f.is_held);
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

// Also for a fiber that was parked again meanwhile, by either way.
bool mark(fiber& f, std::uint32_t seen) noexcept {
    // sync(park): the fiber was made before it parked; word_of() did not order that.
    if (f.word.load(base::acquire) != seen) return false;
    // relaxed: the mark only says that the park has not ended since, and a read-modify-write does
    // not end what commit() has released. If the stack has become another fiber's meanwhile, that
    // one is parked as well.
    return f.word.compare_exchange(seen, seen | parkable::found_parked, base::relaxed,
                                   base::relaxed);
}

bool look_at_held(fiber& f, std::uint32_t seen) noexcept {
    if ((seen & parkable::found_parked) == 0) {
        if (mark(f, seen)) just_marked[marked_count++] = &f;
        return true;
    }
    if (!all_have_left) {
        has_marked = true;  // Once more.
        return false;
    }
    // sync(park): sees the saved registers.
    if (!f.word.compare_exchange(seen, seen | parkable::is_looked_at, base::acquire, base::relaxed))
        return false;
    give_back_of(f);
    seen = f.word.load(base::relaxed);
    std::uint32_t next;
    do {
        next = seen & ~(parkable::is_looked_at | parkable::is_awaited | parkable::found_parked);
        if ((seen & parkable::is_awaited) == 0)
            next |= parkable::found_parked | parkable::has_given_back;
        // sync(park): sees what the waker did, or goes before it.
    } while (!f.word.compare_exchange(seen, next, base::acq_rel, base::relaxed));
    if ((seen & parkable::is_awaited) != 0) resume(f);
    return true;
}

// Takes the marks back of those whose waker may not have seen them.
void confirm_marks() noexcept {
    if (marked_count == 0) return;
    os::heavy_fence();
    for (; marked_count != 0; --marked_count) {
        fiber& f = *just_marked[marked_count - 1];
        if (is_held(f))
            has_marked = true;
        else
            f.word.fetch_and(~std::uint32_t{parkable::found_parked}, base::relaxed);
    }
}

// Returns whether it made a system call, or will.
bool look_at(fiber& f) noexcept {
    const std::uint32_t seen = word_of(f);
    if ((seen & parkable::has_given_back) != 0) return false;
    if ((seen & parkable::any_parked) == 0)
        return os::asymmetric() && is_held(f) && look_at_held(f, seen);
    if ((seen & parkable::found_parked) == 0) {
        has_marked |= mark(f, seen);
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
    due_.compare_exchange(none, os::now() + period.load(base::relaxed), base::seq_cst,
                          base::relaxed);
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
    // Another carrier may have ended the look since `due` was read.
    due = due_.load(base::relaxed);
    if (due > begun) {
        is_looking.store(false, base::release);  // sync(unused_pages)
        return due;
    }
    // sync(slab_list): sees the headers.
    if (next_slab == nullptr) {
        next_slab = mem::slab_list.load(base::acquire);
        all_have_left = os::asymmetric() && cluster::all_have_left_once();
    }
    unsigned seen = 0, given = 0;
    for (; next_slab != nullptr; next_slab = next_slab->next, next_index = 0) {
        const std::uint32_t carved = carved_in(*next_slab);
        while (next_index < carved && seen < most_seen && given < most_given) {
            ++seen;
            given += look_at(*static_cast<fiber*>(next_slab->head(next_index++))) ? 1 : 0;
        }
        if (next_index < carved) break;
    }
    confirm_marks();
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
    marked_count = 0;
    have_run_.store(kept, base::relaxed);  // Then note_run() is not called.
    due_.store(os::never, base::relaxed);
}

}  // namespace ums::sched
