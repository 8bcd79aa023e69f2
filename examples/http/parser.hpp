// SPDX-License-Identifier: MIT
#pragma once

// parser: HTTP/1.x requests, by llhttp (Node's parser), with the checks that RFC 9112 demands
// beyond it.
//
// llhttp tolerates what old clients send: lines that end without a carriage return, folded headers,
// blanks in odd places, several Hosts. Each of those lets two servers in a row see different
// requests in the same bytes (request smuggling), so here they are errors. The parser reports what
// is wrong with a request as the status to answer with; after an error nothing more can be read
// from the connection.
//
// The parser itself reads the request line and the framing of bodies. It parses a head once it is
// there as a whole, and a body as it comes.

#include <cstdint>
#include <string>
#include <string_view>

#include <llhttp.h>

#include "limits.hpp"
#include "request.hpp"

namespace http {

class parser {
public:
    explicit parser(const limits& allowed) noexcept;
    parser(const parser&) = delete;
    parser& operator=(const parser&) = delete;

    enum class progress {
        incomplete,  // More bytes are needed.
        complete,    // A head, or a body, is complete.
        failed,      // status() says why.
    };

    // Looks for a head at the beginning of `input`, which begins where it began in the last call,
    // and parses it. If complete, the head is the first `taken` bytes, and `r` describes it, by
    // views of `input`.
    progress head(std::string_view input, request& r, std::size_t& taken);

    // Call after a head that has_body: takes some of `input`, and appends the part that is the body
    // to `body`.
    progress body(std::string_view input, std::string& body, std::size_t& taken);

    // The status to answer with after a failure.
    [[nodiscard]] unsigned status() const noexcept { return status_; }

    // Whether nothing of a request has come since the last one was complete.
    [[nodiscard]] bool is_between_requests() const noexcept { return scanned_ == 0 && !in_body_; }

private:
    // The callbacks of llhttp.
    struct calls;

    progress fail(unsigned status) noexcept {
        status_ = status;
        return progress::failed;
    }
    // Finds the end of the head, line by line; sets head_begin_ and headers_begin_.
    progress find_end(std::string_view input, std::size_t& end) noexcept;
    // Each returns the status to refuse with, or 0.
    [[nodiscard]] unsigned read_request_line(std::string_view line, request& r) const noexcept;
    static unsigned read_other_line(std::string_view line, request& r) noexcept;
    static unsigned read_target(request& r) noexcept;
    unsigned check_headers(request& r) const noexcept;
    // Takes a line of the framing of chunks, without its end; fails if it cannot be understood.
    progress framing_line(std::string_view line, std::size_t body_bytes) noexcept;

    const limits& limits_;
    llhttp_t llhttp_;

    std::size_t scanned_ = 0;        // Bytes looked at of the head that is not complete.
    std::size_t line_begin_ = 0;     // The beginning of the line that scanned_ is in.
    std::size_t head_begin_ = 0;     // After the empty lines.
    std::size_t headers_begin_ = 0;  // After the request line.
    bool in_body_ = false;

    // For the body:
    enum class part { data, data_end, size, trailer };
    part expected_ = part::data;
    bool is_chunked_ = false;
    // The bytes that are still to come; if there are chunks, of the chunk.
    std::uint64_t data_bytes_ = 0;
    std::size_t framing_bytes_ = 0;  // The number of bytes in a row.

    // While llhttp runs:
    request* request_ = nullptr;
    bool is_complete_ = false;
    unsigned status_ = 400;
};

}  // namespace http
