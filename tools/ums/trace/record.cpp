// SPDX-License-Identifier: MIT
#include "record.hpp"

#include <algorithm>
#include <tuple>

namespace tool::tracing {

std::int64_t recording::to_ns(std::uint64_t stamp) const {
    if (now.stamp <= began.stamp) return in_bounds(began.ns);
    const double rate = static_cast<double>(in_bounds(now.ns) - in_bounds(began.ns)) /
                        static_cast<double>(now.stamp - began.stamp);
    constexpr double most = 2e18;
    const double since = static_cast<double>(static_cast<std::int64_t>(stamp - began.stamp)) * rate;
    return in_bounds(began.ns) + static_cast<std::int64_t>(std::clamp(since, -most, most));
}

std::vector<record> recording::in_order(std::int64_t from) const {
    constexpr unsigned event_shift = 56;
    std::vector<record> all;
    for (std::uint32_t i = 0; i < rings.size(); ++i)
        for (std::uint32_t place = 0; place < rings[i].raw.size(); ++place) {
            const raw_record& r = rings[i].raw[place];
            const auto e = static_cast<std::uint8_t>(r.what >> event_shift);
            if (e == 0 || e > static_cast<std::uint8_t>(event::last)) continue;
            const std::int64_t when = to_ns(r.when);
            if (when < from) continue;
            all.push_back({when, static_cast<event>(e), i, place,
                           r.what & ~(std::uint64_t{0xff} << event_shift), r.argument, r.other});
        }
    std::sort(all.begin(), all.end(), [](const record& a, const record& b) {
        return std::tie(a.when, a.ring, a.place) < std::tie(b.when, b.ring, b.place);
    });
    return all;
}

std::uint64_t recording::lost() const {
    std::uint64_t n = 0;
    for (const ring& r : rings) n += r.lost;
    return n;
}

}  // namespace tool::tracing
