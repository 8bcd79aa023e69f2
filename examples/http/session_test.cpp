// SPDX-License-Identifier: MIT

#include "session.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace {

using namespace http;

class session_test : public testing::Test {
protected:
    session_test() : folder_(make_folder()) {}
    ~session_test() override { std::filesystem::remove_all(folder_); }

    // Sends `input`; returns the answers, without Server and Date.
    std::string say(std::string_view input) {
        buffer_ += input;
        std::string said;
        while (!buffer_.empty() && !client->is_over()) {
            output out;
            const std::size_t taken = client->take(buffer_, out);
            buffer_.erase(0, taken);
            if (taken == 0 && out.empty()) break;
            said += sent(out);
        }
        return said;
    }
    std::string sent(output& out) {
        std::string said = out.text;
        for (std::size_t at = 0; (at = said.find("Server: ums\r\n", at)) != std::string::npos;)
            said.erase(at, 13 + date_line::date_bytes);
        if (out.from) {
            std::string piece(static_cast<std::size_t>(out.bytes), '\0');
            EXPECT_EQ(pread(out.from->fd(), piece.data(), piece.size(), out.offset), out.bytes);
            said += piece;
        }
        return said;
    }
    std::string get(std::string_view path, std::string_view headers = {}) {
        return say("GET " + std::string{path} + " HTTP/1.1\r\nHost: a\r\n" + std::string{headers} +
                   "\r\n");
    }
    void serve_files() { where.root = std::make_unique<files>(folder_); }
    void write(const std::string& name, std::string_view text) {
        std::ofstream{folder_ + "/" + name} << text;
        // 1994-11-06 08:49:37, as in the RFC's example.
        const timespec times[2] = {{784111777, 0}, {784111777, 999}};
        utimensat(AT_FDCWD, (folder_ + "/" + name).c_str(), times, 0);
    }
    [[nodiscard]] const std::string& folder() const { return folder_; }

    site where;
    std::unique_ptr<session> client = std::make_unique<session>(where);

private:
    static std::string make_folder() {
        std::string name = std::filesystem::temp_directory_path() / "ums-http-XXXXXX";
        EXPECT_NE(mkdtemp(name.data()), nullptr);
        return name;
    }

    std::string folder_;
    std::string buffer_;
};

const std::string hello =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
const std::string stamp =
    "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nAccept-Ranges: bytes\r\n";

TEST_F(session_test, it_says_hello) {
    EXPECT_EQ(get("/plaintext"), hello);
    EXPECT_EQ(get("/"), hello);
}

TEST_F(session_test, pipelined_requests_are_answered_together_and_in_order) {
    const std::string two =
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: "
        "3\r\n\r\nabc"
        "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost";
    output out;
    EXPECT_EQ(client->take(two, out), two.size() - 20);
    const std::string said = sent(out);
    EXPECT_TRUE(said.starts_with(hello + "HTTP/1.1 200 OK\r\n")) << said;
    EXPECT_NE(said.find("\r\n\r\nabcHTTP/1.1 404 Not Found\r\n"), std::string::npos) << said;
    EXPECT_FALSE(client->is_between_requests());
}

TEST_F(session_test, much_output_is_sent_before_more_input_is_taken) {
    std::string many;
    for (int i = 0; i < 10'000; ++i) many += "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    output out;
    EXPECT_LT(client->take(many, out), many.size() / 5);
    EXPECT_GE(out.text.size(), session::much);
}

TEST_F(session_test, head_has_the_headers_of_get_without_the_body) {
    EXPECT_EQ(say("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n") + "Hello, World!", hello);
    serve_files();
    write("a.txt", "text");
    EXPECT_EQ(say("HEAD /a.txt HTTP/1.1\r\nHost: a\r\n\r\n") + "text", get("/a.txt"));
}

TEST_F(session_test, a_post_is_echoed_from_chunks_too) {
    EXPECT_TRUE(
        say("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
            "2;x=y\r\nde\r\n0\r\nTrailer: z\r\n\r\n")
            .ends_with("Content-Length: 5\r\n\r\nabcde"));
    EXPECT_TRUE(client->is_between_requests());
    EXPECT_EQ(get("/"), hello);
}

TEST_F(session_test, each_head_and_each_body_is_a_part) {
    const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n";
    EXPECT_EQ(client->parts(), 0u);
    say("GET / HTTP/1.1\r\nHo");
    EXPECT_EQ(client->parts(), 0u);
    say("st: a\r\n\r\nGET");
    EXPECT_EQ(client->parts(), 1u);
    say(" / HTTP/1.1\r\nHost: a\r\n\r\n" + head + "a");
    EXPECT_EQ(client->parts(), 3u);
    say("b" + head + "ab" + head);
    EXPECT_EQ(client->parts(), 7u);
}

TEST_F(session_test, a_body_is_limited_also_in_many_chunks) {
    where.limits.body_bytes = 100;
    std::string body;
    for (int i = 0; i < 11; ++i) body += "a\r\n0123456789\r\n";
    EXPECT_TRUE(say("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
                    .starts_with("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n"));
    EXPECT_TRUE(client->is_over());
}

TEST_F(session_test, who_expects_it_is_told_to_continue) {
    const std::string head =
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    EXPECT_EQ(say(head), "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_TRUE(say("abc").ends_with("\r\n\r\nabc"));
    // The answer did not wait for the rest.
    EXPECT_TRUE(say(head + "abc").starts_with("HTTP/1.1 200 OK\r\n"));
    EXPECT_TRUE(say("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: "
                    "9999999\r\n\r\n")
                    .starts_with("HTTP/1.1 413 "));
}

TEST_F(session_test, connections_stay_open_unless_somebody_wants_otherwise) {
    EXPECT_TRUE(say("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                    .starts_with("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n"));
    EXPECT_FALSE(client->is_over());
    EXPECT_TRUE(
        get("/", "Connection: close\r\n").starts_with("HTTP/1.1 200 OK\r\nConnection: close\r\n"));
    EXPECT_TRUE(client->is_over());
    EXPECT_EQ(get("/"), "");

    client = std::make_unique<session>(where);
    where.closes = true;
    EXPECT_TRUE(get("/").starts_with("HTTP/1.1 200 OK\r\nConnection: close\r\n"));
    EXPECT_TRUE(client->is_over());
}

TEST_F(session_test, methods_are_allowed_where_they_mean_something) {
    EXPECT_TRUE(
        say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            .starts_with("HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\nAllow: "
                         "GET, HEAD, OPTIONS\r\n"));
    EXPECT_NE(get("/echo").find("\r\nAllow: POST, OPTIONS\r\n"), std::string::npos);
    EXPECT_EQ(say("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
              "HTTP/1.1 204 No Content\r\nAllow: GET, HEAD, POST, OPTIONS\r\n\r\n");
    for (const std::string path : {"/", "/plaintext", "/echo"})
        EXPECT_EQ(say("OPTIONS " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"),
                  path == "/echo" ? "HTTP/1.1 204 No Content\r\nAllow: POST, OPTIONS\r\n\r\n"
                                  : "HTTP/1.1 204 No Content\r\nAllow: GET, HEAD, OPTIONS\r\n\r\n");
}

TEST_F(session_test, a_request_that_takes_too_long_is_answered_an_idle_connection_is_not) {
    output out;
    client->time_out(out);
    EXPECT_TRUE(out.empty());
    EXPECT_TRUE(client->is_over());
    for (const std::string_view begun :
         {"G", "GET / HTTP/1.1\r\nHost: a\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\n",
          "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab",
          "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"}) {
        client = std::make_unique<session>(where);
        const bool took_some = client->take(begun, out) != 0;
        EXPECT_EQ(client->is_in_body(), took_some);
        client->time_out(out);
        EXPECT_TRUE(out.text.starts_with("HTTP/1.1 408 Request Timeout\r\n")) << begun;
        EXPECT_EQ(out.text.ends_with("\r\n\r\n"), begun.starts_with("HEAD")) << begun;
        EXPECT_TRUE(client->is_over());
        out = {};
    }
}

TEST_F(session_test, files_are_served_with_their_type_and_time) {
    serve_files();
    write("index.html", "<p>");
    write("a b.txt", "text");
    write("empty.bin", "");
    std::filesystem::create_directory(folder() + "/sub");
    write("sub/index.html", "sub");
    EXPECT_EQ(get("/"), "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n" + stamp +
                            "Content-Length: 3\r\n\r\n<p>");
    EXPECT_TRUE(get("/a%20b.txt?query").ends_with("Content-Length: 4\r\n\r\ntext"));
    EXPECT_TRUE(get("/empty.bin").ends_with("Content-Length: 0\r\n\r\n"));
    EXPECT_TRUE(get("/sub/").ends_with("\r\n\r\nsub"));
    EXPECT_TRUE(get("/sub").starts_with("HTTP/1.1 301 "));
    EXPECT_TRUE(get("/none").starts_with("HTTP/1.1 404 "));
    EXPECT_EQ(get("/plaintext"), hello);
    EXPECT_TRUE(say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
                    .starts_with("HTTP/1.1 405 "));
}

TEST_F(session_test, nothing_outside_the_root_can_be_reached) {
    std::filesystem::create_directory(folder() + "/root");
    write("secret", "secret");
    write("root/a", "a");
    where.root = std::make_unique<files>(folder() + "/root");
    std::filesystem::create_symlink(folder() + "/secret", folder() + "/root/link");
    std::filesystem::create_symlink("../secret", folder() + "/root/link2");
    std::filesystem::create_symlink("a", folder() + "/root/inside");
    ASSERT_EQ(mkfifo((folder() + "/root/pipe").c_str(), 0600), 0);
    for (const char* path : {"/../secret",   "/%2e%2e/secret",
                             "/..%2fsecret", "/a/../../secret",
                             "/./../secret", "//../secret",
                             "/link",        "/link2",
                             "/pipe",        "//secret",
                             "/%2fsecret",   "/..",
                             "/%00",         "/a%00",
                             "/%zz",         "/%4",
                             "/.%2e/secret", "/a/",
                             "/a/b",         "/%2e%2e%5csecret",
                             "//etc/passwd", "/%2fetc%2fpasswd"}) {
        const std::string said = get(path);
        EXPECT_TRUE(said.starts_with("HTTP/1.1 40")) << path << said;
        EXPECT_EQ(said.find("secret"), std::string::npos) << path;
    }
    EXPECT_TRUE(get("/inside").ends_with("\r\n\r\na"));
    EXPECT_TRUE(get("/./a").ends_with("\r\n\r\na"));
    EXPECT_TRUE(get("/" + std::string(5000, 'x')).starts_with("HTTP/1.1 404 "));
}

TEST_F(session_test, a_file_that_the_client_has_is_not_sent_again) {
    serve_files();
    write("a", "text");
    EXPECT_EQ(get("/a", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
              "HTTP/1.1 304 Not Modified\r\n" + stamp + "\r\n");
    EXPECT_TRUE(
        get("/a", "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n").ends_with("text"));
    EXPECT_TRUE(get("/a", "If-Modified-Since: yesterday\r\n").ends_with("text"));
    EXPECT_TRUE(
        get("/a", "If-Modified-Since: Mon, 06 Nov 1994 08:49:38 GMT\r\n").ends_with("text"));
}

TEST_F(session_test, conditions_are_judged_in_the_order_of_the_rfc) {
    serve_files();
    write("a", "text");
    const std::string at = "Sun, 06 Nov 1994 08:49:37 GMT\r\n",
                      before = "Sun, 06 Nov 1994 08:49:36 GMT\r\n";
    const auto status = [this](const std::string& headers) {
        return get("/a", headers).substr(9, 3);
    };
    EXPECT_EQ(status("If-None-Match: *\r\n"), "304");
    EXPECT_EQ(status("If-None-Match: \"x\"\r\n"), "200");
    EXPECT_EQ(status("If-None-Match: \"x\"\r\nIf-Modified-Since: " + at), "200");
    EXPECT_EQ(status("If-Modified-Since: " + at), "304");
    EXPECT_EQ(status("If-Match: *\r\n"), "200");
    EXPECT_EQ(status("If-Match: \"x\"\r\n"), "412");
    EXPECT_EQ(status("If-Match: *\r\nIf-Unmodified-Since: " + before), "200");
    EXPECT_EQ(status("If-Unmodified-Since: " + at), "200");
    EXPECT_EQ(status("If-Unmodified-Since: " + before), "412");
    EXPECT_EQ(status("If-Unmodified-Since: " + before + "If-None-Match: *\r\n"), "412");
    EXPECT_EQ(status("If-Unmodified-Since: yesterday\r\n"), "200");
    EXPECT_EQ(status("If-Match: \"x\"\r\nRange: bytes=0-1\r\n"), "412");
    EXPECT_EQ(status("If-Match: *\r\nRange: bytes=0-1\r\n"), "206");
    EXPECT_EQ(get("/none", "If-Match: \"x\"\r\n").substr(9, 3), "404");
}

TEST_F(session_test, no_file_was_modified_later_than_now) {
    serve_files();
    write("a", "text");
    const timespec future[2] = {{4102444800, 0}, {4102444800, 0}};  // 2100
    ASSERT_EQ(utimensat(AT_FDCWD, (folder() + "/a").c_str(), future, 0), 0);
    const std::time_t before = date_line::now();
    const std::string said = get("/a");
    const std::size_t begin = said.find("Last-Modified: ");
    ASSERT_NE(begin, std::string::npos) << said;
    const std::string modified = said.substr(begin + 15, 29);
    EXPECT_GE(parse_date(modified), before);
    EXPECT_LE(parse_date(modified), date_line::now());
    // A time in the future says nothing about the file.
    EXPECT_TRUE(get("/a", "If-Modified-Since: " + modified + "\r\n").ends_with("text"));
    EXPECT_TRUE(get("/a", "Range: bytes=0-0\r\nIf-Range: " + modified + "\r\n").ends_with("text"));
}

TEST_F(session_test, a_file_that_another_program_has_a_lease_of_is_not_waited_for) {
    serve_files();
    write("a", "text");
    const int holder = open((folder() + "/a").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(holder, 0);
    const auto usual = std::signal(SIGIO, SIG_IGN);  // Other code wants the signal.
    if (fcntl(holder, F_SETLEASE, F_WRLCK) != 0) {
        close(holder);
        GTEST_SKIP() << "no leases here: " << std::strerror(errno);
    }
    EXPECT_TRUE(get("/a").starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
    EXPECT_FALSE(client->is_over());
    close(holder);
    EXPECT_TRUE(get("/a").ends_with("text"));
    std::signal(SIGIO, usual);
}

TEST_F(session_test, a_range_of_a_file_is_served) {
    serve_files();
    write("a", "0123456789");
    const auto range = [this](const std::string& what, std::string_view more = {}) {
        const std::string said = get("/a", "Range: " + what + "\r\n" + std::string{more});
        const std::size_t at = said.find("Content-Range: ");
        const std::string part =
            at == std::string::npos ? "" : said.substr(at + 15, said.find('\r', at) - at - 15);
        return said.substr(9, 3) + " " + part + " " + said.substr(said.find("\r\n\r\n") + 4);
    };
    EXPECT_EQ(range("bytes=2-4"), "206 bytes 2-4/10 234");
    EXPECT_EQ(range("bytes=7-"), "206 bytes 7-9/10 789");
    EXPECT_EQ(range("bytes=-3"), "206 bytes 7-9/10 789");
    EXPECT_EQ(range("bytes=0-99"), "206 bytes 0-9/10 0123456789");
    EXPECT_EQ(range("bytes=-99"), "206 bytes 0-9/10 0123456789");
    EXPECT_EQ(range("bytes=10-"), "416 bytes */10 416 Range Not Satisfiable\n");
    EXPECT_EQ(range("bytes=-0"), "416 bytes */10 416 Range Not Satisfiable\n");
    for (const char* ignored :
         {"bytes=4-2", "bytes=20-15", "bytes=20-9", "bytes=10-0", "bytes=1-2,4-5", "lines=1-2",
          "bytes=", "bytes=-", "bytes=a-b", "bytes=--1"})
        EXPECT_EQ(range(ignored), "200  0123456789") << ignored;
    EXPECT_EQ(range("bytes=2-4", "If-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
              "206 bytes 2-4/10 234");
    EXPECT_EQ(range("bytes=2-4", "If-Range: Sun, 06 Nov 1994 08:49:36 GMT\r\n"), "200  0123456789");
}

TEST_F(session_test, dates_are_read_as_they_are_written) {
    EXPECT_EQ(date_text(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(parse_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
    for (const char* wrong : {"", "Sun, 06 Nov 1994 08:49:37 UTC", "Mon, 06 Nov 1994 08:49:37 GMT",
                              "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT ",
                              "Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 0x Nov 1994 08:49:37 GMT"})
        EXPECT_EQ(parse_date(wrong), -1) << wrong;
}

}  // namespace
