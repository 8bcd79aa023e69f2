// SPDX-License-Identifier: MIT
#include "live_rings.hpp"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>

namespace tool::tracing {

using inspect::address;

namespace {

// The same as in src/sched/record/trace.hpp, version 1.
struct control {
    std::uint32_t version, record_bytes, wanted, ring_bytes;
    address rings;
    std::uint64_t began_stamp;
    std::int64_t began_ns;
};
struct ring_head {
    address action[4];
    std::uint64_t count, mask;
    address records, next;
    std::uint32_t processor, is_free;
    char cluster[16];
    address from_loop[4];
    std::uint64_t begun_at;
};
constexpr std::uint64_t most_records_of_a_ring = std::uint64_t{1} << 31;
constexpr std::size_t most_rings = 10'000;
// So many are read without a question whether the process has the memory for them.
constexpr std::size_t few_records = 1 << 16;

std::uint64_t records_with_room() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / 8 / sizeof(raw_record);
}

clock_pair both_clocks() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return {__builtin_ia32_rdtsc(), t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec};
}

}  // namespace

live_rings::live_rings(const inspect::process& of, const inspect::layout& how)
    : of_{of}, control_{how.place("trace")}, records_left_{records_with_room()} {
    const auto c = of_.get<control>(control_);
    if (!c || c->version != 1 || c->record_bytes != sizeof(raw_record))
        throw std::runtime_error{
            "its libums records in another way: use the ums command of that version"};
}

template <class T>
void live_rings::put(std::size_t offset, T value) const {
    assert(offset + sizeof value <= sizeof(control) && "a word beside the switch would be written");
    iovec here{&value, sizeof value};
    iovec there{reinterpret_cast<void*>(control_ + offset), sizeof value};
    if (process_vm_writev(of_.pid(), &here, 1, &there, 1, 0) != static_cast<ssize_t>(sizeof value))
        throw std::runtime_error{fmt::format("process {} cannot be told to record: {}", of_.pid(),
                                             std::strerror(errno))};
}

bool live_rings::is_on() const {
    const auto c = of_.get<control>(control_);
    return c && c->wanted != 0;
}

void live_rings::switch_on(std::uint32_t ring_bytes) const {
    if (ring_bytes != 0) put(offsetof(control, ring_bytes), ring_bytes);
    put(offsetof(control, wanted), std::uint32_t{1});
}

void live_rings::switch_off() const { put(offsetof(control, wanted), std::uint32_t{0}); }

void live_rings::skip() { walk(nullptr); }

bool live_rings::collect(recording& into) {
    into.process = of_.pid();
    walk(&into);
    if (const auto c = of_.get<control>(control_))
        into.began = {c->began_stamp, in_bounds(c->began_ns)};
    into.now = both_clocks();
    return records_left_ != 0;
}

void live_rings::walk(recording* into) {
    const auto c = of_.get<control>(control_);
    address at = c ? c->rings : 0;
    for (std::size_t n = 0; at != 0 && n < most_rings; ++n) {
        const auto head = of_.get<ring_head>(at);
        if (!head) return;
        collect_ring(at, into);
        at = head->next;
    }
}

void live_rings::collect_ring(address at, recording* into) {
    const auto head = of_.get<ring_head>(at);
    if (!head || head->mask >= most_records_of_a_ring) return;
    const std::uint64_t capacity = head->mask + 1;
    if (known_.size() >= most_rings && !known_.contains(at)) return;
    const auto [known, is_new] = known_.try_emplace(at);
    place& p = known->second;
    if (into == nullptr) {
        p.index = ~std::size_t{0};
        p.read = head->count;
        return;
    }
    if (is_new || p.index == ~std::size_t{0}) {
        p.index = into->rings.size();
        into->rings.push_back(
            {head->processor, std::string{head->cluster, strnlen(head->cluster, 16)}, 0, {}});
    }
    assert(p.index < into->rings.size() && "two recordings were collected from the same rings");
    ring& r = into->rings[p.index];
    r.is_free = head->is_free != 0;
    if (head->count <= p.read) return;
    std::uint64_t first = p.read;
    if (head->count - first > capacity) first = head->count - capacity;
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(head->count - first, records_left_));
    // A ring that is larger than its process is none.
    if (wanted > few_records && wanted > of_.bytes() / sizeof(raw_record)) return;
    records_left_ -= wanted;
    const std::size_t before = r.raw.size();
    r.raw.resize(before + wanted);
    // There are at most two pieces, because the ring continues at its beginning.
    const std::uint64_t slot = first & head->mask;
    const auto front = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, capacity - slot));
    inspect::piece pieces[2] = {
        {head->records + slot * sizeof(raw_record), r.raw.data() + before,
         front * sizeof(raw_record)},
        {head->records, r.raw.data() + before + front, (wanted - front) * sizeof(raw_record)}};
    of_.read(std::span{pieces, wanted > front ? 2u : 1u});
    // Records that the writer has reached meanwhile may be torn; see src/sched/record/trace.hpp.
    const auto after = of_.get<ring_head>(at);
    const std::uint64_t count = after ? after->count : head->count;
    const std::uint64_t whole = count + 1 > capacity ? count + 1 - capacity : 0;
    const bool is_read = pieces[0].is_read && (wanted == front || pieces[1].is_read);
    const std::uint64_t drop = !is_read        ? wanted
                               : whole > first ? std::min<std::uint64_t>(whole - first, wanted)
                                               : 0;
    const auto begin = r.raw.begin() + static_cast<std::ptrdiff_t>(before);
    r.raw.erase(begin, begin + static_cast<std::ptrdiff_t>(drop));
    r.lost += first + drop - p.read;
    p.read = first + wanted;
    const std::uint64_t since_gap = head->count - std::min(head->begun_at, head->count);
    r.before_gap = r.raw.size() - std::min<std::uint64_t>(since_gap, r.raw.size());
}

std::optional<recording> recorded_by(const inspect::process& of, const inspect::layout& how) {
    if (!of.is_live()) return std::nullopt;
    try {
        live_rings rings{of, how};
        if (!rings.is_on()) return std::nullopt;
        recording what;
        rings.collect(what);
        return what;
    } catch (const std::runtime_error&) {  // It has ended, or its libums records in another way.
        return std::nullopt;
    }
}

}  // namespace tool::tracing
