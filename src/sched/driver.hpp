// SPDX-License-Identifier: MIT
#pragma once

// sched/driver.hpp: where an idle processor waits: in a futex, or in the I/O engine.
//
// An event_source is the engine as the scheduler sees it. There is at most one, made by the first
// operation that has to wait. One processor at a time waits inside it, and each of the others in
// its own driver's futex: a second one inside would only share the wake-ups. The one inside watches
// over the others of its cluster (sched/search.hpp) or is alone there, so events are taken in as
// long as a cluster has an idle processor. Running processors poll the source, at least every 61
// switches, unless a processor waits inside.
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
// The place inside is not left empty while a processor waits for it. A processor that finds it
// taken, or finds no engine, goes on the list of standbys, then looks again. A processor that
// leaves it, or publishes an engine, does so first and then takes a standby from the list and
// notifies it. The list's lock orders the two: one of them sees the other.

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "os/clock.hpp"

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
        // relaxed: a hint; the processor that waits inside takes them in.
        if (s == nullptr || inside_.load(base::relaxed) != nullptr || !s->has_events())
            return nullptr;
        return poll_inside(*s);
    }

    // Whether there may be events. A hint, also for a signal handler.
    [[nodiscard]] static bool has_events() noexcept {
        // sync(event_source): sees the engine.
        const event_source* s = source_.load(base::acquire);
        return s != nullptr && s->has_events();
    }

    void notify() noexcept;

    // The engine appears while a runtime runs, and is taken away (null) when no processor is left.
    static void set_source(event_source* s) noexcept;

private:
    static constexpr std::uint32_t nothing = 0, notified = 1, in_source = 2;

    bool wait_inside(event_source& s, os::nanoseconds limit, fiber*& arrived) noexcept;
    fiber* poll_inside(event_source& s) noexcept;
    void stand_by() noexcept;
    void stand_down() noexcept;
    static void send_a_standby() noexcept;

    static constinit base::atomic<event_source*> source_;
    static constinit base::atomic<driver*> inside_;  // The driver that waits in it, or polls it.

    alignas(base::cache_line) base::atomic<std::uint32_t> state_;
    // Guarded by the list's lock:
    driver* next_standby_ = nullptr;
    bool is_standby_ = false;
};

}  // namespace ums::sched
