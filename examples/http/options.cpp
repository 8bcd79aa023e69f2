// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <getopt.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace http {

namespace {

constexpr const char* help =
    R"(http-server [OPTION]...: an HTTP/1.1 server, one fiber for each connection

  -l, --listen=ADDRESS       where to listen: 127.0.0.1, 127.0.0.1:80, [::1]:80, unix:PATH;
                             may be given several times (default: every address)
  -p, --port=PORT            for addresses without one (default 8080; 0: any free one)
  -r, --root=FOLDER          serve the files in it (default: Hello, World! at /)
      --metrics              serve what the runtime does at /metrics, for Prometheus
  -t, --processors=N         kernel threads that run fibers (default: one for each CPU)
  -c, --max-connections=N    at once; more wait to be accepted (default 100000)
      --header-timeout=S     seconds from a request's first byte to the end of its headers (10)
      --body-timeout=S       from there to the end of its body (60)
      --idle-timeout=S       between requests (60)
      --write-timeout=S      for an answer, or 256 KiB of a file (60)
      --grace=S              for what is in progress when the server is stopped (10)
      --max-header-bytes=N   request line and headers (16384)
      --max-body-bytes=N     (1048576)
  -h, --help                 this
A time-out of 0 is none. The server prints "listening on ADDRESS:PORT" for each address.
SIGTERM and SIGINT stop it: what is in progress is finished first.
)";

[[noreturn]] void refuse(const std::string& what) {
    std::fprintf(stderr, "http-server: %s (see http-server --help)\n", what.c_str());
    std::exit(2);
}

std::uint64_t number(const char* name, const char* text, std::uint64_t least, std::uint64_t most) {
    const std::string_view word = text;
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n);
    if (error != std::errc{} || end != word.data() + word.size() || n < least || n > most)
        refuse("--" + std::string{name} + " is '" + text + "'; expected a number from " +
               std::to_string(least) + " to " + std::to_string(most));
    return n;
}

std::chrono::milliseconds time(const char* name, const char* text) {
    char* end = nullptr;
    const double s = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(s >= 0) || s > 86'400)
        refuse("--" + std::string{name} + " is '" + text + "'; expected seconds, from 0 to 86400");
    return std::chrono::milliseconds{std::llround(std::ceil(s * 1000))};
}

}  // namespace

options read_options(int count, char** words) {
    enum : int {
        header_timeout = 256,
        body_timeout,
        idle_timeout,
        write_timeout,
        grace,
        header_bytes,
        body_bytes,
        metrics
    };
    static constexpr option all[] = {{"listen", required_argument, nullptr, 'l'},
                                     {"port", required_argument, nullptr, 'p'},
                                     {"root", required_argument, nullptr, 'r'},
                                     {"metrics", no_argument, nullptr, metrics},
                                     {"processors", required_argument, nullptr, 't'},
                                     {"max-connections", required_argument, nullptr, 'c'},
                                     {"header-timeout", required_argument, nullptr, header_timeout},
                                     {"body-timeout", required_argument, nullptr, body_timeout},
                                     {"idle-timeout", required_argument, nullptr, idle_timeout},
                                     {"write-timeout", required_argument, nullptr, write_timeout},
                                     {"grace", required_argument, nullptr, grace},
                                     {"max-header-bytes", required_argument, nullptr, header_bytes},
                                     {"max-body-bytes", required_argument, nullptr, body_bytes},
                                     {"help", no_argument, nullptr, 'h'},
                                     {nullptr, 0, nullptr, 0}};
    options chosen;
    std::vector<std::string> addresses;
    std::uint16_t port = 8080;
    opterr = 0;
    while (true) {
        const int at = optind;
        const int c = getopt_long(count, words, ":l:p:r:t:c:h", all, nullptr);
        switch (c) {
            case -1:
                break;
            case 'l':
                addresses.emplace_back(optarg);
                continue;
            case 'p':
                port = static_cast<std::uint16_t>(number("port", optarg, 0, 65535));
                continue;
            case 'r':
                chosen.root = optarg;
                continue;
            case 't':
                chosen.processors = static_cast<unsigned>(number("processors", optarg, 1, 1024));
                continue;
            case 'c':
                chosen.max_connections =
                    static_cast<unsigned>(number("max-connections", optarg, 1, 10'000'000));
                continue;
            case metrics:
                chosen.metrics = true;
                continue;
            case header_timeout:
                chosen.header_timeout = time("header-timeout", optarg);
                continue;
            case body_timeout:
                chosen.body_timeout = time("body-timeout", optarg);
                continue;
            case idle_timeout:
                chosen.idle_timeout = time("idle-timeout", optarg);
                continue;
            case write_timeout:
                chosen.write_timeout = time("write-timeout", optarg);
                continue;
            case grace:
                chosen.grace = time("grace", optarg);
                continue;
            case header_bytes:
                chosen.limits.head_bytes = number("max-header-bytes", optarg, 512, 1 << 20);
                continue;
            case body_bytes:
                chosen.limits.body_bytes = number("max-body-bytes", optarg, 0, 1 << 30);
                continue;
            case 'h':
                std::fputs(help, stdout);
                std::exit(0);
            case ':':
                refuse(std::string{"the option "} + words[at] + " needs a value");
            default:
                refuse(std::string{"there is no option "} + words[at]);
        }
        break;
    }
    if (optind < count) refuse(std::string{"what is '"} + words[optind] + "'?");
    for (const std::string& text : addresses) {
        auto parsed = ums::net::endpoint::ip(text, port);
        if (!parsed) parsed = ums::net::endpoint::parse(text);
        if (!parsed)
            refuse("--listen is '" + text +
                   "'; expected an address, ADDRESS:PORT, [IPV6]:PORT or unix:PATH");
        chosen.listen.push_back(*parsed);
    }
    if (chosen.listen.empty()) chosen.listen.push_back(ums::net::endpoint::any_ipv6(port));
    return chosen;
}

}  // namespace http
