// SPDX-License-Identifier: MIT
#pragma once

// sched/queue/driver.hpp: where an idle processor waits: in a futex, or in the I/O engine.
//
// An event_source is the engine as the scheduler sees it. There is at most one, made by the first
// operation that has to wait. One processor at a time waits inside it, and each of the others in
// its own driver's futex: a second one inside would only share the wake-ups. The one inside is the
// last of its cluster that became idle, or watches over the others (sched/run/search.hpp). Running
// processors poll the source, at least every 61 switches, unless a processor waits inside.
//
// A processor that polls counts as inside as well, for that time. Otherwise it could be delayed
// between its look at inside_ and its look at the events, and take the interrupt() for which
// another that has gone inside meanwhile waits.
//
// The carrier that holds the processor calls wait() and poll(); any thread may call notify().
//
// No notify() is lost: one that comes before wait() is found in state_, by the exchange at its
// beginning, by the kernel's comparison, or by the compare-and-swap to `in_source`; the engine
// keeps an interrupt() that comes before its wait().
//
// The place inside is not left empty while a processor waits for it: see
// sched/queue/place_inside.hpp. A processor that finds no engine stands by as well, then looks
// again. A processor that publishes an engine does so first and then takes a standby from the list.
// Both take the list's lock, so one of them sees the other.

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "os/clock.hpp"
#include "sched/queue/place_inside.hpp"

namespace ums::sched {

struct fiber;

class event_source {
public:
    // Returns at an event, at an interrupt() that came since the last wait(), or at `limit`.
    // Returns the fibers that the caller now owns, linked. Only one caller at a time.
    virtual fiber* wait(os::nanoseconds limit) noexcept = 0;
    // The same without waiting. Do not call it while another caller waits or polls.
    virtual fiber* poll() noexcept = 0;
    // Whether any event can come. A hint.
    [[nodiscard]] virtual bool has_events() const noexcept = 0;
    virtual void interrupt() noexcept = 0;

protected:
    ~event_source() = default;
};

class driver {
public:
    // Waits for a notify() or `limit`; if `inside`, also for events. May return early. Returns
    // fibers that the caller now owns and must make ready.
    [[nodiscard]] fiber* wait(os::nanoseconds limit, bool inside) noexcept;

    // Takes in events without waiting, if there may be any.
    [[nodiscard]] fiber* poll() noexcept {
        event_source* s = source_.load(base::acquire);  // sync(event_source): sees the engine.
        // A processor that waits inside takes them in.
        if (s == nullptr || place_.is_taken() || !s->has_events()) return nullptr;
        return poll_inside(*s);
    }

    // Whether there may be events. A hint, also for a signal handler.
    [[nodiscard]] static bool has_events() noexcept {
        // sync(event_source): sees the engine.
        const event_source* s = source_.load(base::acquire);
        return s != nullptr && s->has_events();
    }

    // Whether a processor waits for events, which then gets the next one, or polls. A hint.
    [[nodiscard]] static bool takes_events() noexcept { return place_.is_taken(); }

    void notify() noexcept;

    // The engine appears while a runtime runs, and is taken away (null) when no processor is left.
    static void set_source(event_source* s) noexcept;
    // In the child of a fork(): nobody waits or polls, and there is no engine.
    static void leave_behind() noexcept;

private:
    static constexpr std::uint32_t nothing = 0, notified = 1, in_source = 2;

    bool wait_inside(event_source& s, os::nanoseconds limit, fiber*& arrived) noexcept;
    fiber* poll_inside(event_source& s) noexcept;

    static constinit base::atomic<event_source*> source_;
    static constinit place_inside<driver> place_;  // Of the driver that waits in it, or polls it.

    alignas(base::cache_line) base::atomic<std::uint32_t> state_;
    friend place_inside<driver>;
    // Guarded by its lock:
    driver* next_standby_ = nullptr;
    bool is_standby_ = false;
};

}  // namespace ums::sched
