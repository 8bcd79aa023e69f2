// SPDX-License-Identifier: MIT
#include "io/engine/engine.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/assert.hpp"
#include "io/away/offload.hpp"
#include "io/engine/epoll_engine.hpp"
#include "io/engine/uring_engine.hpp"
#include "io/wait/descriptor.hpp"
#include "io/wait/shortage.hpp"
#include "os/io_calls.hpp"
#include "os/lock.hpp"
#include "os/say.hpp"
#include "os/visitors.hpp"
#include "sched/run/carrier.hpp"
#include "ums/io.hpp"

namespace ums::io {

namespace {

constinit base::atomic<engine*> the_engine;

// Held while an engine is made or given up.
constinit os::lock engine_lock{os::lock_rank::change};
// Guarded by engine_lock:
constinit bool runs = false;
constinit engine_kind wanted = engine_kind::automatic;
constinit bool has_one_processor = false;

// The plain threads that use the engine.
constinit os::visitors users;

// Guarded by engine_lock: the error of the engine that was asked for.
constinit long refusal = 0;

std::unique_ptr<engine> make(long& error) noexcept {
    refusal = 0;
    if (wanted == engine_kind::uring) {
        if (std::unique_ptr<engine> made = make_uring_engine(has_one_processor, error)) return made;
        refusal = error;
    }
    std::unique_ptr<engine> made = epoll_engine::make(error);
    static constinit bool has_said = false;
    if (made == nullptr && os::is_refused(error) && !std::exchange(has_said, true))
        say_refused("epoll_create1, epoll_ctl, eventfd", error);
    return made;
}

std::string epoll_because(long error) {
    const char* name = strerrorname_np(static_cast<int>(-error));
    return std::string{"epoll (the kernel refuses io_uring: "} + (name != nullptr ? name : "?") +
           ")";
}

}  // namespace

constinit base::atomic<std::uint32_t> engine::count_;
constinit base::atomic<const char*> engine_in_use;

void choose_engine(engine_kind kind, unsigned processors) noexcept {
    const os::lock_guard guard{engine_lock};
    wanted = kind;
    has_one_processor = processors == 1;
}

std::string engine_name() {
    const os::lock_guard guard{engine_lock};
    if (wanted != engine_kind::uring)
        return wanted == engine_kind::epoll ? "epoll (asked for)" : "epoll (the default)";
    // Before the first wait nothing is known, so ask the kernel.
    const long error = the_engine.load(base::relaxed) != nullptr ? refusal : probe_uring();
    return error == 0 ? "io_uring (asked for)" : epoll_because(error);
}

void say_refused(const char* calls, long error) noexcept {
    os::say(
        "the kernel refuses a call that libums waits for descriptors with (one of %s: %s), perhaps "
        "because of a seccomp filter",
        calls, ::strerrordesc_np(static_cast<int>(-error)));
}

void lost_descriptor(const char* engine, int first, int second) noexcept {
    char numbers[32] = "";
    if (second >= 0) std::snprintf(numbers, sizeof numbers, " and %d", second);
    os::say(
        "the program has closed or replaced descriptor %d%s, which libums has for %s: let "
        "close_range(), closefrom() and dup2() leave it alone, or call them before the first wait",
        first, numbers, engine);
    std::abort();
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
    engine_in_use.store(made->name(), base::relaxed);  // relaxed: a constant.
    sched::driver::set_source(made);
    return made;
}

void start() noexcept {
    {
        const os::lock_guard guard{engine_lock};
        UMS_DEBUG_ASSERT(!runs && the_engine.load(base::relaxed) == nullptr,
                         "a runtime began to run with the engine of another");
        runs = true;
    }
    offload_pool::start();
}

void stop() noexcept {
    engine* gone;
    {
        const os::lock_guard guard{engine_lock};
        UMS_DEBUG_ASSERT(runs, "the engine was stopped twice");
        runs = false;
        engine_in_use.store(nullptr, base::relaxed);  // relaxed: as above.
        sched::driver::set_source(nullptr);
        // seq_cst: a user that is not seen below, and a waiter that the sweep does not find, see
        // this store.
        gone = the_engine.exchange(nullptr, base::seq_cst);
    }
    if (gone != nullptr) {
        users.wait_for_all();
        descriptor::forget_all();
        delete gone;
    }
    offload_pool::stop();
}

void leave_engine_behind() noexcept {
    engine::waiting_once::leave_all_behind();
    descriptor::leave_all_behind();
    engine_in_use.store(nullptr, base::relaxed);  // relaxed, both: there is one thread.
    the_engine.store(nullptr, base::relaxed);
}

// The engine's descriptors are the parent's, too. Closing ours takes nothing out of its set, nor
// out of its ring; asking them to forget a descriptor would.
void leave_behind() {
    offload_pool::leave_behind();
    engine_lock.leave_behind();
    users.leave_behind();
    sched::driver::leave_behind();
    shortage::leave_behind();
    has_one_processor = true;
    engine* const parents = the_engine.load(base::relaxed);  // relaxed: as above.
    leave_engine_behind();
    delete parents;
    leave_signals_behind();
}

engine_use::engine_use() noexcept : is_counted_{sched::this_carrier() == nullptr} {
    if (is_counted_) users.come();  // Before the engine is read.
}

engine_use::~engine_use() {
    if (is_counted_) users.go();
}

}  // namespace ums::io
