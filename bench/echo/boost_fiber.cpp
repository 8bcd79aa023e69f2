// SPDX-License-Identifier: MIT

// echo: Boost.Fiber over Boost.Asio, one fiber for each connection, all on one thread.
//
// When no fiber is ready, the scheduler waits in the I/O context instead of on a condition
// variable, and each operation that completes there makes its fiber ready. So the thread has one
// place to wait in, and nothing polls.

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/fiber/algo/round_robin.hpp>
#include <boost/fiber/context.hpp>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/operations.hpp>

#include <array>
#include <chrono>

#include "../common/listen.hpp"

namespace {

namespace asio = boost::asio;
namespace fibers = boost::fibers;
using asio::ip::tcp;
using boost::system::error_code;

class in_context final : public fibers::algo::round_robin {
public:
    explicit in_context(asio::io_context& context) : context_{context} {}

    void suspend_until(const std::chrono::steady_clock::time_point& limit) noexcept override {
        if (limit == std::chrono::steady_clock::time_point::max())
            context_.run_one();
        else
            context_.run_one_until(limit);
    }
    void notify() noexcept override {
        asio::post(context_, [] {});
    }

private:
    asio::io_context& context_;
};

// One operation, which the calling fiber waits for.
class operation {
public:
    auto handler() {
        return [this](error_code error, std::size_t bytes = 0) {
            error_ = error;
            bytes_ = bytes;
            is_done_ = true;
            if (waiter_ != nullptr) fibers::context::active()->schedule(waiter_);
        };
    }
    // Returns the number of bytes that were moved; 0 after an error.
    std::size_t wait() {
        if (!is_done_) {
            waiter_ = fibers::context::active();
            waiter_->suspend();
        }
        return error_ ? 0 : bytes_;
    }
    bool has_failed() const { return static_cast<bool>(error_); }

private:
    fibers::context* waiter_ = nullptr;
    error_code error_;
    std::size_t bytes_ = 0;
    bool is_done_ = false;
};

void serve(tcp::socket socket) {
    std::array<char, 1024> buffer;
    for (;;) {
        operation read;
        socket.async_read_some(asio::buffer(buffer), read.handler());
        const auto n = read.wait();
        if (n == 0) return;
        operation write;
        asio::async_write(socket, asio::buffer(buffer, n), write.handler());
        if (write.wait() != n) return;
    }
}

void run() {
    bench::raise_descriptor_limit();
    asio::io_context context{1};
    // Without this an idle context would say that it is out of work instead of waiting.
    const auto always = asio::make_work_guard(context);
    fibers::use_scheduling_algorithm<in_context>(context);
    tcp::acceptor acceptor{context, {asio::ip::address_v4::loopback(), 0}};
    acceptor.listen(4096);
    bench::announce(acceptor.local_endpoint().port());
    for (;;) {
        tcp::socket socket{context};
        operation accept;
        acceptor.async_accept(socket, accept.handler());
        accept.wait();
        if (accept.has_failed()) continue;
        socket.set_option(tcp::no_delay{true});
        fibers::fiber{serve, std::move(socket)}.detach();
    }
}

}  // namespace

int main() { return bench::run_server(run); }
