// SPDX-License-Identifier: MIT
// variants: migrate

// Connections to a host by its name: the addresses compete.

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <netinet/in.h>
#include <stop_token>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "ums/fiber.hpp"
#include "ums/net.hpp"
#include "ums/run.hpp"

namespace {

using namespace std::chrono_literals;
using namespace ums::net;
using ums::deadline_after;

class connect_test : public conserving_test {};

// An address that never answers: a listener whose queue is full drops what comes.
class silent_address {
public:
    silent_address() {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof at;
        auto* const address = reinterpret_cast<sockaddr*>(&at);
        door_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::bind(door_, address, bytes), 0);
        EXPECT_EQ(::listen(door_, 0), 0);
        EXPECT_EQ(::getsockname(door_, address, &bytes), 0);
        at_ = endpoint{address, bytes};
        for (int& fd : queued_) {
            fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            (void)::connect(fd, address, bytes);
        }
    }
    ~silent_address() {
        for (const int fd : queued_) ::close(fd);
        ::close(door_);
    }
    silent_address(const silent_address&) = delete;
    silent_address& operator=(const silent_address&) = delete;
    [[nodiscard]] const endpoint& at() const { return at_; }

private:
    int door_;
    std::array<int, 4> queued_{};
    endpoint at_;
};

// An address that refuses: nobody listens there, and nobody else can get the port.
class refusing_address {
public:
    refusing_address() {
        socklen_t bytes = endpoint::capacity;
        EXPECT_EQ(::bind(bound_, at_.data(), at_.size()), 0);
        EXPECT_EQ(::getsockname(bound_, at_.data(), &bytes), 0);
    }
    ~refusing_address() { ::close(bound_); }
    refusing_address(const refusing_address&) = delete;
    refusing_address& operator=(const refusing_address&) = delete;
    [[nodiscard]] const endpoint& at() const { return at_; }

private:
    const int bound_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    endpoint at_ = endpoint::loopback(0);
};

TEST_F(connect_test, a_name_leads_to_whichever_of_its_addresses_answers) {
    on_a_fiber_and_on_a_thread([] {
        listener door{endpoint::loopback(0)};  // Not at ::1, to which localhost may resolve too.
        stream s = connect("localhost", door.local().value().port()).value();
        stream peer = door.accept().value();
        s.write_all("x").value();
        char c = 0;
        peer.read_all(&c, 1).value();
        EXPECT_EQ(c, 'x');
    });
}

TEST_F(connect_test, an_address_that_refuses_or_keeps_silent_is_passed_by) {
    on_a_fiber_and_on_a_thread([] {
        const silent_address silent;
        const refusing_address refuses;
        listener door{endpoint::loopback(0)};
        const endpoint good = door.local().value();
        for (const auto& first : {refuses.at(), silent.at()}) {
            const std::vector<endpoint> all{first, silent.at(), refuses.at(), good};
            const connected c = connect(all, {}, {.attempt_delay = 1ms});
            ASSERT_TRUE(c) << c.error.message();
            EXPECT_EQ(c.stream.peer().value(), good);
            (void)door.accept().value();
        }
    });
}

// A Unix listener whose queue is full.
class full_address {
public:
    explicit full_address(char which)
        : at{endpoint::unix_socket(std::string{"@ums-connect-test-"} + which + '-' +
                                   std::to_string(::getpid()))
                 .value()},
          door{at, {.backlog = 0}} {
        for (;;) {
            const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            if (::connect(fd, at.data(), at.size()) != 0) {
                EXPECT_EQ(errno, EAGAIN);
                ::close(fd);
                break;
            }
            queued_.emplace_back(fd);
        }
    }
    // Makes room in the queue.
    void accept_all() {
        for (std::size_t i = 0; i < queued_.size(); ++i) (void)door.accept().value();
    }

    const endpoint at;
    listener door;

private:
    std::vector<stream> queued_;
};

TEST_F(connect_test, a_unix_listener_whose_queue_is_full_is_waited_for) {
    on_a_fiber_and_on_a_thread([] {
        full_address full{'a'}, other{'b'};
        const refusing_address refuses;
        const silent_address silent;
        listener door{endpoint::loopback(0)};
        const endpoint good = door.local().value();
        const std::vector<endpoint> alone{full.at}, two{full.at, other.at},
            among{silent.at(), full.at, refuses.at(), other.at}, beside{full.at, good};
        for (const auto& to : {alone, two, among}) {
            EXPECT_EQ(connect(to, deadline_after(20ms), {.attempt_delay = 1ms}).error,
                      std::errc::timed_out);
            std::stop_source stop;
            ums::fiber stopper{[&] { stop.request_stop(); }};
            EXPECT_EQ(connect(to, stop.get_token()).error, std::errc::operation_canceled);
            stopper.join();
        }
        {
            const connected c = connect(beside, {}, {.attempt_delay = 1ms});
            ASSERT_TRUE(c) << c.error.message();
            EXPECT_EQ(c.stream.peer().value(), good);
        }
        for (const auto& to : {alone, two, among}) {
            full_address again{'c'};
            std::vector<endpoint> here = to;
            std::ranges::replace(here, full.at, again.at);
            ums::fiber server{[&] { again.accept_all(); }};
            const connected c = connect(here, {}, {.attempt_delay = 1ms});
            ASSERT_TRUE(c) << c.error.message();
            EXPECT_EQ(c.stream.peer().value(), again.at);
            server.join();
        }
    });
}

TEST_F(connect_test, the_reasons_against_it_are_reported) {
    on_a_fiber_and_on_a_thread([] {
        const silent_address silent;
        const refusing_address refuses, other;
        const std::vector<endpoint> bad{refuses.at(), other.at()}, mute{silent.at(), silent.at()};
        EXPECT_EQ(connect(bad).error, std::errc::connection_refused);
        EXPECT_EQ(connect(bad).error(), std::errc::connection_refused);
        EXPECT_EQ(connect(std::span<const endpoint>{}).error,
                  std::errc::destination_address_required);
        EXPECT_EQ(connect(mute, deadline_after(20ms), {.attempt_delay = 1ms}).error,
                  std::errc::timed_out);
        EXPECT_EQ(connect(mute, deadline_after(1ms)).error, std::errc::timed_out);
        std::stop_source stop;
        ums::fiber stopper{[&] { stop.request_stop(); }};
        EXPECT_EQ(connect(mute, stop.get_token()).error, std::errc::operation_canceled);
        stopper.join();
        const connected none = connect("no-such-host.invalid", 80);
        EXPECT_EQ(&none.error.category(), &resolve_category());
        EXPECT_THROW((void)connect(bad).value(), std::system_error);
    });
}

}  // namespace
