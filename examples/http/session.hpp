// SPDX-License-Identifier: MIT
#pragma once

// session: one client's connection. It takes bytes and gives answers, and knows nothing of sockets,
// so that the server, the tests and the fuzzer drive the same code. Pipelined requests are answered
// together.
//
// It serves /plaintext; /echo, which sends a POST's body back; and the files under the root, or,
// without one, a greeting at /.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "date.hpp"
#include "files.hpp"
#include "limits.hpp"
#include "parser.hpp"

namespace http {

// What all sessions share.
struct site {
    http::limits limits;
    std::unique_ptr<files> root;  // None: no files.
    date_line date;
    bool has_metrics = false;          // At /metrics.
    std::atomic<bool> closes = false;  // The server stops: each connection after its next answer.
};

// What to send: the text, then a piece of a file.
struct output {
    std::string text;
    std::optional<file> from;
    off_t offset = 0;
    off_t bytes = 0;
    // The request that take() works on. It is here because it is too large for the stacks of ten
    // thousand fibers.
    request current;

    [[nodiscard]] bool empty() const noexcept { return text.empty() && !from; }
    // Makes it as new; keeps the text's memory if it is not much.
    void clear() noexcept {
        if (text.capacity() > 16 * 1024) text = {};
        text.clear();
        from.reset();
        offset = bytes = 0;
    }
};

class session {
public:
    explicit session(site& of) noexcept : site_(of), parser_(of.limits) {}

    // Takes the complete requests in `input` and adds the answers. Returns the bytes it took. When
    // the answers have been sent, call it again with the rest and more.
    std::size_t take(std::string_view input, output& to);

    // If true, send what is there, then close.
    [[nodiscard]] bool is_over() const noexcept { return over_; }
    [[nodiscard]] bool is_between_requests() const noexcept {
        return upload_ == nullptr && parser_.is_between_requests();
    }
    [[nodiscard]] bool is_in_body() const noexcept { return upload_ != nullptr; }
    // How many heads and bodies are complete so far. If the number has grown, what is in progress
    // is a different one.
    [[nodiscard]] std::uint64_t parts() const noexcept { return parts_; }
    // The client took too long: answers a request that has begun, and ends the session.
    void time_out(output& to);

    static constexpr std::size_t much = 64 * 1024;  // Bytes of answers after which take() stops.

private:
    // A request whose body is arriving.
    struct upload {
        http::method method;
        std::string path, query;
        bool is_http_1_1;
        bool keep_alive;
        bool has_conditions;
        std::vector<std::pair<std::string, std::string>> headers;  // The conditions and the Range.
        std::string body;
    };

    void begin_upload(const request& r);
    void finish_upload(output& to);

    void answer(const request& r, std::string_view body, output& to);
    void answer_file(const request& r, output& to);
    // Adds the status line and the headers, except Content-Length and what follows it.
    void begin(const request& r, unsigned status, std::string_view type, output& to);
    void send(const request& r, unsigned status, std::string_view type, std::string_view body,
              output& to, std::string_view headers = {});
    void refuse(const request& r, unsigned status, output& to, std::string_view headers = {});
    void not_modified(const request& r, std::string_view headers, output& to);
    void fail(unsigned status, output& to);

    site& site_;
    parser parser_;
    std::unique_ptr<upload> upload_;
    std::time_t second_ = 0;  // The second of the last take().
    std::uint64_t parts_ = 0;
    unsigned status_ = 0;  // The status of the last answer.
    bool over_ = false;
};

std::string_view reason(unsigned status) noexcept;

}  // namespace http
