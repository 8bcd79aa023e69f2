// SPDX-License-Identifier: MIT
#pragma once

// ums/resolve.hpp: the addresses of a host.
//
// Blocking: parks the fiber; the C library's getaddrinfo() runs in the off-load pool. One that gives up leaves it running there.
// Errors:   in a result: of resolve_category(), what getaddrinfo() said; or timed_out, operation_canceled.

#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ums/endpoint.hpp"
#include "ums/limits.hpp"

namespace ums::net {

struct resolve_options {
    int family = AF_UNSPEC;
    int type = SOCK_STREAM;
};

struct resolved {
    std::vector<endpoint> endpoints;  // Best first; not empty without an error.
    std::error_code error;

    explicit operator bool() const noexcept { return !error; }
    // Throws std::system_error.
    [[nodiscard]] const std::vector<endpoint>& value() const;
};

// `service`: a port number or a name of /etc/services.
[[nodiscard]] UMS_EXPORT resolved resolve(std::string_view host, std::string_view service,
                                          const limits& l = {}, const resolve_options& o = {});

// Of EAI_... numbers.
[[nodiscard]] UMS_EXPORT const std::error_category& resolve_category() noexcept;

}  // namespace ums::net
