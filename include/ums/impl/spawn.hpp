// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/spawn.hpp: puts the function and its arguments onto the new fiber's stack.
//
// It builds them in place, just below the descriptor, so a spawn needs no allocation and an idle
// fiber one page. A function and arguments larger than a quarter of the stack go to the heap.

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ums/export.hpp"
#include "ums/options.hpp"

namespace ums::impl {

struct new_fiber {
    sched::fiber* fiber;
    void* storage;  // Null: `bytes` do not fit onto the stack.
};

// Takes a stack and builds a descriptor on it. Throws std::system_error.
UMS_EXPORT new_fiber spawn_begin(const fiber_options* options, std::size_t bytes,
                                 std::size_t alignment);
// Makes the fiber ready, or runs it.
UMS_EXPORT void spawn_commit(sched::fiber* f, void (*run)(void*), void* callable,
                             launch when) noexcept;
// The same for a fiber that nobody joins: it is detached from the beginning.
UMS_EXPORT void spawn_detached(sched::fiber* f, void (*run)(void*), void* callable,
                               launch when) noexcept;
// Gives the stack back.
UMS_EXPORT void spawn_abort(sched::fiber* f) noexcept;

// New fibers that nobody joins, which become ready together. Its owner takes out what was not
// committed.
class UMS_EXPORT spawn_batch {
public:
    spawn_batch() noexcept = default;
    spawn_batch(const spawn_batch&) = delete;
    spawn_batch& operator=(const spawn_batch&) = delete;

    void add(sched::fiber* f, void (*run)(void*), void* callable) noexcept;
    // The first one, which is not in it any more; null if there is none.
    sched::fiber* take(void (*&run)(void*), void*& callable) noexcept;
    // Makes all of them ready, in order, and wakes one processor for them. Empty afterwards.
    void commit() noexcept;

private:
    sched::fiber* first_ = nullptr;
    sched::fiber* last_ = nullptr;
};

// The bodies of fiber's join(), detach(), ref() and of its destructor when joinable.
UMS_EXPORT void join(sched::fiber* f);
UMS_EXPORT void detach(sched::fiber* f) noexcept;
UMS_EXPORT fiber_ref ref_of(sched::fiber* f) noexcept;
[[noreturn]] UMS_EXPORT void terminate_joinable() noexcept;

template <class F, class... Args>
struct bound {
    std::tuple<F, Args...> parts;

    template <class... A>
    explicit bound(std::in_place_t, A&&... a) : parts{std::forward<A>(a)...} {}

    static void run_in_place(void* self) {
        struct destroy {
            bound* b;
            ~destroy() { b->~bound(); }
        } last{static_cast<bound*>(self)};
        last.b->call(std::index_sequence_for<Args...>{});
    }
    static void run_on_heap(void* self) {
        std::unique_ptr<bound> last{static_cast<bound*>(self)};
        last->call(std::index_sequence_for<Args...>{});
    }

private:
    template <std::size_t... I>
    void call(std::index_sequence<I...>) {
        std::invoke(std::move(std::get<0>(parts)), std::move(std::get<I + 1>(parts))...);
    }
};

template <class F, class... Args>
inline constexpr bool is_callable = std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>;

// Whether a forwarded range is an rvalue that owns its elements. One that only refers to them, such
// as a span or most views, gives the same access to them when it is const.
template <class Range>
concept owns_elements = requires(Range& range, const Range& same) {
    requires !std::is_reference_v<Range>;
    requires !std::is_same_v<decltype(*std::begin(range)), decltype(*std::begin(same))>;
};

// `commit`: called with the fiber, the function to run, and where the callable is.
template <class Commit, class F, class... Args>
sched::fiber* start_by(Commit commit, const fiber_options* options, F&& f, Args&&... args) {
    using call = bound<std::decay_t<F>, std::decay_t<Args>...>;
    const new_fiber made = spawn_begin(options, sizeof(call), alignof(call));
    struct undo {
        sched::fiber* f;
        ~undo() {
            if (f != nullptr) spawn_abort(f);
        }
    } guard{made.fiber};
    if (made.storage != nullptr) {
        void* at = ::new (made.storage)
            call(std::in_place, std::forward<F>(f), std::forward<Args>(args)...);
        guard.f = nullptr;
        commit(made.fiber, &call::run_in_place, at);
    } else {
        void* at = new call(std::in_place, std::forward<F>(f), std::forward<Args>(args)...);
        guard.f = nullptr;
        commit(made.fiber, &call::run_on_heap, at);
    }
    return made.fiber;
}

template <class F, class... Args>
sched::fiber* start(const fiber_options* options, F&& f, Args&&... args) {
    const launch when = options != nullptr ? options->launch : launch::post;
    return start_by(
        [when](sched::fiber* it, void (*run)(void*), void* at) { spawn_commit(it, run, at, when); },
        options, std::forward<F>(f), std::forward<Args>(args)...);
}

// A batch of fibers whose functions are of one type. What is not committed is destroyed.
template <class F>
class batch_of : public spawn_batch {
public:
    ~batch_of() {
        void (*run)(void*) = nullptr;
        void* at = nullptr;
        while (sched::fiber* f = take(run, at)) {
            if (run == &bound<F>::run_in_place)
                static_cast<bound<F>*>(at)->~bound();
            else
                delete static_cast<bound<F>*>(at);
            spawn_abort(f);
        }
    }
};

template <class F, class... Args>
sched::fiber* spawn(const fiber_options* options, F&& f, Args&&... args) {
    // Otherwise nothing else is compiled, so that this is the only error.
    if constexpr (is_callable<F, Args...>) {
        return start(options, std::forward<F>(f), std::forward<Args>(args)...);
    } else {
        static_assert(
            is_callable<F, Args...>,
            "a fiber's function must be callable with copies of its arguments, as rvalues");
        return nullptr;
    }
}

}  // namespace ums::impl
