// SPDX-License-Identifier: MIT
// variants: p1 migrate nosync

// The server and its clients, over sockets, in one runtime. After it has stopped, nothing of either
// is left.

#include "server.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ums/run.hpp>

#include "expect_turned_away.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "test_client.hpp"

namespace {

using namespace http;
using namespace std::chrono_literals;

const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string end_of_hello = "\r\n\r\nHello, World!";

class server_test : public conserving_test {
protected:
    // Runs `body` with a server on any free port, then stops the server.
    void serve(std::function<void(server&, const ums::net::endpoint&)> body) {
        ums::run(runtime, [&] {
            chosen.listen = {ums::net::endpoint::loopback(0)};
            server s{chosen};
            ums::fiber running{[&s] { s.run(); }};
            body(s, s.addresses().front());
            s.stop();
            running.join();
        });
    }

    options chosen;
    ums::options runtime;
};

TEST_F(server_test, it_answers_request_after_request) {
    serve([](server&, const ums::net::endpoint& at) {
        test_client client{at};
        for (int i = 0; i < 10; ++i) {
            client.send(request);
            EXPECT_TRUE(client.receive_to(end_of_hello).starts_with("HTTP/1.1 200 OK\r\n"));
        }
        std::string many;
        for (int i = 0; i < 1000; ++i) many += request;
        client.send(many);
        for (int i = 0; i < 1000; ++i)
            ASSERT_TRUE(client.receive_to(end_of_hello).starts_with("HTTP/1.1 200 OK\r\n")) << i;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        EXPECT_TRUE(client.receive_all().ends_with(end_of_hello));
    });
}

TEST_F(server_test, a_request_may_come_byte_by_byte) {
    serve([](server&, const ums::net::endpoint& at) {
        test_client client{at};
        const std::string all = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
        for (const char c : all) client.send({&c, 1});
        EXPECT_TRUE(client.receive_to("hello").starts_with("HTTP/1.1 200 OK\r\n"));
    });
}

TEST_F(server_test, a_large_body_comes_back) {
    chosen.limits.body_bytes = 8 << 20;
    serve([](server&, const ums::net::endpoint& at) {
        test_client client{at};
        std::string body;
        for (int i = 0; body.size() < 3'000'000; ++i) body += std::to_string(i);
        ums::fiber sender{[&] {
            client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                        std::to_string(body.size()) + "\r\n\r\n" + body);
        }};
        EXPECT_TRUE(client.receive_to("\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
        EXPECT_EQ(client.receive(body.size()), body);
        sender.join();
    });
}

TEST_F(server_test, a_malformed_request_is_answered_though_more_of_it_comes) {
    serve([](server&, const ums::net::endpoint& at) {
        test_client client{at};
        client.send("GET / HTTP/1.1\r\n\r\n" + std::string(100'000, 'x'));
        EXPECT_TRUE(client.receive_all().starts_with("HTTP/1.1 400 Bad Request\r\n"));
    });
}

TEST_F(server_test, who_is_slow_with_the_headers_gets_408) {
    chosen.header_timeout = 200ms;
    chosen.idle_timeout = 1h;
    serve([](server&, const ums::net::endpoint& at) {
        test_client slow{at};
        // A byte now and then does not help.
        ums::fiber trickle{[&slow] {
            for (const char c : std::string(1000, 'G'))
                if (!slow.stream().write(&c, 1) || !slow.is_silent_for(20ms)) return;
        }};
        EXPECT_TRUE(slow.receive_all().starts_with("HTTP/1.1 408 Request Timeout\r\n"));
        trickle.join();
    });
}

TEST_F(server_test, of_pipelined_requests_each_has_its_own_time) {
    chosen.header_timeout = 300ms;
    chosen.idle_timeout = chosen.write_timeout = 1h;
    serve([this](server&, const ums::net::endpoint& at) {
        using clock = std::chrono::steady_clock;
        test_client client{at};
        // At every moment half a head is there.
        const std::string begin = request.substr(0, 10), rest = request.substr(10);
        client.send(begin);
        auto sent = clock::now();
        for (const auto start = sent; sent - start < 3 * chosen.header_timeout;) {
            const auto before = std::exchange(sent, clock::now());
            (void)client.stream().write_all(rest + begin);
            if (client.receive_to(end_of_hello).starts_with("HTTP/1.1 200 OK\r\n")) {
                (void)client.is_silent_for(10ms);
                continue;
            }
            // If the machine is so slow that this one request took too long, the server has made no
            // mistake.
            EXPECT_GE(clock::now() - before, chosen.header_timeout * 3 / 4);
            return;
        }
    });
}

TEST_F(server_test, who_is_slow_behind_a_file_has_the_time_for_headers) {
    std::string folder = std::filesystem::temp_directory_path() / "ums-http-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    std::ofstream{folder + "/file"} << "text";
    chosen.root = folder;
    chosen.header_timeout = 200ms;
    chosen.idle_timeout = 1h;
    chosen.write_timeout = 20s;
    serve([](server&, const ums::net::endpoint& at) {
        test_client client{at};
        const std::string file = "GET /file HTTP/1.1\r\nHost: a\r\n\r\n";
        // It begins while the server waits for the rest of a head, too.
        client.send(file + file.substr(0, 10));
        EXPECT_TRUE(client.receive_to("text").starts_with("HTTP/1.1 200 OK\r\n"));
        client.send(file.substr(10) + file.substr(0, 10));
        std::string said = client.receive_to("text");
        if (!said.starts_with("HTTP/1.1 408 ")) {  // This can happen on a very slow machine.
            EXPECT_TRUE(said.starts_with("HTTP/1.1 200 OK\r\n")) << said;
            said = client.receive_all();
        }
        EXPECT_TRUE(said.starts_with("HTTP/1.1 408 Request Timeout\r\n")) << said;
    });
    std::filesystem::remove_all(folder);
}

TEST_F(server_test, who_is_idle_is_let_go) {
    chosen.idle_timeout = 150ms;
    serve([](server&, const ums::net::endpoint& at) {
        test_client idle{at}, late{at};
        (void)late.stream().write_all(request);
        const std::string said = late.receive_to(end_of_hello);
        // On a very slow machine it was idle for too long before.
        EXPECT_TRUE(said.empty() || said.starts_with("HTTP/1.1 200 OK\r\n")) << said;
        EXPECT_EQ(idle.receive_all(), "");
        EXPECT_EQ(late.receive_all(), "");
    });
}

TEST_F(server_test, who_is_slow_with_the_body_is_let_go) {
    chosen.header_timeout = chosen.idle_timeout = 1h;
    chosen.body_timeout = 150ms;
    serve([](server&, const ums::net::endpoint& at) {
        test_client slow{at};
        slow.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
        EXPECT_TRUE(slow.receive_all().starts_with("HTTP/1.1 408 Request Timeout\r\n"));
    });
}

TEST_F(server_test, who_does_not_read_is_let_go) {
    chosen.write_timeout = 150ms;
    chosen.limits.body_bytes = 64 << 20;
    serve([](server&, const ums::net::endpoint& at) {
        test_client client{at};
        const std::string body(32 << 20, 'x');
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body);
        // The client does not read, and sends until that fails.
        while (client.stream().write(body.data(), body.size())) {
        }
    });
}

TEST_F(server_test, who_reads_no_small_answers_is_let_go_too) {
    chosen.write_timeout = 150ms;
    chosen.header_timeout = chosen.idle_timeout = 1h;
    serve([](server&, const ums::net::endpoint& at) {
        test_client client{at};
        std::string many;
        for (int i = 0; i < 1000; ++i) many += request;
        // The client sends requests, and reads nothing, until that fails.
        while (client.stream().write(many.data(), many.size())) {
        }
    });
}

TEST_F(server_test, a_stop_ends_idle_connections_at_once_and_finishes_what_has_begun) {
    chosen.idle_timeout = chosen.grace = 1h;
    // The stop comes as soon as the client knows that its request has begun, which is a race with
    // the server's next steps.
    for (int round = 0; round < 100 && !HasFailure(); ++round)
        serve([](server& s, const ums::net::endpoint& at) {
            test_client idle{at}, used{at}, busy{at};
            used.send(request);
            used.receive_to(end_of_hello);
            busy.send(
                "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                "Expect: 100-continue\r\n\r\n");
            EXPECT_EQ(busy.receive_to("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
            s.stop();
            EXPECT_EQ(idle.receive_all(), "");
            EXPECT_EQ(used.receive_all(), "");
            busy.send("hello");
            const std::string said = busy.receive_all();
            EXPECT_NE(said.find("\r\nConnection: close\r\n"), std::string::npos) << said;
            EXPECT_TRUE(said.ends_with("\r\n\r\nhello")) << said;
            EXPECT_FALSE(ums::net::stream::connect(at));
        });
}

TEST_F(server_test, what_does_not_finish_in_the_time_of_grace_is_ended) {
    chosen.grace = 100ms;
    chosen.header_timeout = 1h;
    serve([](server& s, const ums::net::endpoint& at) {
        test_client busy{at};
        busy.send("GET / HTTP/1.1\r\nHost");
        EXPECT_TRUE(busy.is_silent_for(50ms));
        s.stop();
        EXPECT_EQ(busy.receive_all(), "");
    });
}

TEST_F(server_test, more_connections_than_allowed_wait) {
    chosen.max_connections = 2;
    serve([](server&, const ums::net::endpoint& at) {
        test_client first{at}, second{at};
        for (test_client* c : {&first, &second}) {
            c->send(request);
            c->receive_to(end_of_hello);
        }
        test_client third{at};
        third.send(request);
        EXPECT_TRUE(third.is_silent_for(100ms));
        (void)first.stream().close();
        EXPECT_TRUE(third.receive_to(end_of_hello).starts_with("HTTP/1.1 200 OK\r\n"));
    });
}

TEST_F(server_test, a_file_is_sent_whole) {
    std::string folder = std::filesystem::temp_directory_path() / "ums-http-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    std::string content;
    for (int i = 0; content.size() < 2'000'000; ++i) content += std::to_string(i);
    std::ofstream{folder + "/file"} << content;
    chosen.root = folder;
    serve([&](server&, const ums::net::endpoint& at) {
        test_client client{at};
        for (int i = 0; i < 3; ++i) {
            client.send("GET /file HTTP/1.1\r\nHost: a\r\n\r\n");
            client.receive_to("\r\n\r\n");
            EXPECT_EQ(client.receive(content.size()), content);
        }
        // Kills the client in the middle of a request, again and again; TEST_KILLS=10000 is the
        // long form.
        for (int i = 0; i < sized("TEST_KILLS", 500, 50); ++i) {
            test_client victim{at};
            victim.send("GET /file HTTP/1.1\r\nHost: a\r\n\r\n");
            if (i % 2 == 0) victim.receive(static_cast<std::size_t>(i % 500) * 100);
            victim.kill();
        }
        test_client client_after{at};
        client_after.send("GET /file HTTP/1.1\r\nHost: a\r\n\r\n");
        client_after.receive_to("\r\n\r\n");
        EXPECT_EQ(client_after.receive(content.size()), content);
    });
    std::filesystem::remove_all(folder);
}

// The size of the heap in use. Stacks are not counted: as many stay as were needed at once.
long heap_kib() { return static_cast<long>(mallinfo2().uordblks / 1024); }

// They leave no fiber and no descriptor, which the fixture checks, and no memory. TEST_KILLS=100000
// is the long form.
TEST_F(server_test, killed_clients_leave_nothing) {
    serve([](server&, const ums::net::endpoint& at) {
        std::string many;
        for (int i = 0; i < 2000; ++i) many += request;
        const auto kill = [&](int clients) {
            std::vector<ums::fiber> all;
            for (int f = 0; f < 8; ++f)
                all.emplace_back([&at, &many, f, clients] {
                    for (int i = 0; i < clients / 8; ++i) {
                        test_client victim{at};
                        (void)victim.stream().write(many.data(), many.size() * (f + 1) / 8);
                        victim.kill();
                    }
                });
            for (auto& f : all) f.join();
        };
        const int clients = sized("TEST_KILLS", 800, 80);
        kill(std::min(clients, 5000));
        const long before = heap_kib();
        kill(clients);
        if (!under_tsan && !under_asan) {
            EXPECT_LT(heap_kib() - before, 4096) << clients << " clients";
        }
        std::printf("%d killed clients: %ld KiB more\n", clients, heap_kib() - before);
        test_client after{at};
        after.send(request);
        EXPECT_TRUE(after.receive_to(end_of_hello).starts_with("HTTP/1.1 200 OK\r\n"));
    });
}

TEST_F(server_test, without_a_stack_for_one_more_it_turns_the_client_away_and_goes_on) {
    if (under_tsan || under_asan) GTEST_SKIP() << "a sanitizer needs address space";
    runtime.stack_bytes = 16u << 20;
    serve([](server&, const ums::net::endpoint& at) {
        expect_turned_away(at, [](test_client& client) {
            (void)client.stream().write_all(request);
            return !client.receive_to(end_of_hello).empty();
        });
    });
}

TEST_F(server_test, at_the_limit_of_descriptors_it_waits_without_using_the_cpu) {
    serve([](server&, const ums::net::endpoint& at) {
        test_client before{
            // The engine has its own descriptors now. This one stays, because closing it would free
            // a descriptor.
            at};
        before.send(request);
        before.receive_to(end_of_hello);
        std::vector<ums::net::stream> clients;
        for (int i = 0; i < 8; ++i)
            clients.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        rlimit usual{};
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
        rlimit low = usual;
        low.rlim_cur = static_cast<rlim_t>(clients.back().fd()) + 20;
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
        std::vector<int> all;
        for (int fd = 0; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) all.push_back(fd);

        char answer[1024];
        const auto cpu = [] {
            rusage used{};
            getrusage(RUSAGE_SELF, &used);
            return std::chrono::seconds{used.ru_utime.tv_sec + used.ru_stime.tv_sec} +
                   std::chrono::microseconds{used.ru_utime.tv_usec + used.ru_stime.tv_usec};
        };
        auto start = cpu();
        // The detector of blocks opens a file for a moment at a time. A connection that was
        // accepted with the descriptor of such a moment has taken the last one.
        auto client = clients.begin();
        for (;; ++client) {
            ASSERT_NE(client, clients.end()) << "each of them was accepted";
            start = cpu();
            (void)ums::io::connect(client->fd(), at.data(), at.size()).value();
            client->write_all(request).value();
            const auto got = client->read(answer, sizeof answer, ums::deadline_after(500ms));
            if (!got) {
                EXPECT_EQ(got.error(), std::errc::timed_out);
                break;
            }
        }
        const auto used = cpu() - start;
        if (!under_tsan && !under_asan) {
            EXPECT_LT(used, 25ms);  // 5 %
        }
        for (const int fd : all) close(fd);
        const auto freed = std::chrono::steady_clock::now();
        EXPECT_GT(client->read(answer, sizeof answer).value(), 0u);
        const std::chrono::duration<double, std::milli> delay =
            std::chrono::steady_clock::now() - freed;
        std::printf("%.2f %% of a CPU at the limit; served %.1f ms after it\n",
                    static_cast<double>(used.count()) / 5000, delay.count());
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
    });
}

}  // namespace
