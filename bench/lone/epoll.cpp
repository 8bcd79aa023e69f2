// SPDX-License-Identifier: MIT

// lone: a hand-written epoll loop on one thread.

#include <span>

#include "../common/epoll_server.hpp"
#include "lone.hpp"

namespace {

class epoll {
public:
    void add(int fd, std::uint64_t what) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = what;
        lone::checked(epoll_ctl(loop_, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
    }

    // Calls use(what) for each descriptor that can be read.
    template <class Use>
    void turn(Use use) {
        const int n = epoll_wait(loop_, events_.data(), static_cast<int>(events_.size()), -1);
        if (n < 0 && errno != EINTR) lone::checked(n, "epoll_wait");
        for (int i = 0; i < n; ++i) use(events_[static_cast<std::size_t>(i)].data.u64);
    }

private:
    int loop_ = lone::checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    std::vector<epoll_event> events_ = std::vector<epoll_event>(1024);
};

using plain = lone::descriptor_calls;

// Both ends of every pair, in one loop.
void ask(const lone::plan& how) {
    struct end {
        int in, out;
        bool asks;
        std::uint64_t sent_ns;
    };
    epoll loop;
    std::vector<end> ends;
    for (std::uint64_t i = 0; i < how.connections; ++i) {
        const auto made = lone::make_wires<plain>(how.way);
        ends.push_back({made.ask_in, made.ask_out, true, 0});
        ends.push_back({made.answer_in, made.answer_out, false, 0});
    }
    for (std::size_t i = 0; i < ends.size(); ++i) loop.add(ends[i].in, i);
    lone::record mine{std::size_t{1} << 17};

    lone::say_ready();
    const lone::byte_wire<plain> wire{false};
    wire.receive(STDIN_FILENO);
    const auto begin_ns = lone::now_ns();
    const auto until_ns = begin_ns + how.window_ns;
    const auto send = [&](end& from, std::uint64_t now) {
        from.sent_ns = now;
        wire.send(from.out);
    };
    for (auto& one : ends)
        if (one.asks) send(one, lone::now_ns());
    for (auto running = how.connections; running != 0;)
        loop.turn([&](std::uint64_t i) {
            auto& at = ends[i];
            wire.receive(at.in);
            if (!at.asks) return wire.send(at.out);
            const auto now = lone::now_ns();
            mine.add(now - at.sent_ns);
            if (now < until_ns)
                send(at, now);
            else
                --running;
        });
    lone::answer(lone::now_ns() - begin_ns, std::span{&mine, 1});
    lone::stay<plain>();
}

template <class Session>
void answer_all(const lone::plan& how) {
    bench::epoll_server<Session>{lone::listen_for(how, SOCK_NONBLOCK), how.way != "echo_unix"}
        .run();
}

struct echo {
    static void answer(std::string_view received, std::string& out) { out += received; }
};

struct http {
    static void answer(std::string_view received, std::string& out) {
        if (received.ends_with("\r\n\r\n")) out += lone::http_answer;
    }
};

// What comes from one end goes to the other, in messages that the kernel takes at once.
void forward(const lone::plan& how) {
    epoll loop;
    const int door = lone::listen_for(how, SOCK_NONBLOCK);
    std::vector<int> other;  // By descriptor.
    const auto join = [&](int one, int to) {
        if (other.size() <= static_cast<std::size_t>(one))
            other.resize(static_cast<std::size_t>(one) + 1);
        other[static_cast<std::size_t>(one)] = to;
        loop.add(one, static_cast<std::uint64_t>(one));
    };
    loop.add(door, static_cast<std::uint64_t>(door));
    for (;;)
        loop.turn([&](std::uint64_t ready) {
            const int fd = static_cast<int>(ready);
            if (fd == door) {
                const int peer = accept4(door, nullptr, nullptr, SOCK_CLOEXEC);
                if (peer < 0) return;
                bench::send_at_once(peer);
                const int behind = lone::plain_connect(static_cast<std::uint16_t>(how.backend));
                join(peer, behind);
                join(behind, peer);
                return;
            }
            char buffer[1024];
            const auto n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
            if (n > 0 && send(other[ready], buffer, static_cast<std::size_t>(n), MSG_NOSIGNAL) != n)
                lone::give_up("send");
            if (n == 0) close(fd);  // Its other end goes with the process.
        });
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_server([&] {
        bench::cell in{argc, argv};
        const lone::plan how{in, {"pipe", "unix", "tcp", "echo", "echo_unix", "http", "proxy"}};
        in.done();
        if (how.way == "proxy") return forward(how);
        if (how.way == "http") return answer_all<http>(how);
        if (how.is_server()) return answer_all<echo>(how);
        ask(how);
    });
}
