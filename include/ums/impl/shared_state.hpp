// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/shared_state.hpp: what a promise and its futures share: a value or an exception, who
// waits for it, and who holds it. See src/sync/shared_state.cpp.

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

    // The right to store the outcome. Throws promise_already_satisfied.
    void claim();
    void unclaim() noexcept;  // The value's constructor threw.
    void set_error(std::exception_ptr error) noexcept { error_ = std::move(error); }
    void set_broken() noexcept;  // broken_promise.
    // After the outcome was stored, by who claimed it.
    void make_ready() noexcept;
    // The outcome is stored before the caller ends.
    void make_ready_at_exit() noexcept;
    // Nobody will provide any more: broken_promise, unless it was claimed.
    void abandon() noexcept;
    // Throws future_already_retrieved from the second time on.
    void retrieve();

    // --- The side that waits ---

    [[nodiscard]] bool is_ready() const noexcept;
    // Whether a wait() would run the function.
    [[nodiscard]] bool is_deferred() const noexcept;
    void wait();
    // Whether it is ready. These do not run a deferred function.
    [[nodiscard]] bool wait_until(deadline limit);
    [[nodiscard]] bool wait_or_stop(const std::stop_token& stop, deadline limit = deadline::max());

    // Requires: ready.
    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }
    // The caller alone uses the outcome: nothing but what is thrown holds on to it.
    void rethrow_moved() {
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

protected:
    virtual ~shared_state();

    // Before it is shared:
    void defer() noexcept;  // wait() calls run_deferred(), once.
    // Its destructor joins the fiber that provides, which therefore holds no reference.
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
    // Of who has claimed it, until it is ready; then read-only:
    bool is_joined_ = false;
    std::exception_ptr error_;
    ready_hook at_exit_;
};

// A reference.
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
    template <class Derived>
    requires std::is_base_of_v<State, Derived> state_ptr(state_ptr<Derived>&& other)
    noexcept : state_{other.detach()} {}
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

    // Itself, if there is one. Throws no_state.
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

    // What f() returns or throws. A plain thread that ends in f(), cancelled or by pthread_exit(),
    // unwinds through this: broken_promise.
    template <class F>
    void fill(F&& f) {
        std::exception_ptr thrown;  // Out of the handler: its own hold on the exception ends with
                                    // it.
        try {
            if constexpr (std::is_void_v<T>)
                f();
            else
                emplace(f());
        } catch (abi::__forced_unwind&) {
            set_broken();
            throw;
        } catch (...) {
            thrown = std::current_exception();
        }
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

// A state of which the memory is Alloc's.
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
