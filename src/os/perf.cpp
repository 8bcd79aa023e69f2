// SPDX-License-Identifier: MIT
#include "os/perf.hpp"

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.hpp"
#include "os/memory.hpp"
#include "os/system.hpp"

namespace ums::os {

namespace {

constexpr std::uint16_t out_preempted = 1u << 14;  // PERF_RECORD_MISC_SWITCH_OUT_PREEMPT

perf_event_mmap_page& page(void* map) noexcept { return *static_cast<perf_event_mmap_page*>(map); }

}  // namespace

long switch_ring::open(int root, int cpu, std::size_t pages, const char*& failed_at) noexcept {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_DUMMY;
    wanted.sample_period = 1;
    wanted.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    wanted.sample_id_all = 1;  // Tid and time in each record.
    wanted.context_switch = 1;
    wanted.exclude_kernel = wanted.exclude_hv = 1;
    if (cpu >= 0) wanted.inherit = wanted.inherit_thread = 1;  // New threads, but no child process.
    wanted.watermark = 1;
    wanted.wakeup_watermark = 1;  // Readable from the first record on.
    wanted.use_clockid = 1;
    wanted.clockid = CLOCK_MONOTONIC;
    failed_at = "perf_event_open";
    const long fd = system.perf_event_open(&wanted, root, cpu);
    if (fd < 0) return fd;
    fd_ = static_cast<int>(fd);
    failed_at = "mmap of a perf ring";
    for (;; pages /= 2) {
        map_bytes_ = (pages + 1) * page_bytes;
        const long at = system.perf_map(fd_, map_bytes_);
        if (at >= 0 || at <= -4096) {
            map_ = reinterpret_cast<void*>(at);
            data_bytes_ = pages * page_bytes;
            tail_ = 0;
            return 0;
        }
        // EPERM: more than this user may lock.
        if (pages == 1 || (at != -EPERM && at != -ENOMEM)) {
            close();
            return at;
        }
    }
}

void switch_ring::close() noexcept {
    if (map_ != nullptr) unmap(map_, map_bytes_);
    if (fd_ >= 0) system.close_fd(fd_);
    map_ = nullptr;
    fd_ = -1;
    data_bytes_ = 0;
}

void switch_ring::pause(bool is_paused) noexcept {
    system.perf_control(fd_, PERF_EVENT_IOC_PAUSE_OUTPUT, is_paused ? 1 : 0);
}

std::uint64_t switch_ring::written() const noexcept {
    base::atomic_ref head{page(map_).data_head};
    // sync(perf.ring): sees the records that the kernel wrote before it moved the head.
    return head.load(base::acquire);
}

void switch_ring::give_back() noexcept {
    base::atomic_ref tail{page(map_).data_tail};
    // sync(perf.ring): the kernel overwrites only what has been read.
    tail.store(tail_, base::release);
}

// Eight bytes of the data, which is a ring; everything in it is aligned to eight.
std::uint64_t switch_ring::word(std::uint64_t at) const noexcept {
    const char* data = static_cast<const char*>(map_) + page_bytes;
    return *reinterpret_cast<const std::uint64_t*>(data + (at & (data_bytes_ - 1)));
}

// Steps over one record; false if it is of another kind. The kernel puts one of a kind of its own where it
// has refused some.
bool switch_ring::next(switch_record& record, bool& all) noexcept {
    const std::uint64_t header = word(tail_);
    const auto type = static_cast<std::uint32_t>(header);
    const auto misc = static_cast<std::uint16_t>(header >> 32);
    const auto bytes = static_cast<std::uint16_t>(header >> 48);
    const bool is_switch = type == PERF_RECORD_SWITCH;
    if (is_switch) {
        record.tid = static_cast<int>(word(tail_ + 8) >> 32);  // Below it: the process.
        record.when = static_cast<nanoseconds>(word(tail_ + 16));
        record.is_out = (misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
        record.is_preempted = (misc & out_preempted) != 0;
    }
    if (type == PERF_RECORD_LOST) all = false;
    tail_ += bytes;
    return is_switch;
}

long try_switch_records(const char*& failed_at) noexcept {
    switch_ring ring;
    return ring.open(static_cast<int>(::syscall(SYS_gettid)), 0, 1, failed_at);
}

int perf_event_paranoid() noexcept {
    const long fd = system.open_to_read("/proc/sys/kernel/perf_event_paranoid");
    if (fd < 0) return -1000;
    char text[16] = {};
    const long n = system.read_from_start(static_cast<int>(fd), text, sizeof text - 1);
    system.close_fd(static_cast<int>(fd));
    return n > 0 ? static_cast<int>(std::strtol(text, nullptr, 10)) : -1000;
}

}  // namespace ums::os
