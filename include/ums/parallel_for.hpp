// SPDX-License-Identifier: MIT
#pragma once

// ums/parallel_for.hpp: a loop whose turns run on all processors of the caller's cluster.
//
//   ums::parallel_for(0, n, [&](int i) { c[i] = a[i] + b[i]; });
//   ums::parallel_for(all.begin(), all.end(), [](item& one) { one.update(); });
//   ums::parallel_for(0, n, 1000, work);  // 1,000 turns in a row.
//
// A piece is `grain` turns, which run in a row on one fiber; the last piece may be shorter. The
// pieces are halved, and halved again: each time a fiber runs the first half at once, and the
// caller goes on with the other one. With grain 0 there are eight pieces for each processor of the
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
//           the caller does the work. std::system_error, operation_not_permitted, if no runtime is
//           running and there is more than one piece.
// Cost:     a fiber for each piece but one, without allocating.

#include <concepts>
#include <cstddef>
#include <iterator>
#include <type_traits>

#include "ums/export.hpp"

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

}  // namespace impl

// Calls f(i) for each number i from `first` to before `last`, or f(*i) for each iterator. Does
// nothing if `last` is less than `first`.
template <class I, class F>
void parallel_for(std::type_identity_t<I> first, I last, std::size_t grain, F&& f) {
    constexpr bool is_range = std::integral<I> || std::random_access_iterator<I>;
    static_assert(is_range, "parallel_for() expects integers or random-access iterators");
    if constexpr (is_range) {
        const impl::loop_of<I, std::remove_reference_t<F>> all{first, f};
        if (!(first < last)) return;
        // Of unsigned numbers, because the difference of the least and the greatest int is no int.
        if constexpr (std::integral<I>)
            impl::run_loop(all, static_cast<std::size_t>(last) - static_cast<std::size_t>(first),
                           grain);
        else
            impl::run_loop(all, static_cast<std::size_t>(last - first), grain);
    }
}

// The same with grain 0.
template <class I, class F>
void parallel_for(std::type_identity_t<I> first, I last, F&& f) {
    ums::parallel_for(first, last, 0, f);
}

}  // namespace ums
