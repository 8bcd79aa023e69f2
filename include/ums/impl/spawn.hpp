// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/spawn.hpp: puts the function and its arguments onto the new fiber's stack.
//
// It builds them in place, just below the descriptor, so a spawn needs no allocation and an idle
// fiber one page. A function and arguments larger than a quarter of the stack, or aligned to more
// than a page, go to the heap.
//
// What a fiber keeps beyond its function's end, such as the value that join() returns, lies between
// the descriptor and the function. It is there as long as the descriptor: until the fiber is
// joined, or, if nobody joins it, until it ends.
//
// Each spawn of a program has its own types, so what is a template here costs the program's
// compiler time at each: the rest is in spawn_begin() and its kin.

#include <cstddef>
#include <functional>
#include <iterator>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ums/export.hpp"
#include "ums/options.hpp"

namespace ums::impl {

struct new_fiber {
    sched::fiber* fiber;
    void* storage;  // For the function: on the stack, or on the heap until the fiber has ended.
};

// Takes a stack and builds a descriptor on it, right above `kept` bytes of room. Throws
// std::system_error, and std::bad_alloc if `bytes` do not fit onto the stack and there is no
// memory.
UMS_EXPORT new_fiber spawn_begin(const fiber_options* options, std::size_t bytes,
                                 std::size_t alignment, std::size_t kept = 0);
// Makes the fiber ready, or runs it.
UMS_EXPORT void spawn_commit(sched::fiber* f, void (*run)(void*), void* callable,
                             launch when) noexcept;
// The same for a fiber that nobody joins: it is detached from the beginning.
UMS_EXPORT void spawn_detached(sched::fiber* f, void (*run)(void*), void* callable,
                               launch when) noexcept;
// A part of what its caller does, on a fiber that the caller joins before it returns. It runs at
// once, with the priority, deadline, weight, group and tag that a calling fiber has. Throws as
// spawn_begin(). A plain thread keeps the runtime from being stopped in between.
UMS_EXPORT sched::fiber* fork_part(void (*run)(void*), void* callable);
// Returns false if a fork() has left the fiber behind: it has not ended.
[[nodiscard]] UMS_EXPORT bool join_part(sched::fiber* f) noexcept;
// Gives the stack back, and the storage.
UMS_EXPORT void spawn_abort(sched::fiber* f) noexcept;

// What may be kept: a descriptor is aligned to a cache line.
inline constexpr std::size_t most_kept_bytes = 512, most_kept_alignment = 64;

template <class T>
inline constexpr bool may_be_kept = sizeof(T) <= most_kept_bytes &&
                                    alignof(T) <= most_kept_alignment;
template <class T>
inline constexpr std::size_t kept_bytes =
    (sizeof(T) + most_kept_alignment - 1) / most_kept_alignment* most_kept_alignment;

// The room for what the fiber keeps, and what is in it.
template <class T>
void* kept_room(sched::fiber* f) noexcept {
    static_assert(may_be_kept<T>);
    return reinterpret_cast<char*>(f) - kept_bytes<T>;
}
template <class T>
T& kept(sched::fiber* f) noexcept {
    return *std::launder(static_cast<T*>(kept_room<T>(f)));
}

// Null if they say nothing but when to launch: spawn_begin() has less to do then. Where a program
// writes options in place, the compiler knows, and does not even make them.
[[gnu::always_inline]] inline const fiber_options* beyond_launch(const fiber_options* o) noexcept {
    const bool is_usual = o == nullptr || (o->name.empty() && o->stack_bytes == 0 && !o->pinned &&
                                           o->cluster == nullptr && o->tag == 0 &&
                                           o->priority == 0 && o->deadline == (deadline::max)() &&
                                           o->weight == usual_weight && o->group == 0);
    return is_usual ? nullptr : o;
}
[[gnu::always_inline]] inline launch launch_of(const fiber_options* o) noexcept {
    return o != nullptr ? o->launch : launch::post;
}

// A spawn that has begun. Aborted if the function cannot be built in the storage.
class spawning {
public:
    // Inline also where nothing is optimised, so that the address to which spawn_begin() returns
    // tells the program's spawns apart.
    [[gnu::always_inline]] spawning(const fiber_options* options, std::size_t bytes,
                                    std::size_t alignment, std::size_t kept = 0)
        : made_{spawn_begin(options, bytes, alignment, kept)} {}
    ~spawning() {
        if (made_.fiber != nullptr) spawn_abort(made_.fiber);
    }
    spawning(const spawning&) = delete;
    spawning& operator=(const spawning&) = delete;

    [[nodiscard]] void* storage() const noexcept { return made_.storage; }
    [[nodiscard]] sched::fiber* fiber() const noexcept { return made_.fiber; }
    // The function is built; the caller commits.
    [[nodiscard]] sched::fiber* release() noexcept { return std::exchange(made_.fiber, nullptr); }

private:
    new_fiber made_;
};

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
// join() in two steps, for a caller that takes what the fiber keeps in between. The first returns
// false if a fork() has left the fiber behind: it has not ended, and there is no second step.
[[nodiscard]] UMS_EXPORT bool join_keeping(sched::fiber* f);
UMS_EXPORT void join_finish(sched::fiber* f) noexcept;
// detach() of a fiber that keeps something. It calls drop(f) when it has ended; or this does.
UMS_EXPORT void discard(sched::fiber* f, void (*drop)(void* fiber)) noexcept;
UMS_EXPORT fiber_ref ref_of(sched::fiber* f) noexcept;
[[noreturn]] UMS_EXPORT void terminate_joinable() noexcept;
[[noreturn]] UMS_EXPORT void throw_not_joinable(const char* call);

// std::invoke(), which would have the compiler instantiate five functions at each call.
template <class F, class... Args>
decltype(auto) invoke(F&& f, Args&&... args) {
    if constexpr (std::is_member_pointer_v<std::remove_cvref_t<F>>)
        return std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    else
        return std::forward<F>(f)(std::forward<Args>(args)...);
}

// What a fiber calls. `ums ps` knows a fiber's function by the name of this type.
template <class F, class... Args>
struct bound {
    F function;
    // The first one keeps a tuple's other constructors out: an argument may be any type.
    [[no_unique_address]] std::tuple<std::in_place_t, Args...> arguments;

    template <class G, class... A>
    explicit bound(std::in_place_t first, G&& g, A&&... a)
        : function(std::forward<G>(g)), arguments(first, std::forward<A>(a)...) {}

    static void run_in_place(void* self) {
        struct destroy {
            bound* b;
            ~destroy() { b->~bound(); }
        } last{static_cast<bound*>(self)};
        last.b->call(std::index_sequence_for<Args...>{});
    }

private:
    template <std::size_t... I>
    void call(std::index_sequence<I...>) {
        impl::invoke(std::move(function), std::get<I + 1>(std::move(arguments))...);
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

// A batch of fibers whose functions are of one type. What is not committed is destroyed.
template <class F>
class batch_of : public spawn_batch {
public:
    ~batch_of() {
        void (*run)(void*) = nullptr;
        void* at = nullptr;
        while (sched::fiber* f = take(run, at)) {
            static_cast<bound<F>*>(at)->~bound();
            spawn_abort(f);
        }
    }
};

template <class F, class... Args>
sched::fiber* spawn(const fiber_options* options, F&& f, Args&&... args) {
    // Otherwise nothing else is compiled, so that this is the only error.
    if constexpr (is_callable<F, Args...>) {
        using call = bound<std::decay_t<F>, std::decay_t<Args>...>;
        spawning begun{beyond_launch(options), sizeof(call), alignof(call)};
        void* const at = ::new (begun.storage())
            call(std::in_place, std::forward<F>(f), std::forward<Args>(args)...);
        sched::fiber* const made = begun.release();
        spawn_commit(made, &call::run_in_place, at, launch_of(options));
        return made;
    } else {
        static_assert(
            is_callable<F, Args...>,
            "a fiber's function must be callable with copies of its arguments, as rvalues");
        return nullptr;
    }
}

}  // namespace ums::impl
