// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <utility>

#include "../inspect/fiber_record.hpp"

namespace tool::tracing {

namespace {

constexpr unsigned kind_shift = 56;

std::string piece_of(const record& r) {
    char text[16];
    std::memcpy(text, &r.argument, 8);
    std::memcpy(text + 8, &r.other, 8);
    return {text, strnlen(text, sizeof text)};
}

// The text that begins with record i; `more` records follow it in the same ring.
std::string text_at(const std::vector<record>& all, std::size_t i) {
    std::string text = piece_of(all[i]);
    std::size_t pieces = 1;
    for (std::size_t j = i + 1; j < all.size() && pieces < 4; ++j) {
        if (all[j].ring != all[i].ring) continue;
        if (all[j].what != event::more || all[j].fiber != all[i].fiber) break;
        text += piece_of(all[j]);
        ++pieces;
    }
    return text;
}

std::string wait_words(std::uint64_t word) {
    using inspect::wait;
    const auto kind = static_cast<unsigned>(word >> kind_shift);
    const std::uint64_t object = word & ((std::uint64_t{1} << kind_shift) - 1);
    // The values of src/sched/record/trace.hpp.
    if (kind == 101) return fmt::format("join of fiber {}", object);
    if (kind == 102) return "park";
    if (kind == 103) return "sleep";
    if (kind == 104) return "library";
    if (kind > static_cast<unsigned>(wait::last_mark)) return "?";
    const auto w = static_cast<wait>(kind);
    if (w == wait::readable || w == wait::writable)
        return fmt::format("descriptor {} to become {}", object,
                           w == wait::readable ? "readable" : "writable");
    if (w == wait::select || object == 0) return name_of(w);
    return fmt::format("{} {:#x}", name_of(w), object);
}

class teller {
public:
    teller(const recording& what, known_fibers& known, sink& to) : to_{to}, known_{known} {
        running_.resize(what.rings.size());
        tracks_.resize(what.rings.size());
        std::unordered_map<std::string, std::uint32_t> by_name;
        for (std::uint32_t i = 0; i < what.rings.size(); ++i) {
            const ring& r = what.rings[i];
            const std::string name = r.processor == ring::outside
                                         ? "other threads"
                                         : fmt::format("{} processor {}", r.cluster, r.processor);
            const auto [at, is_new] = by_name.try_emplace(name, i);
            tracks_[i] = at->second;
            if (is_new) to_.processor(i, name);
        }
    }

    void hear(const record& r, const std::vector<record>& all, std::size_t i, totals& n) {
        assert(&r == &all[i] && r.ring < tracks_.size() &&
               "a record is of no ring, or another than its index says");
        const std::uint32_t p = tracks_[r.ring];
        ++n.records;
        switch (r.what) {
            case event::run:
                ++n.runs;
                runs(p, r.fiber, r.when);
                break;
            case event::yield:
            case event::migrate:
                leaves(r, p, fiber_does::is_ready, {});
                n.runs += r.other != 0;
                break;
            case event::park:
                ++n.parks;
                leaves(r, p, fiber_does::waits, wait_words(r.argument));
                n.runs += r.other != 0;
                break;
            case event::end:
                ++n.ends;
                closes(of(r.fiber), r.fiber, r.when);
                fibers_.erase(r.fiber);
                running_[p] = 0;
                if (r.other != 0) runs(p, r.other, r.when);
                n.runs += r.other != 0;
                break;
            case event::spawn:
                ++n.spawns;
                wakes(r.fiber, r.other, p, r.when, "makes");
                break;
            case event::unpark:
                ++n.unparks;
                wakes(r.fiber, r.other, p, r.when, "wakes");
                break;
            case event::timer:
                ++n.timers;
                wakes(r.fiber, 0, p, r.when, "deadline of");
                break;
            case event::io:
                ++n.io;
                wakes(r.fiber, 0, p, r.when, "event for");
                break;
            case event::steal:
                ++n.steals;
                tells(r.when, 0, p, fmt::format("{} stolen from processor {}", r.argument, r.other),
                      0);
                break;
            case event::hand_off:
                ++n.hand_offs;
                becomes(r.fiber, fiber_does::is_blocked, {}, r.when);
                tells(r.when, 0, p, fmt::format("hand-off to thread {}", r.other), 0);
                running_[p] = 0;
                break;
            case event::back:
                becomes(r.fiber, fiber_does::is_ready, {}, r.when);
                break;
            case event::stop:
                ++n.stops;
                becomes(r.fiber, fiber_does::is_ready, {}, r.when);
                tells(r.when, r.fiber, p, "stopped", 0);
                running_[p] = 0;
                break;
            case event::mark:
                ++n.marks;
                tells(r.when, r.fiber, p, text_at(all, i), 0);
                break;
            case event::none:
            case event::name:
            case event::more:
                break;
        }
    }

    void ends(std::int64_t when) {
        for (auto& [id, f] : fibers_) closes(f, id, when);
    }

private:
    struct state {
        bool is_known = false;  // Known: since when the fiber does what it does.
        fiber_does does = fiber_does::runs;
        std::string waits_for;
        std::int64_t since = 0;
        std::uint32_t track = 0;
        std::uint64_t arrow = 0;  // The arrow that leads to it.
    };

    state& of(std::uint64_t id) {
        const auto [at, is_new] = fibers_.try_emplace(id);
        if (is_new && told_.emplace(id, true).second) {
            const fiber_words& w = known_[id];
            to_.fiber(id, w.name, w.start);
        }
        return at->second;
    }
    void closes(state& f, std::uint64_t id, std::int64_t when) {
        if (!f.is_known) return;
        assert(f.since <= when && "a fiber leaves a state before it came into it");
        span s{id, f.does, f.waits_for, f.since, when, f.track, 0};
        if (f.does == fiber_does::runs) s.woken_by = std::exchange(f.arrow, 0);
        to_.add(s);
        f.is_known = false;
    }
    void becomes(std::uint64_t id, fiber_does does, std::string waits_for, std::int64_t when,
                 std::uint32_t track = 0) {
        state& f = of(id);
        closes(f, id, when);
        f.is_known = true;
        f.does = does;
        f.waits_for = std::move(waits_for);
        f.since = when;
        f.track = track;
    }
    // A fiber that ran there and recorded nothing has yielded.
    void runs(std::uint32_t p, std::uint64_t id, std::int64_t when) {
        const std::uint64_t before = std::exchange(running_[p], id);
        if (before == id && id != 0 && of(id).is_known && of(id).does == fiber_does::runs) return;
        if (before != 0) {
            const state& f = of(before);
            if (f.is_known && f.does == fiber_does::runs && f.track == p)
                becomes(before, fiber_does::is_ready, {}, when);
        }
        if (id != 0) becomes(id, fiber_does::runs, {}, when, p);
    }
    void leaves(const record& r, std::uint32_t p, fiber_does does, std::string waits_for) {
        becomes(r.fiber, does, std::move(waits_for), r.when);
        running_[p] = 0;
        if (r.other != 0) runs(p, r.other, r.when);
    }
    void wakes(std::uint64_t id, std::uint64_t by, std::uint32_t p, std::int64_t when,
               const char* how) {
        state& f = of(id);
        // A fiber that is ready, or runs, was woken before it could wait.
        const bool was_waiting = !f.is_known || f.does == fiber_does::waits;
        if (was_waiting) becomes(id, fiber_does::was_woken, {}, when);
        state& now = of(id);
        if (was_waiting) now.arrow = ++arrows_;
        if (by != 0) of(by);
        tells(when, by, p, fmt::format("{} fiber {}", how, id), was_waiting ? now.arrow : 0);
    }
    void tells(std::int64_t when, std::uint64_t id, std::uint32_t p, const std::string& text,
               std::uint64_t arrow) {
        if (id != 0) of(id);
        to_.add(moment{when, id, p, text, arrow});
    }

    sink& to_;
    known_fibers& known_;
    std::unordered_map<std::uint64_t, state> fibers_;
    std::unordered_map<std::uint64_t, bool> told_;
    std::vector<std::uint64_t> running_;  // By track.
    std::vector<std::uint32_t> tracks_;   // By ring, because rings of one processor share a track.
    std::uint64_t arrows_ = 0;
};

}  // namespace

totals tell(const recording& what, std::int64_t from, known_fibers known,
            const std::function<std::string(inspect::address)>& start_of, sink& to) {
    const std::vector<record> all = what.in_order(from);
    std::unordered_map<std::uint64_t, std::string> starts;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const record& r = all[i];
        if (r.what == event::name) known[r.fiber].name = text_at(all, i);
        if (r.what != event::spawn) continue;
        const auto [at, is_new] = starts.try_emplace(r.argument);
        if (is_new) at->second = start_of(r.argument);
        known[r.fiber].start = at->second;
    }
    totals n;
    if (all.empty()) return n;
    n.begin = all.front().when;
    n.end = all.back().when;
    teller t{what, known, to};
    for (std::size_t i = 0; i < all.size(); ++i) t.hear(all[i], all, i, n);
    t.ends(n.end);
    return n;
}

}  // namespace tool::tracing
