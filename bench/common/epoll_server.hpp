// SPDX-License-Identifier: MIT
#pragma once

// bench/common/epoll_server.hpp: a hand-written epoll loop on one thread, as fast as possible.
//
// It is level-triggered, so that a request takes three system calls, shared by all requests that
// came in meanwhile: epoll_wait, recv, send. What the kernel does not take at once is kept, and the
// loop reads nothing more from that client until it went out.
//
// A Session is the state of a connection: answer(received, out) appends what to send.

#include <sys/epoll.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "listen.hpp"

namespace bench {

template <class Session>
class epoll_server {
public:
    // `is_tcp`: its connections have TCP_NODELAY.
    explicit epoll_server(int listener = listen_on_loopback(SOCK_NONBLOCK), bool is_tcp = true)
        : listener_{listener}, is_tcp_{is_tcp} {}

    // Does not return.
    void run() {
        watch(listener_, EPOLLIN, EPOLL_CTL_ADD);
        std::vector<epoll_event> events(1024);
        for (;;) {
            const int n = epoll_wait(loop_, events.data(), static_cast<int>(events.size()), -1);
            if (n < 0 && errno != EINTR) checked(n, "epoll_wait");
            for (int i = 0; i < n; ++i) {
                const auto& event = events[static_cast<std::size_t>(i)];
                if (event.data.fd == listener_)
                    accept_all();
                else if ((event.events & EPOLLOUT) != 0)
                    flush(event.data.fd);
                else
                    serve(event.data.fd);
            }
        }
    }

private:
    struct connection {
        Session session;
        std::string unsent;
    };

    void watch(int socket, std::uint32_t events, int operation) {
        epoll_event event{};
        event.events = events;
        event.data.fd = socket;
        checked(epoll_ctl(loop_, operation, socket, &event), "epoll_ctl");
    }

    void accept_all() {
        for (;;) {
            const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (socket < 0) {
                if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return;
                checked(socket, "accept4");
            }
            if (is_tcp_) send_at_once(socket);
            const auto index = static_cast<std::size_t>(socket);
            if (index >= connections_.size()) connections_.resize(index + 1);
            connections_[index] = std::make_unique<connection>();
            watch(socket, EPOLLIN, EPOLL_CTL_ADD);
        }
    }

    connection& at(int socket) { return *connections_[static_cast<std::size_t>(socket)]; }

    void drop(int socket) {
        connections_[static_cast<std::size_t>(socket)].reset();
        close(socket);
    }

    void serve(int socket) {
        const auto got = recv(socket, input_.data(), input_.size(), 0);
        if (got <= 0) {
            if (got == 0 || (errno != EAGAIN && errno != EINTR)) drop(socket);
            return;
        }
        output_.clear();
        at(socket).session.answer({input_.data(), static_cast<std::size_t>(got)}, output_);
        if (output_.empty()) return;
        const auto sent = send(socket, output_.data(), output_.size(), MSG_NOSIGNAL);
        if (sent == static_cast<ssize_t>(output_.size())) return;
        if (sent < 0 && errno != EAGAIN) return drop(socket);
        at(socket).unsent.assign(output_, sent < 0 ? 0 : static_cast<std::size_t>(sent));
        watch(socket, EPOLLOUT, EPOLL_CTL_MOD);
    }

    void flush(int socket) {
        auto& unsent = at(socket).unsent;
        const auto sent = send(socket, unsent.data(), unsent.size(), MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN && errno != EINTR) drop(socket);
            return;
        }
        unsent.erase(0, static_cast<std::size_t>(sent));
        if (!unsent.empty()) return;
        unsent.shrink_to_fit();
        watch(socket, EPOLLIN, EPOLL_CTL_MOD);
    }

    int loop_ = checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    int listener_;
    bool is_tcp_;
    std::vector<std::unique_ptr<connection>> connections_;  // By descriptor.
    std::vector<char> input_ = std::vector<char>(std::size_t{64} << 10U);
    std::string output_;
};

}  // namespace bench
