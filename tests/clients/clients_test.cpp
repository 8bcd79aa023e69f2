// SPDX-License-Identifier: MIT
// variants: p1
//
// libpq and hiredis, unmodified, in fibers: 80 connections that ask, hang up and connect again,
// beside fibers that compute. The libraries make, read and close their sockets themselves; the
// fibers only wait. No event may be lost: each wait has a deadline that is never near.
//
// The servers are small ones of this test, unless the environment names others: REAL_REDIS is a
// port, REAL_POSTGRES what libpq calls a connection string (tests/clients/real runs both).

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/fiber.hpp"
#include "ums/io.hpp"
#include "ums/net.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using ums::fiber;
using ums::net::endpoint;
using ums::net::listener;
using ums::net::stream;
namespace io = ums::io;

constexpr int connections = 80, computing = 2, questions = 3;
int rounds() { return scaled(4, 2); }  // How many connections follow each other.

class clients_test : public conserving_test {};

// Longer than a measurement stops this process.
ums::deadline far() { return ums::deadline_after(300s); }

testing::AssertionResult comes(const ums::result<void>& r) {
    if (r) return testing::AssertionSuccess();
    return testing::AssertionFailure() << r.error().message();
}

// --- servers ---

// What one side may read ahead.
class reader {
public:
    explicit reader(stream& from) : from_{from} {}
    // Returns the next `n` bytes; fewer mean the end.
    std::string take(std::size_t n) {
        while (buffer_.size() < n && fill()) continue;
        std::string taken = buffer_.substr(0, n);
        buffer_.erase(0, taken.size());
        return taken;
    }
    std::string line() {
        std::size_t end;
        while ((end = buffer_.find("\r\n")) == buffer_.npos)
            if (!fill()) return "";
        return take(end + 2).substr(0, end);
    }

private:
    bool fill() {
        char piece[512];
        const auto n = from_.read(piece, sizeof piece);
        if (!n || *n == 0) return false;
        buffer_.append(piece, *n);
        return true;
    }
    stream& from_;
    std::string buffer_;
};

// ECHO, as in Redis.
void serve_redis(stream peer) {
    reader in{peer};
    for (;;) {
        const std::string head = in.line();
        if (head.size() < 2 || head[0] != '*') return;
        std::string last;
        for (int i = std::atoi(head.c_str() + 1); i != 0; --i) {
            const std::string size = in.line();
            if (size.size() < 2) return;
            last = in.take(std::strtoul(size.c_str() + 1, nullptr, 10));
            in.take(2);
        }
        if (!peer.write_all("$" + std::to_string(last.size()) + "\r\n" + last + "\r\n")) return;
    }
}

void add_number(std::string& to, std::uint32_t n, int bytes) {
    while (bytes-- != 0) to += static_cast<char>(n >> 8 * bytes);
}
std::string message(char type, const std::string& body) {
    std::string all(1, type);
    add_number(all, static_cast<std::uint32_t>(body.size()) + 4, 4);
    return all + body;
}
std::uint32_t number(std::string_view bytes) {
    std::uint32_t n = 0;
    for (const char c : bytes) n = n << 8 | static_cast<unsigned char>(c);
    return n;
}

// SELECT 'text', as in PostgreSQL, protocol 3.0.
void serve_postgres(stream peer) {
    reader in{peer};
    std::string size = in.take(4);
    if (size.size() < 4) return;
    in.take(number(size) - 4);
    const std::string ready = message('Z', "I");
    if (!peer.write_all(message('R', std::string(4, '\0')) + ready)) return;
    for (;;) {
        const std::string type = in.take(1);
        size = in.take(4);
        if (size.size() < 4) return;
        const std::string body = in.take(number(size) - 4);
        if (type != "Q") return;
        const std::size_t from = body.find('\'') + 1;
        const std::string text = body.substr(from, body.find('\'', from) - from);
        std::string columns;
        add_number(columns, 1, 2);
        columns += std::string("a\0", 2);
        add_number(columns, 0, 4);   // No table,
        add_number(columns, 0, 2);   // no column of it.
        add_number(columns, 25, 4);  // Text,
        add_number(columns, 0xffff, 2);
        add_number(columns, 0xffff'ffff, 4);
        add_number(columns, 0, 2);  // as text.
        std::string row;
        add_number(row, 1, 2);
        add_number(row, static_cast<std::uint32_t>(text.size()), 4);
        row += text;
        if (!peer.write_all(message('T', columns) + message('D', row) +
                            message('C', std::string("SELECT 1\0", 9)) + ready))
            return;
    }
}

class server {
public:
    explicit server(void (*serve)(stream))
        : acceptor_{[this, serve] {
              std::vector<fiber> sessions;
              while (auto peer = door_.accept()) sessions.emplace_back(serve, std::move(*peer));
              for (fiber& f : sessions) f.join();
          }} {}
    ~server() {
        (void)door_.close();
        acceptor_.join();
    }
    server(const server&) = delete;
    server& operator=(const server&) = delete;
    [[nodiscard]] int port() const { return door_.local().value().port(); }

private:
    listener door_{endpoint::loopback(0)};
    fiber acceptor_;
};

// --- the load ---

// Runs talk(i, round) for each connection, again and again, beside fibers that compute.
template <class Talk>
void converse(Talk talk) {
    std::atomic<bool> is_over = false;
    std::vector<fiber> busy;
    for (int i = 0; i < computing; ++i)
        busy.emplace_back([&] {
            std::atomic<std::uint64_t> n = 0;
            while (!is_over) {
                for (int k = 0; k < 20'000; ++k) n.fetch_add(1, std::memory_order_relaxed);
                ums::this_fiber::yield();
            }
        });
    std::vector<fiber> all;
    for (int i = 0; i < connections; ++i)
        all.emplace_back([&, i] {
            for (int round = 0; round < rounds(); ++round) talk(i, round);
        });
    for (fiber& f : all) f.join();
    is_over = true;
    for (fiber& f : busy) f.join();
}

ums::options two() { return {.processors = 2, .stack_bytes = 256 * 1024}; }

std::string question(int i, int round, int n) {
    return "c" + std::to_string(i) + "." + std::to_string(round) + "." + std::to_string(n) +
           std::string(static_cast<std::size_t>(n) * 3000, 'x');
}

// --- hiredis ---

struct free_redis {
    void operator()(redisContext* c) const { redisFree(c); }
    void operator()(redisReply* r) const { freeReplyObject(r); }
};

void ask_redis(int port, int i, int round) {
    const std::unique_ptr<redisContext, free_redis> c{redisConnectNonBlock("127.0.0.1", port)};
    ASSERT_NE(c, nullptr);
    ASSERT_EQ(c->err, 0) << c->errstr;
    ASSERT_TRUE(comes(io::wait_writable(c->fd, far())));
    for (int n = 0; n < questions; ++n) {
        const std::string text = question(i, round, n);
        redisAppendCommand(c.get(), "ECHO %b", text.data(), text.size());
        for (int done = 0;;) {
            ASSERT_EQ(redisBufferWrite(c.get(), &done), REDIS_OK) << c->errstr;
            if (done != 0) break;
            ASSERT_TRUE(comes(io::wait_writable(c->fd, far())));
        }
        void* got = nullptr;
        for (;;) {
            ASSERT_EQ(redisGetReplyFromReader(c.get(), &got), REDIS_OK) << c->errstr;
            if (got != nullptr) break;
            ASSERT_TRUE(comes(io::wait_readable(c->fd, far())));
            ASSERT_EQ(redisBufferRead(c.get()), REDIS_OK) << c->errstr;
        }
        const std::unique_ptr<redisReply, free_redis> reply{static_cast<redisReply*>(got)};
        ASSERT_EQ(reply->type, REDIS_REPLY_STRING);
        ASSERT_EQ(std::string(reply->str, reply->len), text);
    }
}

TEST_F(clients_test, hiredis_loses_no_event) {
    ums::run(two(), [] {
        if (const char* real = std::getenv("REAL_REDIS"); real != nullptr)
            return converse([port = std::atoi(real)](int i, int r) { ask_redis(port, i, r); });
        const server own{serve_redis};
        converse([&](int i, int round) { ask_redis(own.port(), i, round); });
    });
}

// --- libpq ---

struct free_postgres {
    void operator()(PGconn* c) const { PQfinish(c); }
    void operator()(PGresult* r) const { PQclear(r); }
};

void ask_postgres(const std::string& where, int i, int round) {
    const std::unique_ptr<PGconn, free_postgres> owner{PQconnectStart(where.c_str())};
    PGconn* const c = owner.get();
    ASSERT_NE(c, nullptr);
    for (auto is = PGRES_POLLING_WRITING; is != PGRES_POLLING_OK; is = PQconnectPoll(c)) {
        ASSERT_NE(is, PGRES_POLLING_FAILED) << PQerrorMessage(c);
        const auto r = is == PGRES_POLLING_READING ? io::wait_readable(PQsocket(c), far())
                                                   : io::wait_writable(PQsocket(c), far());
        ASSERT_TRUE(comes(r));
    }
    ASSERT_EQ(PQsetnonblocking(c, 1), 0);
    for (int n = 0; n < questions; ++n) {
        const std::string text = question(i, round, n);
        ASSERT_EQ(PQsendQuery(c, ("SELECT '" + text + "'").c_str()), 1) << PQerrorMessage(c);
        while (const int left = PQflush(c)) {
            ASSERT_GE(left, 0) << PQerrorMessage(c);
            const auto events = io::poll(PQsocket(c), POLLIN | POLLOUT, far());
            ASSERT_TRUE(events) << events.error().message();
            if ((*events & POLLIN) != 0) {
                ASSERT_EQ(PQconsumeInput(c), 1) << PQerrorMessage(c);
            }
        }
        std::string got;
        for (;;) {
            while (PQisBusy(c) != 0) {
                ASSERT_TRUE(comes(io::wait_readable(PQsocket(c), far())));
                ASSERT_EQ(PQconsumeInput(c), 1) << PQerrorMessage(c);
            }
            const std::unique_ptr<PGresult, free_postgres> result{PQgetResult(c)};
            if (result == nullptr) break;
            ASSERT_EQ(PQresultStatus(result.get()), PGRES_TUPLES_OK) << PQerrorMessage(c);
            got = PQgetvalue(result.get(), 0, 0);
        }
        ASSERT_EQ(got, text);
    }
}

TEST_F(clients_test, libpq_loses_no_event) {
    ums::run(two(), [] {
        if (const char* real = std::getenv("REAL_POSTGRES"); real != nullptr)
            return converse([=](int i, int round) { ask_postgres(real, i, round); });
        const server own{serve_postgres};
        const std::string where =
            "hostaddr=127.0.0.1 user=me dbname=any sslmode=disable "
            "gssencmode=disable port=" +
            std::to_string(own.port());
        converse([&](int i, int round) { ask_postgres(where, i, round); });
    });
}

}  // namespace
