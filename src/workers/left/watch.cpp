// SPDX-License-Identifier: MIT
#include "workers/left/watch.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <string>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "arch/sanitizer.hpp"
#include "carry/detect/detector.hpp"
#include "carry/detect/monitor_detector.hpp"
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

using carry::preference;

// Guarded by `change`:
std::mutex change;
unsigned entered = 0;
carry::detector* detector;  // A pointer: the program may end while it runs.

preference wanted() noexcept {
    switch (static_cast<block_detection>(
        rt::environment::detector(static_cast<int>(block_detection::automatic)))) {
        case block_detection::monitor:
            return preference::monitor;
        case block_detection::off:
            return preference::off;
        default:
            break;
    }
#if defined(UMS_ASAN) || defined(UMS_TSAN)
    return preference::off;  // Only by name, as in the runtime.
#else
    return preference::automatic;
#endif
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

int start(preference what) {
    detector = new carry::monitor_detector;
    std::string problem;
    try {
        problem = detector->start();
        if (problem.empty()) spares().start(*detector);
    } catch (const std::system_error& e) {
        if (problem.empty()) detector->stop();
        problem = e.what();
    }
    if (problem.empty()) return 0;
    delete std::exchange(detector, nullptr);
    return what == preference::automatic ? 0 : -EOPNOTSUPP;
}

}  // namespace

std::string describe_watch() {
    if (const char* missing = what_is_missing(); missing != nullptr)
        return std::string{"off: "} + missing;
    const preference what = wanted();
    if (what == preference::off)
        return rt::environment::detector(-1) >= 0
                   ? "off: asked for"
                   : "off: under a sanitizer only if UMS_BLOCK asks for it";
    const carry::verdict found = carry::would_choose(preference::monitor);
    if (!found.is_possible) return "refused: monitor: " + found.reason;
    return what == preference::monitor ? "monitor: asked for" : "monitor: the best there is";
}

bool seat_watch::on_block(const carry::notice& what) noexcept { return hand_off(seat_, what); }

int current_tid() noexcept { return static_cast<int>(::syscall(SYS_gettid)); }

int begin_watch(scheduler_thread& s) {
    const std::lock_guard hold{change};
    if (entered == 0) {
        const preference what = wanted();
        // A worker's coming in and its yield have the light side of the fence, with a detector or
        // without.
        if (!os::asymmetric() && rt::environment::debug_switch("membarrier", true))
            os::enable_asymmetric_fence(true);
        if (what != preference::off) {
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
    detector->stop();
    delete std::exchange(detector, nullptr);
}

}  // namespace ums::scheduling
