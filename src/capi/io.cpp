// SPDX-License-Identifier: MIT
#include "ums/ums_io.h"

#include "capi/io_result.hpp"
#include "ums/io.hpp"
#include "ums/offload.hpp"

using namespace ums;
using namespace ums::capi;

ssize_t ums_read(int fd, void* into, size_t bytes) { return to_c(io::read(fd, into, bytes)); }

ssize_t ums_read_until(int fd, void* into, size_t bytes, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, io::read, fd, into, bytes);
}

ssize_t ums_write(int fd, const void* from, size_t bytes) {
    return to_c(io::write(fd, from, bytes));
}

ssize_t ums_write_until(int fd, const void* from, size_t bytes, int64_t deadline,
                        ums_stop_t* stop) {
    return until(deadline, stop, io::write, fd, from, bytes);
}

ssize_t ums_readv(int fd, const iovec* into, int count) { return to_c(io::readv(fd, into, count)); }

ssize_t ums_readv_until(int fd, const iovec* into, int count, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, io::readv, fd, into, count);
}

ssize_t ums_writev(int fd, const iovec* from, int count) {
    return to_c(io::writev(fd, from, count));
}

ssize_t ums_writev_until(int fd, const iovec* from, int count, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, io::writev, fd, from, count);
}

int ums_read_all(int fd, void* into, size_t bytes) { return to_c(io::read_all(fd, into, bytes)); }

int ums_read_all_until(int fd, void* into, size_t bytes, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, io::read_all, fd, into, bytes);
}

int ums_write_all(int fd, const void* from, size_t bytes) {
    return to_c(io::write_all(fd, from, bytes));
}

int ums_write_all_until(int fd, const void* from, size_t bytes, int64_t deadline,
                        ums_stop_t* stop) {
    return until(deadline, stop, io::write_all, fd, from, bytes);
}

ssize_t ums_recv(int fd, void* into, size_t bytes, int flags) {
    return to_c(io::recv(fd, into, bytes, flags));
}

ssize_t ums_recv_until(int fd, void* into, size_t bytes, int flags, int64_t deadline,
                       ums_stop_t* stop) {
    return until(deadline, stop, io::recv, fd, into, bytes, flags);
}

ssize_t ums_send(int fd, const void* from, size_t bytes, int flags) {
    return to_c(io::send(fd, from, bytes, flags));
}

ssize_t ums_send_until(int fd, const void* from, size_t bytes, int flags, int64_t deadline,
                       ums_stop_t* stop) {
    return until(deadline, stop, io::send, fd, from, bytes, flags);
}

ssize_t ums_recvfrom(int fd, void* into, size_t bytes, int flags, sockaddr* from,
                     socklen_t* from_bytes) {
    return to_c(io::recvfrom(fd, into, bytes, flags, from, from_bytes));
}

ssize_t ums_recvfrom_until(int fd, void* into, size_t bytes, int flags, sockaddr* from,
                           socklen_t* from_bytes, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, io::recvfrom, fd, into, bytes, flags, from, from_bytes);
}

ssize_t ums_sendto(int fd, const void* from, size_t bytes, int flags, const sockaddr* to,
                   socklen_t to_bytes) {
    return to_c(io::sendto(fd, from, bytes, flags, to, to_bytes));
}

ssize_t ums_sendto_until(int fd, const void* from, size_t bytes, int flags, const sockaddr* to,
                         socklen_t to_bytes, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, io::sendto, fd, from, bytes, flags, to, to_bytes);
}

ssize_t ums_recvmsg(int fd, msghdr* message, int flags) {
    return to_c(io::recvmsg(fd, message, flags));
}

ssize_t ums_recvmsg_until(int fd, msghdr* message, int flags, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, io::recvmsg, fd, message, flags);
}

ssize_t ums_sendmsg(int fd, const msghdr* message, int flags) {
    return to_c(io::sendmsg(fd, message, flags));
}

ssize_t ums_sendmsg_until(int fd, const msghdr* message, int flags, int64_t deadline,
                          ums_stop_t* stop) {
    return until(deadline, stop, io::sendmsg, fd, message, flags);
}

int ums_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
    return to_c(io::recvmmsg(fd, messages, count, flags));
}

int ums_recvmmsg_until(int fd, mmsghdr* messages, unsigned count, int flags, int64_t deadline,
                       ums_stop_t* stop) {
    return until(deadline, stop, io::recvmmsg, fd, messages, count, flags);
}

int ums_sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
    return to_c(io::sendmmsg(fd, messages, count, flags));
}

int ums_sendmmsg_until(int fd, mmsghdr* messages, unsigned count, int flags, int64_t deadline,
                       ums_stop_t* stop) {
    return until(deadline, stop, io::sendmmsg, fd, messages, count, flags);
}

int ums_connect(int fd, const sockaddr* to, socklen_t to_bytes) {
    return to_c(io::connect(fd, to, to_bytes));
}

int ums_connect_until(int fd, const sockaddr* to, socklen_t to_bytes, int64_t deadline,
                      ums_stop_t* stop) {
    return until(deadline, stop, io::connect, fd, to, to_bytes);
}

int ums_accept(int fd, sockaddr* peer, socklen_t* peer_bytes) {
    return to_c(io::accept(fd, peer, peer_bytes));
}

int ums_accept_until(int fd, sockaddr* peer, socklen_t* peer_bytes, int64_t deadline,
                     ums_stop_t* stop) {
    return until(deadline, stop, io::accept, fd, peer, peer_bytes);
}

ssize_t ums_sendfile(int out, int in, off_t* offset, size_t bytes) {
    return to_c(io::sendfile(out, in, offset, bytes));
}

ssize_t ums_sendfile_until(int out, int in, off_t* offset, size_t bytes, int64_t deadline,
                           ums_stop_t* stop) {
    return until(deadline, stop, io::sendfile, out, in, offset, bytes);
}

ssize_t ums_splice(int in, off_t* in_offset, int out, off_t* out_offset, size_t bytes,
                   unsigned flags) {
    return to_c(io::splice(in, in_offset, out, out_offset, bytes, flags));
}

ssize_t ums_splice_until(int in, off_t* in_offset, int out, off_t* out_offset, size_t bytes,
                         unsigned flags, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, io::splice, in, in_offset, out, out_offset, bytes, flags);
}

int ums_poll(pollfd* fds, size_t count) { return to_c(io::poll(fds, count)); }

int ums_poll_until(pollfd* fds, size_t count, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, [=](const limits& l) { return io::poll(fds, count, l); });
}

int ums_select_fds(int count, fd_set* in, fd_set* out, fd_set* except) {
    return to_c(io::select(count, in, out, except));
}

int ums_select_fds_until(int count, fd_set* in, fd_set* out, fd_set* except, int64_t deadline,
                         ums_stop_t* stop) {
    return until(deadline, stop,
                 [=](const limits& l) { return io::select(count, in, out, except, l); });
}

int ums_epoll_wait(int epoll, epoll_event* events, int most) {
    return to_c(io::epoll_wait(epoll, events, most));
}

int ums_epoll_wait_until(int epoll, epoll_event* events, int most, int64_t deadline,
                         ums_stop_t* stop) {
    return until(deadline, stop,
                 [=](const limits& l) { return io::epoll_wait(epoll, events, most, l); });
}

int ums_wait_readable(int fd) { return to_c(io::wait_readable(fd)); }

int ums_wait_readable_until(int fd, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, io::wait_readable, fd);
}

int ums_wait_writable(int fd) { return to_c(io::wait_writable(fd)); }

int ums_wait_writable_until(int fd, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, io::wait_writable, fd);
}

int ums_socket(int domain, int type, int protocol) {
    return to_c(io::socket(domain, type, protocol));
}

int ums_socketpair(int domain, int type, int protocol, int ends[2]) {
    return to_c(io::socketpair(domain, type, protocol, ends));
}

int ums_shutdown(int fd, int how) { return to_c(io::shutdown(fd, how)); }

int ums_close(int fd) { return to_c(io::close(fd)); }

void ums_forget(int fd) { io::forget(fd); }

int ums_adopt(int fd) { return to_c(io::adopt(fd)); }

int ums_dup(int fd) { return to_c(io::dup(fd)); }

int ums_pipe(int ends[2]) { return to_c(io::pipe(ends)); }

int ums_open(const char* path, int flags, mode_t mode) { return to_c(io::open(path, flags, mode)); }

ssize_t ums_pread(int fd, void* into, size_t bytes, off_t offset) {
    return to_c(io::pread(fd, into, bytes, offset));
}

ssize_t ums_pwrite(int fd, const void* from, size_t bytes, off_t offset) {
    return to_c(io::pwrite(fd, from, bytes, offset));
}

int ums_fsync(int fd) { return to_c(io::fsync(fd)); }

int ums_fdatasync(int fd) { return to_c(io::fdatasync(fd)); }

int ums_offload(void (*function)(void*), void* argument) {
    return call([=] { impl::offload(function, argument); });
}
