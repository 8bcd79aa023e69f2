// SPDX-License-Identifier: MIT
#include "server.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace http {

namespace {
constexpr std::size_t file_piece = 256 * 1024;  // Sent under one write time-out.
}

server::server(const options& chosen)
    : options_(chosen), places_(static_cast<std::ptrdiff_t>(chosen.max_connections)) {
    site_.limits = chosen.limits;
    site_.has_metrics = chosen.metrics;
    if (!chosen.root.empty()) site_.root = std::make_unique<files>(chosen.root);
    for (const ums::net::endpoint& at : chosen.listen) listeners_.emplace_back(at);
}

server::~server() = default;

std::vector<ums::net::endpoint> server::addresses() const {
    std::vector<ums::net::endpoint> all;
    for (const auto& l : listeners_) all.push_back(l.local().value());
    return all;
}

void server::run() {
    std::vector<ums::fiber> acceptors;
    for (auto& l : listeners_) acceptors.emplace_back([this, &l] { accept(l); });
    for (auto& a : acceptors) a.join();
    // A client that comes now is refused, not kept waiting.
    for (auto& l : listeners_) (void)l.close();
    connections_.stop();
    if (!connections_.wait_until_empty(options_.grace)) connections_.end_all();
    fibers_.wait();  // The last fiber may be on its way out.
}

void server::stop() {
    site_.closes.store(true, std::memory_order_relaxed);  // relaxed: see session::begin().
    stops_.request_stop();
}

void server::accept(ums::net::listener& at) {
    const std::stop_token stop = stops_.get_token();
    while (places_.acquire(stop)) {
        // At the limit of descriptors, accept() waits until one is free.
        auto peer = at.accept(ums::limits{stop});
        if (!peer) {
            places_.release();
            if (stop.stop_requested()) return;
            // The error concerns one connection (aborted before it was accepted), or accepting
            // fails for good.
            if (peer.error() == std::errc::connection_aborted) continue;
            std::fprintf(stderr, "http-server: accept: %s\n", peer.error().message().c_str());
            return;
        }
        const auto serving = [this](ums::net::stream s) {
            serve(std::move(s));
            places_.release();
        };
        if (fibers_.start(*peer, serving)) continue;
        places_.release();
        (void)peer->close();
        fibers_.wait_for_stack();
    }
}

void server::serve(ums::net::stream peer) {
    connection c{connections_, std::move(peer)};
    session client{site_};
    pool<workplace>::loan work;
    enum class phase { idle, head, body };
    phase now = phase::idle;
    std::uint64_t parts = 0;  // How many parts were complete when `now` began.
    c.set_idle(true);
    c.allow(options_.idle_timeout, false);
    // The caller that stops the server ends the waits of the connections that it finds idle; the
    // others see the stop here.
    while (!(now == phase::idle && c.must_end())) {
        const bool holds_nothing = work == nullptr;
        if (holds_nothing) {
            if (!c.stream().wait_readable()) return;
            work = workplaces_.take();
        }
        input_buffer& in = work->in;
        output& out = work->out;
        const auto space = in.space(site_.limits.head_bytes * 2);
        // There is nothing to read after all, so it waits without a workplace.
        const auto got = c.stream().read(space.data(), space.size(),
                                         holds_nothing ? ums::deadline{} : ums::deadline::max());
        if (holds_nothing && !got && got.error() == std::errc::timed_out) {
            work.reset();
            continue;
        }
        if (!got || *got == 0) {
            if (!got || !c.has_timed_out()) return;
            client.time_out(out);
            if (send(c, out)) linger(c);
            return;
        }
        in.added(*got);
        while (!in.data().empty()) {
            const std::size_t taken = client.take(in.data(), out);
            in.consume(taken);
            // This comes before "100 Continue" is sent: a client that has seen it knows that its
            // request has begun, and a stop then finishes it.
            if (!client.is_between_requests()) c.set_idle(false);
            const bool sends = !out.empty();
            if (sends && !send(c, out)) return;
            if (client.is_over()) return linger(c);
            if (taken == 0 && !sends) break;
        }
        if (in.data().empty()) work.reset();
        // A time-out covers the phase, not each byte of it, because otherwise a byte now and then
        // would hold the connection for ever. Another part in the same phase belongs to the next
        // request of a client that pipelines; a large answer between the two has had a time-out of
        // its own. A connection whose request came and was answered at once was idle all the time:
        // a stop meanwhile ends the reading, but neither what has arrived nor its answer.
        const phase next = client.is_between_requests() ? phase::idle
                           : client.is_in_body()        ? phase::body
                                                        : phase::head;
        c.set_idle(next == phase::idle);
        if (next == phase::idle) {
            c.allow(options_.idle_timeout, false);
        } else if (next != now || client.parts() != parts) {
            c.allow(next == phase::body ? options_.body_timeout : options_.header_timeout, false);
        }
        now = next;
        parts = client.parts();
    }
}

bool server::send(connection& c, output& what) {
    // An answer mostly goes out at once, and needs no time-out.
    ums::deadline until{};
    ums::net::stream& to = c.stream();
    std::string_view text = what.text;
    while (!text.empty()) {
        const auto sent =
            ums::io::send(to.fd(), text.data(), text.size(), what.from ? MSG_MORE : 0, until);
        if (sent) {
            text.remove_prefix(*sent);
        } else if (until == ums::deadline{} && sent.error() == std::errc::timed_out) {
            until = ums::deadline::max();
            c.allow(options_.write_timeout, true);
        } else {
            return false;
        }
    }
    while (what.from && what.bytes > 0) {
        c.allow(options_.write_timeout, true);
        const auto piece = std::min<std::size_t>(static_cast<std::size_t>(what.bytes), file_piece);
        const auto sent = ums::io::sendfile(to.fd(), what.from->fd(), &what.offset, piece);
        if (!sent || *sent == 0) return false;  // 0: the file has shrunk.
        what.bytes -= static_cast<off_t>(*sent);
    }
    what.clear();
    return true;
}

// This has a frame of its own, because its buffer would make that of serve() larger.
[[gnu::noinline]] void server::linger(connection& c) {
    if (!c.stream().shutdown(SHUT_WR)) return;
    c.allow(std::chrono::seconds{2}, false);
    std::array<char, 2048> unwanted;
    for (std::size_t most = 1 << 20; most > unwanted.size();) {
        const auto got = c.stream().read(unwanted.data(), unwanted.size());
        if (!got || *got == 0) return;
        most -= *got;
    }
}

}  // namespace http
