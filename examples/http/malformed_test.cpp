// SPDX-License-Identifier: MIT

// What RFC 9112 (HTTP/1.1) and RFC 9110 say of odd and malformed requests: a table of requests and the statuses
// of the answers. Each is sent whole and byte by byte. Behind each comes a second request, which must not be
// answered when the first has made the framing doubtful: that would be a smuggled request.

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "session.hpp"

namespace {

using namespace http;

struct sample {
    std::string_view name;
    std::string bytes;
    std::vector<int> statuses;  // Of all answers; a -1 at the end: the connection stays open.
};

std::string get(std::string_view headers) {
    return "GET /plaintext HTTP/1.1\r\nHost: a\r\n" + std::string{headers} + "\r\n";
}
std::string post(std::string_view headers, std::string_view body) {
    return "POST /echo HTTP/1.1\r\nHost: a\r\n" + std::string{headers} + "\r\n" + std::string{body};
}
std::string chunked(std::string_view body) { return post("Transfer-Encoding: chunked\r\n", body); }
std::string line(std::string_view request_line) {
    return std::string{request_line} + "\r\nHost: a\r\n\r\n";
}

const std::string second = "GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n";

std::vector<sample> all() {
    using namespace std::string_literals;
    const std::vector<int> good = {200, 200, -1}, bad = {400};
    const std::string many(9000, 'x');
    std::string headers_101;
    for (int i = 0; i < 101; ++i) headers_101 += "A" + std::to_string(i) + ": b\r\n";
    return {
        // 9112 2.2, 2.3, 3: the request line.
        {"a plain request", line("GET /plaintext HTTP/1.1"), good},
        {"an empty line in front is ignored", "\r\n" + second, good},
        {"nine empty lines in front", "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n" + second, bad},
        {"a blank in front", line(" GET /plaintext HTTP/1.1"), bad},
        {"two blanks behind the method", line("GET  /plaintext HTTP/1.1"), bad},
        {"two blanks before the version", line("GET /plaintext  HTTP/1.1"), bad},
        {"a blank behind the version", line("GET /plaintext HTTP/1.1 "), bad},
        {"a tab behind the method", line("GET\t/plaintext HTTP/1.1"), bad},
        {"a blank in the target", line("GET /plain text HTTP/1.1"), bad},
        {"no version: HTTP/0.9", "GET /plaintext\r\n\r\n", bad},
        {"only a method", "GET\r\n\r\n", bad},
        {"a method in small letters is another", line("get /plaintext HTTP/1.1"), {501}},
        {"a method that is not known", line("BREW /plaintext HTTP/1.1"), {501}},
        {"a method that is not supported", line("DELETE /plaintext HTTP/1.1"), {501}},
        {"a method that is no token", line("G@T /plaintext HTTP/1.1"), bad},
        {"CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", {501}},
        {"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {505}},
        {"HTTP/2.0", line("GET /plaintext HTTP/2.0"), {505}},
        {"HTTP/0.9 in words", line("GET /plaintext HTTP/0.9"), {505}},
        {"HTTP/1.2 is read as HTTP/1.1", line("GET /plaintext HTTP/1.2"), good},
        {"HTTP/1.10", line("GET /plaintext HTTP/1.10"), bad},
        {"HTTP/11", line("GET /plaintext HTTP/11"), bad},
        {"http/1.1 in small letters", line("GET /plaintext http/1.1"), bad},
        {"another protocol", line("GET /plaintext RTSP/1.0"), bad},
        {"a version with letters", line("GET /plaintext HTTP/1.x"), bad},
        {"a line feed alone ends the request line", "GET /plaintext HTTP/1.1\nHost: a\r\n\r\n",
         bad},
        {"a carriage return in the request line", "GET /plain\rtext HTTP/1.1\r\nHost: a\r\n\r\n",
         bad},
        {"a NUL in the request line", "GET /plain\0text HTTP/1.1\r\nHost: a\r\n\r\n"s, bad},
        {"a byte above 127 in the target", line("GET /\xe9 HTTP/1.1"), bad},
        {"a tab in the target", line("GET /plain\ttext HTTP/1.1"), bad},
        {"a control in the target", line("GET /\x01 HTTP/1.1"), bad},
        {"a delete in the query", line("GET /plaintext?\x7f HTTP/1.1"), bad},
        {"a control in a relative target with a query", line("GET x?\x1b HTTP/1.1"), bad},
        {"marks that old clients do not encode", line("GET /plaintext?\"<>[\\]^`{|}~ HTTP/1.1"),
         good},
        {"TLS on this port", "\x16\x03\x01\x02\x00\x01\x00\x01\n"s, bad},

        // 9112 3.2: the target.
        {"absolute-form", "GET http://b/plaintext HTTP/1.1\r\nHost: a\r\n\r\n", good},
        {"absolute-form in capitals, with a port", line("GET HTTP://B:80/plaintext HTTP/1.1"),
         good},
        {"absolute-form without a path", line("GET http://b HTTP/1.1"), good},
        {"absolute-form with a query only", line("GET http://b?x HTTP/1.1"), good},
        {"absolute-form without a host", line("GET http:///plaintext HTTP/1.1"), bad},
        {"absolute-form with user and password", line("GET http://u:p@b/ HTTP/1.1"), bad},
        {"absolute-form of another scheme", line("GET ftp://b/plaintext HTTP/1.1"), bad},
        {"absolute-form still needs a Host", "GET http://b/plaintext HTTP/1.1\r\n\r\n", bad},
        {"authority-form with GET", line("GET a:80 HTTP/1.1"), bad},
        {"asterisk-form with GET", line("GET * HTTP/1.1"), bad},
        {"asterisk-form with OPTIONS", line("OPTIONS * HTTP/1.1"), {204, 200, -1}},
        {"a relative target", line("GET plaintext HTTP/1.1"), bad},
        {"a fragment", line("GET /plaintext#x HTTP/1.1"), bad},
        {"a query", line("GET /plaintext?a=b&c HTTP/1.1"), good},
        {"a target that is too long", line("GET /" + many + " HTTP/1.1"), {414}},
        {"a request line without an end", "GET /" + many + many, {414}},

        // 9112 3.2, 9110 7.2: Host.
        {"no Host", "GET /plaintext HTTP/1.1\r\n\r\n", bad},
        {"no Host with HTTP/1.0", "GET /plaintext HTTP/1.0\r\n\r\n", {200}},
        {"two Hosts", get("Host: b\r\n"), bad},
        {"two equal Hosts", get("Host: a\r\n"), bad},
        {"two Hosts with HTTP/1.0", "GET /plaintext HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", bad},
        {"an empty Host", "GET /plaintext HTTP/1.1\r\nHost:\r\n\r\n", good},
        {"a Host with a blank", "GET /plaintext HTTP/1.1\r\nHost: a b\r\n\r\n", bad},
        {"a Host with a path", "GET /plaintext HTTP/1.1\r\nHost: a/b\r\n\r\n", bad},
        {"a Host with a user", "GET /plaintext HTTP/1.1\r\nHost: u@a\r\n\r\n", bad},
        {"a list of Hosts", "GET /plaintext HTTP/1.1\r\nHost: a, b\r\n\r\n", bad},
        {"a Host with a port of letters", "GET /plaintext HTTP/1.1\r\nHost: a:b\r\n\r\n", bad},
        {"an IPv6 Host", "GET /plaintext HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", good},
        {"half an IPv6 Host", "GET /plaintext HTTP/1.1\r\nHost: [::1\r\n\r\n", bad},

        // 9112 5: fields.
        {"a blank before the colon", get("A : b\r\n"), bad},
        {"a tab before the colon", get("A\t: b\r\n"), bad},
        {"a blank in a name", get("A B: c\r\n"), bad},
        {"a line without a colon", get("A\r\n"), bad},
        {"an empty name", get(": b\r\n"), bad},
        {"a name that is no token", get("A(b): c\r\n"), bad},
        {"a byte above 127 in a name", get("\xc3\xa9: c\r\n"), bad},
        {"a folded header", get("A: b\r\n c\r\n"), bad},
        {"a header folded by a tab", get("A: b\r\n\tc\r\n"), bad},
        {"a blank before the first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", bad},
        {"a line feed alone ends a header", get("A: b\nC: d\r\n"), bad},
        {"a carriage return in a value", get("A: b\rc\r\n"), bad},
        {"a carriage return alone ends a header", get("A: b\rC: d\r\n"), bad},
        {"a NUL in a value", get("A: b\0c\r\n"s), bad},
        {"a control character in a value",
         get("A: b\x01"
             "c\r\n"),
         bad},
        {"a line feed alone ends the head", "GET /plaintext HTTP/1.1\r\nHost: a\r\n\n", bad},
        {"bytes above 127 in a value", get("A: \xe9\r\n"), good},
        {"an empty value, blanks around a value", get("A:\r\nB: \t b \t\r\n"), good},
        {"a header that is too long", get("A: " + many + many + "\r\n"), {431}},
        {"headers that are too long together",
         get("A: " + many + "\r\nB: " + many + "\r\n"),
         {431}},
        {"too many headers", get(headers_101), {431}},

        // 9112 6: the framing of bodies.
        {"a length", post("Content-Length: 5\r\n", "hello"), good},
        {"a length of 0", post("Content-Length: 0\r\n", ""), good},
        {"zeros before a length", post("Content-Length: 0005\r\n", "hello"), good},
        {"no length: no body", post("", ""), good},
        {"a GET with a body", get("Content-Length: 5\r\n") + "hello", good},
        {"a length with a sign", post("Content-Length: +5\r\n", "hello"), bad},
        {"a negative length", post("Content-Length: -5\r\n", "hello"), bad},
        {"a length in hexadecimal", post("Content-Length: 0x5\r\n", "hello"), bad},
        {"an empty length", post("Content-Length:\r\n", "hello"), bad},
        {"a length with a blank", post("Content-Length: 5 5\r\n", "hello"), bad},
        {"a length with a fraction", post("Content-Length: 5.0\r\n", "hello"), bad},
        {"a list of equal lengths", post("Content-Length: 5, 5\r\n", "hello"), bad},
        {"a list of lengths", post("Content-Length: 5, 6\r\n", "hello"), bad},
        {"two equal lengths", post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), bad},
        {"two lengths", post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"), bad},
        {"a length that overflows", post("Content-Length: 18446744073709551621\r\n", "hello"), bad},
        {"a length above the limit", post("Content-Length: 1048577\r\n", ""), {413}},
        {"both length and chunks",
         post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), bad},
        {"both chunks and length",
         post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"), bad},
        {"chunks", chunked("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"), good},
        {"chunks in capitals", post("Transfer-Encoding: CHUNKED\r\n", "0\r\n\r\n"), good},
        {"chunked is not the last coding",
         post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), bad},
        {"chunked twice", post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), bad},
        {"chunked in two headers",
         post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), bad},
        {"a blank behind a length, and behind chunked",
         post("Content-Length: 5 \r\n", "hello") +
             post("Transfer-Encoding: chunked \r\n", "0\r\n\r\n"),
         {200, 200, 200, -1}},
        // It may be there; but not every server knows that.
        {"a tab behind a length", post("Content-Length: 5\t\r\n", "hello"), bad},
        {"a tab behind chunked", post("Transfer-Encoding: chunked\t\r\n", "0\r\n\r\n"), bad},
        {"identity behind chunked",
         post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"), bad},
        {"another coding", post("Transfer-Encoding: gzip\r\n", "x"), {501}},
        {"another coding, then chunked",
         post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
         {501}},
        {"identity", post("Transfer-Encoding: identity\r\n", "x"), {501}},
        {"xchunked", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), {400}},
        {"a vertical tab before chunked", post("Transfer-Encoding:\vchunked\r\n", "0\r\n\r\n"),
         bad},
        {"a blank before the colon of Transfer-Encoding",
         post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), bad},
        {"chunks with HTTP/1.0",
         "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", bad},

        // 9112 7.1: chunks.
        {"an extension", chunked("5;a\r\nhello\r\n0;b=c\r\n\r\n"), good},
        {"a quoted extension", chunked("5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n"), good},
        {"a trailer", chunked("0\r\nA: b\r\nC: d\r\n\r\n"), good},
        {"a trailer that looks like framing", chunked("0\r\nContent-Length: 5\r\n\r\n"), good},
        {"a coding in the trailer", chunked("0\r\nTransfer-Encoding: chunked\r\n\r\n"), bad},
        {"another coding in the trailer, and a line feed alone",
         chunked("0\r\nTransfer-Encoding: gzip\r\nA: b\n\r\n"), bad},
        {"a Connection in the trailer says nothing of it",
         chunked("0\r\nConnection: close\r\n\r\n"), good},
        {"a trailer leaves nothing for the next request",
         chunked("0\r\nConnection: close\r\nContent-Length: 5\r\n\r\n") +
             post("Content-Length: 5\r\n", "hello"),
         {200, 200, 200, -1}},
        {"an upgrade in the trailer", chunked("0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
         good},
        {"a size in capitals, with zeros", chunked("00A\r\n0123456789\r\n0\r\n\r\n"), good},
        {"no size", chunked("\r\nhello\r\n0\r\n\r\n"), bad},
        {"a size of letters", chunked("g\r\nhello\r\n0\r\n\r\n"), bad},
        {"a size with 0x", chunked("0x5\r\nhello\r\n0\r\n\r\n"), bad},
        {"a size with a sign", chunked("+5\r\nhello\r\n0\r\n\r\n"), bad},
        {"a negative size", chunked("-5\r\nhello\r\n0\r\n\r\n"), bad},
        {"a blank before a size", chunked(" 5\r\nhello\r\n0\r\n\r\n"), bad},
        {"a blank behind a size", chunked("5 \r\nhello\r\n0\r\n\r\n"), bad},
        {"a size that overflows", chunked("10000000000000005\r\nhello\r\n0\r\n\r\n"), bad},
        {"a size above the limit", chunked("100001\r\n"), {413}},
        {"the largest size", chunked("ffffffffffffffff\r\n"), {413}},
        {"a line feed alone ends a size", chunked("5\nhello\r\n0\r\n\r\n"), bad},
        {"a carriage return alone ends a size", chunked("5\rhello\r\n0\r\n\r\n"), bad},
        {"no line end behind a chunk", chunked("5\r\nhello0\r\n\r\n"), bad},
        {"a chunk longer than its size", chunked("5\r\nhello!\r\n0\r\n\r\n"), bad},
        {"a chunk shorter than its size", chunked("5\r\nhell\r\n0\r\n\r\n"), bad},
        {"a line feed alone behind a chunk", chunked("5\r\nhello\n0\r\n\r\n"), bad},
        {"a line feed alone in an extension", chunked("5;a\nhello\r\n0\r\n\r\n"), bad},
        {"a line feed in a quoted extension", chunked("5;a=\"b\nc\"\r\nhello\r\n0\r\n\r\n"), bad},
        {"a line feed alone ends the chunks", chunked("0\r\n\n"), bad},
        {"a line feed alone in the trailer", chunked("0\r\nA: b\n\r\n"), bad},
        {"a folded trailer", chunked("0\r\nA: b\r\n c\r\n\r\n"), bad},
        {"a trailer without a colon", chunked("0\r\nA\r\n\r\n"), bad},
        {"an extension without an end", chunked("5;" + many), bad},
        {"a trailer without an end", chunked("0\r\nA: " + many), bad},

        // 9110 10.1.1, 9112 9.3, 9.6: Expect, persistence.
        {"an expectation that is not known", get("Expect: magic\r\n"), {417}},
        {"Connection: close", get("Connection: close\r\n"), {200}},
        {"Connection: Close, in a list", get("Connection: x, Close\r\n"), {200}},
        {"Connection: close, and a tab", get("Connection: close\t\r\n"), {200}},
        {"Connection: close in an odd list", get("Connection: ,x ,\tclose\t,\r\n"), {200}},
        {"Connection: keep-alive and close", get("Connection: keep-alive, close\r\n"), {200}},
        {"Connection: close, then keep-alive",
         get("Connection: close\r\nConnection: keep-alive\r\n"),
         {200}},
        {"Connection: something like close", get("Connection: closed, close-x, x close\r\n"), good},
        {"Proxy-Connection is for proxies", get("Proxy-Connection: close\r\n"), good},
        {"HTTP/1.0", "GET /plaintext HTTP/1.0\r\nHost: a\r\n\r\n", {200}},
        {"HTTP/1.0 with keep-alive and close",
         "GET /plaintext HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
         {200}},
        {"HTTP/1.0 with close, then keep-alive",
         "GET /plaintext HTTP/1.0\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n",
         {200}},
        {"HTTP/1.0 with keep-alive in a list, and a body",
         "POST /echo HTTP/1.0\r\nConnection: x, Keep-Alive\t\r\nContent-Length: 2\r\n\r\nab", good},
        {"HTTP/1.0 with keep-alive",
         "GET /plaintext HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", good},
        {"an upgrade that is not known", get("Connection: upgrade\r\nUpgrade: x\r\n"), good},
        {"an upgrade with a body",
         get("Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n") + "ab", good},
    };
}

// The statuses of the answers in `text`.
std::vector<int> statuses(std::string_view text) {
    std::vector<int> found;
    while (!text.empty()) {
        EXPECT_TRUE(text.starts_with("HTTP/1.1 ")) << text;
        found.push_back(std::stoi(std::string{text.substr(9, 3)}));
        const std::size_t end = text.find("\r\n\r\n");
        EXPECT_NE(end, std::string_view::npos) << text;
        if (end == std::string_view::npos) break;
        const std::size_t length = text.substr(0, end).find("Content-Length: ");
        const std::size_t body =
            length == std::string_view::npos
                ? 0
                : std::stoul(std::string{text.substr(length + 16, end - length - 16)});
        text.remove_prefix(end + 4 + body);
    }
    return found;
}

std::vector<int> talk(site& where, std::string_view input, std::size_t step) {
    session client{where};
    output out;
    std::string buffer, said;
    for (std::size_t at = 0; at < input.size() && !client.is_over();) {
        buffer += input.substr(at, step);
        at += step;
        while (!buffer.empty() && !client.is_over()) {
            const std::size_t taken = client.take(buffer, out);
            buffer.erase(0, taken);
            said += out.text;
            const bool idle = taken == 0 && out.empty();
            out = {};
            if (idle) break;
        }
    }
    std::vector<int> found = statuses(said);
    if (!client.is_over()) found.push_back(-1);
    return found;
}

TEST(malformed_test, each_gets_the_status_that_the_rfc_asks_for) {
    site where;
    for (const sample& s : all()) {
        EXPECT_EQ(talk(where, s.bytes + second, std::string::npos / 2), s.statuses) << s.name;
        EXPECT_EQ(talk(where, s.bytes + second, 1), s.statuses) << s.name << ", byte by byte";
    }
}

TEST(malformed_test, there_are_many_of_them) { EXPECT_GE(all().size(), 130u); }

}  // namespace
