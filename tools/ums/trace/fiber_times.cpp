// SPDX-License-Identifier: MIT
#include "fiber_times.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "sink.hpp"
#include "timeline.hpp"

namespace tool::tracing {

using namespace inspect;

namespace {

constexpr std::int64_t always = std::numeric_limits<std::int64_t>::min();
constexpr unsigned event_shift = 56;
// Of all rings together, so that a machine with many processors does not take long.
constexpr std::size_t most_records = std::size_t{2} << 20;

bool agree(fiber_state is, fiber_does does) {
    switch (is) {
        case fiber_state::running:
            return does == fiber_does::runs;
        case fiber_state::blocked:
            return does == fiber_does::is_blocked;
        case fiber_state::stopped:
            return does == fiber_does::is_ready;
        case fiber_state::ready:
            return does == fiber_does::is_ready || does == fiber_does::was_woken;
        case fiber_state::parked:
            return does == fiber_does::waits;
        case fiber_state::ended:
            return false;
    }
    return false;
}

// Whether the record says what its processor runs from then on.
bool tells_what_runs(const raw_record& r) {
    switch (static_cast<event>(r.what >> event_shift)) {
        case event::run:
        case event::yield:
        case event::park:
        case event::end:
        case event::migrate:
        case event::hand_off:
        case event::stop:
            return true;
        default:
            return false;
    }
}

// Whether recording was on before there was a fiber, and not off since, as far as the rings show.
// Then a ring that begins late is that of a processor that slept until then.
bool is_from_start(const recording& what) {
    constexpr std::uint64_t first =
        std::uint64_t{static_cast<unsigned>(event::spawn)} << event_shift | 1;
    bool is_found = false;
    for (const ring& r : what.rings) {
        if (r.is_free || r.before_gap != 0) return false;
        is_found |= std::any_of(r.raw.begin(), r.raw.end(),
                                [](const raw_record& one) { return one.what == first; });
    }
    return is_found;
}

// Drops what is of no use, and returns from when on nothing is missing in the rest.
std::int64_t whole_from(ring& r, const recording& what, bool is_from_start, std::size_t most) {
    const std::int64_t now = what.now.ns;
    const auto drop = [&](std::size_t n) {
        r.raw.erase(r.raw.begin(), r.raw.begin() + static_cast<std::ptrdiff_t>(n));
    };
    if (r.is_free) {
        const std::int64_t last = r.raw.empty() ? now : what.to_ns(r.raw.back().when);
        r.raw.clear();
        return last;
    }
    const bool is_cut = r.lost != 0 || r.raw.size() > most;
    drop(std::max(r.raw.size() - std::min(r.raw.size(), most), r.before_gap));
    if (r.processor == ring::outside)  // It exists since its first record.
        return !is_cut ? always : r.raw.empty() ? now : what.to_ns(r.raw.front().when);
    const auto first = std::find_if(r.raw.begin(), r.raw.end(), tells_what_runs);
    constexpr std::uint64_t looks_for_work = std::uint64_t{static_cast<unsigned>(event::run)}
                                             << event_shift;
    if (is_from_start && !is_cut && first == r.raw.begin() && first != r.raw.end() &&
        first->what == looks_for_work)
        return always;
    return first == r.raw.end() ? now : what.to_ns(first->when);
}

class times final : public sink {
public:
    // `begins`: by ring.
    times(std::vector<fiber_record>& fibers, std::vector<std::int64_t> begins, std::int64_t whole,
          std::int64_t looked_at, std::int64_t now)
        : begins_{std::move(begins)}, whole_from_{whole}, looked_at_{looked_at}, now_{now} {
        for (fiber_record& f : fibers) fibers_.emplace(f.id, &f);
    }
    void processor(std::uint32_t, std::string_view) override {}
    void fiber(std::uint64_t, std::string_view, std::string_view) override {}
    void add(const moment&) override {}
    // Those of a fiber come in their order, so the last one counts.
    void add(const span& s) override {
        const auto at = fibers_.find(s.fiber);
        if (at == fibers_.end()) return;
        fiber_record& f = *at->second;
        const bool runs = s.does == fiber_does::runs;
        assert((!runs || s.track < begins_.size()) && "a fiber runs on a track that is of no ring");
        if (runs && s.end > whole_from_)
            f.cpu_ns = std::max<std::int64_t>(f.cpu_ns, 0) + s.end - std::max(s.begin, whole_from_);
        else if (s.begin > whole_from_)
            f.cpu_ns = std::max<std::int64_t>(f.cpu_ns, 0);
        if (f.state == fiber_state::ended) {  // A span that nothing follows is over at its end.
            f.since_ns = runs && s.end > whole_from_ && s.end < now_ ? now_ - s.end : -1;
            return;
        }
        // In a process that is not stopped, it may have moved since its state was read.
        const bool is_known = s.begin > whole_from_ || (runs && s.begin > begins_[s.track]);
        if (is_known && s.end >= looked_at_ && agree(f.state, s.does))
            f.since_ns = std::max<std::int64_t>(now_ - s.begin, 0);
    }

private:
    std::unordered_map<std::uint64_t, fiber_record*> fibers_;
    std::vector<std::int64_t> begins_;
    std::int64_t whole_from_, looked_at_, now_;
};

}  // namespace

// A processor that was busy when recording was switched on begins at the end of its round, one that
// sleeps when it wakes up, before it runs anything.
bool have_all_busy_begun(const snapshot& s, const recording& what) {
    for (const processor_record& p : s.processors) {
        if (p.is_idle || p.is_retired || p.cluster == nobody) continue;
        assert(p.cluster < s.clusters.size() && "a processor is of a cluster that was not read");
        const std::string cluster = s.clusters[p.cluster].name.substr(0, 15);  // As in a ring.
        // Several clusters may have the same name.
        const auto alike =
            std::count_if(s.processors.begin(), s.processors.end(), [&](const auto& one) {
                return !one.is_retired && one.index == p.index && one.cluster != nobody &&
                       s.clusters[one.cluster].name.substr(0, 15) == cluster;
            });
        const auto begun = std::count_if(what.rings.begin(), what.rings.end(), [&](const ring& r) {
            return !r.is_free && r.processor == p.index && r.cluster == cluster;
        });
        if (begun < alike) return false;
    }
    return true;
}

std::int64_t set_times(std::vector<fiber_record>& fibers, std::int64_t looked_at,
                       bool have_all_begun, recording what) {
    const std::int64_t now = what.now.ns;
    assert(looked_at <= now && "the rings were read before the fibers");
    const bool is_any_live =
        std::any_of(what.rings.begin(), what.rings.end(), [](const ring& r) { return !r.is_free; });
    std::int64_t whole = is_any_live && have_all_begun ? always : now;
    const bool from_start = is_from_start(what);
    std::vector<std::int64_t> begins;
    for (ring& r : what.rings) {
        begins.push_back(whole_from(r, what, from_start, most_records / what.rings.size()));
        whole = std::max(whole, begins.back());
        // Two clusters may have the same name, but not the same track.
        r.cluster = std::to_string(begins.size());
    }
    whole = std::min(std::max(whole, what.began.ns), now);
    // A record that says nothing, for spans that last to the end to last until now.
    ring end;
    end.raw.push_back(
        {what.now.stamp, std::uint64_t{static_cast<unsigned>(event::more)} << event_shift});
    what.rings.push_back(std::move(end));
    times to{fibers, std::move(begins), whole, looked_at, now};
    tell(
        what, always, {}, [](address) { return std::string{}; }, to);
    return now - whole;
}

}  // namespace tool::tracing
