// SPDX-License-Identifier: MIT
#pragma once

// request: the head of a request, as views of the bytes it came in.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace http {

struct header {
    std::string_view name, value;
};

// The methods this server knows; `other` stands for the rest of the valid tokens.
enum class method { get, head, post, options, other };

struct request {
    static constexpr std::size_t headers_max = 100;

    http::method method = http::method::other;
    std::string_view target;  // As the client sent it.
    std::string_view path;    // The path of the target: begins with '/', or is "*".
    std::string_view query;   // What follows the '?'.
    bool is_http_1_1 = true;  // Otherwise HTTP/1.0.
    bool keep_alive = true;
    bool expects_continue = false;
    bool has_body = false;
    bool has_conditions = false;  // A header that begins with "If-".

    // Makes it as new, but does not touch the headers' memory.
    void clear() noexcept {
        method = http::method::other;
        target = path = query = {};
        is_http_1_1 = keep_alive = true;
        expects_continue = has_body = has_conditions = false;
        count_ = 0;
    }

    // The first header of that name, in any case; empty if there is none.
    [[nodiscard]] std::string_view find(std::string_view name) const noexcept;
    [[nodiscard]] std::size_t header_count() const noexcept { return count_; }
    [[nodiscard]] header operator[](std::size_t i) const noexcept {
        const entry& e = headers_[i];
        return {{e.name, e.name_bytes}, {e.value, e.value_bytes}};
    }

    // For the parser. Returns false if there are too many headers.
    bool add_name(std::string_view name) noexcept;
    void set_value(std::string_view value) noexcept {
        headers_[count_ - 1].value = value.data();
        headers_[count_ - 1].value_bytes = static_cast<std::uint32_t>(value.size());
    }

private:
    // Not string_views, because nothing is to be written to the unused ones.
    struct entry {
        const char* name;
        const char* value;
        std::uint32_t name_bytes, value_bytes;
    };
    std::array<entry, headers_max> headers_;  // The first count_ of them are set.
    std::size_t count_ = 0;
};

// Compares names of headers, schemes, and the like: ASCII letters of both cases are equal.
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;
// The text without the blanks around it.
[[nodiscard]] std::string_view trimmed(std::string_view s) noexcept;

}  // namespace http
