// SPDX-License-Identifier: MIT
// variants: p1 migrate nosync

// The server and its clients, over sockets, in one runtime. After it has stopped, nothing of either
// is left.

#include "server.hpp"

#include <unistd.h>

#include <chrono>
#include <filesystem>
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

using namespace memcached;
using namespace std::chrono_literals;

class server_test : public conserving_test {
protected:
    void serve(std::function<void(server&)> body) {
        ums::run(runtime, [&] {
            if (chosen.addresses.empty()) chosen.addresses = {"127.0.0.1"};
            if (chosen.port) chosen.port = 0;
            server s{chosen};
            ums::fiber running{[&s] { s.run(); }};
            body(s);
            s.stop();
            running.join();
        });
    }

    options chosen;
    ums::options runtime;
};

TEST_F(server_test, it_stores_and_returns_values) {
    serve([](server& s) {
        test_client client{s.addresses().front()};
        client.send("set a 0 0 3\r\nabc\r\nget a\r\n");
        EXPECT_EQ(client.receive_to("END\r\n"), "STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\n");
        client.send("quit\r\n");
        EXPECT_EQ(client.receive_all(), "");
    });
}

TEST_F(server_test, large_values_are_read_and_written_without_a_copy) {
    chosen.store.item_bytes_max = 16 << 20;
    serve([](server& s) {
        test_client client{s.addresses().front()};
        std::string value;
        for (int i = 0; value.size() < 3'000'000; ++i) value += std::to_string(i);
        const std::string length = std::to_string(value.size());
        client.send("set a 0 0 " + length + "\r\n" + value + "\r\nset b 0 0 " + length + "\r\n" +
                    value + "\r\n");
        EXPECT_EQ(client.receive_to("STORED\r\n"), "STORED\r\n");
        EXPECT_EQ(client.receive_to("STORED\r\n"), "STORED\r\n");
        client.send("get a b a\r\nmn\r\n");
        const std::string part = " 0 " + length + "\r\n" + value + "\r\n";
        EXPECT_EQ(client.receive_to("MN\r\n"),
                  "VALUE a" + part + "VALUE b" + part + "VALUE a" + part + "END\r\nMN\r\n");
        // The item is deleted while it is being sent.
        test_client other{s.addresses().front()};
        client.send("get a\r\n");
        other.send("delete a\r\n");
        EXPECT_EQ(other.receive_to("\r\n"), "DELETED\r\n");
        const std::string said = client.receive_to("END\r\n");
        EXPECT_TRUE(said == "END\r\n" || said == "VALUE a" + part + "END\r\n") << said.size();
    });
}

TEST_F(server_test, many_clients_share_the_store) {
    serve([](server& s) {
        std::vector<ums::fiber> all;
        for (int f = 0; f < 20; ++f)
            all.emplace_back([&s, f] {
                test_client client{s.addresses().front()};
                const std::string key = "key" + std::to_string(f);
                for (int i = 0; i < scaled(200, 20); ++i) {
                    const std::string value = std::to_string(i);
                    client.send("set " + key + " 0 0 " + std::to_string(value.size()) +
                                " noreply\r\n" + value +
                                "\r\nincr count 1\r\nadd count 0 0 1 noreply\r\n0\r\nget " + key +
                                "\r\n");
                    const std::string said = client.receive_to("END\r\n");
                    ASSERT_TRUE(said.ends_with("\r\n" + value + "\r\nEND\r\n")) << said;
                }
            });
        for (auto& f : all) f.join();
        test_client client{s.addresses().front()};
        client.send("get count\r\nstats\r\n");
        const std::string said = client.receive_to("END\r\n");
        EXPECT_EQ(said.find("VALUE count 0 "), 0u) << said;
        EXPECT_NE(client.receive_to("END\r\n").find("STAT curr_items 21\r\n"), std::string::npos);
    });
}

TEST_F(server_test, too_many_connections_are_told_so) {
    chosen.max_connections = 2;
    serve([](server& s) {
        const auto at = s.addresses().front();
        test_client first{at}, second{at};
        for (test_client* c : {&first, &second}) {
            c->send("mn\r\n");
            EXPECT_EQ(c->receive_to("\r\n"), "MN\r\n");
        }
        test_client third{at};
        EXPECT_EQ(third.receive_all(), "ERROR Too many open connections\r\n");
    });
}

TEST_F(server_test, the_limit_holds_for_connections_that_come_together) {
    chosen.max_connections = 5;
    chosen.addresses = {"127.0.0.1"};
    chosen.port = 0;
    ums::run([&] {
        server s{chosen};
        const auto at = s.addresses().front();
        std::vector<test_client> all;
        // The server listens, and does not accept yet.
        for (int i = 0; i < 50; ++i) all.emplace_back(at);
        ums::fiber running{[&s] { s.run(); }};
        std::vector<test_client> served;
        for (test_client& client : all) {
            (void)client.stream().write_all("mn\r\n");
            const std::string said = client.receive_to("\r\n");
            if (said == "MN\r\n") served.push_back(std::move(client));
            // No bytes came: a socket that is written to after it was closed may lose what it had.
            else
                EXPECT_TRUE(said.empty() || said.starts_with("ERROR Too many")) << said;
        }
        EXPECT_EQ(served.size(), 5u);
        // A client whose connection is closed has left a place.
        for (test_client& client : served) {
            client.send("quit\r\n");
            EXPECT_EQ(client.receive_all(), "");
            test_client next{at};
            next.send("mn\r\nquit\r\n");
            EXPECT_EQ(next.receive_all(), "MN\r\n");
        }
        s.stop();
        running.join();
    });
}

TEST_F(server_test, without_a_stack_for_one_more_it_turns_the_client_away_and_goes_on) {
    if (under_tsan || under_asan) GTEST_SKIP() << "a sanitizer needs address space";
    runtime.stack_bytes = 16u << 20;
    serve([](server& s) {
        expect_turned_away(s.addresses().front(), [](test_client& client) {
            (void)client.stream().write_all("mn\r\n");
            return client.receive_to("\r\n") == "MN\r\n";
        });
    });
}

TEST_F(server_test, it_listens_on_a_unix_socket_also_where_one_was_left_behind) {
    std::string folder = std::filesystem::temp_directory_path() / "ums-memcached-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    chosen.unix_path = folder + "/socket";
    for (int i = 0; i < 2; ++i) {
        serve([](server& s) {
            test_client client{s.addresses().front()};
            client.send("version\r\n");
            EXPECT_EQ(client.receive_to("\r\n"), "VERSION 1.6.18\r\n");
        });
        EXPECT_FALSE(std::filesystem::exists(chosen.unix_path));
        // Leaves a socket as a server does that was killed.
        const int left = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const auto at = ums::net::endpoint::unix_socket(chosen.unix_path).value();
        ASSERT_EQ(bind(left, at.data(), at.size()), 0);
        close(left);
    }
    std::filesystem::remove_all(folder);
}

TEST_F(server_test, it_answers_datagrams) {
    chosen.udp_port = 0;
    serve([](server& s) {
        auto client = ums::net::datagram::bind(ums::net::endpoint::loopback(0)).value();
        const auto say = [&](std::string_view text) {
            std::string datagram{"\x12\x34\0\0\0\1\0\0", 8};
            datagram += text;
            (void)client.send_to(datagram.data(), datagram.size(), s.udp_addresses().front())
                .value();
            std::string said;
            for (unsigned i = 0, count = 1; i < count; ++i) {
                char reply[2000];
                const std::size_t got = client.receive(reply, sizeof reply).value();
                EXPECT_EQ(std::string_view(reply, 2), "\x12\x34");
                EXPECT_EQ(static_cast<unsigned char>(reply[3]), i);
                count = static_cast<unsigned char>(reply[5]);
                said.append(reply + 8, got - 8);
            }
            return said;
        };
        EXPECT_EQ(say("set a 0 0 3\r\nabc\r\n"), "STORED\r\n");
        EXPECT_EQ(say("get a\r\n"), "VALUE a 0 3\r\nabc\r\nEND\r\n");
        test_client tcp{s.addresses().front()};
        tcp.send("set b 0 0 5000\r\n" + std::string(5000, 'b') + "\r\n");
        EXPECT_EQ(tcp.receive_to("\r\n"), "STORED\r\n");
        EXPECT_EQ(say("get b\r\n"), "VALUE b 0 5000\r\n" + std::string(5000, 'b') + "\r\nEND\r\n");
    });
}

TEST_F(server_test, without_a_port_there_is_no_tcp) {
    chosen.port.reset();
    chosen.udp_port = 0;
    serve([](server& s) {
        EXPECT_TRUE(s.addresses().empty());
        EXPECT_EQ(s.udp_addresses().size(), 1u);
    });
}

TEST_F(server_test, killed_clients_leave_nothing) {
    // A value that is half there needs memory, too; nothing is evicted.
    chosen.store.memory_bytes = 1u << 30;
    serve([](server& s) {
        const auto at = s.addresses().front();
        {
            test_client client{at};
            client.send("set a 0 0 900000\r\n" + std::string(900'000, 'a') + "\r\n");
            EXPECT_EQ(client.receive_to("\r\n"), "STORED\r\n");
        }
        std::vector<ums::fiber> all;
        for (int f = 0; f < 4; ++f)
            all.emplace_back([&at, f] {
                for (int i = 0; i < scaled(100, 10); ++i) {
                    test_client victim{at};
                    victim.send(f % 2 == 0 ? "get a a a a a a a a\r\n"
                                           : "set a 0 0 900000\r\nhalf of it");
                    if (f == 2) victim.receive(1000);
                    victim.kill();
                }
            });
        for (auto& f : all) f.join();
    });
}

}  // namespace
