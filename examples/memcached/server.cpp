// SPDX-License-Identifier: MIT
#include "server.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "input_buffer.hpp"
#include "size_classes.hpp"

namespace memcached {

namespace {

constexpr std::size_t line_bytes = 4u << 20;  // The session itself refuses longer ones.

std::vector<ums::net::endpoint> endpoints(const options& chosen,
                                          std::optional<std::uint16_t> chosen_port) {
    std::vector<ums::net::endpoint> all;
    if (!chosen_port) return all;
    const std::uint16_t port = *chosen_port;
    if (chosen.addresses.empty()) all.push_back(ums::net::endpoint::any_ipv6(port));
    for (const std::string& text : chosen.addresses)
        all.push_back(read_address(text, port).value());
    return all;
}

}  // namespace

server::server(const options& chosen)
    : options_(chosen), items_(chosen.store), service_{items_, time_, this} {
    ums::net::listen_options how{.backlog = static_cast<int>(chosen.backlog)};
    if (!chosen.unix_path.empty()) {
        how.unix_mode = chosen.unix_mode;
        // The socket was left behind by a server that was killed. Nothing but a socket is removed.
        struct stat status {};
        if (lstat(chosen.unix_path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode))
            unlink(chosen.unix_path.c_str());
        listeners_.emplace_back(ums::net::endpoint::unix_socket(chosen.unix_path).value(), how);
        return;
    }
    for (const auto& at : endpoints(chosen, chosen.port)) listeners_.emplace_back(at, how);
    for (const auto& at : endpoints(chosen, chosen.udp_port)) datagrams_.emplace_back(at);
}

std::vector<ums::net::endpoint> server::addresses() const {
    std::vector<ums::net::endpoint> all;
    for (const auto& l : listeners_) all.push_back(l.local().value());
    return all;
}

std::vector<ums::net::endpoint> server::udp_addresses() const {
    std::vector<ums::net::endpoint> all;
    for (const auto& d : datagrams_) all.push_back(d.local().value());
    return all;
}

void server::run() {
    std::vector<ums::fiber> fibers;
    for (auto& l : listeners_) fibers.emplace_back([this, &l] { accept(l); });
    for (auto& d : datagrams_) fibers.emplace_back([this, &d] { serve_datagrams(d); });
    for (auto& f : fibers) f.join();
    for (auto& l : listeners_) (void)l.close();
    connections_.stop();
    if (!connections_.wait_until_empty(std::chrono::seconds{2})) connections_.end_all();
    fibers_.wait();  // The last fiber may be on its way out.
}

void server::accept(ums::net::listener& at) {
    const std::stop_token stop = stops_.get_token();
    while (true) {
        // At the limit of descriptors, accept() waits until one is free.
        auto peer = at.accept(ums::limits{stop});
        if (!peer) {
            if (stop.stop_requested()) return;
            if (peer.error() == std::errc::connection_aborted) continue;
            std::fprintf(stderr, "memcached-server: accept: %s\n", peer.error().message().c_str());
            return;
        }
        // Counted here, not by the connection's fiber, because many are accepted before the first
        // of these fibers runs. relaxed, here and below: the number is only compared with a limit.
        const bool has_place =
            open_.fetch_add(1, std::memory_order_relaxed) < options_.max_connections;
        if (has_place && fibers_.start(*peer, [this](ums::net::stream s) { serve(std::move(s)); }))
            continue;
        open_.fetch_sub(1, std::memory_order_relaxed);
        rejected_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a figure.
        // This fits into the socket's buffer, so the server does not wait for this client.
        constexpr std::string_view full = "ERROR Too many open connections\r\n";
        (void)peer->write(full.data(), full.size());
        (void)peer->close();
        if (has_place) fibers_.wait_for_stack();
    }
}

void server::serve(ums::net::stream peer) {
    connection c{connections_, std::move(peer)};
    // Comes before the socket is closed: a client that sees the close finds the place free.
    struct place {
        std::atomic<unsigned>& open;
        ~place() { open.fetch_sub(1, std::memory_order_relaxed); }  // relaxed: see accept().
    } const counted{open_};
    session client{service_};
    input_buffer in;
    replies out;
    c.set_idle(true);
    while (!c.must_end()) {
        // The rest of a large value is read straight into its item.
        const std::span<char> value = in.data().empty() ? client.wanted() : std::span<char>{};
        const bool direct = value.size() >= input_buffer::small;
        const std::span<char> space = direct ? value : in.space(line_bytes);
        const auto got = c.stream().read(space.data(), space.size());
        if (!got || *got == 0) return;
        if (direct) {
            client.filled(*got, out);
        } else {
            in.added(*got);
        }
        while (true) {
            const std::size_t taken = client.take(in.data(), out);
            in.consume(taken);
            const bool sends = !out.empty();
            if (sends && !send(c, out)) return;
            if (client.is_over()) return;
            if (in.data().empty() || (taken == 0 && !sends)) break;
        }
    }
}

bool server::send(connection& c, replies& what) {
    std::array<iovec, 64> pieces;
    while (const unsigned n = what.pieces(pieces.data(), pieces.size())) {
        ums::result<std::size_t> sent{0};
        if (n == 1) {
            sent = ums::io::send(c.stream().fd(), pieces[0].iov_base, pieces[0].iov_len);
        } else {
            msghdr message{};
            message.msg_iov = pieces.data();
            message.msg_iovlen = n;
            sent = ums::io::sendmsg(c.stream().fd(), &message);
        }
        if (!sent) return false;
        what.sent(*sent);
    }
    what.clear();
    return true;
}

// A datagram is a conversation. It begins with eight bytes (the request's number, this datagram's
// number, how many there are, nothing), and the reply takes as many datagrams as it needs. As with
// memcached, a request fits into one datagram.
void server::serve_datagrams(ums::net::datagram& at) {
    constexpr std::size_t head = 8, payload = 1400 - head;
    const std::stop_token stop = stops_.get_token();
    session client{service_};
    replies out;
    std::string buffer(65536, '\0');
    while (true) {
        ums::net::endpoint from;
        const auto got = at.receive(buffer.data(), buffer.size(), &from, ums::limits{stop});
        if (!got && stop.stop_requested()) return;
        // A datagram that is one of several is not for us: nothing reliable says which others
        // belong to it.
        if (!got || *got < head || buffer[4] != 0 || buffer[5] != 1) continue;
        client.take({buffer.data() + head, *got - head}, out);
        std::string reply;
        std::array<iovec, 16> pieces;
        while (const unsigned n = out.pieces(pieces.data(), pieces.size())) {
            std::size_t bytes = 0;
            for (const iovec& p : std::span{pieces}.first(n)) {
                reply.append(static_cast<const char*>(p.iov_base), p.iov_len);
                bytes += p.iov_len;
            }
            out.sent(bytes);
        }
        out.clear();
        client.reset();
        const std::size_t count = (reply.size() + payload - 1) / payload;
        for (std::size_t i = 0; i < count && count <= 65535; ++i) {
            std::string datagram{buffer, 0, 2};
            for (const std::size_t n : {i, count, std::size_t{0}}) {
                datagram += static_cast<char>(n >> 8);
                datagram += static_cast<char>(n & 0xff);
            }
            datagram += std::string_view{reply}.substr(i * payload, payload);
            (void)at.send_to(datagram.data(), datagram.size(), from);
        }
    }
}

namespace {

void say(replies& to, std::string_view name, std::string_view value) {
    to.text("STAT ");
    to.text(name);
    to.character(' ');
    to.text(value);
    to.text("\r\n");
}
void say(replies& to, std::string_view name, std::uint64_t value) {
    say(to, name, std::string_view{std::to_string(value)});
}

}  // namespace

void server::general(replies& to) {
    const counters sum = items_.count();
    const store::use linked = items_.linked();
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto time = [](const timeval& t) {
        char text[40];
        std::snprintf(text, sizeof text, "%ld.%06ld", static_cast<long>(t.tv_sec),
                      static_cast<long>(t.tv_usec));
        return std::string{text};
    };
    say(to, "pid", static_cast<std::uint64_t>(getpid()));
    say(to, "uptime", time_.uptime());
    say(to, "time", static_cast<std::uint64_t>(std::time(nullptr)));
    say(to, "version", session::version);
    say(to, "pointer_size", 64u);
    say(to, "rusage_user", time(used.ru_utime));
    say(to, "rusage_system", time(used.ru_stime));
    say(to, "max_connections", options_.max_connections);
    say(to, "curr_connections", connections_.count());
    say(to, "total_connections", connections_.total());
    say(to, "rejected_connections",
        rejected_.load(std::memory_order_relaxed));  // relaxed: a figure.
    say(to, "cmd_get", sum.cmd_get);
    say(to, "cmd_set", sum.cmd_set);
    say(to, "cmd_flush", sum.cmd_flush);
    say(to, "cmd_touch", sum.cmd_touch);
    say(to, "cmd_meta", sum.cmd_meta);
    say(to, "get_hits", sum.get_hits);
    say(to, "get_misses", sum.get_misses);
    say(to, "get_expired", sum.get_expired);
    say(to, "get_flushed", sum.get_flushed);
    say(to, "delete_misses", sum.delete_misses);
    say(to, "delete_hits", sum.delete_hits);
    say(to, "incr_misses", sum.incr_misses);
    say(to, "incr_hits", sum.incr_hits);
    say(to, "decr_misses", sum.decr_misses);
    say(to, "decr_hits", sum.decr_hits);
    say(to, "cas_misses", sum.cas_misses);
    say(to, "cas_hits", sum.cas_hits);
    say(to, "cas_badval", sum.cas_badval);
    say(to, "touch_hits", sum.touch_hits);
    say(to, "touch_misses", sum.touch_misses);
    say(to, "limit_maxbytes", options_.store.memory_bytes);
    say(to, "threads", options_.processors);
    say(to, "bytes", linked.bytes);
    say(to, "curr_items", linked.items);
    say(to, "total_items", sum.total_items);
    say(to, "expired_unfetched", sum.expired_unfetched);
    say(to, "evicted_unfetched", sum.evicted_unfetched);
    say(to, "evictions", sum.evictions);
}

void server::settings(replies& to) {
    say(to, "maxbytes", options_.store.memory_bytes);
    say(to, "maxconns", options_.max_connections);
    say(to, "tcpport", options_.port.value_or(0));
    say(to, "udpport", options_.udp_port.value_or(0));
    say(to, "inter", options_.addresses.empty() ? "NULL" : options_.addresses.front());
    say(to, "evictions", options_.store.evict ? "on" : "off");
    say(to, "domain_socket", options_.unix_path.empty() ? "NULL" : options_.unix_path);
    say(to, "num_threads", options_.processors);
    say(to, "cas_enabled", "yes");
    say(to, "tcp_backlog", options_.backlog);
    say(to, "item_size_max", options_.store.item_bytes_max);
    say(to, "maxconns_fast", "yes");
    say(to, "flush_enabled", "yes");
}

}  // namespace memcached
