// SPDX-License-Identifier: MIT
#pragma once

// bench/servers/histogram.hpp: times, each kept to within 1 in 64, in constant memory.

#include <array>
#include <bit>
#include <cstdint>

namespace bench {

class histogram {
public:
    void add(std::uint64_t ns) noexcept {
        ++counts_[index(ns)];
        ++all_;
    }

    std::uint64_t count() const noexcept { return all_; }

    // The time that a `share` of all values did not exceed. Requires: count() > 0, 0 < share <= 1.
    double us_at(double share) const noexcept {
        const double wanted = share * static_cast<double>(all_);
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += counts_[i];
            if (static_cast<double>(seen) >= wanted) return middle(i) / 1000;
        }
        return middle(counts_.size() - 1) / 1000;
    }

private:
    static constexpr unsigned bits = 6;  // After the leading one.
    static constexpr std::size_t steps = std::size_t{1} << bits;

    // Below `steps` each value has its own index; above, values with the same leading bits share
    // one.
    static std::size_t index(std::uint64_t ns) noexcept {
        if (ns < steps) return static_cast<std::size_t>(ns);
        const auto shift = static_cast<unsigned>(std::bit_width(ns)) - bits - 1;
        return (shift + 1) * steps + static_cast<std::size_t>((ns >> shift) - steps);
    }
    static double middle(std::size_t i) noexcept {
        if (i < 2 * steps) return static_cast<double>(i);
        const auto shift = i / steps - 1;
        const auto lowest = (steps + i % steps) << shift;
        return static_cast<double>(lowest) + static_cast<double>(std::size_t{1} << shift) / 2;
    }

    std::array<std::uint64_t, (64 - bits + 1) * steps> counts_{};
    std::uint64_t all_ = 0;
};

}  // namespace bench
