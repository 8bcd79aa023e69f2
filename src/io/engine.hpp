// SPDX-License-Identifier: MIT
#pragma once

// io/engine.hpp: what waits for the events of descriptors: epoll or io_uring.
//
// There is one, made by the first operation that has to wait, so that a program without I/O has no
// descriptor for it; it goes when the runtime stops. The scheduler sees it as an event_source
// (sched/driver.hpp): whichever processor idles waits in it. Nothing in an engine depends on which kernel thread
// calls, because a processor may change its carrier at any time.
//
// Readiness. A descriptor is added once, at its first wait, for both directions, edge-triggered; each
// edge goes to io/descriptor.hpp. The generation distinguishes the files that have had the same number.

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

    [[nodiscard]] virtual const char* name() const noexcept = 0;

    [[nodiscard]] bool has_events() const noexcept final {
        return added_.load(base::relaxed) != 0;  // relaxed: a hint.
    }

protected:
    base::atomic<std::uint32_t> added_;
};

// --- The one there is ---

// Which kind the next one is, and how many processors the runtime begins with. Before it starts.
void choose_engine(engine_kind kind, unsigned processors) noexcept;

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
