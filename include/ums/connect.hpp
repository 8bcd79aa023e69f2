// SPDX-License-Identifier: MIT
#pragma once

// ums/connect.hpp: a connection to a host by its name.
//
//   ums::net::stream s = ums::net::connect("example.org", 80).value();
//
// The name's addresses are tried one after the other, IPv6 and IPv4 in turn, each a moment after the one before, or as soon
// as that has failed; the first that answers is taken and the others are given up (RFC 8305, "happy eyeballs"). So
// a network that swallows one kind of packets costs that moment, not a time-out.
//
// Blocking: parks the fiber; the name is looked up by the off-load pool (ums/resolve.hpp).
// Errors:   that of the look-up (resolve_category()), or of the last attempt that failed; timed_out,
//           operation_canceled.

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "ums/endpoint.hpp"
#include "ums/limits.hpp"
#include "ums/resolve.hpp"
#include "ums/stream.hpp"

namespace ums::net {

struct connect_options {
    // Between one attempt and the next.
    std::chrono::milliseconds attempt_delay{250};
    // AF_INET or AF_INET6: only such addresses.
    int family = AF_UNSPEC;
};

// The connection, or why there is none.
struct [[nodiscard]] connected {
    net::stream stream;
    std::error_code error;

    explicit operator bool() const noexcept { return !error; }
    // Throws std::system_error.
    [[nodiscard]] net::stream& value() & { return check(), stream; }
    [[nodiscard]] net::stream value() && { return check(), std::move(stream); }

private:
    void check() const {
        if (error) throw std::system_error{error};
    }
};

UMS_EXPORT connected connect(std::string_view host, std::uint16_t port, const limits& l = {},
                             const connect_options& o = {});

// The first of these that answers, in the order given. None: destination_address_required.
UMS_EXPORT connected connect(std::span<const endpoint> to, const limits& l = {},
                             const connect_options& o = {});

}  // namespace ums::net
