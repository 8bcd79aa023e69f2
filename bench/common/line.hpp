// SPDX-License-Identifier: MIT
#pragma once

// bench/common/line.hpp: the one line of JSON a peer answers with.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

namespace bench {

class line {
public:
    line& add(std::string_view key, std::uint64_t value) { return put(key, std::to_string(value)); }

    line& add(std::string_view key, double value) {
        if (!std::isfinite(value)) throw std::runtime_error{std::string{key} + " is not a number"};
        char text[64];
        std::snprintf(text, sizeof text, "%.6g", value);
        return put(key, text);
    }

    void print() const {
        if (std::printf("{%s}\n", text_.c_str()) < 0 || std::fflush(stdout) != 0)
            throw std::runtime_error{"cannot write the result to stdout"};
    }

private:
    line& put(std::string_view key, const std::string& value) {
        if (!text_.empty()) text_ += ',';
        text_.append("\"").append(key).append("\":").append(value);
        return *this;
    }

    std::string text_;
};

}  // namespace bench
