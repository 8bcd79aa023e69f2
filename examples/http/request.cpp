// SPDX-License-Identifier: MIT
#include "request.hpp"

namespace http {

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
    if (a.size() != b.size()) return false;
    if (a == b) return true;  // This is the usual case.
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    };
    for (std::size_t i = 0; i < a.size(); ++i)
        if (lower(a[i]) != lower(b[i])) return false;
    return true;
}

std::string_view trimmed(std::string_view s) noexcept {
    const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
    while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
    return s;
}

std::string_view request::find(std::string_view name) const noexcept {
    for (std::size_t i = 0; i < count_; ++i)
        if (equal_ignoring_case((*this)[i].name, name)) return (*this)[i].value;
    return {};
}

bool request::add_name(std::string_view name) noexcept {
    if (count_ == headers_max) return false;
    headers_[count_++] = {name.data(), nullptr, static_cast<std::uint32_t>(name.size()), 0};
    return true;
}

}  // namespace http
