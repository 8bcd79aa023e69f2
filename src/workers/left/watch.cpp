// SPDX-License-Identifier: MIT
#include "workers/left/watch.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "arch/sanitizer.hpp"
#include "carry/detect/detector.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/signal/interrupt_signal.hpp"
#include "os/stay_loaded.hpp"
#include "runtime/environment.hpp"
#include "ums/options.hpp"
#include "workers/left/spares.hpp"
#include "workers/left/stop_point.hpp"
#include "workers/left/stray.hpp"
#include "workers/scheduler/scheduler_thread.hpp"
#include "workers/worker/availability.hpp"
#include "workers/worker/home.hpp"

namespace ums::scheduling {

namespace {

// Guarded by `change`:
std::mutex change;
unsigned entered = 0;
carry::detector* detector;  // A pointer: the program may end while it runs.

block_detection wanted() noexcept {
#if defined(UMS_ASAN) || defined(UMS_TSAN)
    constexpr block_detection unless_asked = block_detection::off;
#else
    constexpr block_detection unless_asked = block_detection::automatic;
#endif
    return static_cast<block_detection>(rt::environment::detector(static_cast<int>(unless_asked)));
}

void install_signal() noexcept {
#if !defined(UMS_ASAN) && !defined(UMS_TSAN)
    // Made once and never taken away: a late signal may still come.
    static const os::interrupt_signal* installed = nullptr;
    if (installed != nullptr) return;
    const int number = os::interrupt_signal::unused();
    if (number == 0) return;
    try {
        // Nested, and on the worker's own stack, because the handler's frame is left for another
        // kernel thread.
        installed = new os::interrupt_signal{number, &on_interrupt, SA_NODEFER};
        strays.set(installed);
        os::stay_loaded();
    } catch (const std::exception&) {
    }
#endif
}

int start(block_detection what) {
    carry::chosen_detector chosen = carry::choose(what);
    try {
        if (chosen.is != nullptr) spares().start(*chosen.is);
        detector = chosen.is.release();
    } catch (const std::system_error&) {
    }
    return detector != nullptr || what == block_detection::automatic ? 0 : -EOPNOTSUPP;
}

}  // namespace

std::string describe_watch() {
    if (const char* missing = what_is_missing(); missing != nullptr)
        return std::string{"off: "} + missing;
    const block_detection what = wanted();
    if (what == block_detection::off)
        return rt::environment::detector(-1) >= 0
                   ? "off: asked for"
                   : "off: under a sanitizer only if UMS_BLOCK asks for it";
    const carry::chosen_detector tried = carry::choose(what);
    return (tried.is != nullptr ? "monitor: " : "refused: monitor: ") + tried.reason;
}

bool seat_watch::on_block(const carry::notice& what) noexcept { return hand_off(seat_, what); }

int current_tid() noexcept { return ::gettid(); }

int begin_watch(scheduler_thread& s) {
    const std::lock_guard hold{change};
    if (entered == 0) {
        const block_detection what = wanted();
        // A worker's coming in and its yield have the light side of the fence, with a detector or
        // without.
        if (!os::asymmetric() && rt::environment::debug_switch("membarrier", true))
            os::enable_asymmetric_fence(true);
        if (what != block_detection::off) {
            learn_where_not_to_stop();
            install_signal();
            if (const int failed = start(what); failed != 0) return failed;
        }
    }
    ++entered;
    seat& own = s.own_seat;
    own.ownership.reset(os::asymmetric());
    own.is_asymmetric = os::asymmetric();
    if (detector != nullptr) {
        os::system.signal_mask(nullptr, &s.mask);
        s.rseq_bytes = unregister_rseq();
        if (make_island(own)) {
            own.detector = detector;
            own.tid.set(current_tid());
            own.cpu.begin_own();
            s.watch.emplace(own);
        }
        spares().want(entered);
    }
    (void)own.ownership.enter();
    own.rider.store(&s, base::release);  // sync(ums.seat)
    if (s.watch) detector->add(*s.watch);
    return 0;
}

void end_watch(scheduler_thread& s) noexcept {
    const std::lock_guard hold{change};
    if (s.watch) {
        detector->remove(*s.watch);
        s.watch.reset();
        s.own_seat.cpu.end();
        give_island_back(s.own_seat);
    }
    s.own_seat.interrupt.close();
    register_rseq(s.rseq_bytes);
    if (--entered != 0) {
        if (detector != nullptr) spares().want(entered);
        return;
    }
    if (detector == nullptr) return;
    spares().stop();
    delete std::exchange(detector, nullptr);
}

}  // namespace ums::scheduling
