// SPDX-License-Identifier: MIT
#pragma once

// bench/servers/load.hpp: the load of a server: N connections, each of which sends a batch of
// requests, waits for all responses, and sends the next batch.
//
// First all connections are made, a bounded number at a time (more than the server's backlog would
// be answered with SYN cookies and then with resets), and each is served once. Then all run. After
// a warm-up the window is open for `ms`, and until as many batches have ended as there are
// connections. Only batches that end in the window are counted, and the server's CPU time is taken
// at its two ends. The time of a request is that of its batch.
//
// Connections have addresses of 127.0.0.0/8 as their sources, some thousands each, because an
// address has only so many ports. The load is an epoll loop on one thread, not fibers, because the
// load of ums must not have the faults of ums.
//
// A Dialogue says what to send: batch(n, out) appends a batch of n requests, response_bytes() is
// the length of a response, which is always the same, and check(first, last) sees the first and the
// last bytes of what came back.

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "../common/listen.hpp"
#include "../common/peer.hpp"
#include "histogram.hpp"
#include "watched_process.hpp"

namespace bench {

inline sockaddr_in loopback(std::uint32_t host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host);
    address.sin_port = htons(port);
    return address;
}

// Makes a socket with the address whose turn it is at `index`.
inline int make_socket(std::uint64_t index, int flags) {
    // Less than half of the ports there are, because with more in use connect() searches for
    // milliseconds.
    constexpr std::uint64_t each = 10'000;
    const int socket = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), "socket");
    const auto from = loopback(static_cast<std::uint32_t>(index / each), 0);
    const int on = 1;
    checked(setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on),
            "IP_BIND_ADDRESS_NO_PORT");
    checked(bind(socket, reinterpret_cast<const sockaddr*>(&from), sizeof from), "bind");
    send_at_once(socket);
    return socket;
}

// Returns a connection to 127.0.0.1, still being made; already made if the flags have no
// SOCK_NONBLOCK.
inline int connect_to(std::uint16_t port, std::uint64_t index, int flags) {
    const int socket = make_socket(index, flags);
    const auto to = loopback(0, port);
    if (connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) < 0 &&
        errno != EINPROGRESS)
        checked(-1, "connect");
    return socket;
}

struct load_settings {
    std::uint16_t port;
    std::uint64_t server;  // The id of its process.
    std::uint64_t connections;
    std::uint64_t pipeline;
    std::uint64_t window_ns;
    bool is_idle;  // Nothing more is sent once every connection was served.

    explicit load_settings(cell& in)
        : port{static_cast<std::uint16_t>(in.number("port", 0, 1, 65535))},
          server{in.number("server", 0)},
          connections{in.number("connections", 1, 1, 1'000'000)},
          pipeline{in.number("pipeline", 1, 1, 1024)},
          window_ns{in.number("ms", 1000) * 1'000'000},
          is_idle{false} {}
};

// Raises the limit of descriptors, and throws if it is still too low.
inline void allow_descriptors(std::uint64_t connections) {
    const auto needed = connections + 20;
    if (raise_descriptor_limit() < needed)
        throw std::runtime_error{"it needs " + std::to_string(needed) +
                                 " descriptors, which the limit does not allow"};
}

// A window of time, from its construction to add_to().
class window {
public:
    explicit window(const watched_process& server)
        : server_{server}, cpu_ns_{server.cpu_ns()}, begin_ns_{now_ns()} {}

    // `times` are those of the batches that ended in the window, at least one, of `pipeline`
    // requests each.
    void add_to(line& out, const histogram& times, std::uint64_t pipeline) const {
        const auto ns = now_ns() - begin_ns_;
        const auto cpu_ns = server_.cpu_ns() - cpu_ns_;
        const auto requests = static_cast<double>(times.count() * pipeline);
        out.add("ops_per_s", requests / static_cast<double>(ns) * 1e9);
        out.add("cpu_us_per_request", static_cast<double>(cpu_ns) / requests / 1000);
        out.add("p50_us", times.us_at(0.5)).add("p99_us", times.us_at(0.99));
        out.add("p999_us", times.us_at(0.999));
    }

private:
    const watched_process& server_;
    std::uint64_t cpu_ns_;
    std::uint64_t begin_ns_;
};

// Whether the dialogue expects what came back. `at` is how much had come before.
template <class Dialogue>
bool is_right(const Dialogue& dialogue, std::size_t at, std::size_t expected,
              std::string_view bytes) {
    return at + bytes.size() <= expected &&
           dialogue.check(at == 0 ? bytes : "", at + bytes.size() == expected ? bytes : "");
}

template <class Dialogue>
class load {
public:
    load(const load_settings& how, Dialogue& dialogue)
        : how_{how}, dialogue_{dialogue}, server_{how.server}, connections_(how.connections) {
        allow_descriptors(how.connections);
        expected_ = how.pipeline * dialogue.response_bytes();
    }

    void run(line& out) {
        const auto resident = server_.resident_bytes();
        connect_all();
        if (how_.is_idle) return measure_idle(out, resident);
        for (std::size_t i = 0; i < connections_.size(); ++i) send_batch(i);
        turn_until(now_ns() + how_.window_ns / 2);
        times_ = {};
        const window measured{server_};
        turn_until(now_ns() + how_.window_ns);
        while (times_.count() < connections_.size()) turn_or_throw();
        measured.add_to(out, times_, how_.pipeline);
        out.add("bytes_per_connection", each(server_.resident_bytes(), resident));
    }

private:
    struct connection {
        int socket = -1;
        bool is_connected = false;
        std::uint64_t sent_ns = 0;
        std::size_t received = 0;  // The bytes of the batch that came.
    };

    static constexpr std::size_t most_at_once = 128;

    double each(std::uint64_t now, std::uint64_t before) const {
        return (static_cast<double>(now) - static_cast<double>(before)) /
               static_cast<double>(connections_.size());
    }

    void connect_all() {
        const auto begin = now_ns();
        std::size_t begun = 0;
        while (served_ < connections_.size()) {
            for (; begun < connections_.size() && begun - served_ < most_at_once; ++begun)
                start(begun);
            turn_or_throw();
        }
        connecting_ns_ = now_ns() - begin;
        is_running_ = !how_.is_idle;
    }

    void measure_idle(line& out, std::uint64_t resident) {
        const auto bytes = each(server_.resident_bytes(), resident);
        const auto cpu_begin = server_.cpu_ns();
        const auto begin = now_ns();
        turn_until(begin + how_.window_ns);
        const auto s = static_cast<double>(now_ns() - begin) / 1e9;
        out.add("bytes_per_connection", bytes);
        out.add("connects_per_s", static_cast<double>(connections_.size()) * 1e9 /
                                      static_cast<double>(connecting_ns_));
        out.add("idle_cpu_us_per_s", static_cast<double>(server_.cpu_ns() - cpu_begin) / 1000 / s);
    }

    void start(std::size_t i) {
        auto& one = connections_[i];
        one.socket = connect_to(how_.port, i, SOCK_NONBLOCK);
        watch(i, EPOLLOUT, EPOLL_CTL_ADD);
    }

    void watch(std::size_t i, std::uint32_t events, int operation) {
        epoll_event event{};
        event.events = events;
        event.data.u64 = i;
        checked(epoll_ctl(loop_, operation, connections_[i].socket, &event), "epoll_ctl");
    }

    void turn_until(std::uint64_t limit_ns) {
        for (auto now = now_ns(); now < limit_ns; now = now_ns()) turn(limit_ns - now);
    }

    void turn_or_throw() {
        if (turn(no_response_ns) == 0) throw std::runtime_error{"the server does not answer"};
    }

    // One round of the loop. Returns the number of events.
    std::size_t turn(std::uint64_t wait_ns) {
        timespec wait{};
        wait.tv_sec = static_cast<time_t>(wait_ns / 1'000'000'000);
        wait.tv_nsec = static_cast<long>(wait_ns % 1'000'000'000);
        const int n = checked(
            epoll_pwait2(loop_, events_.data(), static_cast<int>(events_.size()), &wait, nullptr),
            "epoll_pwait2");
        for (int i = 0; i < n; ++i) {
            const auto index =
                static_cast<std::size_t>(events_[static_cast<std::size_t>(i)].data.u64);
            if (connections_[index].is_connected)
                receive(index);
            else
                connected(index);
        }
        return static_cast<std::size_t>(n);
    }

    void connected(std::size_t i) {
        auto& one = connections_[i];
        int error = 0;
        socklen_t length = sizeof error;
        checked(getsockopt(one.socket, SOL_SOCKET, SO_ERROR, &error, &length), "SO_ERROR");
        if (error != 0) throw std::system_error{error, std::generic_category(), "connect"};
        one.is_connected = true;
        watch(i, EPOLLIN, EPOLL_CTL_MOD);
        send_batch(i);
    }

    void send_batch(std::size_t i) {
        auto& one = connections_[i];
        batch_.clear();
        dialogue_.batch(how_.pipeline, batch_);
        one.received = 0;
        one.sent_ns = now_ns();
        // Everything sent before has been answered, so the socket is empty and takes this.
        const auto sent = send(one.socket, batch_.data(), batch_.size(), MSG_NOSIGNAL);
        if (sent != static_cast<ssize_t>(batch_.size()))
            throw std::system_error{sent < 0 ? errno : ENOBUFS, std::generic_category(), "send"};
    }

    void receive(std::size_t i) {
        auto& one = connections_[i];
        const auto got = recv(one.socket, input_.data(), input_.size(), 0);
        if (got < 0 && errno == EAGAIN) return;
        if (got == 0) throw std::runtime_error{"the server closed a connection"};
        const std::string_view bytes{
            input_.data(), static_cast<std::size_t>(checked(static_cast<int>(got), "recv"))};
        if (!is_right(dialogue_, one.received, expected_, bytes))
            throw std::runtime_error{"the server answered something else: " +
                                     printable(bytes.substr(0, 60))};
        one.received += bytes.size();
        if (one.received < expected_) return;
        if (!is_running_) {
            ++served_;
            return;
        }
        times_.add(now_ns() - one.sent_ns);
        send_batch(i);
    }

    static std::string printable(std::string_view bytes) {
        std::string text{bytes};
        std::replace_if(
            text.begin(), text.end(), [](char c) { return c < ' '; }, ' ');
        return text;
    }

    static constexpr std::uint64_t no_response_ns = 60'000'000'000;

    const load_settings how_;
    Dialogue& dialogue_;
    watched_process server_;
    int loop_ = checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    std::vector<epoll_event> events_ = std::vector<epoll_event>(1024);
    std::vector<char> input_ = std::vector<char>(std::size_t{64} << 10U);
    std::vector<connection> connections_;
    std::string batch_;
    std::size_t expected_ = 0;  // How many bytes answer a batch.
    std::size_t served_ = 0;
    std::uint64_t connecting_ns_ = 0;
    bool is_running_ = false;
    histogram times_;
};

}  // namespace bench
