// SPDX-License-Identifier: MIT
#pragma once

// ums/scope.hpp: structured concurrency: fibers that end before their scope does.
//
//   ums::scope all;
//   for (const url& u : urls) all.spawn([&results, u] { results.add(fetch(u)); });
//   all.join();  // All children have ended; rethrows the first exception.
//
// If a child's function takes a std::stop_token first, it gets the scope's. The first exception
// that leaves a child requests a stop for all children. So does a stop of the token that the
// constructor was given; that is how a scope inside a child learns of a stop of the outer scope.
// Later exceptions are dropped: the stop caused most of them. A fiber or a plain thread may own a
// scope. While the scope exists any fiber or thread may spawn into it, its children above all.
// After a stop new children still run; their token says so. A std::stop_callback on a token must
// not park or yield, because its destructor recognises a running callback by the kernel thread. Let
// it set an event, or leave the work to a fiber.
//
// Blocking:  join() and the destructor wait for the children. spawn() never blocks.
// Ordering:  everything that a child did, its fiber_local destructors included, happens before
//            join() returns.
// Lifetime:  the destructor requests a stop if children are left, and waits for them. Only join()
//            throws the children's exception; if nobody calls it, the exception is dropped. A scope
//            may be used again after join(), but a requested stop remains.
// Errors:    spawn() throws std::system_error as the constructor of ums::fiber, and std::bad_alloc.
//            join() throws what the first child threw, once. A child that joins its own scope waits
//            for ever.
// Cost:      for each child a fiber, an allocation and three short lock sections.

#include <cstddef>
#include <cxxabi.h>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "ums/export.hpp"
#include "ums/fiber.hpp"
#include "ums/impl/at_exit.hpp"
#include "ums/impl/exceptions.hpp"
#include "ums/impl/other_than.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums {

class scope {
public:
    scope() = default;
    // A stop of `parent` also stops the children.
    explicit scope(std::stop_token parent) {
        follow_.emplace(std::move(parent), forward_stop{stop_});
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    UMS_EXPORT ~scope();

    // Runs f(args...), or f(get_stop_token(), args...), on a new fiber, with decayed copies that
    // the caller makes.
    template <impl::other_than<fiber_options> F, class... Args>
    void spawn(F&& f, Args&&... args) {
        start({}, std::forward<F>(f), std::forward<Args>(args)...);
    }
    template <class F, class... Args>
    void spawn(const fiber_options& options, F&& f, Args&&... args) {
        start(options, std::forward<F>(f), std::forward<Args>(args)...);
    }

    // Waits until no child is left, then rethrows the first exception, if any was thrown since the
    // last join().
    UMS_EXPORT void join();

    // Requests a stop of all children; each decides what that means to it.
    bool request_stop() noexcept { return stop_.request_stop(); }
    [[nodiscard]] std::stop_token get_stop_token() const noexcept { return stop_.get_token(); }
    [[nodiscard]] std::stop_source get_stop_source() const noexcept { return stop_; }

private:
    struct forward_stop {
        std::stop_source stop;
        void operator()() noexcept { stop.request_stop(); }
    };

    // Counts a child, from before its fiber is made until that has ended.
    struct child : impl::exit_hook {
        explicit child(scope& s) noexcept : owner{s} { s.enter(); }
        child(const child&) = delete;
        child& operator=(const child&) = delete;
        ~child() { owner.leave(); }
        scope& owner;
    };
    // Not a lambda, for the reason given in value_fiber.hpp.
    struct call {
        child* at;
        template <class F, class... Args>
        void operator()(F&& f, Args&&... args) {
            leave_at_exit(*at);
            at->owner.run(std::forward<F>(f), std::forward<Args>(args)...);
        }
    };

    template <class F, class... Args>
    void start(const fiber_options& options, F&& f, Args&&... args) {
        constexpr bool is_callable =
            impl::is_callable<F, Args...> || impl::is_callable<F, std::stop_token, Args...>;
        static_assert(
            is_callable,
            "a child's function must be callable with copies of its arguments, as rvalues");
        if constexpr (is_callable)
            start_checked(options, std::forward<F>(f), std::forward<Args>(args)...);
    }

    template <class F, class... Args>
    void start_checked(const fiber_options& options, F&& f, Args&&... args) {
        auto made = std::make_unique<child>(*this);
        fiber{options, call{made.get()}, std::forward<F>(f), std::forward<Args>(args)...}.detach();
        (void)made.release();  // The fiber owns it, and may have ended already.
    }

    // Not noexcept: pthread_exit() unwinds to the runtime, which says what to do instead.
    template <class F, class... Args>
    void run(F&& f, Args&&... args) {
        // Declared outside the handler, whose own hold on the exception ends with it.
        std::exception_ptr thrown;
        UMS_TRY {
            if constexpr (std::is_invocable_v<F, std::stop_token, Args...>)
                impl::invoke(std::forward<F>(f), get_stop_token(), std::forward<Args>(args)...);
            else
                impl::invoke(std::forward<F>(f), std::forward<Args>(args)...);
        }
        UMS_CATCH_FORCED_UNWIND()
        UMS_CATCH_ALL { thrown = std::current_exception(); }
        if (thrown) fail(std::move(thrown));
    }

    // The child registers this first, so it happens last at the child's end.
    UMS_EXPORT static void leave_at_exit(child& running) noexcept;
    UMS_EXPORT void enter() noexcept;
    UMS_EXPORT void leave() noexcept;
    UMS_EXPORT void fail(std::exception_ptr thrown) noexcept;
    UMS_EXPORT void wait() noexcept;

    impl::wait_list joiners_;
    // Guarded by joiners_.lock:
    std::size_t children_ = 0;
    std::exception_ptr first_;

    std::stop_source stop_;
    std::optional<std::stop_callback<forward_stop>> follow_;
};

}  // namespace ums
