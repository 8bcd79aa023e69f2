// SPDX-License-Identifier: MIT
#pragma once

// ums/resolve.hpp: looks up the addresses of a host.
//
// Blocking: parks the fiber; the C library's getaddrinfo() runs in the off-load pool. A caller that
//           gives up leaves the call running there. A plain kernel thread calls getaddrinfo()
//           itself and blocks in it; the limits are ignored then.
// Errors:   in `error`: one of resolve_category(), which getaddrinfo() returned, or a system error,
//           timed_out, operation_canceled. Throws std::system_error if the pool has no thread and
//           cannot start one, and std::bad_alloc.
// Cost:     an off-loaded call (ums/offload.hpp) and a few allocations.

#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ums/endpoint.hpp"
#include "ums/limits.hpp"

namespace ums::net {

struct resolve_options {
    int family = AF_UNSPEC;  // AF_INET or AF_INET6: only such addresses.
    int type = SOCK_STREAM;  // The kind of socket to be connected or bound.
};

struct resolved {
    std::vector<endpoint> endpoints;  // Best first; not empty unless there is an error.
    impl::answer_error error;         // A std::error_code; `error()` is the same.

    explicit operator bool() const noexcept { return !error; }
    // Throws std::system_error if there is an error.
    [[nodiscard]] const std::vector<endpoint>& value() const;
};

// `host`: a name, or an address in numbers. `service`: a port number, or a name of /etc/services.
[[nodiscard]] UMS_EXPORT resolved resolve(std::string_view host, std::string_view service,
                                          const limits& l = {}, const resolve_options& o = {});

// The category of getaddrinfo()'s EAI_... numbers.
[[nodiscard]] UMS_EXPORT const std::error_category& resolve_category() noexcept;

}  // namespace ums::net
