// SPDX-License-Identifier: MIT
#include "session.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <ums/metrics.hpp>

namespace http {

std::string_view reason(unsigned status) noexcept {
    switch (status) {
        case 200:
            return "OK";
        case 204:
            return "No Content";
        case 206:
            return "Partial Content";
        case 301:
            return "Moved Permanently";
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

// The part of `bytes` that one range "bytes=FIRST-LAST", "FIRST-" or "-LENGTH" selects. No value:
// ignore the range; empty: there is no such part.
struct range {
    off_t offset, bytes;
};
std::optional<range> parse_range(std::string_view text, off_t bytes) {
    constexpr std::string_view unit = "bytes=";
    if (!equal_ignoring_case(text.substr(0, unit.size()), unit)) return {};
    // This is a list, which may have empty elements; several ranges are ignored.
    std::string_view one;
    for (text.remove_prefix(unit.size()); !text.empty();) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view element = trimmed(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
        if (element.empty()) continue;
        if (!one.empty()) return {};
        one = element;
    }
    const std::size_t dash = one.find('-');
    if (dash == std::string_view::npos) return {};
    // A number that is too large counts as the largest.
    const auto number = [](std::string_view s, off_t& n) {
        if (s.empty() || s.find_first_not_of("0123456789") != std::string_view::npos) return false;
        if (std::from_chars(s.data(), s.data() + s.size(), n).ec != std::errc{}) n = INT64_MAX;
        return true;
    };
    const auto is_less = [](std::string_view a, std::string_view b) {
        a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
        b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    };
    off_t first = 0, last = 0;
    const std::string_view from = one.substr(0, dash), to = one.substr(dash + 1);
    if (from.empty()) {
        if (!number(to, last) || (bytes == 0 && last != 0)) return {};
        return range{bytes - std::min(last, bytes), std::min(last, bytes)};
    }
    if (!number(from, first) || (!to.empty() && !number(to, last))) return {};
    if (!to.empty() && is_less(to, from)) return {};
    if (to.empty() || last >= bytes) last = bytes - 1;
    return range{first, first < bytes ? last - first + 1 : 0};
}

// RFC 9110, 13.2.2, for a resource without a tag: returns the status to answer with instead of
// continuing, or 0. `modified` is -1 if there is no time, either.
unsigned check_conditions(const request& r, bool exists, std::time_t modified = -1) {
    if (!r.has_conditions) return 0;
    const bool reads = r.method == method::get || r.method == method::head;
    if (const std::string_view tags = r.find("If-Match"); !tags.empty()) {
        if (tags != "*" || !exists) return 412;
    } else if (const std::time_t t = parse_date(r.find("If-Unmodified-Since"));
               t != -1 && modified > t) {
        return 412;
    }
    // If there are tags, a time is for servers that do not know them.
    if (const std::string_view tags = r.find("If-None-Match"); !tags.empty())
        return tags == "*" && exists ? (reads ? 304 : 412) : 0;
    const std::time_t t = parse_date(r.find("If-Modified-Since"));
    return reads && modified != -1 && t != -1 && modified <= t ? 304 : 0;
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
            if (p == parser::progress::complete) finish_upload(to);
            if (p == parser::progress::incomplete && used == 0) break;
            continue;
        }
        request& r = to.current;
        r.clear();
        // An answer to HEAD has no body, not even one that comes before the request line was read.
        const std::size_t begin = std::min(rest.find_first_not_of("\r\n"), rest.size());
        if (rest.substr(begin).starts_with("HEAD ")) r.method = method::head;
        const parser::progress p = parser_.head(rest, r, used);
        if (p == parser::progress::failed) fail(parser_.status(), to);
        if (p != parser::progress::complete) break;
        ++parts_;
        taken += used;
        if (!r.has_body) {
            answer(r, {}, to);
            continue;
        }
        if (r.expects_continue) {
            // If the body cannot improve the answer, the answer is sent at once; because it is not
            // known whether the body is sent, too, it is the last answer.
            const std::size_t before = to.text.size();
            const bool keeps = std::exchange(r.keep_alive, false);
            answer(r, {}, to);
            if (status_ >= 400) break;
            to.text.resize(before);
            to.from.reset();
            over_ = false;
            r.keep_alive = keeps;
            if (taken == input.size()) to.text += "HTTP/1.1 100 Continue\r\n\r\n";
        }
        begin_upload(r);
    }
    return taken;
}

void session::begin_upload(const request& r) {
    upload_ = std::make_unique<upload>(upload{r.method,
                                              std::string{r.path},
                                              std::string{r.query},
                                              r.is_http_1_1,
                                              r.keep_alive,
                                              r.has_conditions,
                                              {},
                                              {}});
    for (std::size_t i = 0; i < r.header_count(); ++i)
        if (equal_ignoring_case(r[i].name.substr(0, 3), "If-") ||
            equal_ignoring_case(r[i].name, "Range"))
            upload_->headers.emplace_back(r[i].name, r[i].value);
}

void session::finish_upload(output& to) {
    ++parts_;
    const std::unique_ptr<upload> done = std::move(upload_);
    request& r = to.current;
    r.clear();
    r.method = done->method;
    r.path = done->path;
    r.query = done->query;
    r.is_http_1_1 = done->is_http_1_1;
    r.keep_alive = done->keep_alive;
    r.has_conditions = done->has_conditions;
    for (const auto& [name, value] : done->headers) {
        (void)r.add_name(name);
        r.set_value(value);
    }
    answer(r, done->body, to);
}

void session::begin(const request& r, unsigned status, std::string_view type, output& to) {
    // relaxed: the thread that sets it also wakes the waiting connections; one late answer more
    // does no harm.
    if (!r.keep_alive || site_.closes.load(std::memory_order_relaxed)) over_ = true;
    status_ = status;
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

void session::not_modified(const request& r, std::string_view headers, output& to) {
    begin(r, 304, {}, to);
    to.text += headers;
    to.text += "\r\n";
}

void session::fail(unsigned status, output& to) {
    request& r = to.current;
    const http::method asked = upload_ != nullptr ? upload_->method : r.method;
    r.clear();
    r.method = asked;
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
    const bool is_echo = r.path == "/echo";
    const std::string_view allow = r.path == "*" ? "Allow: GET, HEAD, POST, OPTIONS\r\n"
                                   : is_echo     ? "Allow: POST, OPTIONS\r\n"
                                                 : "Allow: GET, HEAD, OPTIONS\r\n";
    if (r.method == method::options) {
        begin(r, 204, {}, to);
        to.text += allow;
        to.text += "\r\n";
        return;
    }
    const bool is_greeting = r.path == "/plaintext" || (r.path == "/" && site_.root == nullptr);
    const bool is_metrics = site_.has_metrics && r.path == "/metrics";
    if (site_.root == nullptr && !is_echo && !is_greeting && !is_metrics) return refuse(r, 404, to);
    if (is_echo != (r.method == method::post)) return refuse(r, 405, to, allow);
    if (is_greeting) {
        if (const unsigned refused = check_conditions(r, true))
            return refused == 304 ? not_modified(r, {}, to) : refuse(r, refused, to);
        begin(r, 200, {}, to);
        // In one piece: this is what benchmarks ask for.
        constexpr std::string_view rest =
            "Content-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
        to.text += r.method == method::head ? rest.substr(0, rest.size() - 13) : rest;
    } else if (is_echo) {
        if (const unsigned refused = check_conditions(r, false)) return refuse(r, refused, to);
        send(r, 200, "application/octet-stream", body, to);
    } else if (is_metrics) {
        send(r, 200, ums::metrics_type, ums::metrics(), to);
    } else {
        answer_file(r, to);
    }
}

void session::answer_file(const request& r, output& to) {
    file opened;
    std::string name;
    const unsigned status = site_.root->open(r.path, opened, name);
    if (status == 301) {
        std::string where = "Location: " + std::string{r.path} + "/";
        if (!r.query.empty()) where.append("?").append(r.query);
        return refuse(r, 301, to, where + "\r\n");
    }
    if (status != 200) return refuse(r, status, to);

    // For a file whose time is in the future, it is now.
    const std::string stamp = "Last-Modified: " + date_text(std::min(opened.modified(), second_)) +
                              "\r\nAccept-Ranges: bytes\r\n";
    if (const unsigned refused = check_conditions(r, true, opened.modified()))
        return refused == 304 ? not_modified(r, stamp, to) : refuse(r, refused, to);
    range part{0, opened.bytes()};
    bool is_part = false;
    const std::string_view wanted = r.find("Range"), valid_if = r.find("If-Range");
    if (!wanted.empty() && r.method == method::get &&
        (valid_if.empty() || parse_date(valid_if) == opened.modified()))
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
