// SPDX-License-Identifier: MIT
#include "io/engine.hpp"

#include <cerrno>
#include <memory>

#include "io/descriptor.hpp"
#include "io/epoll_engine.hpp"
#include "io/offload.hpp"
#include "os/futex.hpp"
#include "os/lock.hpp"
#include "sched/carrier.hpp"

namespace ums::io {

namespace {

constinit base::atomic<engine*> the_engine;

// Held while an engine is made or given up.
constinit os::lock engine_lock{os::lock_rank::change};
// Guarded by engine_lock:
constinit bool runs = false;
constinit engine_kind wanted = engine_kind::automatic;

// How many plain threads use the engine, and whether stop() waits for them.
constinit base::atomic<std::uint32_t> users;
constexpr std::uint32_t stop_waits = 1u << 31;

std::unique_ptr<engine> make(long& error) noexcept { return epoll_engine::make(error); }

}  // namespace

void choose_engine(engine_kind kind) noexcept {
    const os::lock_guard guard{engine_lock};
    wanted = kind;
}

std::string describe_engine() {
    return "epoll";
}


engine* current_engine() noexcept {
    return the_engine.load(base::seq_cst);  // sync(io.engine): sees the engine. See stop().
}

engine* obtain_engine(long& error) noexcept {
    error = 0;
    if (engine* e = current_engine()) return e;
    const os::lock_guard guard{engine_lock};
    if (!runs) return nullptr;
    if (engine* e = the_engine.load(base::relaxed)) return e;
    engine* made = make(error).release();
    if (made == nullptr) return nullptr;
    // sync(io.engine): publishes the engine. seq_cst: pairs with descriptor::wait().
    the_engine.store(made, base::seq_cst);
    sched::driver::set_source(made);
    return made;
}

void start() noexcept {
    const os::lock_guard guard{engine_lock};
    runs = true;
}

void stop() noexcept {
    engine* gone;
    {
        const os::lock_guard guard{engine_lock};
        runs = false;
        sched::driver::set_source(nullptr);
        // seq_cst: a user that is not seen below, and a waiter that the sweep does not find, see this.
        gone = the_engine.exchange(nullptr, base::seq_cst);
    }
    if (gone != nullptr) {
        std::uint32_t seen = users.fetch_or(stop_waits, base::seq_cst) | stop_waits;
        while (seen != stop_waits) {
            os::futex_wait(users, seen);
            seen = users.load(base::acquire);  // sync(io.users): what they did with the engine.
        }
        users.fetch_and(~stop_waits, base::relaxed);  // relaxed: the next engine is ordered by its lock.
        descriptor::forget_all();
        delete gone;
    }
    offload_pool::stop();
}

engine_use::engine_use() noexcept : is_counted_{sched::this_carrier() == nullptr} {
    // seq_cst: before the engine is read.
    if (is_counted_) users.fetch_add(1, base::seq_cst);
}

engine_use::~engine_use() {
    // sync(io.users): publishes to stop().
    if (is_counted_ && users.fetch_sub(1, base::release) == (stop_waits | 1))
        os::futex_wake(users.address());
}

}  // namespace ums::io
