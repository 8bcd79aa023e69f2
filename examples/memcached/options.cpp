// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <getopt.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "session.hpp"

namespace memcached {

namespace {

constexpr const char* help =
    R"(memcached-server [OPTION]...: a server for clients of memcached, a fiber for each connection

  -p, --port=N             TCP port (default 11211, or that of -U; 0: none; -1: any free one)
  -U, --udp-port=N         UDP port (default 0: none; -1: any free one)
  -s, --unix-socket=PATH   listen there instead
  -a, --unix-mask=MODE     access to it, in octal (default 700)
  -l, --listen=ADDRESS     where to listen (default: everywhere); several with commas, or repeated
  -m, --memory-limit=N     megabytes of items (default 64)
  -M, --disable-evictions  fail when they are used up, instead of evicting
  -I, --max-item-size=N    bytes of one item, with k or m (default 1m; 1k to 1024m)
  -c, --conn-limit=N       connections at once (default 1024)
  -t, --threads=N          kernel threads that run fibers (default 4)
  -b, --listen-backlog=N   (default 1024)
  -V, --version
  -h, --help               this
The other options of memcached are refused. The server prints "listening on ADDRESS:PORT" for each
address, and writes the ports into the file that MEMCACHED_PORT_FILENAME names, as memcached does.
SIGTERM and SIGINT stop it.
)";

[[noreturn]] void refuse(const std::string& what) {
    std::fprintf(stderr, "memcached-server: %s (see memcached-server -h)\n", what.c_str());
    std::exit(64);
}

std::uint64_t number(const char* name, std::string_view word, std::uint64_t least,
                     std::uint64_t most) {
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n);
    if (error != std::errc{} || end != word.data() + word.size() || n < least || n > most)
        refuse(std::string{name} + " is '" + std::string{word} + "'; expected a number from " +
               std::to_string(least) + " to " + std::to_string(most));
    return n;
}

unsigned mode(const char* name, std::string_view word) {
    unsigned n = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n, 8);
    if (error != std::errc{} || end != word.data() + word.size() || n > 0777)
        refuse(std::string{name} + " is '" + std::string{word} +
               "'; expected an octal number from 0 to 777");
    return n;
}

// Reads a size, which may end in k or m.
std::uint64_t size(const char* name, std::string_view word) {
    const char unit = word.empty() ? '\0' : static_cast<char>(word.back() | 0x20);
    const std::uint64_t factor = unit == 'k' ? 1024 : unit == 'm' ? 1024 * 1024 : 1;
    const std::uint64_t most = 1024u << 20;
    if (factor == 1) return number(name, word, 1024, most);
    return number(name, word.substr(0, word.size() - 1), 1, most / factor) * factor;
}

// Reads a port: 0 means none, -1 any free one.
std::optional<std::uint16_t> port(const char* name, std::string_view word) {
    if (word == "-1") return 0;
    const auto n = static_cast<std::uint16_t>(number(name, word, 0, 65535));
    return n == 0 ? std::nullopt : std::optional{n};
}

void add_addresses(std::string_view list, std::vector<std::string>& to) {
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(','), list.size());
        if (end != 0) to.emplace_back(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
}

}  // namespace

ums::result<ums::net::endpoint> read_address(const std::string& text, std::uint16_t port) {
    auto parsed = ums::net::endpoint::ip(text, port);
    if (!parsed) parsed = ums::net::endpoint::parse(text);
    if (parsed && parsed->family() == AF_UNIX) parsed = parsed.failure(EINVAL);
    return parsed;
}

options read_options(int count, char** words) {
    static constexpr option all[] = {{"port", required_argument, nullptr, 'p'},
                                     {"udp-port", required_argument, nullptr, 'U'},
                                     {"unix-socket", required_argument, nullptr, 's'},
                                     {"unix-mask", required_argument, nullptr, 'a'},
                                     {"listen", required_argument, nullptr, 'l'},
                                     {"memory-limit", required_argument, nullptr, 'm'},
                                     {"disable-evictions", no_argument, nullptr, 'M'},
                                     {"max-item-size", required_argument, nullptr, 'I'},
                                     {"conn-limit", required_argument, nullptr, 'c'},
                                     {"threads", required_argument, nullptr, 't'},
                                     {"listen-backlog", required_argument, nullptr, 'b'},
                                     {"version", no_argument, nullptr, 'V'},
                                     {"help", no_argument, nullptr, 'h'},
                                     {nullptr, 0, nullptr, 0}};
    options chosen;
    bool has_port = false;
    opterr = 0;
    while (true) {
        const int at = optind;
        const int c = getopt_long(count, words, ":p:U:s:a:l:m:MI:c:t:b:Vh", all, nullptr);
        if (c == -1) break;
        switch (c) {
            case 'p':
                chosen.port = port("-p", optarg);
                has_port = true;
                break;
            case 'U':
                chosen.udp_port = port("-U", optarg);
                break;
            case 's':
                chosen.unix_path = optarg;
                break;
            case 'a':
                chosen.unix_mode = mode("-a", optarg);
                break;
            case 'l':
                add_addresses(optarg, chosen.addresses);
                break;
            case 'm':
                chosen.store.memory_bytes =
                    static_cast<std::size_t>(number("-m", optarg, 1, 16 << 20)) << 20;
                break;
            case 'M':
                chosen.store.evict = false;
                break;
            case 'I':
                chosen.store.item_bytes_max = size("-I", optarg);
                break;
            case 'c':
                chosen.max_connections = static_cast<unsigned>(number("-c", optarg, 1, 10'000'000));
                break;
            case 't':
                chosen.processors = static_cast<unsigned>(number("-t", optarg, 1, 1024));
                break;
            case 'b':
                chosen.backlog = static_cast<unsigned>(number("-b", optarg, 1, 65535));
                break;
            case 'V':
                std::printf("memcached %s\n", session::version.data());
                std::exit(0);
            case 'h':
                std::fputs(help, stdout);
                std::exit(0);
            case ':':
                refuse(std::string{"the option "} + words[at] + " needs a value");
            default:
                refuse(std::string{"there is no option "} + words[at]);
        }
    }
    if (optind < count) refuse(std::string{"what is '"} + words[optind] + "'?");
    for (const std::string& text : chosen.addresses)
        if (!read_address(text, 0))
            refuse("-l is '" + text + "'; expected an IP address, ADDRESS:PORT or [IPV6]:PORT");
    if (chosen.udp_port && !has_port) chosen.port = chosen.udp_port;
    if (!chosen.port && !chosen.udp_port && chosen.unix_path.empty())
        refuse("there is nothing to listen on: -p and -U are 0, and there is no -s");
    if (chosen.store.item_bytes_max > chosen.store.memory_bytes)
        refuse("-I is larger than -m: no item of that size fits");
    return chosen;
}

}  // namespace memcached
