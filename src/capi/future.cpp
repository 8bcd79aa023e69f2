// SPDX-License-Identifier: MIT

// A promise and its futures share an outcome: bytes, whose number is known when it is made, or an
// error number. A promise that is destroyed without either leaves an exception, as in C++; here it
// becomes -EPIPE.

#include "ums/future.hpp"

#include <memory>

#include "base/assert.hpp"
#include "capi/call.hpp"
#include "capi/fiber_options.hpp"
#include "sched/fiber/exit_request.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

class outcome : public impl::shared_state {
public:
    explicit outcome(std::size_t bytes)
        : bytes_{bytes}, value_{std::make_unique<std::byte[]>(bytes)} {}

    // Called by the claimant:
    void* value() noexcept { return value_.get(); }
    void set_value(const void* from) noexcept {
        if (bytes_ != 0) std::memcpy(value(), from, bytes_);
    }
    void set_error_number(int error) noexcept { error_ = error; }

    // Requires: ready.
    int get(void* to) const noexcept {
        UMS_DEBUG_ASSERT(is_ready(), "an outcome was read before it was there");
        try {
            rethrow();
        } catch (const std::future_error&) {
            return -EPIPE;
        }
        if (error_ == 0 && to != nullptr && bytes_ != 0) std::memcpy(to, value_.get(), bytes_);
        return error_;
    }

private:
    const std::size_t bytes_;
    const std::unique_ptr<std::byte[]> value_;
    int error_ = 0;
};

using outcome_ptr = impl::state_ptr<outcome>;

// Whether the caller may store the outcome.
bool claim(const outcome_ptr& state) noexcept {
    try {
        state->claim();
        return true;
    } catch (const std::future_error&) {
        return false;
    }
}

}  // namespace

struct ums_promise {
    explicit ums_promise(outcome_ptr of) noexcept : state{std::move(of)} {}
    ~ums_promise() {
        if (state) state->abandon();
    }
    ums_promise(const ums_promise&) = delete;
    ums_promise& operator=(const ums_promise&) = delete;

    outcome_ptr state;
};

struct ums_future {
    outcome_ptr state;
};

namespace {

// A waiter may destroy the promise as soon as the outcome is there; the caller holds the state.
template <class Store>
int provide(ums_promise_t* promise, Store store) noexcept {
    const outcome_ptr state = promise->state;
    UMS_DEBUG_ASSERT(state, "a promise was kept that was moved or destroyed");
    if (!claim(state)) return -EALREADY;
    UMS_DEBUG_ASSERT(!state->is_ready(), "an outcome was there before the promise was kept");
    store(*state.operator->());
    state->make_ready();
    return 0;
}

}  // namespace

int ums_promise_create(ums_promise_t** made, ums_future_t** future, size_t value_bytes) {
    *made = nullptr;
    *future = nullptr;
    return call([&] {
        outcome_ptr state{new outcome{value_bytes}};
        auto provides = std::make_unique<ums_promise>(state);
        *future = new ums_future{std::move(state)};
        *made = provides.release();
    });
}

void ums_promise_destroy(ums_promise_t* promise) { delete promise; }

int ums_promise_set(ums_promise_t* promise, const void* value) {
    return provide(promise, [value](outcome& o) { o.set_value(value); });
}

int ums_promise_fail(ums_promise_t* promise, int error) {
    if (error >= 0) return -EINVAL;
    return provide(promise, [error](outcome& o) { o.set_error_number(error); });
}

int ums_future_get(ums_future_t* future, void* value) {
    future->state->wait();
    return future->state->get(value);
}

int ums_future_get_until(ums_future_t* future, void* value, int64_t deadline, ums_stop_t* stop) {
    const int error =
        wait_until(deadline, stop, [future](ums::deadline limit, const std::stop_token* token) {
            return token == nullptr ? future->state->wait_until(limit)
                                    : future->state->wait_or_stop(*token, limit);
        });
    return error != 0 ? error : future->state->get(value);
}

bool ums_future_is_ready(const ums_future_t* future) { return future->state->is_ready(); }

int ums_future_copy(ums_future_t** made, const ums_future_t* future) {
    *made = nullptr;
    return call([&] { *made = new ums_future{future->state}; });
}

void ums_future_destroy(ums_future_t* future) { delete future; }

int ums_async(ums_future_t** made, const ums_fiber_options_t* options, size_t value_bytes,
              int (*function)(void*, void*), void* argument) {
    *made = nullptr;
    fiber_options chosen;
    if (const int error = to_options(chosen, options); error != 0) return error;
    if (function == nullptr) return -EINVAL;
    return call([&] {
        outcome_ptr state{new outcome{value_bytes}};
        auto future = std::make_unique<ums_future>(state);
        fiber{chosen,
              [function, argument](const outcome_ptr& own) {
                  own->make_ready_at_exit();  // After all the others of its kind.
                  try {
                      own->set_error_number(std::min(0, function(argument, own->value())));
                  } catch (const sched::exit_request&) {
                      own->set_error_number(-EPIPE);
                  }
              },
              std::move(state)}
            .detach();
        *made = future.release();
    });
}
