// SPDX-License-Identifier: MIT
#pragma once

// io/engine.hpp: what waits for the events of descriptors: epoll or io_uring.
//
// There is one, made by the first operation that has to wait, so that a program without I/O has no
// descriptor for it; it goes when the runtime stops. The scheduler sees it as an event_source
// (sched/driver.hpp): whichever processor idles waits in it. Nothing in an engine depends on which kernel thread
// calls, because a processor may change its carrier at any time.
//
// Readiness. A kept descriptor (io/descriptor.hpp) is added once, at its first wait, for both directions, edge-triggered;
// each edge goes to ready(). The generation distinguishes the files that have had the same number. A shared one
// is armed for each wait, for one event, which goes to fire(). The engine keeps no file open by that.

#include <cstdint>
#include <string>

#include "sched/driver.hpp"

namespace ums::io {

enum class engine_kind : unsigned char { automatic, epoll, uring };

class engine : public sched::event_source {
public:
    virtual ~engine() = default;

    // From now on edges of `fd` are reported, also one for what is ready already. 0 or -errno; -EPERM: it is always
    // ready. One caller at a time for each descriptor, here and in remove().
    virtual long add(int fd, std::uint32_t generation) noexcept = 0;
    virtual void remove(int fd, std::uint32_t generation) noexcept = 0;

    // One event once `fd` is readable or writable, as asked for, or hung up; also if it is already. 0 or -errno;
    // `is_new`: not armed before, as the caller believes; set if the file is another one. One caller at a time for each
    // descriptor, here and in disarm().
    virtual long arm(int fd, std::uint32_t generation, bool in, bool out, bool& is_new) noexcept = 0;
    virtual void disarm(int fd) noexcept = 0;

    // While there is one, events are looked for.
    class waiting_once {
    public:
        // relaxed, both: a hint.
        waiting_once() noexcept { count_.fetch_add(1, base::relaxed); }
        ~waiting_once() { count_.fetch_sub(1, base::relaxed); }
        waiting_once(const waiting_once&) = delete;
        waiting_once& operator=(const waiting_once&) = delete;
    };

    [[nodiscard]] virtual const char* name() const noexcept = 0;

    [[nodiscard]] bool has_events() const noexcept final {
        // relaxed, both: a hint.
        return added_.load(base::relaxed) != 0 || count_.load(base::relaxed) != 0;
    }

protected:
    base::atomic<std::uint32_t> added_;

private:
    static constinit base::atomic<std::uint32_t> count_;  // Of waiting_once.
};

// --- The one there is ---

// Which kind the next one is, and how many processors the runtime begins with. Before it starts.
void choose_engine(engine_kind kind, unsigned processors) noexcept;

// Its name, for readers from outside (rt/root.hpp); null as below.
extern constinit base::atomic<const char*> engine_in_use;

// Null: none yet, or no runtime runs.
engine* current_engine() noexcept;
// Makes it if there is none. Null: no runtime runs, or `error` says why not.
engine* obtain_engine(long& error) noexcept;

// A runtime begins to run. Its end, when no processor is left: waits of plain threads go on without the
// engine.
void start() noexcept;
void stop() noexcept;

// The engine, held for a plain thread, which may call while it is stopped; a fiber keeps the runtime, and so the
// engine, alive anyhow. Short: stop() waits for those that hold it.
class engine_use {
public:
    engine_use() noexcept;
    ~engine_use();
    engine_use(const engine_use&) = delete;
    engine_use& operator=(const engine_use&) = delete;

    // Null: see obtain_engine().
    [[nodiscard]] engine* get() const noexcept { return current_engine(); }

private:
    const bool is_counted_;
};

}  // namespace ums::io
