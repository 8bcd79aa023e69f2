// SPDX-License-Identifier: MIT

// lone: fibers. Their descriptors are libums's own, made by io:: and net::, or from elsewhere
// (`descriptors=elsewhere`): made by the kernel's calls, and used by io::; or those, adopted.

#include <ums/net.hpp>
#include <ums/ums.hpp>

#include <variant>

#include "../common/on_ums.hpp"
#include "lone.hpp"

namespace {

// Written before the runtime starts.
enum class descriptors { own, elsewhere, adopted } used = descriptors::own;

// A descriptor that the kernel's calls have made, as its user has it.
int taken_over(int fd) {
    if (used == descriptors::adopted) ums::io::adopt(fd).value();
    return fd;
}

template <class T>
ssize_t counted(const ums::result<T>& got) {
    return got ? static_cast<ssize_t>(*got) : -1;
}

struct runtime {
    using latch = ums::latch;
    using mutex = ums::mutex;
    using condition = ums::condition_variable;
    using signal = bench::on_ums::signal;

    class stream {
    public:
        explicit stream(int fd) : of_{std::in_place_index<1>, fd} {}
        explicit stream(ums::net::stream&& own) : of_{std::in_place_index<0>, std::move(own)} {}

        ssize_t read(void* into, std::size_t bytes) {
            if (auto* own = std::get_if<0>(&of_)) return counted(own->read(into, bytes));
            return std::get<1>(of_).read(into, bytes);
        }
        bool write(const void* from, std::size_t bytes) {
            if (auto* own = std::get_if<0>(&of_)) return bool{own->write_all(from, bytes)};
            return std::get<1>(of_).write(from, bytes);
        }

    private:
        std::variant<ums::net::stream, lone::descriptor_stream<runtime>> of_;
    };

    class door {
    public:
        explicit door(const lone::plan& how)
            : fd_{lone::listen_for(how, SOCK_NONBLOCK)},
              own_{fd_},
              is_tcp_{how.way != "echo_unix"} {}

        stream accept() {
            if (used == descriptors::own) {
                auto made = own_.accept().value();
                if (is_tcp_) (void)made.set_no_delay(true);
                return stream{std::move(made)};
            }
            for (;;) {
                ums::io::wait_readable(fd_).value();
                const int made = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
                if (made < 0 && errno == EAGAIN) continue;
                lone::checked(made, "accept4");
                if (is_tcp_) bench::send_at_once(made);
                return stream{taken_over(made)};
            }
        }

    private:
        int fd_;
        ums::net::listener own_;
        bool is_tcp_;
    };

    static stream connect(std::uint16_t port) {
        if (used != descriptors::own) return stream{taken_over(lone::plain_connect(port))};
        auto made = ums::net::stream::connect(ums::net::endpoint::loopback(port)).value();
        (void)made.set_no_delay(true);
        return stream{std::move(made)};
    }

    static ssize_t read(int fd, void* into, std::size_t bytes) {
        return counted(ums::io::read(fd, into, bytes));
    }
    static ssize_t write(int fd, const void* from, std::size_t bytes) {
        return counted(ums::io::write(fd, from, bytes));
    }
    static void close(int fd) { (void)ums::io::close(fd); }

    static void pipe(int ends[2]) {
        if (used == descriptors::own) return ums::io::pipe(ends).value();
        lone::checked(pipe2(ends, O_CLOEXEC), "pipe");
        for (const int i : {0, 1}) taken_over(ends[i]);
    }
    static void socketpair(int ends[2]) {
        if (used == descriptors::own)
            return ums::io::socketpair(AF_UNIX, SOCK_STREAM, 0, ends).value();
        lone::plain_socketpair(ends);
        for (const int i : {0, 1}) taken_over(ends[i]);
    }
    static void tcp_pair(int ends[2]) {
        if (used != descriptors::own) {
            lone::plain_tcp_pair(ends);
            for (const int i : {0, 1}) taken_over(ends[i]);
            return;
        }
        sockaddr_in at;
        const int door = bench::listen_at(at, 0);
        ends[0] = ums::io::socket(AF_INET, SOCK_STREAM).value();
        ums::io::connect(ends[0], reinterpret_cast<sockaddr*>(&at), sizeof at).value();
        ends[1] = ums::io::accept(door).value();
        (void)ums::io::close(door);
        for (const int i : {0, 1}) bench::send_at_once(ends[i]);
    }

    static void sleep_until_ns(std::uint64_t at) { bench::on_ums::sleep_until_ns(at); }

    static void choose(bench::cell& in) {
        bench::on_ums::choose(in);
        const std::string from = in.word("descriptors", {"own", "elsewhere", "adopted"});
        if (from == "elsewhere") used = descriptors::elsewhere;
        if (from == "adopted") used = descriptors::adopted;
    }
    template <class Body>
    static void go(Body body) {
        ums::fiber{std::move(body)}.detach();
    }
    template <class Body>
    static void run(std::uint64_t processors, Body body) {
        bench::on_ums::run(processors, std::move(body));
    }
};

}  // namespace

int main(int argc, char** argv) { return lone::run_lone_peer<runtime>(argc, argv, lone::all_ways); }
