// SPDX-License-Identifier: MIT
#include "verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace tool::running {

namespace {

// A wait in a lock or condition variable of libums costs a hundredth of a thread's.
constexpr double saved_by_synchronisation = 0.99;
// A fiber's wait for a socket asks the kernel, too: it saves 2 of a thread's 5 us (`ums bench lone
// --ways unix,blocking --connections 16`).
constexpr double saved_by_socket = 0.4;
// Where threads yield to each other, a switch costs 1.6 us of the 4 of a wait (README: `ums bench
// yield`), and a fiber's a hundredth of that. The kernel counts yields as preemptions: those that
// neither ticks nor wake-ups explain.
constexpr double saved_by_yield = 0.4;
constexpr double ticks_a_second = 1000;
// Programs that gain lie above it and others below, well apart (docs/porting.md).
constexpr double least_gain = 0.05;
// With less there is nothing to judge by.
constexpr double least_cpu_s = 0.02;

// With so many times its own CPU time, what its children do matters, and not what it does.
constexpr double most_of_children = 4;

double of(const shares& kinds, wait what) { return kinds[static_cast<std::size_t>(what)]; }

double of_peers(const shares& kinds) {
    return of(kinds, wait::socket) + of(kinds, wait::pipe) + of(kinds, wait::poll);
}

double yields_of(const counts& all) {
    // The kernel adds the children's. Otherwise its count is exact, and looks miss what comes after
    // the last of them.
    const double own = all.used.children_s > 0
                           ? std::min(all.used.involuntary, all.runs - all.voluntary())
                           : all.used.involuntary;
    return std::max(0.0, own - all.voluntary() - all.cpu_s() * ticks_a_second);
}

// The share of the CPU time that the yields' switches take. They are work of the kernel's, too.
double in_yields(const counts& all) {
    if (all.cpu_s() <= 0) return 0;
    return std::min(yields_of(all) * saved_by_yield * all.switch_s / all.cpu_s(),
                    all.used.system_s / all.cpu_s() - all.in_switches());
}

// "3 %", "less than 1 %".
std::string percent(double share) {
    return share < 0.01 ? "less than 1 %" : fmt::format("{:.0f} %", share * 100);
}

bool is_of_children(const counts& all) {
    return all.used.children_s > most_of_children * all.cpu_s();
}

// Why there is nothing to gain. `if_ready` is what sockets would save if another thread were always
// ready.
std::string reason(const counts& all, double if_ready) {
    if (is_of_children(all))
        return fmt::format("its children took {} of the CPU time: trace one of them by itself",
                           percent(all.used.children_s / (all.used.children_s + all.cpu_s())));
    if (all.cpu_s() < least_cpu_s)
        return fmt::format("{:.0f} ms of CPU time are too little to judge by", all.cpu_s() * 1e3);
    if (all.in_switches() < least_gain) return "it computes, or its calls do: it seldom waits";
    if (if_ready >= least_gain)
        return fmt::format(
            "{} of the times that a thread waited for its peer, no other was ready; then a fiber's "
            "processor waits in the kernel as well",
            percent(1 - all.any_ready));
    if (of(all.kinds, wait::loop) > 0.5)
        return "its event loops wait for many descriptors at once already";
    if (of(all.kinds, wait::file) > 0.5)
        return "it waits for files, for which a fiber needs a kernel thread as well";
    if (of_peers(all.kinds) > 0.5)
        return fmt::format(
            "its waits for peers take {} of its CPU time, and fibers save less than "
            "half of that",
            percent(all.in_switches()));
    return "fibers make its kinds of waits no cheaper";
}

std::string way(const counts& all, bool needs_names) {
    if (needs_names)
        return all.has_cxx ? "with ums::fiber and net:: (docs/io.md), or by names as a C program: "
                             "UMS_PTHREAD_NAMES and UMS_IO_NAMES, ums_posix.h"
                           : "by names, no line changed: UMS_PTHREAD_NAMES and UMS_IO_NAMES, "
                             "ums_posix.h (docs/porting.md#blocking-calls-in-c)";
    return all.has_cxx ? "with ums:: in place of std:: (docs/porting.md#from-stdthread), or as it "
                         "is with UMS_PTHREAD_NAMES, ums_pthread.h"
                       : "as it is, with UMS_PTHREAD_NAMES and ums_pthread.h "
                         "(docs/porting.md#from-pthreads)";
}

}  // namespace

double counts::voluntary() const {
    // The kernel adds those of the children.
    return used.children_s > 0 ? std::min(used.voluntary, runs) : used.voluntary;
}

double counts::in_switches() const {
    if (cpu_s() <= 0) return 0;
    // Switches are work of the kernel's.
    return std::min(voluntary() * switch_s, used.system_s) / cpu_s();
}

verdict judge(const counts& all) {
    assert(all.switch_s > 0 && "nobody has measured what a switch costs");
    const double each = all.in_switches();  // If all waits were of a kind.
    const double peers = of_peers(all.kinds);
    const double if_ready = peers * each * saved_by_socket;
    verdict v;
    // Another thread ends a wait, so one is ready then; a timeout ends it where nobody is.
    v.synchronisation =
        (of(all.kinds, wait::futex) + of(all.kinds, wait::timed_futex) * all.any_ready) * each *
            saved_by_synchronisation +
        in_yields(all);
    v.sockets = if_ready * all.any_ready;
    const double saved = v.synchronisation + v.sockets;
    v.gains = saved >= least_gain && all.cpu_s() >= least_cpu_s;
    // What no look has seen may be of any kind.
    if (!all.is_enough && each >= least_gain && in_yields(all) < least_gain &&
        all.cpu_s() >= least_cpu_s && !is_of_children(all)) {
        v.gains = false;
        v.by = "unknown";
        v.lines = {"it cannot be said whether it would gain",
                   fmt::format("its waits take up to {} of its CPU time, and too few of them were "
                               "seen, in {} looks",
                               percent(each), all.looks),
                   "run it for longer, or where less else runs"};
        return v;
    }
    if (!v.gains) {
        v.by = "nothing";
        v.lines = {
            fmt::format("it would not gain: fibers would save {} of its CPU time", percent(saved)),
            "by nothing: " + reason(all, if_ready), "leave it as it is"};
        return v;
    }
    const bool by_synchronisation =
        v.synchronisation >= v.sockets || v.synchronisation >= least_gain;
    const bool by_sockets = v.sockets > v.synchronisation || v.sockets >= least_gain;
    v.by = by_synchronisation && by_sockets ? "synchronisation and sockets"
           : by_sockets                     ? "sockets"
                                            : "synchronisation";
    v.lines = {
        fmt::format("it would gain: fibers would save about {} of its CPU time", percent(saved)),
        fmt::format(
            "by {}: {} of its waits are for other threads, {} for a peer{}", v.by,
            percent(of(all.kinds, wait::futex) + of(all.kinds, wait::timed_futex)), percent(peers),
            in_yields(all) >= least_gain ? fmt::format("; it yields {:.0f} times", yields_of(all))
                                         : ""),
        "port it " + way(all, by_sockets)};
    return v;
}

}  // namespace tool::running
