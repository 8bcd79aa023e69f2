// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/shared_state.hpp: the state that a promise and its futures share: a value or an
// exception, the waiters, and the count of references.
//
// ums/future.hpp states the contract. src/sync/shared_state.cpp implements these functions.

#include <concepts>
#include <cstdint>
#include <cxxabi.h>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/impl/at_exit.hpp"
#include "ums/impl/exceptions.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums::impl {

[[noreturn]] UMS_EXPORT void throw_future_error(std::future_errc code);

class UMS_EXPORT shared_state {
public:
    shared_state() noexcept = default;
    shared_state(const shared_state&) = delete;
    shared_state& operator=(const shared_state&) = delete;

    void add_reference() noexcept;
    void drop_reference() noexcept;

    // --- The side that provides. It holds a reference until the call has returned. ---

    // Takes the right to store the outcome. Throws promise_already_satisfied.
    void claim();
    void unclaim() noexcept;  // The value's constructor threw.
    void set_error(std::exception_ptr error) noexcept { error_ = std::move(error); }
    void set_broken() noexcept;  // Stores broken_promise.
    // Called after the outcome was stored, by the caller that claimed it.
    void make_ready() noexcept;
    // Makes it ready when the caller ends. The outcome must be stored before.
    void make_ready_at_exit() noexcept;
    // The provider goes away: stores broken_promise, unless the outcome was claimed.
    void abandon() noexcept;
    // Marks the future as given away. Throws future_already_retrieved from the second time on.
    void retrieve();

    // --- The side that waits ---

    [[nodiscard]] bool is_ready() const noexcept;
    // Whether a wait() would run the function.
    [[nodiscard]] bool is_deferred() const noexcept;
    void wait();
    // Return whether it is ready. They do not run a deferred function.
    [[nodiscard]] bool wait_until(deadline limit);
    [[nodiscard]] bool wait_or_stop(const std::stop_token& stop,
                                    deadline limit = (deadline::max)());

    // Requires: ready.
    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }
    // The caller alone uses the outcome: afterwards only the thrown exception refers to it.
    void rethrow_moved() {
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

protected:
    virtual ~shared_state();

    // Before it is shared:
    void defer() noexcept;  // wait() calls run_deferred(), once.
    // The destructor joins the fiber that provides, which therefore holds no reference.
    void join_when_dropped() noexcept { is_joined_ = true; }

private:
    virtual void run_deferred();
    virtual void dispose() noexcept;

    static void run_exit_hook(exit_hook& self) noexcept;
    struct ready_hook : exit_hook {
        shared_state* state = nullptr;
    };

    wait_list waiters_;
    // Atomic:
    std::uint32_t word_ = 0;
    std::uint32_t references_ = 1;
    // Belong to the claimant until it is ready; then read-only:
    bool is_joined_ = false;
    std::exception_ptr error_;
    ready_hook at_exit_;
};

// A counted reference to a state.
template <class State>
class state_ptr {
public:
    constexpr state_ptr() noexcept = default;
    // Takes over the reference that a new state is made with.
    explicit state_ptr(State* made) noexcept : state_{made} {}
    state_ptr(const state_ptr& other) noexcept : state_{other.state_} {
        if (state_ != nullptr) state_->add_reference();
    }
    state_ptr(state_ptr&& other) noexcept : state_{std::exchange(other.state_, nullptr)} {}
    template <std::derived_from<State> Derived>
    state_ptr(state_ptr<Derived>&& other) noexcept : state_{other.detach()} {}
    state_ptr& operator=(state_ptr other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~state_ptr() {
        if (state_ != nullptr) state_->drop_reference();
    }

    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
    [[nodiscard]] State* operator->() const noexcept { return state_; }
    [[nodiscard]] State* detach() noexcept { return std::exchange(state_, nullptr); }

    // Returns itself if it refers to a state. Throws no_state.
    [[nodiscard]] const state_ptr& checked() const {
        if (state_ == nullptr) throw_future_error(std::future_errc::no_state);
        return *this;
    }

private:
    State* state_ = nullptr;
};

template <class T>
class value_state : public shared_state {
public:
    template <class... Args>
    void emplace(Args&&... args) {
        if constexpr (std::is_reference_v<T>)
            value_.emplace(std::addressof(args)...);
        else
            value_.emplace(std::forward<Args>(args)...);
    }

    // Stores what f() returns or throws. A plain thread that ends in f(), cancelled or by
    // pthread_exit(), unwinds through this and leaves broken_promise.
    template <class F>
    void fill(F&& f) {
        // Declared outside the handler, whose own hold on the exception ends with it.
        std::exception_ptr thrown;
        UMS_TRY {
            if constexpr (std::is_void_v<T>)
                f();
            else
                emplace(f());
        }
        UMS_CATCH_FORCED_UNWIND(set_broken();)
        UMS_CATCH_ALL { thrown = std::current_exception(); }
        if (thrown) set_error(std::move(thrown));
    }

    // Requires: ready, with a value.
    [[nodiscard]] decltype(auto) value() noexcept {
        if constexpr (std::is_reference_v<T>)
            return static_cast<T>(**value_);
        else if constexpr (!std::is_void_v<T>)
            return (*value_);
    }

private:
    struct nothing {};
    using stored = std::conditional_t<std::is_reference_v<T>, std::add_pointer_t<T>,
                                      std::conditional_t<std::is_void_v<T>, nothing, T>>;

    std::optional<stored> value_;
};

// A state whose memory comes from Alloc.
template <class State, class Alloc>
class allocated_state final : public State {
    using own_alloc = typename std::allocator_traits<Alloc>::template rebind_alloc<allocated_state>;
    using traits = std::allocator_traits<own_alloc>;

public:
    [[nodiscard]] static State* make(const Alloc& alloc) {
        own_alloc from{alloc};
        allocated_state* at = std::to_address(traits::allocate(from, 1));
        return ::new (static_cast<void*>(at)) allocated_state{from};
    }

private:
    explicit allocated_state(const own_alloc& from) noexcept : from_{from} {}
    ~allocated_state() override = default;

    void dispose() noexcept override {
        own_alloc from = from_;
        const auto at = std::pointer_traits<typename traits::pointer>::pointer_to(*this);
        this->~allocated_state();
        traits::deallocate(from, at, 1);
    }

    own_alloc from_;
};

}  // namespace ums::impl
