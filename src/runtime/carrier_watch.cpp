// SPDX-License-Identifier: MIT
#include "runtime/carrier_watch.hpp"

#include <csignal>
#include <system_error>

#include "arch/sanitizer.hpp"
#include "os/lock.hpp"
#include "os/say.hpp"
#include "os/system.hpp"
#include "sched/block/detection.hpp"
#include "sched/block/stop.hpp"

namespace ums::rt {

carrier_watch::carrier_watch(const settings& chosen) {
    const options& o = chosen.chosen;
    detector_ = carry::choose(o.block);
    if (!detects() && o.block == block_detection::monitor)
        throw std::system_error{std::make_error_code(std::errc::operation_not_supported),
                                "ums: block detection by monitor: " + detector_.reason};
    if (!detects() && o.block != block_detection::off)
        os::say(
            "no way to find fibers that block in the kernel (%s): one that does stops its "
            "processor; see ums::blocking(), and UMS_BLOCK=off to be told no more",
            detector_.reason.c_str());
    no_slices_ = why_no_slices(detects(), detector_.reason);
    static_cast<void>(slice(o.time_slice_us));
    const int number = o.signal != 0 ? o.signal : os::interrupt_signal::unused();
    if (number != 0 && detects() && why_no_stops() == nullptr) {
        signal_.emplace(number, &sched::stop::on_interrupt, SA_ONSTACK);
        sched::stop::source.set(&*signal_);
    }
    sched::stop::learn_where_to_wait();
    sched::detection::forget();
    sched::detection::by = detector_.is.get();
    os::lock_states::on_sleep = {&sched::detection::lock_sleep_begins,
                                 &sched::detection::lock_sleep_has_ended};
}

carrier_watch::carrier_watch(after_fork, carrier_watch& parents)
    : detector_{nullptr, "in the child of a fork()"},
      no_slices_{why_no_slices(false, detector_.reason)} {
    if (parents.detects()) parents.detector_.is->leave_behind();
    sched::detection::by = nullptr;
    sched::detection::forget();
    sched::stop::source.set(nullptr);
}

carrier_watch::~carrier_watch() {
    sched::detection::by = nullptr;
    detector_.is.reset();
    sched::stop::source.set(nullptr);
}

os::nanoseconds carrier_watch::slice(std::uint32_t us) const {
    if (us == 0) return 0;
    // Under a sanitizer a processor does not leave a fiber that computes, either: fibers that take
    // turns on one processor would look like threads that race.
    if (no_slices_.empty()) return why_no_stops() == nullptr ? us * 1000L : 0;
    if (us == default_time_slice_us) return detects() ? us * 1000L : 0;
    throw std::system_error{
        std::make_error_code(std::errc::operation_not_supported),
        "ums: time_slice_us: " + no_slices_ + "; only 0 or the default works here"};
}

std::string why_no_slices(bool detects, const std::string& reason) {
    if (!detects) return "time slices need a detector of blocking, and it is off (" + reason + ")";
    if (why_no_stops() != nullptr) return {};
    if (os::interrupt_signal::unused() == 0) return "time slices need a signal, and none is left";
    if (const long error = os::user_interrupt::try_it(); error < 0)
        return "time slices need a clock, and there is none (" +
               std::generic_category().message(static_cast<int>(-error)) + "; see ulimit -i)";
    return {};
}

const char* why_no_stops() noexcept {
#if defined(UMS_TSAN)
    return "ThreadSanitizer";  // It delays signals to places of its own choice.
#elif defined(UMS_ASAN)
    // The locks of its runtime spin: a fiber that waits for one that a stopped fiber holds is never
    // found blocked.
    return "AddressSanitizer";
#else
    // It takes the signal's stack and the crossing for mistakes.
    return arch::under_valgrind() ? "Valgrind" : nullptr;
#endif
}

}  // namespace ums::rt
