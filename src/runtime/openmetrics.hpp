// SPDX-License-Identifier: MIT
#pragma once

// runtime/openmetrics.hpp: text in the OpenMetrics format, version 1.0.0.
//
// A family is its head (name without suffix, type, unit, help), followed by its samples. If a
// family has a unit, its name ends in that unit.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ums::rt {

// Times by powers of two: the i-th bucket counts those of at most `shortest` * 2^i that no lower
// bucket counts; the last one counts all longer ones.
template <std::size_t n>
struct histogram {
    static constexpr std::size_t buckets = n;
    std::uint64_t shortest = 1;  // In ns, like everything here.
    std::array<std::uint64_t, n> count{};
    std::uint64_t sum = 0;

    void add(std::uint64_t ns) noexcept {
        const std::uint64_t steps = ns == 0 ? 0 : (ns - 1) / shortest;
        const auto i = static_cast<std::size_t>(std::bit_width(steps));
        ++count[i < n ? i : n - 1];
        sum += ns;
    }
};

class openmetrics {
public:
    // A counter with one sample, without labels.
    void counter(const char* name, const char* help, std::uint64_t value);
    void gauge(const char* name, const char* help, std::uint64_t value, const char* unit = nullptr);
    // A constant 1 whose label is the information.
    void info(const char* name, const char* help, const char* label, const char* value);
    // A head, and then the samples of a counter with a label, one by one.
    void counter_head(const char* name, const char* help) { head(name, "counter", nullptr, help); }
    void counter_sample(const char* name, const char* label, const char* of, std::uint64_t value);
    // Written in seconds.
    template <std::size_t n>
    void times(const char* name, const char* help, const histogram<n>& h) {
        head(name, "histogram", "seconds", help);
        std::uint64_t so_far = 0, limit = h.shortest;
        for (std::size_t i = 0; i + 1 < n; ++i, limit *= 2)
            bucket(name, limit, so_far += h.count[i]);
        finish_times(name, so_far + h.count[n - 1], h.sum);
    }
    // Ends the text and returns it.
    [[nodiscard]] std::string end() &&;

private:
    void head(const char* name, const char* type, const char* unit, const char* help);
    void bucket(const char* name, std::uint64_t limit_ns, std::uint64_t so_far);
    void finish_times(const char* name, std::uint64_t count, std::uint64_t sum_ns);
    [[gnu::format(printf, 2, 3)]] void line(const char* format, ...);

    std::string text_;
};

}  // namespace ums::rt
