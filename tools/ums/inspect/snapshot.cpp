// SPDX-License-Identifier: MIT
#include "snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "printable.hpp"
#include "wait_words.hpp"

namespace tool::inspect {

namespace {

// Bounds for what a damaged process or core file could make endless, or larger than the memory.
constexpr std::size_t slabs_most = 4096, fibers_most = 16'000'000, clusters_most = 4096,
                      processors_most = 1024, all_processors_most = 16 * 1024,
                      carriers_most = 100'000, steps_least = 1'000'000, unread_most = 65'536,
                      workers_most = 1'000'000;
constexpr std::size_t name_most = 256;
// A fiber's descriptor lies in a page of its own.
constexpr std::size_t page_bytes = 4096;

// How many descriptors are read together.
constexpr std::size_t batch = 256;

}  // namespace

snapshot::snapshot(const process& of, const layout& how) : of_{of}, how_{how}, bytes_{of.bytes()} {
    taken_at = of.now();
    warning = of.warning();
    read_slabs();
    const first_look before = read_descriptors();
    read_clusters();
    read_fibers(before);
    find_joins();
    classify();
    look_at_threads();
    read_objects();
    read_workers();
}

// Whether the process has the memory for so many things of this size.
bool snapshot::may_have(std::uint64_t count, std::size_t bytes_each) const {
    return count <= bytes_ / bytes_each;
}

void snapshot::read_slabs() {
    std::unordered_set<address> seen;
    std::size_t total = 0;
    address at = of_.get<address>(how_.place("slabs")).value_or(0);
    for (; at != 0 && seen.size() < slabs_most && seen.insert(at).second;
         at = of_.get<address>(at + how_.value("slab.next")).value_or(0)) {
        slab s{};
        const auto word = [&](const char* name) {
            return of_.get<std::uint64_t>(at + how_.value(name)).value_or(0);
        };
        const auto half = [&](const char* name) {
            return of_.get<std::uint32_t>(at + how_.value(name)).value_or(0);
        };
        s.stacks = word("slab.stacks");
        s.stride = word("slab.stride");
        s.guard = word("slab.guard_bytes");
        s.head_bytes = word("slab.head_bytes");
        s.carved = half("slab.carved");
        const std::uint32_t count = half("slab.count");
        const std::uint64_t bytes = word("slab.bytes");
        const bool is_sane = s.stride >= 4096 && s.guard < s.stride && s.head_bytes < s.stride &&
                             s.carved <= count && count <= bytes / s.stride &&
                             s.stacks + bytes > s.stacks && total + s.carved <= fibers_most;
        if (!is_sane) {
            if (warning.empty())
                warning = bytes == 0 && s.stride == 0
                              ? "the memory of stacks is blank: fibers are missing (gdb's gcore "
                                "cannot read past their guards; the kernel's core files are whole)"
                              : "a slab of stacks makes no sense: some fibers may be missing";
            continue;
        }
        s.end = s.stacks + count * s.stride;
        total += s.carved;
        ++memory.slabs;
        memory.mapped_bytes += bytes;
        memory.stacks += s.carved;
        memory.warm += half("slab.warm_count");
        memory.cold += half("slab.cold_count");
        slabs_.push_back(s);
    }
    std::sort(slabs_.begin(), slabs_.end(),
              [](const slab& a, const slab& b) { return a.stacks < b.stacks; });
    for (slab& s : slabs_) {
        s.first = stacks_;
        stacks_ += s.carved;
    }
    steps_left_ = steps_least + 8 * stacks_;
}

address snapshot::descriptor_at(const slab& s, std::uint64_t index) const {
    assert(index < s.carved && "a stack has a descriptor that was never carved");
    const std::uint64_t factor = how_.value("slab.colour_factor");
    const std::uint64_t colours = std::max<std::size_t>(how_.value("slab.colours"), 1);
    const address top = s.stacks + (index + 1) * s.stride;
    return (top - index * factor % colours * 64 - s.head_bytes) & ~address{63};
}

snapshot::first_look snapshot::read_descriptors() const {
    const std::size_t size = how_.value("fiber.size"), id = how_.value("fiber.id");
    if (size < 64 || size > page_bytes)
        throw std::runtime_error{"the size of a fiber makes no sense"};
    first_look look;
    std::vector<char> bytes(batch * size);
    std::vector<piece> pieces;
    std::size_t unread = 0;
    for (const slab& s : slabs_)
        for (std::size_t first = 0; first < s.carved && unread < unread_most; first += batch) {
            const std::size_t n = std::min<std::size_t>(batch, s.carved - first);
            pieces.clear();
            for (std::size_t i = 0; i < n; ++i)
                pieces.push_back(
                    {descriptor_at(s, first + i), bytes.data() + i * size, size, false});
            of_.read(pieces);
            for (std::size_t i = 0; i < n; ++i) {
                if (!pieces[i].is_read) {
                    ++unread;
                    continue;
                }
                const std::string_view d{bytes.data() + i * size, size};
                if (at_offset<std::uint64_t>(d, id) == 0 || !may_have(look.size(), page_bytes))
                    continue;
                look.emplace_back(static_cast<std::uint32_t>(s.first + first + i),
                                  std::hash<std::string_view>{}(d));
            }
        }
    return look;
}

void snapshot::read_clusters() {
    address at = of_.get<address>(how_.place("clusters")).value_or(0);
    for (; at != 0 && clusters.size() < clusters_most && !cluster_index_.contains(at);
         at = of_.get<address>(at + how_.value("cluster.next")).value_or(0)) {
        const auto index = static_cast<std::uint32_t>(clusters.size());
        cluster_index_.emplace(at, index);
        const auto half = [&](const char* name) {
            return of_.get<std::uint32_t>(at + how_.value(name)).value_or(0);
        };
        const auto word = [&](const char* name) {
            return of_.get<std::uint64_t>(at + how_.value(name)).value_or(0);
        };
        cluster_record c;
        c.at = at;
        c.name = of_.text(word("cluster.name"), 64);
        c.has_policy = word("cluster.policy") != 0;
        c.processors = half("cluster.active");
        c.carriers = half("cluster.carriers_now");
        c.carriers_most = half("cluster.carriers_most");
        c.hand_offs = word("cluster.hand_offs");
        c.stops = word("cluster.stops");
        c.preemptions = word("cluster.preemptions");
        c.spawned_outside = word("cluster.spawned_outside");
        clusters.push_back(c);
        read_carriers(index, word("cluster.carriers"));
        const auto n = std::min<std::size_t>(half("cluster.size"), processors_most);
        for (std::size_t i = 0; i < n && processors.size() < all_processors_most; ++i)
            if (const auto p = of_.get<address>(at + how_.value("cluster.processors") + i * 8))
                read_processor(index, *p);
        const std::size_t before = ready_on_.size();
        read_list(nobody, at + how_.value("cluster.inbox"));
        clusters[index].queued = static_cast<std::uint32_t>(ready_on_.size() - before);
    }
    if (const auto text = of_.get<address>(how_.place("engine")); text && *text != 0)
        engine = printable(of_.text(*text, 32));
    if (how_.has("notices.count")) {
        notices.resize(std::min<std::size_t>(how_.value("notices.count"), 64));
        if (!of_.read(how_.place("notices"), notices.data(), notices.size() * 8)) notices.clear();
    }
    address t = of_.get<address>(how_.place("thread_waits")).value_or(0);
    for (std::size_t n = 0; t != 0 && n < 10'000;
         ++n, t = of_.get<address>(t + how_.value("thread_wait.next")).value_or(0)) {
        thread_wait_record w;
        w.who = of_.get<address>(t + how_.value("thread_wait.who")).value_or(0);
        w.owner = of_.get<address>(t + how_.value("thread_wait.owner")).value_or(0);
        w.tid = of_.tid_here(of_.get<int>(t + how_.value("thread_wait.thread")).value_or(0));
        thread_waits.push_back(w);
    }
}

void snapshot::read_carriers(std::uint32_t cluster, address first) {
    std::unordered_set<address> seen;
    for (address at = first; at != 0 && carriers.size() < carriers_most && seen.insert(at).second;
         at = of_.get<address>(at + how_.value("carrier.next")).value_or(0)) {
        carrier_record c;
        c.at = at;
        c.cluster = cluster;
        c.running_at = at + how_.value("carrier.running");
        c.running = of_.get<address>(c.running_at).value_or(0);
        c.processor = of_.get<address>(at + how_.value("carrier.processor")).value_or(0);
        c.tid = of_.tid_here(of_.get<int>(at + how_.value("carrier.tid")).value_or(0));
        c.turn = of_.get<std::uint32_t>(at + how_.value("carrier.turn")).value_or(0);
        note_ready(of_.get<address>(at + how_.value("carrier.brings")).value_or(0), nobody);
        if (how_.has("carrier.runs_first"))
            note_ready(of_.get<address>(at + how_.value("carrier.runs_first")).value_or(0), nobody);
        carriers.push_back(c);
    }
}

void snapshot::read_processor(std::uint32_t cluster, address at) {
    if (processor_index_.contains(at)) return;
    std::vector<char> bytes(std::min<std::size_t>(how_.value("processor.size"), 1 << 16));
    if (!of_.read(at, bytes.data(), bytes.size())) return;
    assert(cluster < clusters.size() && "a processor was read before its cluster");
    const auto number = static_cast<std::uint32_t>(processors.size());
    processor_index_.emplace(at, number);
    const std::size_t before = ready_on_.size();
    processor_record p;
    p.at = at;
    p.cluster = cluster;
    p.index = at_offset<std::uint32_t>(bytes, how_.value("processor.index"));
    p.holder = at_offset<address>(bytes, how_.value("processor.holder"));
    p.is_idle = at_offset<char>(bytes, how_.value("processor.is_idle")) != 0;
    p.is_retired = at_offset<char>(bytes, how_.value("processor.retired")) != 0;
    p.timers = at_offset<std::uint64_t>(bytes, how_.value("processor.timer_count"));
    // An older libums does not have all of them.
    const auto counter = [&](const char* name) {
        return how_.has(name) ? at_offset<std::uint64_t>(bytes, how_.value(name)) : 0;
    };
    p.steals = counter("processor.steals");
    p.spawned = counter("processor.spawned");
    p.finished = counter("processor.finished");
    p.timers_fired = counter("processor.timers_fired");
    p.idles = counter("processor.idles");
    if (how_.has("processor.past_switches")) {
        const auto half = [&](const char* name) {
            return at_offset<std::uint32_t>(bytes, how_.value(name));
        };
        p.switches = counter("processor.past_switches") + half("processor.slice_length") -
                     half("processor.slice_left");
    }
    processors.push_back(p);
    note_ready(at_offset<address>(bytes, how_.value("processor.run_next")), number);
    read_queue(number, at + how_.value("processor.queue"));
    read_queue(number, at + how_.value("processor.pinned_queue"));
    read_list(number, at + how_.value("processor.inbox"));
    read_list(number, at + how_.value("processor.pinned_inbox"));
    read_list(number, at + how_.value("processor.arrived"));
    processors[number].queued = static_cast<std::uint32_t>(ready_on_.size() - before);
    read_timers(at);
}

void snapshot::note_ready(address fiber, std::uint32_t p) {
    if (fiber != 0) ready_on_.emplace(fiber, p);
}

void snapshot::read_queue(std::uint32_t p, address at) {
    const auto head = of_.get<std::uint32_t>(at + how_.value("queue.head")).value_or(0);
    const auto n = of_.get<std::uint32_t>(at + how_.value("queue.size")).value_or(0);
    const auto mask = of_.get<std::uint32_t>(at + how_.value("queue.mask")).value_or(0);
    const auto slots = of_.get<address>(at + how_.value("queue.slots")).value_or(0);
    if (n == 0 || slots == 0 || !may_have(std::uint64_t{mask} + 1, sizeof(address)) || n - 1 > mask)
        return;
    std::vector<address> ring(std::size_t{mask} + 1);
    if (!of_.read(slots, ring.data(), ring.size() * sizeof(address))) return;
    for (std::uint32_t i = 0; i < n && step(); ++i) note_ready(ring[(head + i) & mask], p);
}

// Lists that are made to look endless, by many that lead into each other, end here.
bool snapshot::step() {
    if (steps_left_ != 0) {
        --steps_left_;
        return true;
    }
    if (warning.empty()) warning = "the lists of ready fibers make no sense: some are missing";
    return false;
}

void snapshot::read_list(std::uint32_t p, address first_at) {
    std::unordered_set<address> seen;
    for (address f = of_.get<address>(first_at).value_or(0);
         f != 0 && step() && seen.insert(f).second;
         f = of_.get<address>(f + how_.value("fiber.link")).value_or(0)) {
        if (number_on(f) == nobody) return;
        note_ready(f, p);
    }
}

void snapshot::read_timers(address processor) {
    const auto data = of_.get<address>(processor + how_.value("processor.timers")).value_or(0);
    const auto n =
        of_.get<std::uint64_t>(processor + how_.value("processor.timer_count")).value_or(0);
    const std::size_t size = how_.value("timer.size"), who = how_.value("timer.who"),
                      at = how_.value("timer.at");
    if (n == 0 || size < 16 || size > 64 || !may_have(n, size)) return;
    std::vector<char> some(batch * size);
    for (std::uint64_t first = 0; first < n; first += batch) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(batch, n - first));
        if (!of_.read(data + first * size, some.data(), count * size)) return;
        for (std::size_t i = 0; i < count; ++i) {
            const auto fiber = at_offset<address>(some, i * size + who);
            if (number_on(fiber) == nobody || !step()) continue;
            timers_.emplace_back(fiber, at_offset<std::int64_t>(some, i * size + at));
        }
    }
}

// In batches, whose memory is used again: fresh pages cost more than what is read into them.
void snapshot::read_fibers(const first_look& before) {
    const std::size_t size = how_.value("fiber.size");
    fibers.reserve(before.size());
    numbers_.reserve(before.size());
    auto then = before.begin();
    std::vector<char> bytes(batch * size);
    std::vector<piece> pieces;
    std::vector<address> names;  // Of the batch's fibers; 0: it has none.
    std::size_t unread = 0;
    const std::size_t id = how_.value("fiber.id"), sp = how_.value("fiber.sp"),
                      ip = how_.value("fiber.ip"), bp = how_.value("fiber.bp"),
                      run = how_.value("fiber.run"), callable = how_.value("fiber.callable"),
                      word = how_.value("fiber.word"), spawner = how_.value("fiber.spawner"),
                      mark = how_.value("fiber.mark"), cluster = how_.value("fiber.cluster"),
                      joiner = how_.value("fiber.joiner"), pinned = how_.value("fiber.pinned_to"),
                      name = how_.value("fiber.name"),
                      spawned_at =
                          how_.has("fiber.spawned_at") ? how_.value("fiber.spawned_at") : size;
    // An older libums does not say it.
    const std::size_t top_bytes =
        how_.has("fiber.top_bytes") ? how_.value("fiber.top_bytes") : name_most + 1;
    for (const slab& s : slabs_) {
        const auto stack_begin = [&](std::size_t i) { return s.stacks + i * s.stride + s.guard; };
        for (std::size_t first = 0; first < s.carved && unread < unread_most; first += batch) {
            const std::size_t n = std::min<std::size_t>(batch, s.carved - first);
            pieces.clear();
            names.clear();
            for (std::size_t i = first; i < first + n; ++i)
                pieces.push_back(
                    {descriptor_at(s, i), bytes.data() + (i - first) * size, size, false});
            of_.read(pieces);
            for (std::size_t i = first; i < first + n; ++i) {
                const piece& p = pieces[i - first];
                if (!p.is_read) {
                    ++unread;
                    continue;
                }
                const std::size_t number = s.first + i;
                const std::span<const char> d{static_cast<const char*>(p.into), size};
                fiber_record f;
                f.id = at_offset<std::uint64_t>(d, id);
                if (f.id == 0 || !may_have(fibers.size(), page_bytes)) continue;
                f.at = descriptor_at(s, i);
                f.stack_begin = stack_begin(i);
                f.stack_end = s.stacks + (i + 1) * s.stride;
                assert(f.stack_begin < f.stack_end && "a stack ends before it begins");
                f.sp = at_offset<address>(d, sp);
                f.ip = at_offset<address>(d, ip);
                f.bp = at_offset<address>(d, bp);
                f.run = at_offset<address>(d, run);
                f.callable = at_offset<address>(d, callable);
                f.word = at_offset<std::uint32_t>(d, word);
                f.spawner = at_offset<std::uint64_t>(d, spawner);
                f.spawned_at = at_offset<address>(d, spawned_at);
                f.mark = at_offset<std::uint64_t>(d, mark);
                f.cluster = at_offset<address>(d, cluster);
                f.pinned_to = at_offset<address>(d, pinned);
                f.joiner = at_offset<address>(d, joiner);
                while (then != before.end() && then->first < number) ++then;
                f.has_moved = then == before.end() || then->first != number ||
                              then->second != std::hash<std::string_view>{}({d.data(), d.size()});
                // One that lies elsewhere counts as empty.
                const address named = at_offset<address>(d, name);
                names.push_back(named < f.at && f.at - named <= top_bytes ? named : 0);
                numbers_.push_back(static_cast<std::uint32_t>(number));
                fibers.push_back(std::move(f));
            }
            read_names(names);
        }
    }
    if (unread != 0 && warning.empty())
        warning = fmt::format("{} of {} stacks cannot be read", unread, stacks_);
}

// The names of the last fibers, in their order.
void snapshot::read_names(std::span<const address> at) {
    assert(at.size() <= batch && at.size() <= fibers.size() && "more names than fibers");
    std::array<char, batch*(name_most + 1)> text;
    std::vector<piece> pieces;
    const std::size_t first = fibers.size() - at.size();
    for (std::size_t i = 0; i < at.size(); ++i)
        if (at[i] != 0)
            pieces.push_back({at[i], text.data() + i * (name_most + 1),
                              std::min<std::size_t>(name_most + 1, fibers[first + i].at - at[i]),
                              false});
    of_.read(pieces);
    for (const piece& p : pieces) {
        const char* const found = static_cast<const char*>(p.into);
        const auto i = static_cast<std::size_t>(found - text.data()) / (name_most + 1);
        if (p.is_read) fibers[first + i].name.assign(found, strnlen(found, p.bytes));
    }
}

std::uint32_t snapshot::number_on(address at) const {
    auto s = std::upper_bound(slabs_.begin(), slabs_.end(), at,
                              [](address a, const slab& one) { return a < one.stacks; });
    if (s == slabs_.begin()) return nobody;
    --s;
    const std::uint64_t index = (at - s->stacks) / s->stride;
    assert((index >= s->carved || s->first + index < stacks_) &&
           "a stack is counted that has no descriptor");
    return at < s->end && index < s->carved ? static_cast<std::uint32_t>(s->first + index) : nobody;
}

std::uint32_t snapshot::fiber_on(address stack) const {
    assert(numbers_.size() == fibers.size() && "a stack is of a fiber that was not read");
    const std::uint32_t n = number_on(stack);
    if (n == nobody) return nobody;
    const auto at = std::lower_bound(numbers_.begin(), numbers_.end(), n);
    return at != numbers_.end() && *at == n ? static_cast<std::uint32_t>(at - numbers_.begin())
                                            : nobody;
}

std::uint32_t snapshot::fiber_at(address descriptor) const {
    const std::uint32_t f = fiber_on(descriptor);
    return f != nobody && fibers[f].at == descriptor ? f : nobody;
}

std::uint32_t snapshot::holder_of(std::uint64_t owner_word) const {
    const std::uint64_t parkable = owner_word & ~std::uint64_t{how_.value("mutex.flags")};
    return parkable != 0 ? fiber_at(parkable - how_.value("fiber.parkable")) : nobody;
}

void snapshot::find_joins() {
    const std::uint64_t last_word =
        std::max(how_.value("fiber.joiner_finished"), how_.value("fiber.joiner_detached"));
    const std::size_t parkable = how_.value("fiber.parkable");
    for (std::uint32_t i = 0; i < fibers.size(); ++i) {
        if (fibers[i].joiner <= last_word) continue;
        const std::uint32_t who = fiber_at(fibers[i].joiner - parkable);
        if (who == nobody) continue;
        fibers[who].waits = wait::join;
        fibers[who].waits_by = i;
    }
    for (const auto& [timer, at] : timers_)
        if (const std::uint32_t who = fiber_on(timer); who != nobody)
            fibers[who].deadline = std::max<std::int64_t>(at, 1);
}

void snapshot::classify() {
    const std::uint32_t parked = static_cast<std::uint32_t>(how_.value("fiber.parked"));
    const std::uint32_t parked_user = static_cast<std::uint32_t>(how_.value("fiber.parked_user"));
    const auto shift =
        static_cast<unsigned>(std::min<std::size_t>(how_.value("fiber.mark_shift"), 63));
    std::map<address, std::uint32_t> runs_on;
    for (std::uint32_t i = 0; i < carriers.size(); ++i)
        if (carriers[i].running != 0) runs_on.emplace(carriers[i].running, i);

    for (fiber_record& f : fibers) {
        const auto cluster = cluster_index_.find(f.cluster);
        const bool has_policy =
            cluster != cluster_index_.end() && clusters[cluster->second].has_policy;
        const bool has_join = f.waits == wait::join;
        const auto kind = static_cast<wait>(f.mark >> shift);
        const bool has_mark = kind != wait::none && kind <= wait::last_mark;
        const auto waits_by_mark = [&] {
            f.waits = kind;
            f.waits_in = f.mark & ((std::uint64_t{1} << shift) - 1);
        };
        if (const auto on = runs_on.find(f.at); on != runs_on.end()) {
            f.carrier = on->second;
            f.state = fiber_state::running;
            if (const auto p = processor_index_.find(carriers[f.carrier].processor);
                p != processor_index_.end())
                f.processor = p->second;
        } else if (f.joiner == how_.value("fiber.joiner_finished")) {
            f.state = fiber_state::ended;
        } else if ((f.word & parked) != 0) {
            f.state = fiber_state::parked;
            if (has_mark)
                waits_by_mark();
            else
                f.waits = f.deadline != 0 ? wait::sleep : wait::library;
        } else if ((f.word & parked_user) != 0) {
            f.state = fiber_state::parked;
            f.waits = wait::park;
        } else if (has_join) {
            f.state = fiber_state::parked;
        } else if (const auto q = ready_on_.find(f.at); q != ready_on_.end()) {
            f.state = fiber_state::ready;
            f.processor = q->second;
        } else if (has_mark && !has_policy) {
            // It left while the lock of what it waits for was held, so no bit of its own says that
            // it is parked.
            f.state = fiber_state::parked;
            waits_by_mark();
        } else {
            f.state = fiber_state::ready;
        }
        if (f.state != fiber_state::parked) {
            f.waits = wait::none;
            f.waits_by = nobody;
            f.deadline = 0;
        }
        if (f.state != fiber_state::running) note_stack_used(f);
    }
}

// Includes the descriptor, but not what lies above it to keep the tops apart in the cache.
void snapshot::note_stack_used(fiber_record& f) const {
    if (f.sp >= f.stack_begin && f.sp < f.at) f.stack_used = f.at + how_.value("fiber.size") - f.sp;
}

void snapshot::look_at_threads() {
    const auto turn = [&](const char* name) { return how_.value(name); };
    const std::size_t stopped = turn("carrier.turn_stopped"), given = turn("carrier.turn_given");
    for (fiber_record& f : fibers) {
        if (f.carrier == nobody) continue;
        assert(f.carrier < carriers.size() && "a fiber runs on a carrier that was not read");
        carrier_record& c = carriers[f.carrier];
        c.thread = of_.thread(c.tid);
        f.is_handed_off = c.processor == 0;
        if (c.turn == stopped || c.turn == given) {
            f.state = fiber_state::stopped;
            continue;
        }
        if (!c.thread) continue;
        if (c.thread->at.is_known[registers::sp]) {
            f.sp = c.thread->at.value[registers::sp];
            f.ip = c.thread->at.value[registers::ip];
            note_stack_used(f);
        }
        if (c.thread->state != 'S' && c.thread->state != 'D') continue;
        f.state = fiber_state::blocked;
        const long call = c.thread->call.value_or(-1);
        f.waits = call >= 0 ? wait::system_call : wait::page_fault;
        f.waits_in = static_cast<std::uint64_t>(std::max(call, 0l));
    }
}

void snapshot::read_objects() {
    // Reads each object once, however many fibers wait for it.
    std::unordered_map<address, std::array<std::uint64_t, 3>> objects;
    const auto word_of = [&](const fiber_record& f) -> address {
        switch (f.waits) {
            case wait::mutex:
                return f.waits_in + how_.value("mutex.owner");
            case wait::shared_mutex:
            case wait::shared_mutex_shared:
                return f.waits_in + how_.value("shared_mutex.holder");
            case wait::gate:
                return f.waits_in + how_.value("gate.word");
            case wait::barrier:
                return f.waits_in + how_.value("barrier.missing");
            case wait::send:
            case wait::receive:
                return f.waits_in + how_.value("channel.count");
            default:
                return 0;
        }
    };
    for (const fiber_record& f : fibers)
        if (const address at = word_of(f); at != 0) objects.try_emplace(at);
    const std::size_t capacity = how_.value("channel.capacity") - how_.value("channel.count");
    std::vector<piece> pieces;
    for (auto& [at, words] : objects) {
        pieces.push_back({at, &words[0], 8, false});
        pieces.push_back(
            {at + capacity, &words[1], 8, false});  // For a channel; otherwise not looked at.
    }
    of_.read(pieces);
    const std::size_t one_reader = std::max<std::size_t>(how_.value("shared_mutex.one_reader"), 1);
    std::unordered_set<address> unread;
    for (std::size_t i = 0; i < pieces.size(); i += 2)
        if (!pieces[i].is_read) unread.insert(pieces[i].at);
    for (fiber_record& f : fibers) {
        const address at = word_of(f);
        if (at == 0 || unread.contains(at)) continue;
        const auto& words = objects[at];
        f.detail = words[0];
        f.capacity = words[1];
        const bool is_lock = f.waits == wait::mutex || f.waits == wait::shared_mutex ||
                             f.waits == wait::shared_mutex_shared;
        if (!is_lock) continue;
        const bool is_read =
            f.waits != wait::mutex && (words[0] & how_.value("shared_mutex.has_readers")) != 0;
        f.detail = is_read ? words[0] / one_reader : 0;
        if (is_read) continue;
        f.waits_by = holder_of(words[0]);
        f.holder = words[0] & ~std::uint64_t{how_.value("mutex.flags")};
        f.is_held_by_thread = f.waits_by == nobody && f.holder != 0;
    }
    for (thread_wait_record& t : thread_waits)
        t.held_by = holder_of(of_.get<std::uint64_t>(t.owner).value_or(0));
}

void snapshot::read_workers() {
    if (!how_.has("context.size")) return;
    const std::size_t size = how_.value("context.size"),
                      per_block = how_.value("contexts.per_block");
    if (size < 64 || size > 1 << 14 || per_block == 0 || !may_have(per_block, size)) return;
    std::vector<char> block(size * per_block);
    const address table = how_.place("contexts") + how_.value("contexts.blocks");
    const std::size_t blocks =
        std::min(how_.value("contexts.blocks_most"), workers_most / per_block);
    for (std::size_t b = 0; b < blocks && may_have(workers.size(), size); ++b) {
        const address at = of_.get<address>(table + b * 8).value_or(0);
        if (at == 0 || !of_.read(at, block.data(), block.size())) return;
        for (std::size_t i = 0; i < per_block; ++i) {
            const std::span<const char> c{block.data() + i * size, size};
            const auto word = [&](const char* name) {
                return at_offset<std::uint64_t>(c, how_.value(name));
            };
            worker_record w;
            w.handle = word("context.self");
            w.is_scheduler = word("context.scheduler") != 0;
            if (w.handle == 0 || (!w.is_scheduler && word("context.worker") == 0)) continue;
            const auto state = at_offset<std::uint32_t>(c, how_.value("context.state"));
            w.state = state & static_cast<std::uint32_t>(how_.value("context.state_mask"));
            w.tid = of_.tid_here(at_offset<int>(c, how_.value("context.tid")));
            w.partner = word("context.partner");
            w.switches = word("context.switches");
            constexpr std::uint32_t held = 1, owned = 3, blocked = 5;
            const bool is_saved =
                w.state >= held && w.state <= owned && (state & how_.value("context.locked")) == 0;
            if (is_saved && !w.is_scheduler) {
                w.sp = word("context.sp");
                w.ip = word("context.ip");
                w.bp = word("context.bp");
            }
            if (w.is_scheduler || w.state == blocked) w.thread = of_.thread(w.tid);
            workers.push_back(w);
        }
    }
}

const char* state_of(const worker_record& w) {
    static constexpr const char* names[] = {"none",    "suspended", "ready",      "dequeued",
                                            "running", "blocked",   "terminated", "?"};
    return w.is_scheduler ? "scheduler" : names[w.state % 8];
}

std::string wait_of(const worker_record& w) {
    const bool waits = w.thread && (w.thread->state == 'S' || w.thread->state == 'D');
    if (!waits) return {};
    const long call = w.thread->call.value_or(-1);
    return call >= 0 ? system_call_name(static_cast<std::uint64_t>(call)) + "() in the kernel"
                     : "page fault in the kernel";
}

}  // namespace tool::inspect
