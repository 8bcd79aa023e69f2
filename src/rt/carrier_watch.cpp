// SPDX-License-Identifier: MIT
#include "rt/carrier_watch.hpp"

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdio>
#include <sys/mman.h>
#include <system_error>

#include "arch/sanitizer.hpp"
#include "os/system.hpp"
#include "sched/carrier.hpp"
#include "sched/carrier_pool.hpp"
#include "sched/cluster.hpp"
#include "sched/habit.hpp"
#include "sched/hand_off.hpp"
#include "sched/stop.hpp"

namespace ums::rt {

namespace {

using sched::carrier;
using sched::carrier_pool;

carrier_watch* the_watch = nullptr;  // Changes while no carrier runs.

}  // namespace

class carrier_watch::watched_carrier final : public block::watched {
public:
    explicit watched_carrier(carrier& c) noexcept : watched{c.tid.get()}, carrier_{c} {}

    [[nodiscard]] bool is_of_interest() const noexcept override {
        return carrier_.running.get() != nullptr && carrier_.proc.get() != nullptr &&
               !carrier_.is_stopping.get();
    }
    [[nodiscard]] std::uint64_t activity() const noexcept override { return carrier_.activity(); }

    void on_block(const block::notice& what) noexcept override {
        bool marked = false;
        using result = sched::hand_off::result;
        const result r = sched::hand_off::from(carrier_, what.activity, marked);
        if (r == result::not_blocked || r == result::refused) return;
        carrier_watch& w = *the_watch;
        // relaxed: statistics.
        auto& kind = marked                                 ? w.in_regions_
                     : what.why == block::cause::page_fault ? w.in_faults_
                                                            : w.in_calls_;
        kind.fetch_add(1, base::relaxed);
        const auto us = static_cast<std::uint64_t>(std::max(0L, os::now() - what.when) / 1000);
        const auto bucket =
            std::min<std::size_t>(std::bit_width(us), runtime_stats::notice_buckets - 1);
        w.notices_[bucket].fetch_add(1, base::relaxed);
    }

private:
    carrier& carrier_;
};

struct carrier_watch::hooks {
    static void started(carrier& c) noexcept {
        carrier_watch& w = *the_watch;
        if (w.can_stop()) start_stopping(c, w);
        auto* watched = new watched_carrier{c};
        c.watch = watched;
        w.detector_.is->add(*watched);
    }

    static void ending(carrier& c) noexcept {
        if (auto* watched = static_cast<watched_carrier*>(c.watch)) {
            the_watch->detector_.is->remove(*watched);
            c.watch = nullptr;
            delete watched;
        }
        if (os::user_interrupt* i = c.interrupt) {
            i->disarm();
            c.interrupt = nullptr;
            base::compiler_fence();  // A last signal finds none.
            delete i;
        }
        if (c.crossing != nullptr) {
            os::system.munmap(c.crossing, sched::stop::crossing_bytes);
            c.crossing = nullptr;
        }
    }

    static void runs() noexcept { the_watch->detector_.is->nudge(); }

    static void away(carrier& c) noexcept {
        if (c.interrupt != nullptr) c.interrupt->arm(sched::habit::grace(*c.running.get()));
    }

    static void back(carrier& c) noexcept {
        if (c.interrupt == nullptr) return;
        if (c.pool.time_slice != 0)
            sched::stop::arm_tick(c);
        else
            c.interrupt->disarm();
    }

private:
    // Without it (no descriptor left, no memory) a fiber runs on without a processor until it next calls libums.
    static void start_stopping(carrier& c, carrier_watch& w) noexcept {
        const long at =
            os::system.mmap(nullptr, sched::stop::crossing_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
        if (at < 0) return;
        using way = os::user_interrupt::way;
        for (const way how : {w.way_, way::timer}) {
            try {
                c.interrupt = new os::user_interrupt{c.tid.get(), w.signal_->number(), how};
                break;
            } catch (const std::exception&) {
            }
        }
        if (c.interrupt == nullptr) {
            os::system.munmap(reinterpret_cast<void*>(at), sched::stop::crossing_bytes);
            return;
        }
        c.crossing = reinterpret_cast<char*>(at);
        arch::set_bounds(c.crossing_shadow, c.crossing, sched::stop::crossing_bytes);
        sched::stop::arm_tick(c);
    }

public:
    static constexpr carrier_pool::watcher all{&started, &ending, &runs, &away, &back};
};

carrier_watch::carrier_watch(const settings& chosen) {
    const options& o = chosen.chosen;
    detector_ = block::choose(detection_of(o), sched::carrier_maker::tid());
    try {
        check_slice(o.time_slice_us);
        const int number = o.signal != 0 ? o.signal : os::interrupt_signal::unused();
        if (number != 0 && detects() && why_no_stops() == nullptr) {
            signal_.emplace(number, &sched::stop::on_interrupt, SA_ONSTACK);
            way_ = os::user_interrupt::best_way();
        }
    } catch (...) {
        detector_.is->stop();
        throw;
    }
    sched::stop::learn_where_to_wait();
    the_watch = this;
    if (detects()) carrier_pool::watched_by = &hooks::all;
}

carrier_watch::~carrier_watch() {
    carrier_pool::watched_by = nullptr;
    detector_.is->stop();
    the_watch = nullptr;
}

bool carrier_watch::detects() const noexcept {
    return detector_.is->kind() != block::detector_kind::none;
}

void carrier_watch::check_slice(std::uint32_t us) const {
    if (us == 0 || detects()) return;
    throw std::system_error{
        std::make_error_code(std::errc::operation_not_supported),
        "ums: time_slice_us: time slices need a detector of blocking, and it is off (" +
            detector_.reason + ")"};
}

void carrier_watch::add_to(runtime_stats& s) const noexcept {
    s.blocked_in_calls += in_calls_.load(base::relaxed);
    s.blocked_in_faults += in_faults_.load(base::relaxed);
    s.blocked_in_regions += in_regions_.load(base::relaxed);
    for (std::size_t i = 0; i < runtime_stats::notice_buckets; ++i)
        s.notice_us[i] += notices_[i].load(base::relaxed);
}

const char* why_no_stops() noexcept {
#if defined(UMS_TSAN)
    return "ThreadSanitizer";  // It puts signals off to places of its own choice.
#elif defined(UMS_ASAN)
    // The locks of its runtime spin: who waits for one that a stopped fiber holds is never found blocked.
    return "AddressSanitizer";
#else
    // It takes the signal's stack and the crossing for mistakes.
    return arch::under_valgrind() ? "Valgrind" : nullptr;
#endif
}

}  // namespace ums::rt
