// SPDX-License-Identifier: MIT
#include "rt/carrier_watch.hpp"

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdio>
#include <memory>
#include <sys/mman.h>
#include <system_error>
#include <utility>

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
using sched::processor;

carrier_watch* the_watch = nullptr;  // Changes while no carrier runs.

}  // namespace

class carrier_watch::watched_processor final : public block::watched {
public:
    explicit watched_processor(processor& p) noexcept : processor_{p} {}

    [[nodiscard]] int tid() const noexcept override {
        const carrier* c = processor_.holder();
        return c != nullptr ? c->tid.get() : 0;
    }
    [[nodiscard]] int cpu() const noexcept override {
        carrier* c = processor_.holder();
        return c != nullptr ? c->cpu.get() : -1;
    }
    [[nodiscard]] bool is_of_interest() const noexcept override {
        const carrier* c = processor_.holder();
        return c != nullptr && c->running.get() != nullptr && c->proc.get() == &processor_ &&
               !c->is_stopping.get();
    }
    [[nodiscard]] std::uint64_t activity() const noexcept override { return processor_.activity(); }

    bool on_block(const block::notice& what) noexcept override {
        carrier* c = processor_.holder();
        if (c == nullptr || c->tid.get() != what.tid) return false;
        bool marked = false;
        using result = sched::hand_off::result;
        const result r = sched::hand_off::from(*c, what.activity, marked, what.free_cpu);
        if (r == result::not_blocked) return false;
        if (r == result::refused) return true;
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
        return true;
    }

private:
    processor& processor_;
};

struct carrier_watch::hooks {
    static void holds(processor& p) {
        auto made = std::make_unique<watched_processor>(p);
        the_watch->detector_.is->add(*made);
        p.watch = made.release();
    }

    static void gone(processor& p) noexcept {
        auto* const watched = static_cast<watched_processor*>(std::exchange(p.watch, nullptr));
        if (watched == nullptr) return;
        the_watch->detector_.is->remove(*watched);
        delete watched;
    }

    static void runs() noexcept { the_watch->detector_.is->nudge(); }

public:
    static constexpr carrier_pool::watcher all{&holds, &gone, &runs};
};

carrier_watch::carrier_watch(const settings& chosen) {
    const options& o = chosen.chosen;
    detector_ = block::choose(detection_of(o), carry::maker::tid());
    try {
        no_slices_ = why_no_slices(detector_.is->kind(), detector_.reason);
        static_cast<void>(slice(o.time_slice_us));
        const int number = o.signal != 0 ? o.signal : os::interrupt_signal::unused();
        if (number != 0 && detects() && why_no_stops() == nullptr) {
            signal_.emplace(number, &sched::stop::on_interrupt, SA_ONSTACK);
            sched::stop::source.set(&*signal_, os::user_interrupt::best_way());
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
    sched::stop::source.set(nullptr, os::user_interrupt::way::timer);
    the_watch = nullptr;
}

bool carrier_watch::detects() const noexcept {
    return detector_.is->kind() != block::detector_kind::none;
}

os::nanoseconds carrier_watch::slice(std::uint32_t us) const {
    if (us == 0 || no_slices_.empty()) return us * 1000L;
    if (us == default_time_slice_us) return 0;
    throw std::system_error{std::make_error_code(std::errc::operation_not_supported),
                            "ums: time_slice_us: " + no_slices_};
}

std::string why_no_slices(block::detector_kind found, const std::string& reason) {
    if (found == block::detector_kind::none)
        return "time slices need a detector of blocking, and it is off (" + reason + ")";
    if (why_no_stops() != nullptr) return {};
    if (os::interrupt_signal::unused() == 0) return "time slices need a signal, and none is left";
    if (const long error = os::user_interrupt::try_it(); error < 0)
        return "time slices need a clock, and there is none (" +
               std::generic_category().message(static_cast<int>(-error)) + "; see ulimit -i)";
    return {};
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
