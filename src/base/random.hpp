// SPDX-License-Identifier: MIT
#pragma once

// base/random.hpp: the one source of randomness in the scheduler.
//
// splitmix64 (Steele, Lea, Flood, OOPSLA 2014): eight bytes of state, one multiply-mix per draw.
// Not for cryptography. Every processor owns one, seeded from the runtime's seed, so that a run can
// be replayed by seed.

#include <cstdint>

namespace ums::base {

class random {
public:
    explicit constexpr random(std::uint64_t seed) noexcept : state_{seed} {}

    std::uint64_t next() noexcept {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    // A number in [0, bound). Requires: bound > 0. The bias is below bound / 2^32.
    std::uint32_t below(std::uint32_t bound) noexcept {
        return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
    }

private:
    std::uint64_t state_;
};

}  // namespace ums::base
