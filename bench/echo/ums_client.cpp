// SPDX-License-Identifier: MIT

// echo: the same load on libums, a fiber for each connection.

#include <ums/net.hpp>
#include <ums/ums.hpp>

#include <array>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "../servers/load.hpp"
#include "message.hpp"

namespace {

// There is one processor, so only one fiber at a time uses what they share.
class fiber_load {
public:
    explicit fiber_load(const bench::load_settings& how)
        : how_{how},
          server_{how.server},
          expected_{how.pipeline * words_.response_bytes()},
          served_{static_cast<std::ptrdiff_t>(how.connections)} {
        bench::allow_descriptors(how.connections);
        words_.batch(how.pipeline, batch_);
    }

    void run(bench::line& out) {
        const auto resident = server_.resident_bytes();
        std::vector<ums::fiber> crew;
        for (std::uint64_t i = 0; i < how_.connections; ++i)
            crew.emplace_back([this, i] { talk(i); });
        served_.wait();
        start_.count_down();
        const std::chrono::nanoseconds window{how_.window_ns};
        ums::this_fiber::sleep_for(window / 2);
        const bench::window measured{server_};
        is_measured_ = true;
        ums::this_fiber::sleep_for(window);
        enough_.wait();
        measured.add_to(out, times_, how_.pipeline);
        out.add("bytes_per_connection",
                (static_cast<double>(server_.resident_bytes()) - static_cast<double>(resident)) /
                    static_cast<double>(how_.connections));
        is_over_ = true;
        for (auto& one : crew) one.join();
    }

private:
    // An error of one connection is an error of the load.
    [[noreturn]] static void give_up(const std::string& why) {
        std::fprintf(stderr, "%s\n", why.c_str());
        std::_Exit(1);
    }

    void talk(std::uint64_t i) {
        making_.acquire();
        const int socket = bench::make_socket(i, 0);
        ums::net::stream server{socket};
        const auto to = bench::loopback(0, how_.port);
        const auto made =
            ums::io::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to);
        if (!made) give_up("connect: " + made.error().message());
        exchange(server);
        making_.release();
        served_.count_down();
        start_.wait();
        while (!is_over_) {
            const auto begin = bench::now_ns();
            exchange(server);
            if (!is_measured_) continue;
            times_.add(bench::now_ns() - begin);
            if (times_.count() == how_.connections) enough_.count_down();
        }
    }

    void exchange(ums::net::stream& server) {
        std::array<char, 1024> buffer;
        const auto sent = server.write_all(batch_);
        if (!sent) give_up("write: " + sent.error().message());
        for (std::size_t at = 0; at < expected_;) {
            const auto n = server.read(buffer.data(), buffer.size());
            if (!n) give_up("read: " + n.error().message());
            if (*n == 0) give_up("the server closed a connection");
            if (!bench::is_right(words_, at, expected_, {buffer.data(), *n}))
                give_up("the server answered something else");
            at += *n;
        }
    }

    const bench::load_settings how_;
    bench::echo_dialogue words_;
    bench::watched_process server_;
    std::string batch_;
    std::size_t expected_;
    ums::counting_semaphore<128> making_{128};  // See bench/servers/load.hpp.
    ums::latch served_;
    ums::latch start_{1};
    ums::latch enough_{1};
    bool is_measured_ = false;
    bool is_over_ = false;
    bench::histogram times_;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const bench::load_settings how{in};
        in.done();
        ums::run(ums::options{.processors = 1}, [&] {
            fiber_load{how}.run(out);
            return 0;
        });
    });
}
