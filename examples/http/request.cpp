// SPDX-License-Identifier: MIT
#include "request.hpp"

#include <strings.h>

namespace http {

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view request::find(std::string_view name) const noexcept {
    for (std::size_t i = 0; i < count_; ++i)
        if (equal_ignoring_case(headers_[i].name, name)) return headers_[i].value;
    return {};
}

bool request::add_name(std::string_view name) noexcept {
    if (count_ == headers_max) return false;
    headers_[count_++] = {name, {}};
    return true;
}

}  // namespace http
