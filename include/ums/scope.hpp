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
// Options that the constructor is given are those of each child that is spawned without any:
//
//   ums::scope all{{.launch = ums::launch::dispatch}};
//
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
// Errors:    spawn() throws std::system_error as the constructor of ums::fiber. The first call for
//            a stop token, or of spawn() with a function that takes one, may throw std::bad_alloc.
//            join() throws what the first child threw, once. A child that joins its
//            own scope waits for ever.
// Cost:      for each child a fiber and one read-modify-write, without allocating; one more for a
//            child that is not spawned by the fiber that made the scope. A join() that has to wait
//            takes a lock. The first stop token costs an allocation.

#include <cxxabi.h>
#include <exception>
#include <new>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "ums/export.hpp"
#include "ums/fiber.hpp"
#include "ums/impl/at_exit.hpp"
#include "ums/impl/child_count.hpp"
#include "ums/impl/exceptions.hpp"
#include "ums/impl/other_than.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums {

class scope {
public:
    scope() noexcept : owner_{this_fiber()} {}
    // The children are made with these options. The name is copied by each spawn(), not here: it
    // must live as long as children are spawned.
    explicit scope(const fiber_options& children) : scope{} {
        launch_ = children.launch;
        if (impl::beyond_launch(&children) != nullptr) options_ = children;
    }
    // A stop of `parent` also stops the children.
    explicit scope(std::stop_token parent) : scope{} { follow(std::move(parent)); }
    scope(const fiber_options& children, std::stop_token parent) : scope{children} {
        follow(std::move(parent));
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    UMS_EXPORT ~scope();

    // Runs f(args...), or f(get_stop_token(), args...), on a new fiber, with decayed copies that
    // the caller makes.
    template <impl::other_than<fiber_options> F, class... Args>
    void spawn(F&& f, Args&&... args) {
        start(options_ ? &*options_ : nullptr, launch_, std::forward<F>(f),
              std::forward<Args>(args)...);
    }
    // The same with these options in place of the scope's.
    template <class F, class... Args>
    void spawn(const fiber_options& options, F&& f, Args&&... args) {
        start(impl::beyond_launch(&options), options.launch, std::forward<F>(f),
              std::forward<Args>(args)...);
    }

    // Waits until no child is left, then rethrows the first exception, if any was thrown since the
    // last join().
    UMS_EXPORT void join();

    // Requests a stop of all children; each decides what that means to it.
    UMS_EXPORT bool request_stop() noexcept;
    [[nodiscard]] std::stop_token get_stop_token() const { return get_stop_source().get_token(); }
    [[nodiscard]] UMS_EXPORT std::stop_source get_stop_source() const;

private:
    struct forward_stop {
        scope& to;
        void operator()() noexcept { to.request_stop(); }
    };

    // Kept on the child's stack. Its hook says that all of the child is over.
    struct child : impl::exit_hook {
        explicit child(scope& s) noexcept : owner{s} {}
        scope& owner;
    };
    // Not a lambda, for the reason given in value_fiber.hpp.
    struct call {
        child* at;
        template <class F, class... Args>
        void operator()(F&& f, Args&&... args) {
            at->owner.run(std::forward<F>(f), std::forward<Args>(args)...);
        }
    };

    template <class F, class... Args>
    void start(const fiber_options* options, launch when, F&& f, Args&&... args) {
        constexpr bool is_callable =
            impl::is_callable<F, Args...> || impl::is_callable<F, std::stop_token, Args...>;
        static_assert(
            is_callable,
            "a child's function must be callable with copies of its arguments, as rvalues");
        if constexpr (is_callable)
            start_checked(options, when, std::forward<F>(f), std::forward<Args>(args)...);
    }

    template <class F, class... Args>
    void start_checked(const fiber_options* options, launch when, F&& f, Args&&... args) {
        using bound = impl::bound<call, std::decay_t<F>, std::decay_t<Args>...>;
        // The child may not find memory for it, and nobody could be told.
        if constexpr (impl::is_callable<F, std::stop_token, Args...>) (void)get_stop_source();
        impl::spawning begun{options, sizeof(bound), alignof(bound), impl::kept_bytes<child>};
        auto* const made = ::new (impl::kept_room<child>(begun.fiber())) child{*this};
        void* const at = ::new (begun.storage())
            bound(std::in_place, call{made}, std::forward<F>(f), std::forward<Args>(args)...);
        begin(begun.release(), &bound::run_in_place, at, when);
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

    void follow(std::stop_token parent) { follow_.emplace(std::move(parent), forward_stop{*this}); }
    [[nodiscard]] UMS_EXPORT static const void* this_fiber() noexcept;  // Null for a thread.
    // Counts the child, and lets its fiber begin.
    UMS_EXPORT void begin(sched::fiber* f, void (*function)(void*), void* callable,
                          launch when) noexcept;
    static void leave(impl::exit_hook& ended) noexcept;
    UMS_EXPORT void fail(std::exception_ptr thrown) noexcept;
    void wait() noexcept;

    impl::child_count count_;
    // The fiber that made it, while there is one. Its children are counted in words of its own. A
    // fiber on the same stack comes after that one's end, and may take its place.
    const void* const owner_;

    mutable impl::wait_list joiners_;
    // Guarded by joiners_.lock:
    std::exception_ptr first_;
    // Made when somebody asks for a token; until then the request is kept.
    mutable std::stop_source stop_{std::nostopstate};
    bool is_stop_requested_ = false;

    // Of children without options of their own; of options that say nothing else there are none.
    launch launch_ = launch::post;
    std::optional<fiber_options> options_;
    std::optional<std::stop_callback<forward_stop>> follow_;
};

}  // namespace ums
