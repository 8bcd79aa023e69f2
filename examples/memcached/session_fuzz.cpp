// SPDX-License-Identifier: MIT

// Checks for any bytes that nothing breaks, and that the replies do not depend on how the bytes
// arrive. The first byte chooses the pieces.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "session.hpp"

namespace {

struct conversation {
    std::string said;
    bool was_ended;  // The server or a command ended the session.
};

conversation talk(std::string_view input, std::size_t step) {
    memcached::store items{{.memory_bytes = 1 << 20, .item_bytes_max = 64 << 10}};
    memcached::clock time = memcached::clock::stopped();
    memcached::service all{items, time};
    std::string said;
    memcached::session client{all};
    memcached::replies out;
    std::string buffer;
    for (std::size_t at = 0; at < input.size() && !client.is_over(); at += step) {
        std::string_view more = input.substr(at, step);
        if (const auto into = client.wanted(); buffer.empty() && !into.empty() && step % 2 == 0) {
            const std::size_t n = std::min(into.size(), more.size());
            std::memcpy(into.data(), more.data(), n);
            client.filled(n, out);
            more.remove_prefix(n);
        }
        buffer += more;
        for (bool goes_on = true; goes_on && !client.is_over();) {
            const std::size_t taken = client.take(buffer, out);
            if (taken > buffer.size()) std::abort();
            buffer.erase(0, taken);
            goes_on = taken != 0 && !buffer.empty();
            iovec pieces[3];
            while (const unsigned n = out.pieces(pieces, 3)) {
                // Sends one byte less than there is, as a socket may.
                std::size_t bytes = 0;
                for (unsigned i = 0; i < n; ++i) bytes += pieces[i].iov_len;
                if (bytes > 1) --bytes;
                std::size_t left = bytes;
                for (unsigned i = 0; i < n && left != 0; ++i) {
                    const std::size_t part = std::min(left, pieces[i].iov_len);
                    said.append(static_cast<const char*>(pieces[i].iov_base), part);
                    left -= part;
                }
                out.sent(bytes);
            }
            out.clear();
        }
    }
    return {said, client.is_over()};
}

bool has_long_line(std::string_view input) {
    for (std::size_t begin = 0; begin < input.size();) {
        const std::size_t end = std::min(input.find('\n', begin), input.size());
        if (end - begin > 2048) return true;
        begin = end + 1;
    }
    return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    if (bytes == 0) return 0;
    const std::string_view input{reinterpret_cast<const char*>(data) + 1, bytes - 1};
    const conversation whole = talk(input, input.size() + 1);
    // Statistics count the time of the pieces.
    if (input.find("stats") != std::string_view::npos) return 0;
    const conversation pieces = talk(input, data[0] % 61 + 2u);
    // A line that is too long ends the conversation before the line's end has come, if it comes in
    // pieces.
    const bool may_be_shorter = pieces.was_ended && has_long_line(input);
    if (may_be_shorter ? !whole.said.starts_with(pieces.said) : whole.said != pieces.said)
        std::abort();
    return 0;
}
