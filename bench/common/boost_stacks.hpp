// SPDX-License-Identifier: MIT
#pragma once

// bench/common/boost_stacks.hpp: the stack allocators of Boost.Fiber, among which the caller
// chooses; the driver tries them and keeps the fastest.

#include <boost/fiber/fixedsize_stack.hpp>
#include <boost/fiber/pooled_fixedsize_stack.hpp>

#include <cstddef>
#include <stdexcept>

#include "cell.hpp"

namespace bench {

inline bool wants_pooled_stacks(cell& in, std::uint64_t processors) {
    const bool is_pooled = in.word("stack", {"fixed", "pooled"}) == "pooled";
    if (is_pooled && processors > 1)
        throw std::invalid_argument{"stack=pooled: the pool is not thread-safe"};
    return is_pooled;
}

// Calls use(stacks) with the allocator.
template <class Use>
void with_boost_stacks(bool is_pooled, std::size_t bytes, Use use) {
    if (is_pooled)
        use(boost::fibers::pooled_fixedsize_stack{bytes});
    else
        use(boost::fibers::fixedsize_stack{bytes});
}

}  // namespace bench
