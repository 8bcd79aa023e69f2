// SPDX-License-Identifier: MIT
//
// One fiber makes all attempts: sockets that are being connected wait in one poll().

#include "ums/connect.hpp"

#include <algorithm>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "io/net/names.hpp"
#include "io/wait/descriptor.hpp"
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
    }
    attempts(const attempts&) = delete;
    attempts& operator=(const attempts&) = delete;

    [[nodiscard]] bool empty() const noexcept { return pending_.empty(); }

    // Returns 0 if the peer answered at once, -EINPROGRESS, or why the attempt failed.
    long start(const endpoint& to) {
        pending_.reserve(pending_.size() + 1);
        const result<int> fd = io::socket(to.family(), SOCK_STREAM);
        if (!fd) return -fd.error().value();
        const long r = os::io_call(SYS_connect, *fd, to.data(), to.size());
        if (r == 0)
            winner_ = *fd;
        else if (r == -EINPROGRESS || r == -EINTR)
            pending_.push_back({*fd, POLLOUT, 0});
        else
            io::close(*fd);
        return r == -EINTR ? -EINPROGRESS : r;
    }

    // Returns 0 if one answered, and -EAGAIN if the time is up. Otherwise an attempt failed, or the
    // wait was given up, which `is_over` says, and the result says why.
    long wait(const limits& l, bool& is_over) {
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

    [[nodiscard]] stream take(const endpoint& any) const noexcept {
        UMS_DEBUG_ASSERT(winner_ >= 0, "a connection was taken that no attempt has made");
        stream made{winner_};
        io::descriptor::keep(winner_);
        if (any.family() != AF_UNIX) set_option(winner_, IPPROTO_TCP, TCP_NODELAY, 1);
        return made;
    }

private:
    std::vector<pollfd> pending_;
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
        limits part = l;
        if (next < to.size()) part.until = std::min(l.until, next_at);
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
