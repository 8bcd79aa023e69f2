// SPDX-License-Identifier: MIT
//
// A wait for one direction of one descriptor is like any other wait, but leaves the descriptor's
// flags alone: the library that owns the descriptor may rely on calls that block. A wait for
// several is a wait for an epoll descriptor, made for the purpose, that watches them all and
// becomes readable when one of them is ready.

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <vector>

#include "io/wait/operation.hpp"
#include "os/own_number.hpp"
#include "ums/io.hpp"

namespace ums::io {

namespace {

using number = result<std::size_t>;

long poll_now(pollfd* fds, std::size_t count) noexcept {
    const timespec zero{};
    auto call = [&]() noexcept { return os::poll_call(fds, count, &zero); };
    return without_interruption(call);
}

// Waits until one of the descriptors is ready, and fills in revents.
long poll_all(pollfd* fds, std::size_t count, const limits& l) noexcept {
    long n = poll_now(fds, count);
    if (n != 0) return n;
    const long epoll =
        os::out_of_the_way(os::io_call(SYS_epoll_create1, EPOLL_CLOEXEC), os::lowest_for_a_moment);
    if (epoll < 0) return epoll;
    const int ep = static_cast<int>(epoll);
    descriptor::adopt(ep, descriptor::made_here);
    const number_at at{ep};
    if (at.d == nullptr) n = -ENOMEM;
    for (std::size_t i = 0; i < count && n == 0; ++i) {
        if (fds[i].fd < 0) continue;
        std::uint32_t events = 0;  // The same descriptor may occur several times.
        for (std::size_t k = 0; k < count; ++k)
            if (fds[k].fd == fds[i].fd) events |= static_cast<std::uint16_t>(fds[k].events);
        epoll_event on{events, {.fd = fds[i].fd}};
        n = os::io_call(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, fds[i].fd, &on);
        // The descriptor occurs again, is a file, which is always ready, or was closed meanwhile.
        if (n == -EEXIST || n == -EPERM || n == -EBADF) n = 0;
    }
    if (n == 0) {
        n = perform(at, descriptor::made_here, side::in, l, [=]() noexcept -> long {
            const long ready = poll_now(fds, count);
            return ready != 0 ? ready : -EAGAIN;
        });
    }
    close(ep);
    return n;
}

// poll(2) for one direction of one descriptor, and a wait for it.
long poll_one(const number_at& at, pollfd& one, side s, const limits& l) noexcept {
    const auto attempt = [&]() noexcept -> long {
        const long ready = poll_now(&one, 1);
        return ready == 0 ? -EAGAIN : (one.revents & POLLNVAL) != 0 ? -EBADF : ready;
    };
    // The kernel would say so, too, and an operation that looks must not take the error.
    const std::uint32_t traits = at.d->known_traits();
    if ((traits & descriptor::errors) != 0) {
        const long n = attempt();
        one.revents |= POLLERR;
        return n == -EAGAIN ? 1 : n;
    }
    return (traits & descriptor::kept) != 0 ? perform(at, static_cast<long>(traits), s, l, attempt)
                                            : perform_shared(at, s, effect::looks, l, attempt);
}

result<void> wait_ready(int fd, side s, const limits& l) {
    const number_at at{fd};
    descriptor* const d = at.d;
    const std::uint32_t generation = at.generation;
    if (d == nullptr) return result<void>::from(descriptor::why_none(fd));
    if (!d->is_kept()) {
        pollfd one{fd, static_cast<short>(s == side::in ? POLLIN : POLLOUT), 0};
        const long n = poll_one(at, one, s, l);
        return result<void>::from(std::min(n, 0l));
    }
    // The number may be lent to another library, which has read what the mark stands for.
    if (d->may_be_ready(s) && d->take(s) && !would_block(fd, s)) {
        d->restore(s);
        return d->generation() == generation ? result<void>{} : result<void>::failure(EBADF);
    }
    long r = 0;
    if (!d->may_be_ready(s)) {
        r = d->wait(fd, s, generation, os::to_nanoseconds(l.until), l.stop);
        // This wait took the edge; the caller's attempt must find its mark.
        if (r == 0) d->restore(s);
    }
    // A close leaves the mark, too.
    if (r == 0 && d->generation() != generation) r = -EBADF;
    if ((r == -ETIMEDOUT || r == -ECANCELED) && !would_block(fd, s)) r = 0;
    return result<void>::from(r);
}

}  // namespace

result<void> wait_readable(int fd, const limits& l) { return wait_ready(fd, side::in, l); }
result<void> wait_writable(int fd, const limits& l) { return wait_ready(fd, side::out, l); }

result<short> poll(int fd, short events, const limits& l) {
    const number_at at{fd};
    if (at.d == nullptr) return result<short>::failure(static_cast<int>(-descriptor::why_none(fd)));
    pollfd one{fd, events, 0};
    long n;
    const bool in = (events & ~POLLRDHUP) == POLLIN;
    if (in || events == POLLOUT) {
        n = poll_one(at, one, in ? side::in : side::out, l);
    } else {
        // If none of these events has come, there may still be something to read, or room to write.
        n = poll_all(&one, 1, l);
    }
    if (n < 0) return result<short>::failure(static_cast<int>(-n));
    if ((one.revents & POLLNVAL) != 0) return result<short>::failure(EBADF);
    return one.revents;
}

number poll(pollfd* fds, std::size_t count, const limits& l) {
    const long n = poll_all(fds, count, l);
    return number::from(n == -ETIMEDOUT ? 0 : n);
}

number select(int count, fd_set* in, fd_set* out, fd_set* except, const limits& l) {
    if (count < 0 || count > FD_SETSIZE) return number::failure(EINVAL);
    try {
        std::vector<pollfd> fds;
        const auto is_in = [](int fd, fd_set* set) { return set != nullptr && FD_ISSET(fd, set); };
        for (int fd = 0; fd < count; ++fd) {
            const short events =
                static_cast<short>((is_in(fd, in) ? POLLIN : 0) | (is_in(fd, out) ? POLLOUT : 0) |
                                   (is_in(fd, except) ? POLLPRI : 0));
            if (events != 0) fds.push_back({fd, events, 0});
        }
        struct kind {
            fd_set* set;
            int asked, any;
        };
        const kind kinds[] = {{in, POLLIN, POLLIN | POLLHUP | POLLERR},
                              {out, POLLOUT, POLLOUT | POLLERR},
                              {except, POLLPRI, POLLPRI}};
        const auto tells = [](const pollfd& f, const kind& k) {
            return (f.events & k.asked) != 0 && (f.revents & k.any) != 0;
        };
        std::size_t bits = 0;
        for (;;) {
            const number n = poll(fds.data(), fds.size(), l);
            if (!n) return n;
            for (pollfd& f : fds) {
                if ((f.revents & POLLNVAL) != 0) return number::failure(EBADF);
                const auto told =
                    std::ranges::count_if(kinds, [&](const kind& k) { return tells(f, k); });
                bits += static_cast<std::size_t>(told);
                // poll(2) always reports an end or an error; the sets that this descriptor is in do
                // not.
                if (f.revents != 0 && told == 0) f.fd = -1;
            }
            if (bits != 0 || *n == 0) break;
        }
        for (const kind& k : kinds) {
            if (k.set == nullptr) continue;
            FD_ZERO(k.set);
            for (const pollfd& f : fds)
                if (tells(f, k)) FD_SET(f.fd, k.set);
        }
        return bits;
    } catch (const std::bad_alloc&) {
        return number::failure(ENOMEM);
    }
}

number epoll_wait(int epoll, epoll_event* events, int most, const limits& l) {
    const number_at at{epoll};
    if (at.d == nullptr) return number::from(descriptor::why_none(epoll));
    const long n = perform_shared(at, side::in, effect::looks, l, [=]() noexcept -> long {
        const long ready = os::io_call(SYS_epoll_pwait, epoll, events, most, 0, nullptr, 8);
        return ready != 0 ? ready : -EAGAIN;
    });
    return number::from(n == -ETIMEDOUT ? 0 : n);
}

}  // namespace ums::io
