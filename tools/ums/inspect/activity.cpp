// SPDX-License-Identifier: MIT
#include "activity.hpp"

#include <algorithm>
#include <cassert>

namespace tool::inspect {

namespace {

// Counters are read while they change, so one that seems to go back counts as unchanged.
double rate(std::uint64_t now, std::uint64_t before, double seconds) {
    return seconds > 0 && now > before ? static_cast<double>(now - before) / seconds : 0;
}

// The bucket that holds the median of the new notices: less than 2^i us.
std::uint64_t middle(const std::vector<std::uint64_t>& now,
                     const std::vector<std::uint64_t>& before) {
    if (now.size() != before.size()) return 0;
    assert(now.size() <= 64 && "there are more buckets than bits in a word");
    std::uint64_t all = 0, so_far = 0;
    for (std::size_t i = 0; i < now.size(); ++i) all += now[i] - before[i];
    if (all == 0) return 0;
    for (std::size_t i = 0; i < now.size(); ++i)
        if ((so_far += now[i] - before[i]) * 2 >= all) return std::uint64_t{1} << i;
    return 0;
}

// The name with a star for the number at its end.
std::string stem(const std::string& name) {
    const std::size_t last = name.find_last_not_of("0123456789");
    return last + 1 == name.size() ? name : name.substr(0, last + 1) + "*";
}

}  // namespace

activity activity_watch::next() {
    activity a;
    const std::int64_t begin = of_.now();
    a.now = std::make_unique<snapshot>(of_, how_);
    const snapshot& s = *a.now;
    a.look_seconds = static_cast<double>(of_.now() - begin) / 1e9;
    a.seconds = before_ != 0 ? static_cast<double>(s.taken_at - before_) / 1e9 : 0;
    a.looks = occupied_.looks();
    ++turn_;
    add_processors(a);
    add_clusters(a);
    add_fibers(a);
    a.hand_off_us = middle(s.notices, notices_before_);
    remember(s);
    return a;
}

void activity_watch::remember(const snapshot& s) {
    before_ = s.taken_at;
    notices_before_ = s.notices;
    processors_before_.clear();
    for (const processor_record& p : s.processors) processors_before_[p.at] = p;
    clusters_before_.clear();
    for (const cluster_record& c : s.clusters) clusters_before_[c.at] = c;
    occupied_.start(s.processors);
}

void activity_watch::add_processors(activity& a) const {
    for (const processor_record& p : a.now->processors) {
        if (p.is_retired) continue;
        const auto old = processors_before_.find(p.at);
        const processor_record& before = old != processors_before_.end() ? old->second : p;
        processor_activity one;
        assert(p.cluster < a.now->clusters.size() && "a processor is of a cluster not read");
        one.cluster = a.now->clusters[p.cluster].name;
        one.index = p.index;
        one.busy = a.looks != 0 ? occupied_.busy(p.at) : 0;
        one.switches = rate(p.switches, before.switches, a.seconds);
        one.steals = rate(p.steals, before.steals, a.seconds);
        one.timers_fired = rate(p.timers_fired, before.timers_fired, a.seconds);
        one.queued = p.queued;
        one.timers = p.timers;
        a.processors.push_back(one);
    }
}

void activity_watch::add_clusters(activity& a) const {
    const snapshot& s = *a.now;
    for (std::uint32_t i = 0; i < s.clusters.size(); ++i) {
        const cluster_record& c = s.clusters[i];
        const auto old = clusters_before_.find(c.at);
        const cluster_record& before = old != clusters_before_.end() ? old->second : c;
        cluster_activity one;
        one.name = c.name;
        one.processors = c.processors;
        one.carriers = c.carriers;
        one.queued = c.queued;
        one.hand_offs = rate(c.hand_offs, before.hand_offs, a.seconds);
        one.stops = rate(c.stops, before.stops, a.seconds);
        one.preemptions = rate(c.preemptions, before.preemptions, a.seconds);
        one.spawned = rate(c.spawned_outside, before.spawned_outside, a.seconds);
        for (const processor_record& p : s.processors) {
            if (p.cluster != i) continue;
            const auto was = processors_before_.find(p.at);
            if (was == processors_before_.end()) continue;
            one.switches += rate(p.switches, was->second.switches, a.seconds);
            one.spawned += rate(p.spawned, was->second.spawned, a.seconds);
            one.finished += rate(p.finished, was->second.finished, a.seconds);
            if (!p.is_retired && a.looks != 0) one.busy += occupied_.busy(p.at);
        }
        a.clusters.push_back(one);
    }
}

void activity_watch::add_fibers(activity& a) {
    const snapshot& s = *a.now;
    std::map<address, std::size_t> index;
    const auto group_of = [&](address key) -> start_activity& {
        const auto [at, is_new] = index.try_emplace(key, a.starts.size());
        if (is_new) a.starts.emplace_back().made_with = names_.of(key);
        return a.starts[at->second];
    };
    a.fibers.reserve(s.fibers.size());
    for (std::uint32_t i = 0; i < s.fibers.size(); ++i) {
        const fiber_record& f = s.fibers[i];
        const address key = names_.key(f);
        start_activity& group = group_of(key);
        group.fibers.push_back(i);
        if (!f.name.empty()) ++group.names[stem(f.name)];
        ++group.states[name_of(f.state)];
        if (f.waits != wait::none) ++group.waits[name_of(f.waits)];
        group.stack_most = std::max(group.stack_most, f.stack_used);

        place& p = places_[f.id];
        const bool is_same = p.turn != 0 && p.sp == f.sp && p.ip == f.ip && p.mark == f.mark;
        if (!is_same) p = {f.sp, f.ip, f.mark, s.taken_at, 0};
        p.turn = turn_;
        fiber_activity one;
        one.fiber = i;
        one.start = key;
        one.share = a.looks != 0 ? occupied_.of_fiber(f.id) : 0;
        one.unmoved_s = one.share > 0 || f.state == fiber_state::running
                            ? 0
                            : static_cast<double>(s.taken_at - p.since) / 1e9;
        if (one.unmoved_s == 0) p.since = s.taken_at;
        a.fibers.push_back(one);
    }
    assert(a.fibers.size() == s.fibers.size() && "fibers and what they did are out of step");
    std::erase_if(places_, [&](const auto& one) { return one.second.turn != turn_; });
    if (a.looks == 0) return;
    for (const auto& [key, count] : occupied_.by_start())
        group_of(key).share = static_cast<double>(count) / static_cast<double>(a.looks);
}

}  // namespace tool::inspect
