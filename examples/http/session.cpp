// SPDX-License-Identifier: MIT
#include "session.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace http {

std::string_view reason(unsigned status) noexcept {
    switch (status) {
        case 200:
            return "OK";
        case 204:
            return "No Content";
        case 206:
            return "Partial Content";
        case 304:
            return "Not Modified";
        case 400:
            return "Bad Request";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 412:
            return "Precondition Failed";
        case 413:
            return "Content Too Large";
        case 414:
            return "URI Too Long";
        case 416:
            return "Range Not Satisfiable";
        case 417:
            return "Expectation Failed";
        case 431:
            return "Request Header Fields Too Large";
        case 501:
            return "Not Implemented";
        case 503:
            return "Service Unavailable";
        case 505:
            return "HTTP Version Not Supported";
        default:
            return "Error";
    }
}

namespace {

void append(std::string& out, std::uint64_t n) {
    char digits[20];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
}

// One range "bytes=FIRST-LAST", "FIRST-" or "-LENGTH" of `bytes`. None: ignore it; empty: there is no such
// part.
struct range {
    off_t offset, bytes;
};
std::optional<range> parse_range(std::string_view text, off_t bytes) {
    if (!text.starts_with("bytes=")) return {};
    text.remove_prefix(6);
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos || text.find(',') != std::string_view::npos) return {};
    const auto number = [](std::string_view s, off_t& n) {
        if (s.empty() || s[0] == '-') return false;
        const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
        return error == std::errc{} && end == s.data() + s.size();
    };
    off_t first = 0, last = 0;
    const std::string_view from = text.substr(0, dash), to = text.substr(dash + 1);
    if (from.empty()) {
        if (!number(to, last)) return {};
        return range{bytes - std::min(last, bytes), std::min(last, bytes)};
    }
    if (!number(from, first) || (!to.empty() && !number(to, last))) return {};
    if (!to.empty() && last < first) return {};
    if (to.empty() || last >= bytes) last = bytes - 1;
    return range{first, first < bytes ? last - first + 1 : 0};
}

// RFC 9110, 13.2.2, for a file that exists and has a time, but no tag: the status to answer with instead of
// sending it, or 0.
unsigned check_conditions(const request& r, std::time_t modified) {
    if (const std::string_view tags = r.find("If-Match"); !tags.empty()) {
        if (tags != "*") return 412;
    } else if (const std::time_t t = parse_date(r.find("If-Unmodified-Since"));
               t != -1 && modified > t) {
        return 412;
    }
    // Where there are tags, a time is for those who do not know them.
    if (const std::string_view tags = r.find("If-None-Match"); !tags.empty())
        return tags == "*" ? 304 : 0;
    const std::time_t t = parse_date(r.find("If-Modified-Since"));
    return t != -1 && modified <= t ? 304 : 0;
}

}  // namespace

std::size_t session::take(std::string_view input, output& to) {
    second_ = date_line::now();
    std::size_t taken = 0;
    while (!over_ && taken < input.size() && !to.from && to.text.size() < much) {
        const std::string_view rest = input.substr(taken);
        std::size_t used = 0;
        if (upload_ != nullptr) {
            const parser::progress p = parser_.body(rest, upload_->body, used);
            taken += used;
            if (p == parser::progress::failed) fail(parser_.status(), to);
            if (p != parser::progress::complete) continue;
            ++parts_;
            const std::unique_ptr<upload> done = std::move(upload_);
            request& r = to.current;
            r.clear();
            r.method = done->method;
            r.path = done->path;
            r.is_http_1_1 = done->is_http_1_1;
            r.keep_alive = done->keep_alive;
            answer(r, done->body, to);
            continue;
        }
        request& r = to.current;
        r.clear();
        const parser::progress p = parser_.head(rest, r, used);
        if (p == parser::progress::failed) fail(parser_.status(), to);
        if (p != parser::progress::complete) break;
        ++parts_;
        taken += used;
        if (!r.has_body) {
            answer(r, {}, to);
            continue;
        }
        if (r.expects_continue && taken == input.size()) to.text += "HTTP/1.1 100 Continue\r\n\r\n";
        upload_ = std::make_unique<upload>(
            upload{r.method, std::string{r.path}, r.is_http_1_1, r.keep_alive, {}});
    }
    return taken;
}

void session::begin(const request& r, unsigned status, std::string_view type, output& to) {
    // relaxed: whoever sets it also wakes those that wait; a late answer more does no harm.
    if (!r.keep_alive || site_.closes.load(std::memory_order_relaxed)) over_ = true;
    std::string& out = to.text;
    if (status == 200) {
        site_.date.append_200(out, second_);
    } else {
        out += "HTTP/1.1 ";
        append(out, status);
        out += ' ';
        out += reason(status);
        out += "\r\nServer: ums\r\n";
        site_.date.append_date(out, second_);
    }
    if (over_)
        out += "Connection: close\r\n";
    else if (!r.is_http_1_1)
        out += "Connection: keep-alive\r\n";
    if (!type.empty()) {
        out += "Content-Type: ";
        out += type;
        out += "\r\n";
    }
}

void session::send(const request& r, unsigned status, std::string_view type, std::string_view body,
                   output& to, std::string_view headers) {
    begin(r, status, type, to);
    to.text += headers;
    to.text += "Content-Length: ";
    append(to.text, body.size());
    to.text += "\r\n\r\n";
    if (r.method != method::head) to.text += body;
}

void session::refuse(const request& r, unsigned status, output& to, std::string_view headers) {
    std::string body = std::to_string(status) + " ";
    body += reason(status);
    body += '\n';
    send(r, status, "text/plain", body, to, headers);
}

void session::fail(unsigned status, output& to) {
    request& r = to.current;
    r.clear();
    r.keep_alive = false;
    refuse(r, status, to);
    upload_.reset();
    over_ = true;
}

void session::time_out(output& to) {
    second_ = date_line::now();
    if (is_between_requests())
        over_ = true;
    else
        fail(408, to);
}

void session::answer(const request& r, std::string_view body, output& to) {
    const bool reads = r.method == method::get || r.method == method::head;
    if (r.method == method::options) {
        begin(r, 204, {}, to);
        to.text += "Allow: GET, HEAD, POST, OPTIONS\r\n\r\n";
    } else if (r.path == "/plaintext" || (r.path == "/" && site_.root == nullptr)) {
        if (!reads) return refuse(r, 405, to, "Allow: GET, HEAD, OPTIONS\r\n");
        begin(r, 200, {}, to);
        // In one piece: this is what benchmarks ask for.
        constexpr std::string_view rest =
            "Content-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
        to.text += r.method == method::head ? rest.substr(0, rest.size() - 13) : rest;
    } else if (r.path == "/echo") {
        if (reads) return refuse(r, 405, to, "Allow: POST, OPTIONS\r\n");
        send(r, 200, "application/octet-stream", body, to);
    } else if (site_.root == nullptr) {
        refuse(r, 404, to);
    } else if (!reads) {
        refuse(r, 405, to, "Allow: GET, HEAD, OPTIONS\r\n");
    } else {
        answer_file(r, to);
    }
}

void session::answer_file(const request& r, output& to) {
    file opened;
    std::string name;
    const unsigned status = site_.root->open(r.path, opened, name);
    if (status != 200) return refuse(r, status, to);

    // Of a file whose time is yet to come: now.
    const std::string stamp = "Last-Modified: " + date_text(std::min(opened.modified(), second_)) +
                              "\r\nAccept-Ranges: bytes\r\n";
    if (const unsigned refused = check_conditions(r, opened.modified()); refused == 304) {
        begin(r, 304, {}, to);
        to.text += stamp + "\r\n";
        return;
    } else if (refused != 0) {
        return refuse(r, refused, to);
    }
    range part{0, opened.bytes()};
    bool is_part = false;
    const std::string_view wanted = r.find("Range"), valid_if = r.find("If-Range");
    if (!wanted.empty() && r.method == method::get &&
        (valid_if.empty() || valid_if == date_text(opened.modified())))
        if (const auto asked = parse_range(wanted, opened.bytes())) {
            if (asked->bytes == 0)
                return refuse(r, 416, to,
                              "Content-Range: bytes */" + std::to_string(opened.bytes()) + "\r\n");
            part = *asked;
            is_part = true;
        }
    begin(r, is_part ? 206 : 200, files::type(name), to);
    to.text += stamp;
    if (is_part) {
        to.text += "Content-Range: bytes ";
        append(to.text, static_cast<std::uint64_t>(part.offset));
        to.text += '-';
        append(to.text, static_cast<std::uint64_t>(part.offset + part.bytes - 1));
        to.text += '/';
        append(to.text, static_cast<std::uint64_t>(opened.bytes()));
        to.text += "\r\n";
    }
    to.text += "Content-Length: ";
    append(to.text, static_cast<std::uint64_t>(part.bytes));
    to.text += "\r\n\r\n";
    if (r.method == method::head || part.bytes == 0) return;
    to.from = std::move(opened);
    to.offset = part.offset;
    to.bytes = part.bytes;
}

}  // namespace http
