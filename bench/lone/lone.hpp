// SPDX-License-Identifier: MIT
#pragma once

// bench/lone/lone.hpp: what the peers of `ums bench lone` do, for any runtime: one template for
// each way.
//
// bench/lone/measure.cpp starts a peer, measures its process from outside, and kills it.
// - A server (serve()) says where it listens, and serves.
// - The other ways (stage) run within the peer: it makes its runners, says "ready", and begins when
//   a byte comes on stdin. It answers with a line of JSON and stays as it is, with all its threads,
//   until stdin ends, so that the kernel's counters can still be read.
//
// A Runtime has
//   go(body)                         a runner that nobody joins
//   run(processors, body)            the body in a runner, or in the main thread
//   read, write                      of a descriptor, as the system calls
//   pipe, socketpair, tcp_pair       two descriptors, connected
//   stream, accept(door), connect(port)
//   latch, signal, mutex, condition  as those of std; signal has send() and wait()
//   sleep_until_ns(at)

#include <fcntl.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../common/lateness.hpp"
#include "../common/listen.hpp"
#include "../common/peer.hpp"
#include "../common/work.hpp"

namespace lone {

using bench::checked;
using bench::now_ns;

// An error of one runner is an error of the peer.
[[noreturn]] inline void give_up(const char* what) {
    std::perror(what);
    std::_Exit(1);
}

inline bool is_server(std::string_view way) {
    return way.starts_with("echo") || way == "http" || way == "proxy";
}

// Throws at a way that is not one of `ways`, those the runtime has.
struct plan {
    std::string way;
    std::uint64_t processors, connections, window_ns, gap_ns, compute_ns, rate, backend;

    plan(bench::cell& in, std::initializer_list<std::string_view> ways)
        : way{in.word("way", ways)},
          processors{in.number("processors", 1, 1, 1024)},
          connections{in.number("connections", 1, 1, 100'000)},
          window_ns{in.number("ms", 100) * 1'000'000},
          gap_ns{in.number("gap_us", 1000) * 1000},
          compute_ns{in.number("compute_ns", 0, 0)},
          rate{in.number("rate", 300'000)},
          backend{in.number("backend", 1, 1, 65535)} {}

    bool is_server() const { return lone::is_server(way); }
};

inline const std::initializer_list<std::string_view> all_ways = {
    "pipe",  "unix",  "tcp",  "condvar",   "blocking", "nowait", "tick",
    "ready", "flood", "echo", "echo_unix", "http",     "proxy"};

// What one runner did: how many operations, and how long the latest of them took, in memory that
// was touched before the window.
class record {
public:
    explicit record(std::size_t room) : ns_(room) {}

    void add(std::uint64_t ns) {
        ns_[sampled_++ % ns_.size()] =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(ns, UINT32_MAX));
        ++ops_;
    }
    void add_untimed(std::uint64_t n) { ops_ += n; }

    std::uint64_t ops() const { return ops_; }
    void append_to(std::vector<std::uint64_t>& all) const {
        const auto kept = std::min<std::uint64_t>(sampled_, ns_.size());
        all.insert(all.end(), ns_.begin(), ns_.begin() + static_cast<std::ptrdiff_t>(kept));
    }

private:
    std::vector<std::uint32_t> ns_;
    std::uint64_t sampled_ = 0, ops_ = 0;
};

// What the records say of a window of `ns`.
template <class Records>
void answer(std::uint64_t ns, const Records& records) {
    std::uint64_t ops = 0;
    std::vector<std::uint64_t> all;
    for (const record& one : records) {
        ops += one.ops();
        one.append_to(all);
    }
    if (all.empty()) {
        std::fputs("no operation ended in the window\n", stderr);
        std::_Exit(1);
    }
    std::sort(all.begin(), all.end());
    bench::line out;
    out.add("ops", ops).add("ns", ns);
    out.add("p50_us", bench::quantile_us(all, 0.5)).add("p99_us", bench::quantile_us(all, 0.99));
    out.add("p999_us", bench::quantile_us(all, 0.999)).add("max_us", bench::quantile_us(all, 1));
    out.print();
}

// Until whoever measures has seen enough.
template <class Runtime>
[[noreturn]] void stay() {
    char byte = 0;
    (void)Runtime::read(STDIN_FILENO, &byte, 1);
    std::_Exit(0);
}

inline void say_ready() {
    if (std::puts("ready") < 0 || std::fflush(stdout) != 0) give_up("stdout");
}

// The runners of one process, and the window in which they are measured.
template <class Runtime>
class stage {
public:
    stage(const plan& how, std::uint64_t actors)
        : how_{how},
          room_{std::max<std::size_t>(1024, (std::size_t{1} << 17) / actors)},
          done_{static_cast<std::ptrdiff_t>(actors)} {}

    // A runner that acts from the beginning of the window until is_over(). It must be one of as
    // many as the stage was told of.
    template <class Act>
    void add(Act act) {
        auto& mine = records_.emplace_back(room_);
        Runtime::go([this, act, &mine] {
            begin_.wait();
            act(mine);
            done_.count_down();
            never_.wait();
        });
    }

    // A runner that acts whenever another makes it, for ever.
    template <class Act>
    void add_for_ever(Act act) {
        auto& mine = records_.emplace_back(room_);
        Runtime::go([act, &mine] {
            for (;;) act(mine);
        });
    }

    bool is_over(std::uint64_t now) const { return now >= until_ns_; }

    [[noreturn]] void run() {
        char byte = 0;
        say_ready();
        if (Runtime::read(STDIN_FILENO, &byte, 1) != 1) give_up("stdin");
        const auto begin_ns = now_ns();
        until_ns_ = begin_ns + how_.window_ns;
        begin_.count_down();
        done_.wait();
        const auto ns = now_ns() - begin_ns;

        answer(ns, records_);
        stay<Runtime>();
    }

private:
    const plan how_;
    const std::size_t room_;
    std::deque<record> records_;
    std::uint64_t until_ns_ = 0;  // Written before the beginning.
    typename Runtime::latch begin_{1}, done_, never_{1};
};

// --- Two runners, round trips ---

struct wires {
    int ask_in, ask_out, answer_in, answer_out;
};

inline void plain_tcp_pair(int ends[2]) {
    sockaddr_in at;
    const int door = bench::listen_at(at, 0);
    ends[0] = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    checked(connect(ends[0], reinterpret_cast<sockaddr*>(&at), sizeof at), "connect");
    ends[1] = checked(accept4(door, nullptr, nullptr, SOCK_CLOEXEC), "accept4");
    close(door);
    for (const int i : {0, 1}) bench::send_at_once(ends[i]);
}

inline void plain_socketpair(int ends[2]) {
    checked(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
}

// The system calls.
struct descriptor_calls {
    static ssize_t read(int fd, void* into, std::size_t bytes) { return ::read(fd, into, bytes); }
    static ssize_t write(int fd, const void* from, std::size_t bytes) {
        return ::write(fd, from, bytes);
    }
    static void close(int fd) { ::close(fd); }
    static void pipe(int ends[2]) { checked(pipe2(ends, O_CLOEXEC), "pipe"); }
    static void socketpair(int ends[2]) { plain_socketpair(ends); }
    static void tcp_pair(int ends[2]) { plain_tcp_pair(ends); }
};

template <class Runtime>
wires make_wires(const std::string& way) {
    int ends[2];
    if (way == "pipe") {
        int back[2];
        Runtime::pipe(ends);
        Runtime::pipe(back);
        return {back[0], ends[1], ends[0], back[1]};
    }
    if (way == "tcp")
        Runtime::tcp_pair(ends);
    else if (way == "blocking")
        plain_socketpair(ends);
    else
        Runtime::socketpair(ends);
    return {ends[0], ends[0], ends[1], ends[1]};
}

// `blocking` calls the kernel, whatever the runtime has in its place.
template <class Runtime>
class byte_wire {
public:
    explicit byte_wire(bool is_blocking) : is_blocking_{is_blocking} {}

    void receive(int fd) const {
        char byte;
        const auto n = is_blocking_ ? ::read(fd, &byte, 1) : Runtime::read(fd, &byte, 1);
        if (n != 1) give_up("read");
    }
    void send(int fd) const {
        const char byte = 'x';
        const auto n = is_blocking_ ? ::write(fd, &byte, 1) : Runtime::write(fd, &byte, 1);
        if (n != 1) give_up("write");
    }

private:
    bool is_blocking_;
};

template <class Runtime>
void ask_over_descriptors(const plan& how) {
    stage<Runtime> all{how, how.connections};
    const byte_wire<Runtime> wire{how.way == "blocking"};
    for (std::uint64_t i = 0; i < how.connections; ++i) {
        const auto ends = make_wires<Runtime>(how.way);
        const bool is_alone = how.way == "nowait";
        all.add([&all, wire, ends, is_alone](record& mine) {
            auto now = now_ns();
            do {
                wire.send(ends.ask_out);
                wire.receive(is_alone ? ends.answer_in : ends.ask_in);
                const auto end = now_ns();
                mine.add(end - std::exchange(now, end));
            } while (!all.is_over(now));
        });
        if (is_alone) continue;
        Runtime::go([wire, ends] {
            for (;;) {
                wire.receive(ends.answer_in);
                wire.send(ends.answer_out);
            }
        });
    }
    all.run();
}

template <class Runtime>
void ask_under_mutex(const plan& how) {
    struct table {
        typename Runtime::mutex lock;
        typename Runtime::condition moved;
        bool is_asked = false;

        void pass(bool to) {
            std::unique_lock hold{lock};
            is_asked = to;
            moved.notify_one();
            while (is_asked == to) moved.wait(hold);
        }
    };
    // A clock read costs as much as a fiber's wait, so one in eight is timed.
    constexpr std::uint64_t untimed = 7;
    stage<Runtime> all{how, how.connections};
    std::deque<table> tables(how.connections);
    for (auto& at : tables) {
        all.add([&all, &at](record& mine) {
            do {
                const auto now = now_ns();
                at.pass(true);
                mine.add(now_ns() - now);
                for (std::uint64_t i = 0; i < untimed; ++i) at.pass(true);
                mine.add_untimed(untimed);
            } while (!all.is_over(now_ns()));
        });
        Runtime::go([&at] {
            {
                std::unique_lock hold{at.lock};
                while (!at.is_asked) at.moved.wait(hold);
            }
            for (;;) at.pass(false);
        });
    }
    all.run();
}

// --- One runner makes others ready ---

// Tick: an empty task every gap_ns. Ready: the same, and the one that woke the other computes on.
template <class Runtime>
void wake_one(const plan& how) {
    stage<Runtime> all{how, 1};
    typename Runtime::signal asked, answered;
    std::uint64_t sent_ns = 0;
    const auto steps = how.compute_ns == 0 ? 0 : bench::steps_of(how.compute_ns);
    all.add_for_ever([&](record& mine) {
        asked.wait();
        mine.add(now_ns() - sent_ns);
        answered.send();
    });
    all.add([&](record&) {
        std::uint64_t x = 0;
        for (auto at = now_ns() + how.gap_ns; !all.is_over(at);
             at = std::max(at + how.gap_ns, now_ns())) {
            Runtime::sleep_until_ns(at);
            sent_ns = now_ns();
            asked.send();
            x = bench::compute(steps, x);
            answered.wait();
        }
    });
    all.run();
}

// Short tasks at a rate: every 100 us a runner wakes as many of the others as are due. A task for
// which nobody is free is left out, so a runtime that cannot follow does fewer.
template <class Runtime>
void wake_many(const plan& how) {
    struct desk {
        typename Runtime::signal asked;
        std::atomic<bool> is_busy{false};
        std::uint64_t sent_ns = 0;
    };
    stage<Runtime> all{how, 1};
    std::deque<desk> desks(how.connections);
    const auto steps = bench::steps_of(how.compute_ns);
    for (auto& at : desks)
        all.add_for_ever([&at, steps](record& mine) {
            at.asked.wait();
            mine.add(now_ns() - at.sent_ns);
            bench::compute(steps, at.sent_ns);
            // sync(lone_desk): the next task's time is written after this one's was read.
            at.is_busy.store(false, std::memory_order_release);
        });
    all.add([&](record&) {
        constexpr std::uint64_t turn_ns = 100'000;
        const auto begin = now_ns();
        std::uint64_t done = 0;
        std::size_t next = 0;
        for (auto now = begin; !all.is_over(now); now = now_ns()) {
            const auto due = (now - begin) * how.rate / 1'000'000'000;
            for (; done < due; ++done) {
                std::size_t looked = 0;
                // sync(lone_desk)
                while (desks[next].is_busy.load(std::memory_order_acquire) &&
                       looked++ < desks.size())
                    next = (next + 1) % desks.size();
                if (looked > desks.size()) break;
                auto& at = desks[next];
                next = (next + 1) % desks.size();
                at.is_busy.store(true, std::memory_order_relaxed);  // relaxed: only ours to set.
                at.sent_ns = now_ns();
                at.asked.send();
            }
            done = due;
            Runtime::sleep_until_ns(now + turn_ns);
        }
    });
    all.run();
}

// --- Servers ---

inline int listen_at_name(int flags) {
    bench::raise_descriptor_limit();
    const int door = checked(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), "socket");
    const auto name = "ums-lone-" + std::to_string(getpid());
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path + 1, name.data(), name.size());  // An abstract one.
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    checked(bind(door, reinterpret_cast<const sockaddr*>(&at), length), "bind");
    checked(listen(door, 4096), "listen");
    std::printf("listening on @%s\n", name.c_str());
    if (std::fflush(stdout) != 0) give_up("stdout");
    return door;
}

inline int listen_for(const plan& how, int flags) {
    return how.way == "echo_unix" ? listen_at_name(flags) : bench::listen_on_loopback(flags);
}

inline constexpr std::string_view http_answer =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n";

template <class Stream>
void copy(Stream& from, Stream& to) {
    char buffer[1024];
    for (;;) {
        const auto n = from.read(buffer, sizeof buffer);
        if (n <= 0 || !to.write(buffer, static_cast<std::size_t>(n))) return;
    }
}

// Only looks for the ends of requests: what is measured is the wait for them.
template <class Stream>
void answer_http(Stream& peer) {
    char buffer[1024];
    for (std::size_t have = 0; have < sizeof buffer;) {
        const auto n = peer.read(buffer + have, sizeof buffer - have);
        if (n <= 0) return;
        have += static_cast<std::size_t>(n);
        if (!std::string_view{buffer, have}.ends_with("\r\n\r\n")) continue;
        if (!peer.write(http_answer.data(), http_answer.size())) return;
        have = 0;
    }
}

// A runner for each connection; a proxy has two, one for each direction.
template <class Runtime>
void serve(const plan& how) {
    using stream = typename Runtime::stream;
    typename Runtime::door door{how};
    for (;;) {
        auto peer = std::make_shared<stream>(door.accept());
        if (how.way == "http") {
            Runtime::go([peer] { answer_http(*peer); });
        } else if (how.way != "proxy") {
            Runtime::go([peer] { copy(*peer, *peer); });
        } else {
            auto behind =
                std::make_shared<stream>(Runtime::connect(static_cast<std::uint16_t>(how.backend)));
            Runtime::go([peer, behind] { copy(*peer, *behind); });
            Runtime::go([peer, behind] { copy(*behind, *peer); });
        }
    }
}

// A stream over a descriptor, by the calls of the runtime.
template <class Runtime>
class descriptor_stream {
public:
    explicit descriptor_stream(int fd) : fd_{fd} {}
    descriptor_stream(descriptor_stream&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    descriptor_stream& operator=(descriptor_stream&&) = delete;
    ~descriptor_stream() {
        if (fd_ >= 0) Runtime::close(fd_);
    }

    ssize_t read(void* into, std::size_t bytes) { return Runtime::read(fd_, into, bytes); }
    bool write(const void* from, std::size_t bytes) {
        return Runtime::write(fd_, from, bytes) == static_cast<ssize_t>(bytes);
    }

private:
    int fd_;
};

inline int plain_connect(std::uint16_t port) {
    const int made = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    checked(connect(made, reinterpret_cast<const sockaddr*>(&at), sizeof at), "connect");
    bench::send_at_once(made);
    return made;
}

template <class Runtime>
int run_lone_peer(int argc, char** argv, std::initializer_list<std::string_view> ways) {
    try {
        bench::cell in{argc, argv};
        const plan how{in, ways};
        Runtime::choose(in);
        in.done();
        Runtime::run(how.processors, [&] {
            if (how.is_server())
                serve<Runtime>(how);
            else if (how.way == "condvar")
                ask_under_mutex<Runtime>(how);
            else if (how.way == "tick" || how.way == "ready")
                wake_one<Runtime>(how);
            else if (how.way == "flood")
                wake_many<Runtime>(how);
            else
                ask_over_descriptors<Runtime>(how);
        });
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        std::_Exit(1);  // With its runners, which nobody joins.
    }
}

}  // namespace lone
