// SPDX-License-Identifier: MIT
//
// One fiber makes all attempts: sockets that are being connected wait in one poll().

#include "ums/connect.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "io/net/names.hpp"
#include "io/wait/operation.hpp"
#include "ums/io.hpp"

namespace ums::net {

namespace {

std::error_code code_of(long error) noexcept {
    return {static_cast<int>(-error), std::system_category()};
}

class attempts {
public:
    attempts() = default;
    ~attempts() {
        for (const pollfd& p : pending_) io::close(p.fd);
        for (const queued& q : full_) io::close(q.fd);
    }
    attempts(const attempts&) = delete;
    attempts& operator=(const attempts&) = delete;

    [[nodiscard]] bool empty() const noexcept { return pending_.empty() && full_.empty(); }

    // Returns 0 if the peer answered at once, -EINPROGRESS, or why the attempt failed.
    long start(const endpoint& to) {
        pending_.reserve(pending_.size() + 1);
        full_.reserve(full_.size() + 1);
        const result<int> fd = io::socket(to.family(), SOCK_STREAM);
        if (!fd) return -fd.error().value();
        const long r = os::io_call(SYS_connect, *fd, to.data(), to.size());
        const bool is_full = r == -EAGAIN && to.family() == AF_UNIX;
        if (r == 0)
            winner_ = *fd;
        else if (r == -EINPROGRESS || r == -EINTR)
            pending_.push_back({*fd, POLLOUT, 0});
        else if (is_full)
            full_.push_back({*fd, &to});
        else
            io::close(*fd);
        return r == -EINTR || is_full ? -EINPROGRESS : r;
    }

    // Returns 0 if one answered, and -EAGAIN if the time is up. Otherwise an attempt failed, or the
    // wait was given up, which `is_over` says, and the result says why.
    long wait(const limits& l, bool& is_over) {
        for (;;) {
            // A full queue is waited for by the call itself (io::connect()), so it takes turns with
            // the other attempts.
            const bool is_alone = full_.empty() || (pending_.empty() && full_.size() == 1);
            const deadline soon = deadline_after(std::chrono::milliseconds{50});
            const limits turn = io::not_beyond(is_alone ? l.until : soon, l);
            long r = pending_.empty() ? -EAGAIN : wait_for_pending(turn, is_over);
            if (r == -EAGAIN && !full_.empty()) r = wait_for_full(turn, is_over);
            if (r != -EAGAIN || is_alone || deadline::clock::now() >= l.until) return r;
        }
    }

    [[nodiscard]] stream take(const endpoint& any) const noexcept {
        UMS_DEBUG_ASSERT(winner_ >= 0, "a connection was taken that no attempt has made");
        stream made{winner_};
        if (any.family() != AF_UNIX) set_option(winner_, IPPROTO_TCP, TCP_NODELAY, 1);
        return made;
    }

private:
    // A Unix socket whose listener's queue is full.
    struct queued {
        int fd;
        const endpoint* to;
    };

    // Both as wait().
    long wait_for_pending(const limits& l, bool& is_over) {
        const result<std::size_t> n = io::poll(pending_.data(), pending_.size(), l);
        if (!n) return is_over = true, n.number();
        if (*n == 0) return -EAGAIN;
        const auto done = std::ranges::find_if(pending_, [](pollfd& p) { return p.revents != 0; });
        UMS_ASSERT(done != pending_.end(), "poll() counted an answer that no attempt has");
        int error = 0;
        socklen_t bytes = sizeof error;
        long r = os::io_call(SYS_getsockopt, done->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
        if (r == 0) r = -error;
        if (r == 0)
            winner_ = done->fd;
        else
            io::close(done->fd);
        pending_.erase(done);
        return r;
    }

    long wait_for_full(const limits& l, bool& is_over) {
        std::ranges::rotate(full_, full_.begin() + 1);
        const queued q = full_.back();
        const result<void> made = io::connect(q.fd, q.to->data(), q.to->size(), l);
        const long r = made ? 0 : -made.error().value();
        if (r == -ETIMEDOUT) return -EAGAIN;
        // Or the pool has no thread.
        if (r == -ECANCELED || r == -EAGAIN) return is_over = true, r;
        full_.pop_back();
        if (r == 0)
            winner_ = q.fd;
        else
            io::close(q.fd);
        return r;
    }

    std::vector<pollfd> pending_;
    std::vector<queued> full_;
    int winner_ = -1;
};

// Takes IPv6 and IPv4 in turn, beginning with the kind that the resolver prefers.
std::vector<endpoint> interleaved(const std::vector<endpoint>& all, int family) {
    std::vector<endpoint> like, other, mixed;
    for (const endpoint& e : all) {
        if (family != AF_UNSPEC && e.family() != family) continue;
        (e.family() == all.front().family() ? like : other).push_back(e);
    }
    for (std::size_t i = 0; i < std::max(like.size(), other.size()); ++i) {
        if (i < like.size()) mixed.push_back(like[i]);
        if (i < other.size()) mixed.push_back(other[i]);
    }
    return mixed;
}

connected race(std::span<const endpoint> to, const limits& l, const connect_options& o) {
    attempts all;
    deadline next_at = deadline::min();
    long error = -EDESTADDRREQ;
    for (std::size_t next = 0;;) {
        if (next < to.size() && (all.empty() || deadline::clock::now() >= next_at)) {
            const long r = all.start(to[next]);
            if (r == 0) return {all.take(to[next]), {}};
            ++next;
            if (r == -EINPROGRESS)
                next_at = deadline_after(o.attempt_delay);
            else
                error = r;
            continue;
        }
        if (all.empty()) return {{}, code_of(error)};
        const limits part = io::not_beyond(next < to.size() ? next_at : l.until, l);
        bool is_over = false;
        const long r = all.wait(part, is_over);
        if (r == 0) return {all.take(to.front()), {}};
        if (is_over) return {{}, code_of(r)};
        if (r == -EAGAIN) {
            if (part.until == l.until) return {{}, code_of(-ETIMEDOUT)};
        } else {
            error = r;
            next_at = deadline::min();  // The next attempt may start at once.
        }
    }
}

}  // namespace

connected connect(std::span<const endpoint> to, const limits& l, const connect_options& o) {
    try {
        return race(to, l, o);
    } catch (const std::bad_alloc&) {
        return {{}, code_of(-ENOMEM)};
    }
}

connected connect(std::string_view host, std::uint16_t port, const limits& l,
                  const connect_options& o) {
    try {
        resolve_options asked;
        asked.family = o.family;
        const resolved found = resolve(host, std::to_string(port), l, asked);
        if (!found) return {{}, found.error};
        return race(interleaved(found.endpoints, o.family), l, o);
    } catch (const std::bad_alloc&) {
        return {{}, code_of(-ENOMEM)};
    }
}

}  // namespace ums::net
