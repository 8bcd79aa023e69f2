// SPDX-License-Identifier: MIT
#include "descriptors.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "printable.hpp"

namespace tool::inspect {

namespace {

// Parses an endpoint as /proc/net/tcp writes it: words of the address in the machine's order, a
// colon, the port.
std::string endpoint(const std::string& hex) {
    const std::size_t colon = hex.find(':');
    if (colon == std::string::npos) return hex;
    const unsigned long port = std::strtoul(hex.c_str() + colon + 1, nullptr, 16);
    const bool is_v4 = colon == 8;
    std::uint32_t words[4] = {};
    for (std::size_t i = 0; i < (is_v4 ? 1u : 4u) && (i + 1) * 8 <= colon; ++i)
        words[i] =
            static_cast<std::uint32_t>(std::strtoul(hex.substr(i * 8, 8).c_str(), nullptr, 16));
    char text[INET6_ADDRSTRLEN] = "?";
    inet_ntop(is_v4 ? AF_INET : AF_INET6, words, text, sizeof text);
    return is_v4 ? fmt::format("{}:{}", text, port) : fmt::format("[{}]:{}", text, port);
}

}  // namespace

const std::string& descriptors::describe(std::uint64_t fd) {
    const auto [at, is_new] = known_.try_emplace(fd);
    if (is_new) at->second = printable(look_up(fd));
    return at->second;
}

std::string descriptors::look_up(std::uint64_t fd) {
    if (pid_ == 0) return {};
    char text[4096];
    const ssize_t n = readlink(fmt::format("/proc/{}/fd/{}", pid_, fd).c_str(), text, sizeof text);
    if (n <= 0) return {};
    std::string to(text, static_cast<std::size_t>(n));
    if (to.starts_with("pipe:")) return "pipe";
    if (to.starts_with("anon_inode:")) return to.substr(std::strlen("anon_inode:"));
    if (!to.starts_with("socket:[")) return to;
    if (!is_loaded_) load();
    const auto found =
        sockets_.find(std::strtoull(to.c_str() + std::strlen("socket:["), nullptr, 10));
    return found != sockets_.end() ? found->second : "socket";
}

void descriptors::load() {
    assert(!is_loaded_ && pid_ != 0 && "sockets are loaded twice, or of no process");
    is_loaded_ = true;
    load_internet("tcp", "tcp");
    load_internet("tcp6", "tcp");
    load_internet("udp", "udp");
    load_internet("udp6", "udp");
    load_unix();
}

void descriptors::load_internet(const char* file, const char* protocol) {
    std::ifstream in{fmt::format("/proc/{}/net/{}", pid_, file)};
    std::string line;
    std::getline(in, line);  // The heading.
    while (std::getline(in, line)) {
        char local[64], remote[64];
        unsigned long inode = 0;
        unsigned state = 0;
        if (std::sscanf(line.c_str(), " %*d: %63s %63s %x %*s %*s %*s %*u %*u %lu", local, remote,
                        &state, &inode) != 4)
            continue;
        constexpr unsigned listening = 10;
        const bool has_peer = std::strspn(remote, "0:") != std::strlen(remote);
        if (!has_peer || (state == listening && std::strcmp(protocol, "tcp") == 0))
            sockets_.emplace(inode, fmt::format("{} at {}", protocol, endpoint(local)));
        else
            sockets_.emplace(
                inode, fmt::format("{} {} at {}", protocol, endpoint(remote), endpoint(local)));
    }
}

void descriptors::load_unix() {
    std::ifstream in{fmt::format("/proc/{}/net/unix", pid_)};
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
        std::istringstream words{line};
        std::string slot, count, protocol, flags, type, state, path;
        std::uint64_t inode = 0;
        if (!(words >> slot >> count >> protocol >> flags >> type >> state >> inode)) continue;
        words >> path;
        // A path may hold the end of a line, and after it what looks like another socket's line.
        // That one has its own, too: of two, neither is believed.
        const auto [at, is_new] =
            sockets_.emplace(inode, path.empty() ? "unix socket" : "unix socket " + path);
        if (!is_new) at->second = "unix socket";
    }
}

}  // namespace tool::inspect
