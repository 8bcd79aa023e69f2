// SPDX-License-Identifier: MIT
#pragma once

// ums/fork_join.hpp: calls functions side by side, and returns when all of them have ended.
//
//   auto [left, right] = ums::fork_join([&] { return sum(a); }, [&] { return sum(b); });
//   ums::fork_join([&] { sort(low); }, [&] { sort(high); });
//
// The caller runs the last function itself. Each of the others gets a fiber, which runs at once
// (launch::dispatch); a processor that has nothing to do takes the caller meanwhile, so a function
// that calls fork_join() again is walked depth first. The functions may wait for each other, as
// fibers do. They are called once, as they were passed (an rvalue as an rvalue); nothing is copied.
// Since the caller waits for them, their fibers begin with its priority (the effective one),
// deadline, weight, group and tag.
//
// Returns a std::tuple of what the functions returned, in their order; nothing for a function that
// returns void, and void if all do.
//
// Blocking: parks the calling fiber, or blocks the calling plain thread, until all have ended.
// Ordering: the call happens before the functions start; their ends happen before it returns.
// Lifetime: a plain thread's call ends before the runtime stops, but must begin before that. The
//           functions may refer to what lies on the caller's stack. What a returned reference
//           refers to must outlive the call.
// Errors:   if functions throw, the exception of the first of them, in their order, is rethrown
//           when all have ended; the others, and the values, are dropped. std::system_error if a
//           fiber cannot be made, as from the constructor of ums::fiber; the functions that have
//           begun have ended then, and the others are not called. If the last function calls
//           fork() on a fiber, std::system_error, no_such_process, in the child, where the others
//           do not end.
// Cost:     a fiber for each function but the last, without allocating.

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ums/impl/outcome.hpp"
#include "ums/impl/spawn.hpp"

namespace ums {

namespace impl {

// A function of fork_join() and what comes of it, on the caller's stack. `ums ps` knows the fiber's
// function by the name of this type.
template <class F>
class forked {
public:
    using result = std::invoke_result_t<F>;
    static_assert(is_returnable<result>,
                  "a function of fork_join() must not return an rvalue reference: return a value");

    explicit forked(F&& f) noexcept : function_{f} {}
    ~forked() { join(); }
    forked(const forked&) = delete;
    forked& operator=(const forked&) = delete;

    void fork() { fiber_ = fork_part(&run_in_place, this); }
    void run() { out_.call(static_cast<F&&>(function_)); }
    void join() {
        if (fiber_ != nullptr && !join_part(std::exchange(fiber_, nullptr))) is_left_behind_ = true;
    }

    result take() {
        if (is_left_behind_) throw_left_behind();
        return out_.take();
    }
    auto take_as_tuple() {
        if constexpr (std::is_void_v<result>)
            return take(), std::tuple<>{};
        else
            return std::tuple<result>{take()};
    }

private:
    static void run_in_place(void* self) { static_cast<forked*>(self)->run(); }

    std::remove_reference_t<F>& function_;
    sched::fiber* fiber_ = nullptr;
    bool is_left_behind_ = false;
    outcome<result> out_;
};

// Functions may be of one type.
template <std::size_t, class F>
struct forked_at : forked<F> {
    using forked<F>::forked;
};

template <class Numbers, class... F>
struct all_forked;
template <std::size_t... i, class... F>
struct all_forked<std::index_sequence<i...>, F...> : forked_at<i, F>... {
    explicit all_forked(F&&... f) noexcept : forked_at<i, F>{static_cast<F&&>(f)}... {}

    void run() {
        (begin<i>(*static_cast<forked_at<i, F>*>(this)), ...);
        // The latest first: it is the next to end.
        join_reversed(static_cast<forked<F>*>(static_cast<forked_at<i, F>*>(this))...);
    }
    template <std::size_t at, class G>
    static void begin(forked<G>& one) {
        if constexpr (at + 1 < sizeof...(F))
            one.fork();
        else
            one.run();
    }
    static void join_reversed() noexcept {}
    template <class First, class... Rest>
    static void join_reversed(First* first, Rest*... rest) {
        join_reversed(rest...);
        first->join();
    }

    auto take() {
        if constexpr ((std::is_void_v<typename forked<F>::result> && ...))
            (static_cast<forked_at<i, F>*>(this)->take(), ...);
        else if constexpr ((!std::is_void_v<typename forked<F>::result> && ...))
            return std::tuple<typename forked<F>::result...>{
                static_cast<forked_at<i, F>*>(this)->take()...};
        else
            return std::apply([](auto&&... each) { return std::tuple_cat(std::move(each)...); },
                              std::tuple{static_cast<forked_at<i, F>*>(this)->take_as_tuple()...});
    }
};

}  // namespace impl

// Calls all functions, the last one on the calling fiber or thread. See above.
template <class... F>
requires(sizeof...(F) != 0) auto fork_join(F&&... functions) {
    constexpr bool are_callable = (std::is_invocable_v<F> && ...);
    static_assert(are_callable, "fork_join()'s functions must be callable without arguments");
    if constexpr (are_callable) {
        impl::all_forked<std::index_sequence_for<F...>, F...> all{static_cast<F&&>(functions)...};
        all.run();
        return all.take();
    }
}

}  // namespace ums
