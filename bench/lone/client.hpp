// SPDX-License-Identifier: MIT
#pragma once

// bench/lone/client.hpp: the load of a lone server: N connections, one request at a time on each.
//
// With a rate, requests come at random times (Poisson) whatever the answers do, each on a
// connection that waits for none; what finds all of them waiting is left out, so that ops_per_s
// shows what a server could not serve. Otherwise each answer sends the next request, after a gap in
// which the client spins, if there is to be one.
//
// It is an epoll loop on one thread. The time of a request is that from its sending.

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/un.h>

#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../common/lateness.hpp"
#include "../common/listen.hpp"
#include "../servers/histogram.hpp"
#include "../servers/load.hpp"

namespace lone {

using bench::checked;
using bench::now_ns;

struct load_plan {
    std::uint64_t connections, rate, gap_ns;
    std::string_view request;
    std::size_t answer_bytes;
};

class client {
public:
    // `at` is what the server said: 127.0.0.1:PORT, or @NAME. Each connection is served once.
    client(const load_plan& how, const std::string& at) : how_{how}, connections_(how.connections) {
        bench::allow_descriptors(how.connections);
        checked(prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL), "PR_SET_TIMERSLACK");
        for (std::size_t i = 0; i < connections_.size(); ++i) {
            connections_[i].socket = connect_to(at, i);
            send_request(i);
            for (std::size_t got = 0; got < how_.answer_bytes;) got += receive_some(i, 0);
            connections_[i].is_waiting = false;
            epoll_event event{};
            event.events = EPOLLIN;
            event.data.u64 = i;
            checked(epoll_ctl(loop_, EPOLL_CTL_ADD, connections_[i].socket, &event), "epoll_ctl");
        }
    }

    // Loads the server for so long. Only what it answers meanwhile is counted, from the call of
    // begin_counting() on.
    void run(std::uint64_t ns) {
        const auto until = now_ns() + ns;
        if (next_ns_ == 0) {
            next_ns_ = static_cast<double>(now_ns());
            if (how_.rate == 0)
                for (std::size_t i = 0; i < connections_.size(); ++i) send_request(i);
        }
        // What came due while nobody called run() is left out.
        if (how_.rate != 0) next_ns_ = std::max(next_ns_, static_cast<double>(now_ns()));
        for (auto now = now_ns(); now < until; now = now_ns()) {
            if (how_.rate != 0) send_due(now);
            turn(wait_ns(until));
        }
    }

    void begin_counting() {
        times_ = {};
        longest_ns_ = 0;
    }

    std::uint64_t answered() const { return times_.count(); }
    template <class Use>
    void each_time(Use use) const {
        if (times_.count() == 0)
            throw std::runtime_error{"the server did not answer in the window"};
        use("p50_us", times_.us_at(0.5));
        use("p99_us", times_.us_at(0.99));
        use("p999_us", times_.us_at(0.999));
        use("max_us", static_cast<double>(longest_ns_) / 1000);
    }

private:
    struct connection {
        int socket = -1;
        bool is_waiting = false;
        std::uint64_t sent_ns = 0;
        std::size_t received = 0;
    };

    static int connect_to(const std::string& at, std::size_t index) {
        if (at.front() != '@')
            return bench::connect_to(static_cast<std::uint16_t>(std::stoul(at)), index, 0);
        const int made = checked(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
        sockaddr_un to{};
        to.sun_family = AF_UNIX;
        if (at.size() > sizeof to.sun_path) throw std::runtime_error{"a long name: " + at};
        std::memcpy(to.sun_path + 1, at.data() + 1, at.size() - 1);
        const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + at.size());
        checked(connect(made, reinterpret_cast<const sockaddr*>(&to), length), "connect");
        return made;
    }

    void send_request(std::size_t i) {
        auto& one = connections_[i];
        one.is_waiting = true;
        one.received = 0;
        one.sent_ns = now_ns();
        const auto& text = how_.request;
        if (send(one.socket, text.data(), text.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(text.size()))
            checked(-1, "send");
    }

    std::size_t receive_some(std::size_t i, int flags) {
        const auto n = recv(connections_[i].socket, input_, sizeof input_, flags);
        if (n < 0 && errno == EAGAIN) return 0;
        if (n == 0) throw std::runtime_error{"the server closed a connection"};
        return static_cast<std::size_t>(checked(static_cast<int>(n), "recv"));
    }

    void send_due(std::uint64_t now) {
        while (next_ns_ <= static_cast<double>(now)) {
            // Uniform in (0, 1].
            const auto random = bench::scramble(drawn_++);
            const double u = (static_cast<double>(random >> 11U) + 1) / 9007199254740992.0;
            next_ns_ += -std::log(u) / static_cast<double>(how_.rate) * 1e9;
            const auto first = bench::scramble(~drawn_) % connections_.size();
            for (std::size_t tried = 0; tried < connections_.size(); ++tried) {
                const auto i = (first + tried) % connections_.size();
                if (connections_[i].is_waiting) continue;
                send_request(i);
                break;
            }
        }
    }

    std::uint64_t wait_ns(std::uint64_t until) const {
        const auto now = now_ns();
        const auto limit =
            how_.rate != 0 ? std::min(until, static_cast<std::uint64_t>(next_ns_)) : until;
        return limit > now ? limit - now : 0;
    }

    void turn(std::uint64_t wait_ns) {
        timespec wait{};
        wait.tv_sec = static_cast<time_t>(wait_ns / 1'000'000'000);
        wait.tv_nsec = static_cast<long>(wait_ns % 1'000'000'000);
        const int n =
            epoll_pwait2(loop_, events_.data(), static_cast<int>(events_.size()), &wait, nullptr);
        if (n < 0 && errno != EINTR) checked(n, "epoll_pwait2");
        for (int i = 0; i < n; ++i)
            receive(static_cast<std::size_t>(events_[static_cast<std::size_t>(i)].data.u64));
    }

    void receive(std::size_t i) {
        auto& one = connections_[i];
        one.received += receive_some(i, MSG_DONTWAIT);
        if (one.received < how_.answer_bytes) return;
        const auto took = now_ns() - one.sent_ns;
        times_.add(took);
        longest_ns_ = std::max(longest_ns_, took);
        one.is_waiting = false;
        if (how_.rate != 0) return;
        if (how_.gap_ns != 0)
            for (const auto until = now_ns() + how_.gap_ns; now_ns() < until;) {
            }
        send_request(i);
    }

    const load_plan how_;
    int loop_ = checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    std::vector<epoll_event> events_ = std::vector<epoll_event>(256);
    std::vector<connection> connections_;
    char input_[4096];
    double next_ns_ = 0;  // When the next request is due.
    std::uint64_t drawn_ = 0;
    bench::histogram times_;
    std::uint64_t longest_ns_ = 0;
};

}  // namespace lone
