// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/select.hpp: a case of a select without the type of its value.
//
// ums/select.hpp states the contract. src/sync/channel/select.cpp implements these functions.

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <utility>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/impl/channel.hpp"

namespace ums {

// One thing that a select waits for; the base of all cases. A case belongs to one select at a time,
// and the next may use it again. It is neither copied nor moved while a select uses it.
class select_case {
public:
    // How the case ended, if it was the one that happened: ok or closed.
    [[nodiscard]] channel_status status() const noexcept { return status_; }

protected:
    enum class kind : unsigned char { receive, send, time, stop, otherwise };

    explicit select_case(kind what) noexcept : kind_{what} {}
    select_case(const select_case& other) noexcept
        : run_{other.run_},
          value_{other.value_},
          kind_{other.kind_},
          channel_{other.channel_},
          at_{other.at_},
          token_{other.token_} {}
    select_case& operator=(const select_case&) = delete;
    ~select_case() = default;

    void (*run_)(select_case&) = nullptr;  // Calls the function of the case.
    // Where the value of a send is, or where a receive wants it (channel_calls::receive()).
    void* (*value_)(select_case&) = nullptr;

    kind kind_;
    channel_status status_ = channel_status::ok;
    impl::channel_state* channel_ = nullptr;
    deadline at_{};
    std::stop_token token_;

private:
    friend struct select_access;

    // While a select uses the case: links of the list of cases and of the list in the order of
    // their channels' addresses; and the node that waits in the channel, or the stop's callback.
    select_case* next_ = nullptr;
    select_case* next_locked_ = nullptr;
    alignas(8) std::byte node_[88];
};

struct selected {
    std::size_t index;      // The case that happened, counted from 0.
    channel_status status;  // The status of a send or a receive: ok or closed.

    operator std::size_t() const noexcept { return index; }
};

struct select_access {
    UMS_EXPORT static selected select(select_case* first, std::size_t n);

    static void chain(select_case& one, select_case* next) noexcept { one.next_ = next; }
    static void run(select_case& one) {
        if (one.run_ != nullptr) one.run_(one);
    }
    struct internal;
};

}  // namespace ums
