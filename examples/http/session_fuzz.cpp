// SPDX-License-Identifier: MIT

// Checks for any bytes that nothing breaks, and that the answers do not depend on how the bytes
// arrive. The first byte chooses the pieces.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "session.hpp"

namespace {

std::string talk(http::site& where, std::string_view input, std::size_t step) {
    http::session client{where};
    std::string buffer, said;
    for (std::size_t at = 0; at < input.size() && !client.is_over(); at += step) {
        buffer += input.substr(at, step);
        while (!buffer.empty() && !client.is_over()) {
            http::output out;
            const std::size_t taken = client.take(buffer, out);
            if (taken > buffer.size()) std::abort();
            buffer.erase(0, taken);
            said += out.text;
            if (taken == 0 && out.empty()) break;
        }
    }
    http::output out;
    if (!client.is_over()) client.time_out(out);
    said += out.text;
    // These differ: each answer has a Date, and whether 100 Continue comes depends on what had
    // arrived.
    for (std::size_t at = 0; (at = said.find("Date: ", at)) != std::string::npos;)
        said.erase(at, http::date_line::date_bytes);
    constexpr std::string_view interim = "HTTP/1.1 100 Continue\r\n\r\n";
    for (std::size_t at = 0; (at = said.find(interim, at)) != std::string::npos;)
        said.erase(at, interim.size());
    // If several things are wrong, another one may be seen first.
    const std::size_t last = said.rfind("HTTP/1.1 4");
    if (last != std::string::npos && said.find("Connection: close", last) != std::string::npos)
        said.replace(last, std::string::npos, "refused");
    return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    static http::site where;
    where.limits = {.target_bytes = 64, .head_bytes = 512, .body_bytes = 256, .framing_bytes = 64};
    if (bytes == 0) return 0;
    const std::string_view input{reinterpret_cast<const char*>(data) + 1, bytes - 1};
    const std::string whole = talk(where, input, input.size() + 1);
    if (talk(where, input, 1) != whole || talk(where, input, data[0] % 61 + 2u) != whole)
        std::abort();
    return 0;
}
