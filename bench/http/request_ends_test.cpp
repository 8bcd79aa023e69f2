// SPDX-License-Identifier: MIT

// The hand-written HTTP loops must count correctly however the bytes arrive. Otherwise their rows
// would be those of a server that answers too often or never.

#include "request_ends.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

constexpr std::string_view three =
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    "GET / HTTP/1.1\r\n\r\n"
    "GET / HTTP/1.1\r\nA: \r\r\n\r\n";

TEST(request_ends, requests_in_one_piece_are_counted) {
    bench::request_ends ends;
    EXPECT_EQ(ends.count(three), 3U);
    EXPECT_EQ(ends.count(three), 3U);
}

TEST(request_ends, pieces_of_every_size_are_the_same_requests) {
    for (std::size_t size = 1; size <= three.size(); ++size) {
        bench::request_ends ends;
        std::size_t found = 0;
        for (std::size_t at = 0; at < three.size(); at += size)
            found += ends.count(three.substr(at, size));
        EXPECT_EQ(found, 3U) << size;
    }
}

TEST(request_ends, two_pieces_cut_anywhere_are_the_same_requests) {
    for (std::size_t cut = 0; cut <= three.size(); ++cut) {
        bench::request_ends ends;
        const auto found = ends.count(three.substr(0, cut));
        EXPECT_EQ(found + ends.count(three.substr(cut)), 3U) << cut;
    }
}

TEST(request_ends, a_line_is_not_the_end_of_a_request) {
    bench::request_ends ends;
    EXPECT_EQ(ends.count("GET / HTTP/1.1\r\nA: \n\n\r\r\r\n\rB: \r\n"), 0U);
}

}  // namespace
