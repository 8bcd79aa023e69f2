// SPDX-License-Identifier: MIT

// The conversations of one client, without a socket; the recorded session is memcached's own.

#include "session.hpp"

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace memcached;

// A store, a clock that the test moves, and one client.
class session_test : public testing::Test {
protected:
    // Sends `input` in pieces of `step` bytes, as they might arrive. Returns the reply.
    std::string say(std::string_view input, std::size_t step = std::string_view::npos) {
        std::string said;
        std::size_t at = 0;
        while (!client.is_over()) {
            const std::size_t taken = client.take(buffer_, replies_);
            buffer_.erase(0, taken);
            said += sent();
            if (client.is_over()) break;
            if (taken != 0 && !buffer_.empty()) continue;
            if (at == input.size()) return said;
            const std::string_view more = input.substr(at, step);
            at += more.size();
            if (const auto into = client.wanted(); buffer_.empty() && into.size() > more.size()) {
                std::copy(more.begin(), more.end(), into.begin());
                client.filled(more.size(), replies_);
            } else {
                buffer_ += more;
            }
        }
        client.reset();
        buffer_.clear();
        return said + "<closed>";
    }

    memcached::clock time = memcached::clock::stopped();
    store items{options()};
    service all{items, time};
    session client{all};

    static store_options options() { return {.memory_bytes = 64u << 20}; }

private:
    std::string sent() {
        std::string said;
        iovec pieces[3];
        while (const unsigned n = replies_.pieces(pieces, 3)) {
            std::size_t bytes = 0;
            for (unsigned i = 0; i < n; ++i) {
                said.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
                bytes += pieces[i].iov_len;
            }
            replies_.sent(bytes);
        }
        replies_.clear();
        return said;
    }

    replies replies_;
    std::string buffer_;
};

std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '{' && i + 2 < text.size() && text[i + 2] == '*') {
            const std::size_t end = text.find('}', i);
            out.append(std::strtoul(&text[i + 3], nullptr, 10), text[i + 1]);
            i = end;
        } else if (text[i] != '\\') {
            out += text[i];
        } else if (const char c = text[++i]; c == 'x') {
            out += static_cast<char>(std::stoi(std::string{text.substr(i + 1, 2)}, nullptr, 16));
            i += 2;
        } else {
            out += c == 'r' ? '\r' : c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
    }
    return out;
}

struct exchange {
    int line;
    std::string sent, expected;
};

std::vector<exchange> recorded_session() {
    std::vector<exchange> all;
    std::ifstream file{std::string{EXAMPLE_FOLDER} + "/recorded_session.txt"};
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        if (line.starts_with("> ")) all.push_back({number, unescaped(line.substr(2)), ""});
        if (line.starts_with("< ")) all.back().expected = unescaped(line.substr(2));
    }
    return all;
}

void replay(auto& test_say, std::size_t step) {
    const std::vector<exchange> all = recorded_session();
    ASSERT_GT(all.size(), 100u);
    for (const exchange& e : all)
        EXPECT_EQ(test_say(e.sent, step), e.expected) << "recorded_session.txt:" << e.line;
}

TEST_F(session_test, the_recorded_session_gets_the_recorded_replies) {
    const auto speak = [this](std::string_view input, std::size_t step) {
        return say(input, step);
    };
    replay(speak, std::string_view::npos);
}

TEST_F(session_test, it_gets_them_too_when_it_arrives_in_pieces_of_seven_bytes) {
    const auto speak = [this](std::string_view input, std::size_t) {
        return say(input, input.size() > 10'000 ? 1000 : 7);
    };
    replay(speak, 7);
}

TEST_F(session_test, it_gets_them_too_when_it_arrives_byte_by_byte) {
    const auto speak = [this](std::string_view input, std::size_t) {
        return say(input, input.size() > 10'000 ? 997 : 1);
    };
    replay(speak, 1);
}

TEST_F(session_test, an_item_is_there_until_its_time_has_passed) {
    EXPECT_EQ(say("set a 0 10 1\r\nx\r\n"), "STORED\r\n");
    time.advance(9);
    EXPECT_EQ(say("mg a t v\r\n"), "VA 1 t1\r\nx\r\n");
    time.advance(1);
    EXPECT_EQ(say("get a\r\n"), "END\r\n");
    EXPECT_EQ(say("add a 0 0 1\r\ny\r\n"), "STORED\r\n");
}

TEST_F(session_test, an_expiry_above_thirty_days_is_a_unix_time) {
    const std::string soon = std::to_string(std::time(nullptr) + 1000);
    EXPECT_EQ(say("set a 0 " + soon + " 1\r\nx\r\n"), "STORED\r\n");
    time.advance(900);
    EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    time.advance(102);
    EXPECT_EQ(say("get a\r\n"), "END\r\n");
    EXPECT_EQ(say("set a 0 2592000 1\r\nx\r\n"), "STORED\r\n");
    time.advance(2591999);
    EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    time.advance(1);
    EXPECT_EQ(say("get a\r\n"), "END\r\n");
}

TEST_F(session_test, touch_and_gat_give_an_item_more_time) {
    say("set a 0 10 1\r\nx\r\n");
    time.advance(9);
    EXPECT_EQ(say("touch a 100\r\n"), "TOUCHED\r\n");
    time.advance(50);
    EXPECT_EQ(say("gat 100 a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    time.advance(99);
    EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    time.advance(1);
    EXPECT_EQ(say("get a\r\n"), "END\r\n");
}

TEST_F(session_test, a_delayed_flush_takes_what_was_there_when_its_time_comes) {
    say("set a 0 0 1\r\nx\r\n");
    EXPECT_EQ(say("flush_all 10\r\n"), "OK\r\n");
    time.advance(8);
    EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    time.advance(2);
    EXPECT_EQ(say("get a\r\n"), "END\r\n");
    say("set a 0 0 1\r\nx\r\n");
    EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
}

TEST_F(session_test, what_a_flush_took_does_not_come_back_with_the_next) {
    for (const char* key : {"a", "b"}) say("set " + std::string{key} + " 0 0 1\r\nx\r\n");
    say("flush_all 2\r\n");
    time.advance(3);
    EXPECT_EQ(say("get a\r\n"), "END\r\n");
    say("set c 0 0 1\r\nx\r\n");
    EXPECT_EQ(say("flush_all 100\r\n"), "OK\r\n");
    EXPECT_EQ(say("get b\r\n"), "END\r\n");
    EXPECT_EQ(say("get c\r\n"), "VALUE c 0 1\r\nx\r\nEND\r\n");
    time.advance(100);
    EXPECT_EQ(say("get c\r\n"), "END\r\n");
}

TEST_F(session_test, the_last_flush_takes_the_place_of_one_to_come) {
    say("flush_all 3\r\n");
    say("flush_all\r\n");
    say("set a 0 0 1\r\nx\r\n");
    time.advance(10);
    EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    say("flush_all 3\r\n");
    say("flush_all 30\r\n");
    time.advance(10);
    EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    time.advance(20);
    EXPECT_EQ(say("get a\r\n"), "END\r\n");
}

TEST_F(session_test, a_flush_one_second_later_is_one_now) {
    EXPECT_EQ(say("ms a 1 c\r\nx\r\nflush_all 1\r\nget a\r\n"), "HD c1\r\nOK\r\nEND\r\n");
    EXPECT_EQ(say("ms a 1 c\r\nx\r\n"), "HD c3\r\n");
}

TEST_F(session_test, a_recache_token_goes_to_one_client) {
    say("ms a 1 T100\r\nx\r\n");
    EXPECT_EQ(say("mg a R30 v\r\n"), "VA 1\r\nx\r\n");
    time.advance(80);
    EXPECT_EQ(say("mg a R30 v\r\nmg a R30 v\r\n"), "VA 1 W\r\nx\r\nVA 1 Z\r\nx\r\n");
}

TEST_F(session_test, a_refused_command_that_says_noreply_gets_none) {
    EXPECT_EQ(say("verbosity 0 noreply\r\ncache_memlimit 64 noreply\r\nmn\r\n"), "MN\r\n");
    EXPECT_EQ(say("verbosity 0\r\nverbosity noreply\r\n"), "ERROR\r\nERROR\r\n");
}

TEST_F(session_test, a_line_without_an_end_closes_the_session_unless_it_is_a_get) {
    EXPECT_EQ(say(std::string(2048, 'x')), "");
    EXPECT_EQ(say("x"), "<closed>");
    std::string keys = "get";
    for (int i = 0; i < 5000; ++i) keys += " key";
    EXPECT_EQ(say(keys, 100), "");
    EXPECT_EQ(say("\r\n"), "END\r\n");
    EXPECT_EQ(say("gets " + std::string((1 << 20), 'x')), "<closed>");
}

TEST_F(session_test, much_output_is_sent_before_more_input_is_taken) {
    replies r;
    say("set a 0 0 100000\r\n" + std::string(100000, 'x') + "\r\n");
    std::string input;
    for (int i = 0; i < 100; ++i) input += "get a\r\n";
    EXPECT_LT(client.take(input, r), 5 * 7u);
    EXPECT_GE(r.bytes(), session::much);
}

TEST_F(session_test, a_value_that_is_being_sent_survives_its_item) {
    const std::string value(5000, 'v');
    say("set a 0 0 5000\r\n" + value + "\r\n");
    replies r;
    client.take("get a\r\n", r);
    say("delete a\r\n");
    say("set a 0 0 5000\r\n" + std::string(5000, 'w') + "\r\n");
    iovec pieces[4];
    ASSERT_EQ(r.pieces(pieces, 4), 3u);
    EXPECT_EQ(std::string(static_cast<char*>(pieces[1].iov_base), 5000), value);
}

}  // namespace
