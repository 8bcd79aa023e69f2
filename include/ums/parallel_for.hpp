// SPDX-License-Identifier: MIT
#pragma once

// ums/parallel_for.hpp: a loop whose turns run on all processors of the caller's cluster.
//
//   ums::parallel_for(0, n, [&](int i) { c[i] = a[i] + b[i]; });
//   ums::parallel_for(all.begin(), all.end(), [](item& one) { one.update(); });
//   ums::parallel_for(0, n, 1000, work);  // 1,000 turns in a row.
//
// A piece is `grain` turns, which run in a row on one fiber; the last piece may be shorter. The
// pieces are halved, and halved again: each time a fiber runs the first half at once, with the
// caller's priority and so on as in ums::fork_join(), and the caller goes on with the other one.
// With grain 0 there are eight pieces for each processor of the
// cluster, or as many as there are turns: right for turns that cost much alike. Choose a grain of 1
// where few turns are much longer than the others, and a large one where turns are so short that
// such a piece would cost less than a fiber.
//
// The function is called by reference from several fibers at the same time; nothing is copied. The
// order of the turns is not defined, and there may be only one processor: a turn must not wait for
// another.
//
// Blocking: parks the calling fiber, or blocks the calling plain thread, until the loop is over.
// Ordering: the call happens before each turn, and each turn before the return.
// Errors:   if a turn throws, no piece begins any more; when those that have begun are over, the
//           exception is rethrown. Of several the first is. Where there is no stack for a fiber,
//           the caller does the work. std::system_error: operation_not_permitted, if no runtime is
//           running and there is more than one piece; no_such_process, in the child of a fork()
//           that a turn on the caller makes, if other pieces have not ended.
// Cost:     a fiber for each piece but one, without allocating.

#include <concepts>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

#include "ums/export.hpp"
#include "ums/impl/misuse.hpp"

namespace ums {

namespace impl {

struct loop {
    // Runs some turns, in a row.
    void (*const turns)(const loop& self, std::size_t begin, std::size_t end);
    // What its fibers call.
    void (*const run)(void* part);
};

// Returns when all turns are over. 0: see above.
UMS_EXPORT void run_loop(const loop& l, std::size_t count, std::size_t grain);
// The function of a fiber of a loop, under a name of the program's.
UMS_EXPORT void run_loop_part(void* part);

// `ums ps` knows the loop's function by the name of this type.
template <class F>
struct loop_part {
    static void run_in_place(void* part) { run_loop_part(part); }
};

template <class I, class F>
struct loop_of : loop {
    loop_of(const I& from, F& f) noexcept
        : loop{&run_turns, &loop_part<F>::run_in_place}, first{from}, function{f} {}

    static void run_turns(const loop& self, std::size_t begin, std::size_t end) {
        const auto& mine = static_cast<const loop_of&>(self);
        if constexpr (std::integral<I>) {
            for (; begin != end; ++begin)
                mine.function(static_cast<I>(static_cast<std::size_t>(mine.first) + begin));
        } else {
            using distance = std::iter_difference_t<I>;
            const I last = mine.first + static_cast<distance>(end);
            for (I at = mine.first + static_cast<distance>(begin); at != last; ++at)
                mine.function(*at);
        }
    }

    const I first;
    F& function;
};

template <class I>
constexpr bool is_negative(I number) noexcept {
    if constexpr (std::is_signed_v<I>)
        return number < 0;
    else
        return false;
}
// By value, as std::cmp_less(), which takes no bool and no character.
template <class First, class Last>
constexpr bool is_before(First first, Last last) noexcept {
    if (is_negative(first) != is_negative(last)) return is_negative(first);
    using I = std::common_type_t<First, Last>;  // Both fit, being alike.
    return static_cast<I>(first) < static_cast<I>(last);
}

}  // namespace impl

// Calls f(i) for each number i from `first` to before `last`, or f(*i) for each iterator. Does
// nothing if `last` is less than `first`. The numbers are of the common type of both, at most 64
// bits: where that has no negative ones, `first` must not be negative.
template <class First, class Last, class F>
void parallel_for(First first, Last last, std::size_t grain, F&& f) {
    constexpr bool are_numbers = std::integral<First> && std::integral<Last>;
    constexpr bool is_range =
        are_numbers ? sizeof(First) <= sizeof(std::size_t) && sizeof(Last) <= sizeof(std::size_t)
                    : std::random_access_iterator<Last> && std::convertible_to<First, Last>;
    static_assert(is_range,
                  "parallel_for() expects integers of at most 64 bits or random-access iterators");
    if constexpr (is_range && are_numbers) {
        using I = std::common_type_t<First, Last>;
        if (!impl::is_before(first, last)) return;
        if (!std::is_signed_v<I> && impl::is_negative(first))
            impl::misuse("parallel_for() from a negative number to one of an unsigned type");
        const impl::loop_of<I, std::remove_reference_t<F>> all{static_cast<I>(first), f};
        // Of unsigned numbers, because the difference of the least and the greatest int is no int.
        impl::run_loop(all, static_cast<std::size_t>(last) - static_cast<std::size_t>(first),
                       grain);
    } else if constexpr (is_range) {
        const impl::loop_of<Last, std::remove_reference_t<F>> all{first, f};
        if (all.first < last)
            impl::run_loop(all, static_cast<std::size_t>(last - all.first), grain);
    }
}

// The same with grain 0.
template <class First, class Last, class F>
void parallel_for(First first, Last last, F&& f) {
    ums::parallel_for(std::move(first), std::move(last), 0, f);
}

}  // namespace ums
