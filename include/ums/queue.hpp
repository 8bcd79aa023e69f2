// SPDX-License-Identifier: MIT
#pragma once

// ums/queue.hpp: a thread-safe first-in, first-out queue whose pop() waits. It is a channel with
// the names of a queue.
//
//   ums::concurrent_queue<T> q;       push() never waits
//   ums::concurrent_queue<T> q{100};  push() waits while 100 elements are in it
//
// Blocking, Fairness, Ordering, Lifetime, Errors, Cost: as ums/channel.hpp. channel() returns the
// channel, for a select, a timed form, a stop token, or a range-for.

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "ums/channel.hpp"

namespace ums {

template <class T>
class concurrent_queue {
public:
    using value_type = T;
    using size_type = std::size_t;

    // Requires: capacity is not 0 (std::invalid_argument).
    explicit concurrent_queue(size_type capacity = unbounded)
        : channel_{capacity != 0 ? capacity : impl::refuse_empty_queue()} {}

    // Waits for room. False: the queue is closed, and the value stays with the caller.
    bool push(T&& value) { return channel_.send(std::move(value)) == channel_status::ok; }
    bool push(const T& value) requires std::is_copy_constructible_v<T> {
        return channel_.send(value) == channel_status::ok;
    }
    template <class... Args>
    bool emplace(Args&&... args) {
        return push(T(std::forward<Args>(args)...));
    }
    // Does not wait. False: the queue is closed or full, and the value stays with the caller.
    [[nodiscard]] bool try_push(T&& value) {
        return channel_.try_send(std::move(value)) == channel_status::ok;
    }
    [[nodiscard]] bool try_push(const T& value) requires std::is_copy_constructible_v<T> {
        return channel_.try_send(value) == channel_status::ok;
    }

    // Waits for an element. Empty: the queue is closed, and everything has been popped.
    [[nodiscard]] std::optional<T> pop() { return channel_.receive(); }
    // Does not wait. Empty: the queue has no element.
    [[nodiscard]] std::optional<T> try_pop() {
        auto got = channel_.try_receive();
        return static_cast<std::optional<T>&&>(got);  // See received.
    }

    // Refuses further elements and wakes all waiters.
    void close() noexcept { channel_.close(); }

    // As those of the channel: another fiber may change the answer at once.
    [[nodiscard]] bool is_closed() const noexcept { return channel_.is_closed(); }
    [[nodiscard]] bool empty() const noexcept { return channel_.empty(); }
    [[nodiscard]] size_type size() const noexcept { return channel_.size(); }
    [[nodiscard]] size_type capacity() const noexcept { return channel_.capacity(); }

    // The channel itself. It lives as long as the queue.
    [[nodiscard]] ums::channel<T>& channel() noexcept { return channel_; }

private:
    ums::channel<T> channel_;
};

}  // namespace ums
