// SPDX-License-Identifier: MIT
#include "parser.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>

namespace http {

namespace {

// The bytes of one kind.
class byte_set {
public:
    constexpr explicit byte_set(std::string_view others) noexcept {
        for (char c = '0'; c <= '9'; ++c) add(c);
        for (char c = 'a'; c <= 'z'; ++c) add(c);
        for (char c = 'A'; c <= 'Z'; ++c) add(c);
        for (const char c : others) add(c);
    }
    [[nodiscard]] constexpr bool holds(char c) const noexcept {
        return has_[static_cast<unsigned char>(c)];
    }
    [[nodiscard]] constexpr bool holds(std::string_view s) const noexcept {
        for (const char c : s)
            if (!holds(c)) return false;
        return true;
    }

private:
    constexpr void add(char c) noexcept { has_[static_cast<unsigned char>(c)] = true; }
    bool has_[256] = {};
};
constexpr byte_set token_bytes{"!#$%&'*+-.^_`|~"};
constexpr byte_set host_bytes{"-._~%!$&'()*+,;="};
constexpr byte_set bracketed_bytes{"-._~%!$&'()*+,;=:[]"};
// More than RFC 3986 allows, for the sake of old clients; but no blank, no control character and no
// '#'.
constexpr byte_set target_bytes{"!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~"};

bool is_token(std::string_view s) noexcept { return !s.empty() && token_bytes.holds(s); }

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Roughly uri-host [ ":" port ]: this refuses what cannot be a host, and looks up no name.
bool is_authority(std::string_view s) noexcept {
    std::size_t host = 0;
    if (s.starts_with('[')) {
        host = s.find(']');
        if (host == std::string_view::npos || !bracketed_bytes.holds(s.substr(0, ++host)))
            return false;
    } else {
        while (host < s.size() && host_bytes.holds(s[host])) ++host;
    }
    if (host == s.size()) return true;
    if (host == 0) return false;  // A port of no host.
    const std::string_view port = s.substr(host + 1);
    return s[host] == ':' && port.size() <= 5 && std::all_of(port.begin(), port.end(), is_digit);
}

// Whether the option is among the values, which commas separate.
bool has_option(std::string_view values, std::string_view option) noexcept {
    while (true) {
        const std::size_t comma = values.find(',');
        if (equal_ignoring_case(trimmed(values.substr(0, comma)), option)) return true;
        if (comma == std::string_view::npos) return false;
        values.remove_prefix(comma + 1);
    }
}

}  // namespace

struct parser::calls {
    static parser& of(llhttp_t* p) noexcept { return *static_cast<parser*>(p->data); }

    static int name(llhttp_t* p, const char* at, std::size_t bytes) noexcept {
        request* const r = of(p).request_;
        if (bytes == 0) return -1;
        if (r->add_name({at, bytes})) return 0;
        of(p).status_ = 431;
        return -1;
    }
    static int value(llhttp_t* p, const char* at, std::size_t bytes) noexcept {
        of(p).request_->set_value(trimmed({at, bytes}));
        return 0;
    }
    static int headers_complete(llhttp_t* p) noexcept {
        p->upgrade = 0;  // The server does not take up the offer.
        return 0;
    }
    static int complete(llhttp_t* p) noexcept {
        of(p).is_complete_ = true;
        return HPE_PAUSED;  // The next message begins with another llhttp_t.
    }

    static const llhttp_settings_t& all() noexcept {
        static const llhttp_settings_t settings = [] {
            llhttp_settings_t s;
            llhttp_settings_init(&s);
            s.on_header_field = name;
            s.on_header_value = value;
            s.on_headers_complete = headers_complete;
            s.on_message_complete = complete;
            return s;
        }();
        return settings;
    }

    // The state of llhttp after a request line. We read request lines here, at least as strictly as
    // llhttp, and nothing in them matters to how it takes what follows.
    static const llhttp_t& behind_request_line() noexcept {
        static const llhttp_t behind = [] {
            constexpr std::string_view line = "GET / HTTP/1.1\r\n";
            llhttp_t p;
            llhttp_init(&p, HTTP_REQUEST, &all());
            llhttp_execute(&p, line.data(), line.size());
            return p;
        }();
        return behind;
    }
};

parser::parser(const limits& allowed) noexcept
    : limits_(allowed), llhttp_(calls::behind_request_line()) {}

parser::progress parser::find_end(std::string_view input, std::size_t& end) noexcept {
    while (true) {
        const void* const found =
            std::memchr(input.data() + scanned_, '\n', input.size() - scanned_);
        if (found == nullptr) {
            scanned_ = input.size();
            if (input.size() <= limits_.head_bytes) return progress::incomplete;
            // Not even the target of the request line may have ended.
            return fail(line_begin_ == head_begin_ ? 414 : 431);
        }
        const auto feed = static_cast<std::size_t>(static_cast<const char*>(found) - input.data());
        if (feed == line_begin_ || input[feed - 1] != '\r') return fail(400);
        const std::size_t line_bytes = feed - 1 - line_begin_;
        const char first = input[line_begin_];
        const bool is_request_line = line_begin_ == head_begin_;
        if (feed >= limits_.head_bytes) return fail(is_request_line ? 414 : 431);
        scanned_ = line_begin_ = feed + 1;
        if (line_bytes == 0) {
            if (!is_request_line) {
                end = scanned_;
                return progress::complete;
            }
            head_begin_ = scanned_;  // There is an empty line in front of the request.
            if (head_begin_ > 16) return fail(400);
        } else if (first == ' ' || first == '\t' || first == ':') {
            return fail(400);  // A folded header, or one without a name.
        } else if (is_request_line) {
            headers_begin_ = scanned_;
        }
    }
}

unsigned parser::read_request_line(std::string_view line, request& r) const noexcept {
    // Nearly all requests begin and end with these, so they are found without a search.
    constexpr std::string_view get = "GET ", http_1_1 = " HTTP/1.1";
    if (line.size() > get.size() + http_1_1.size() && line.starts_with(get) &&
        line.ends_with(http_1_1)) {
        r.method = method::get;
        r.target = line.substr(get.size(), line.size() - get.size() - http_1_1.size());
        r.is_http_1_1 = true;
    } else if (const unsigned refused = read_other_line(line, r)) {
        return refused;
    }
    if (r.target.size() > limits_.target_bytes) return 414;
    return r.method == method::other ? 501 : 0;
}

unsigned parser::read_other_line(std::string_view line, request& r) noexcept {
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == std::string_view::npos || last == first) return 400;
    const std::string_view name = line.substr(0, first);
    r.target = line.substr(first + 1, last - first - 1);
    const std::string_view version = line.substr(last + 1);
    if (r.target.empty() || r.target.find(' ') != std::string_view::npos) return 400;
    if (name == "GET")
        r.method = method::get;
    else if (name == "HEAD")
        r.method = method::head;
    else if (name == "POST")
        r.method = method::post;
    else if (name == "OPTIONS")
        r.method = method::options;
    else if (!is_token(name))
        return 400;
    if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) ||
        version[6] != '.' || !is_digit(version[7]))
        return 400;
    if (version[5] != '1') return 505;
    r.is_http_1_1 = version[7] != '0';
    return 0;
}

unsigned parser::read_target(request& r) noexcept {
    std::string_view rest = r.target;
    std::size_t mark = rest.size();  // The position of the first '?'.
    for (std::size_t i = rest.size(); i-- > 0;) {
        if (!target_bytes.holds(rest[i])) return 400;
        if (rest[i] == '?') mark = i;
    }
    if (rest == "*") {
        r.path = rest;
        return r.method == method::options ? 0 : 400;
    }
    r.query = rest.substr(std::min(mark + 1, rest.size()));
    rest = rest.substr(0, mark);
    if (!rest.starts_with('/')) {
        // The form that goes to a proxy: scheme://authority/path. The Host is this one's.
        const std::size_t scheme = rest.find("://");
        if (scheme == std::string_view::npos) return 400;
        const std::string_view name = rest.substr(0, scheme);
        if (!equal_ignoring_case(name, "http") && !equal_ignoring_case(name, "https")) return 400;
        rest.remove_prefix(scheme + 3);
        const std::size_t end = std::min(rest.find('/'), rest.size());
        if (end == 0 || !is_authority(rest.substr(0, end))) return 400;
        rest.remove_prefix(end);
    }
    r.path = rest.empty() ? "/" : rest;
    return 0;
}

unsigned parser::check_headers(request& r) const noexcept {
    unsigned hosts = 0;
    bool asks_close = false, asks_keep_alive = false;
    for (std::size_t i = 0; i < r.header_count(); ++i) {
        const auto& [name, value] = r[i];
        if (name.size() > 7 && equal_ignoring_case(name.substr(0, 3), "If-"))
            r.has_conditions = true;
        switch (name.size()) {
            case 4:
                if (!equal_ignoring_case(name, "Host")) break;
                ++hosts;
                if (!is_authority(value)) return 400;
                break;
            case 6:
                if (!equal_ignoring_case(name, "Expect")) break;
                if (!equal_ignoring_case(value, "100-continue")) return 417;
                r.expects_continue = r.is_http_1_1;
                break;
            case 10:
                if (!equal_ignoring_case(name, "Connection")) break;
                asks_close = asks_close || has_option(value, "close");
                asks_keep_alive = asks_keep_alive || has_option(value, "keep-alive");
                break;
            case 17:
                if (!equal_ignoring_case(name, "Transfer-Encoding")) break;
                // With HTTP/1.0 the framing is faulty; this server does not understand other
                // codings.
                if (!r.is_http_1_1) return 400;
                if (!equal_ignoring_case(value, "chunked")) return 501;
                break;
            default:
                break;
        }
    }
    r.keep_alive = !asks_close && (r.is_http_1_1 || asks_keep_alive);
    return hosts == 1 || (hosts == 0 && !r.is_http_1_1) ? 0 : 400;
}

parser::progress parser::head(std::string_view input, request& r, std::size_t& taken) {
    std::size_t end = 0;
    if (const progress p = find_end(input, end); p != progress::complete) return p;
    const std::string_view line = input.substr(head_begin_, headers_begin_ - 2 - head_begin_);
    const std::string_view headers = input.substr(headers_begin_, end - headers_begin_);
    scanned_ = line_begin_ = head_begin_ = 0;

    if (const unsigned refused = read_request_line(line, r)) return fail(refused);
    if (const unsigned refused = read_target(r)) return fail(refused);
    request_ = &r;
    is_complete_ = in_body_ = false;
    status_ = 400;
    llhttp_ = calls::behind_request_line();
    llhttp_.data = this;
    const llhttp_errno_t error = llhttp_execute(&llhttp_, headers.data(), headers.size());
    request_ = nullptr;
    if (error == HPE_INVALID_TRANSFER_ENCODING) {
        // Chunked is not the last coding, so the end of the body cannot be known. Or this server
        // does not know the coding.
        const std::string_view coding = r.find("Transfer-Encoding");
        const bool names_chunked = coding.find("chunked") != std::string_view::npos;
        return fail(names_chunked || !is_token(coding) ? 400 : 501);
    }
    if (error != HPE_OK && error != HPE_PAUSED) return fail(status_);
    if (const unsigned refused = check_headers(r)) return fail(refused);
    is_chunked_ = (llhttp_.flags & F_CHUNKED) != 0;
    data_bytes_ = is_complete_ ? 0 : llhttp_.content_length;
    if (!is_chunked_ && data_bytes_ > limits_.body_bytes) return fail(413);
    r.has_body = in_body_ = !is_complete_;
    expected_ = is_chunked_ ? part::size : part::data;
    framing_bytes_ = 0;
    taken = end;
    return progress::complete;
}

parser::progress parser::body(std::string_view input, std::string& body, std::size_t& taken) {
    taken = 0;
    while (true) {
        if (expected_ == part::data) {
            const auto n = static_cast<std::size_t>(
                std::min<std::uint64_t>(data_bytes_, input.size() - taken));
            body.append(input.substr(taken, n));
            taken += n;
            data_bytes_ -= n;
            if (data_bytes_ != 0) return progress::incomplete;
            if (!is_chunked_) break;
            expected_ = part::data_end;
            framing_bytes_ = 0;
        }
        const std::string_view rest = input.substr(taken);
        const std::size_t feed = rest.find('\n');
        const std::size_t bytes = std::min(feed, rest.size() - 1) + 1;
        if (framing_bytes_ + bytes > limits_.framing_bytes) return fail(400);
        if (feed == std::string_view::npos) return progress::incomplete;
        taken += bytes;
        framing_bytes_ += bytes;
        if (feed == 0 || rest[feed - 1] != '\r') return fail(400);
        const progress p = framing_line(rest.substr(0, feed - 1), body.size());
        if (p == progress::failed) return p;
        if (p == progress::complete) break;
    }
    in_body_ = false;
    return progress::complete;
}

namespace {

// Takes the bytes of that kind off the front of `s`.
std::string_view take_token(std::string_view& s) noexcept {
    std::size_t end = 0;
    while (end < s.size() && token_bytes.holds(s[end])) ++end;
    const std::string_view token = s.substr(0, end);
    s.remove_prefix(end);
    return token;
}
void take_blanks(std::string_view& s) noexcept {
    s.remove_prefix(std::min(s.find_first_not_of(" \t"), s.size()));
}
bool take_quoted(std::string_view& s) noexcept {
    for (std::size_t i = 1; i < s.size(); ++i) {
        if (s[i] == '\\') {
            ++i;
        } else if (s[i] == '"') {
            s.remove_prefix(i + 1);
            return true;
        }
    }
    return false;
}

// RFC 9112, 7.1.1: *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
bool are_extensions(std::string_view s) noexcept {
    while (!s.empty()) {
        take_blanks(s);
        if (!s.starts_with(';')) return false;
        s.remove_prefix(1);
        take_blanks(s);
        if (take_token(s).empty()) return false;
        std::string_view value = s;
        take_blanks(value);
        if (!value.starts_with('=')) continue;
        value.remove_prefix(1);
        take_blanks(value);
        if (value.starts_with('"') ? !take_quoted(value) : take_token(value).empty()) return false;
        s = value;
    }
    return true;
}

}  // namespace

parser::progress parser::framing_line(std::string_view line, std::size_t body_bytes) noexcept {
    for (const char c : line)
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) return fail(400);
    if (expected_ == part::data_end) {
        if (!line.empty()) return fail(400);
        expected_ = part::size;
    } else if (expected_ == part::size) {
        const auto [end, error] =
            std::from_chars(line.data(), line.data() + line.size(), data_bytes_, 16);
        if (error != std::errc{} || line.starts_with('-')) return fail(400);
        line.remove_prefix(static_cast<std::size_t>(end - line.data()));
        if (!are_extensions(line)) return fail(400);
        if (data_bytes_ > limits_.body_bytes - body_bytes) return fail(413);
        expected_ = data_bytes_ == 0 ? part::trailer : part::data;
    } else {
        if (line.empty()) return progress::complete;
        // A field, which this server does not use.
        if (take_token(line).empty() || !line.starts_with(':')) return fail(400);
    }
    return progress::incomplete;
}

}  // namespace http
