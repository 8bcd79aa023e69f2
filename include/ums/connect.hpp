// SPDX-License-Identifier: MIT
#pragma once

// ums/connect.hpp: connects to a host by its name.
//
//   ums::net::stream s = ums::net::connect("example.org", 80).value();
//
// connect() tries the name's addresses one after the other, IPv6 and IPv4 in turn. An attempt
// starts a moment after the one before, or as soon as that one has failed. The first address that
// answers wins, and the other attempts are given up (RFC 8305, "happy eyeballs"). So a network that
// swallows one kind of packet costs that moment, not a time-out.
//
// Blocking: parks the fiber; the off-load pool looks the name up (ums/resolve.hpp). A plain thread
//           blocks, and its limits do not bound the look-up.
// Errors:   in `error`: that of the look-up (resolve_category()) or of the last attempt that
//           failed; timed_out, operation_canceled, not_enough_memory. Throws std::system_error if
//           the pool has no thread and cannot start one.
// Cost:     a socket for each attempt under way.

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "ums/endpoint.hpp"
#include "ums/impl/exceptions.hpp"
#include "ums/limits.hpp"
#include "ums/resolve.hpp"
#include "ums/stream.hpp"

namespace ums::net {

struct connect_options {
    // Time from one attempt to the next.
    std::chrono::milliseconds attempt_delay{250};
    // AF_INET or AF_INET6 allows only addresses of that family.
    int family = AF_UNSPEC;
};

// The connection, or the reason why there is none.
struct [[nodiscard]] connected {
    net::stream stream;
    impl::answer_error error;  // A std::error_code; `error()` is the same.

    explicit operator bool() const noexcept { return !error; }
    // Throws std::system_error if there is no connection.
    [[nodiscard]] net::stream& value() & { return check(), stream; }
    [[nodiscard]] net::stream value() && { return check(), std::move(stream); }

private:
    void check() const {
        if (error) UMS_THROW(std::system_error{error});
    }
};

// Connects to `host`, a name or an address in numbers. TCP connections have no Nagle delay.
UMS_EXPORT connected connect(std::string_view host, std::uint16_t port, const limits& l = {},
                             const connect_options& o = {});

// Connects to the first of `to` that answers, tried in the order given. An empty `to` gives
// destination_address_required.
UMS_EXPORT connected connect(std::span<const endpoint> to, const limits& l = {},
                             const connect_options& o = {});

}  // namespace ums::net
