// SPDX-License-Identifier: MIT
#pragma once

// io/engine/engine.hpp: waits for the events of descriptors, on epoll.
//
// There is one engine. The first operation that has to wait makes it, so that a program without I/O
// has no descriptor for it; it goes when the runtime stops. The scheduler sees it as an
// event_source (sched/queue/driver.hpp): whichever processor idles waits in it. Nothing in an
// engine depends on which kernel thread calls, because a processor may change its carrier at any
// time.
//
// Readiness: a kept descriptor (io/wait/descriptor.hpp) is added once, at its first wait, for both
// directions, edge-triggered; each edge goes to ready(). The generation distinguishes the files
// that have had the same number. A shared descriptor is armed for each wait, for one event, which
// goes to fire(). Arming it does not make the engine keep a file open.
//
// Cost: one epoll_ctl() for each kept descriptor that ever waits, and one when it is closed; one
// epoll_ctl() for each wait for a shared descriptor. One epoll_wait() takes up to 256 edges.

#include <cstdint>
#include <memory>

#include "base/assert.hpp"
#include "sched/queue/driver.hpp"

struct epoll_event;

namespace ums::io {

class engine final : public sched::event_source {
public:
    // Returns null and sets -errno if the kernel has no descriptor to give.
    static std::unique_ptr<engine> make(long& error) noexcept;
    ~engine();
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    sched::fiber* wait(os::nanoseconds limit) noexcept override;
    sched::fiber* poll() noexcept override;
    void interrupt() noexcept override;

    // From now on edges of `fd` are reported, including one for what is ready already. Returns 0 or
    // -errno; -EPERM: the file is always ready. Only one caller at a time for each descriptor, here
    // and in remove().
    long add(int fd, std::uint32_t generation) noexcept;
    void remove(int fd) noexcept;

    // Reports one event once `fd` is readable or writable, as asked for, or hung up; also if it
    // already is. Returns 0 or -errno. `is_new` says whether the caller believes that it was not
    // armed before; arm() sets it if the file is another one. Only one caller at a time for each
    // descriptor, here and in disarm().
    long arm(int fd, std::uint32_t generation, bool in, bool out, bool& is_new) noexcept;
    void disarm(int fd) noexcept;

    // While one exists, processors look for events.
    class waiting_once {
    public:
        // relaxed, both: a hint.
        waiting_once() noexcept { count_.fetch_add(1, base::relaxed); }
        ~waiting_once() {
            [[maybe_unused]] const std::uint32_t were = count_.fetch_sub(1, base::relaxed);
            UMS_DEBUG_ASSERT(were != 0, "more waits for one event ended than began");
        }
        waiting_once(const waiting_once&) = delete;
        waiting_once& operator=(const waiting_once&) = delete;
        // In the child of a fork(): nobody else waits.
        static void leave_all_behind() noexcept { count_.store(0, base::relaxed); }
    };

    [[nodiscard]] bool has_events() const noexcept override {
        // relaxed, both: a hint.
        return added_.load(base::relaxed) != 0 || count_.load(base::relaxed) != 0;
    }

private:
    engine(int epoll, int bell, std::unique_ptr<epoll_event[]> polled) noexcept;
    void end_if_lost(long error) const noexcept;
    static sched::fiber* deliver(const epoll_event* events, long count) noexcept;

    static constinit base::atomic<std::uint32_t> count_;  // How many waiting_once there are.

    base::atomic<std::uint32_t> added_;
    const int epoll_;
    // An eventfd that can always be read. Edge-triggered: it is reported once for each time that it
    // is put into the set again.
    const int bell_;
    // For poll(), which runs once at a time (sched/queue/driver.hpp) and on the stack of a fiber,
    // where the events would touch one more page.
    std::unique_ptr<epoll_event[]> polled_;
    bool has_pwait2_ = true;
};

// --- The one engine ---

// The engine's name, for readers from outside (runtime/root.hpp); null as below.
extern constinit base::atomic<const char*> engine_in_use;

// Null if there is none yet, or no runtime runs.
engine* current_engine() noexcept;
// Makes the engine if there is none. Null if no runtime runs, or `error` says why not.
engine* obtain_engine(long& error) noexcept;

// A runtime begins to run. And its end, when no processor is left: waits of plain threads continue
// without the engine.
void start() noexcept;
void stop() noexcept;
// In the child of a fork() that has a runtime: the parent's engine is closed, without a
// call that would change what it waits for, and the first wait makes another. Throws
// std::bad_alloc.
void leave_behind();
// The part of it for the child of a plain thread, which has no runtime: it takes nothing out of the
// parent's engine. That stays in memory, because drivers that are not left behind name it.
void leave_engine_behind() noexcept;

// The same for ums/signals.hpp: its part of leave_behind().
void leave_signals_behind() noexcept;

// Holds the engine for a plain thread, which may call while the engine is stopped; a fiber keeps
// the runtime, and so the engine, alive anyhow. Hold it briefly: stop() waits for the holders.
class engine_use {
public:
    engine_use() noexcept;
    ~engine_use();
    engine_use(const engine_use&) = delete;
    engine_use& operator=(const engine_use&) = delete;

    // May be null: see obtain_engine().
    [[nodiscard]] engine* get() const noexcept { return current_engine(); }

private:
    const bool is_counted_;
};

}  // namespace ums::io
