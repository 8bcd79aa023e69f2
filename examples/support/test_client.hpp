// SPDX-License-Identifier: MIT
#pragma once

// test_client: the client that the servers' tests use; on a fiber.

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <ums/stream.hpp>

class test_client {
public:
    explicit test_client(const ums::net::endpoint& at)
        : stream_(ums::net::stream::connect(at).value()) {}

    void send(std::string_view text) { stream_.write_all(text).value(); }

    // Receives that many bytes, or what came before the end of the connection.
    std::string receive(std::size_t bytes) {
        while (buffer_.size() < bytes && more()) {
        }
        return cut(std::min(bytes, buffer_.size()));
    }
    // Receives up to and including `end`, or what came before the end of the connection.
    std::string receive_to(std::string_view end) {
        while (buffer_.find(end) == std::string::npos)
            if (!more()) return cut(buffer_.size());
        return cut(buffer_.find(end) + end.size());
    }
    std::string receive_all() { return receive(std::string::npos); }
    // Whether nothing comes for that time.
    bool is_silent_for(std::chrono::milliseconds time) {
        char c = 0;
        return buffer_.empty() &&
               ums::io::recv(stream_.fd(), &c, 1, MSG_PEEK, ums::deadline_after(time)).error() ==
                   std::errc::timed_out;
    }
    // Closes without a goodbye: the server gets a reset.
    void kill() {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        ASSERT_EQ(setsockopt(stream_.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
        (void)stream_.close();
    }
    ums::net::stream& stream() { return stream_; }

private:
    bool more() {
        char bytes[16 * 1024];
        const auto got = stream_.read(bytes, sizeof bytes);
        if (!got || *got == 0) return false;
        buffer_.append(bytes, *got);
        return true;
    }
    std::string cut(std::size_t bytes) {
        const std::string front = buffer_.substr(0, bytes);
        buffer_.erase(0, bytes);
        return front;
    }

    ums::net::stream stream_;
    std::string buffer_;
};
