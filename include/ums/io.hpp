// SPDX-License-Identifier: MIT
#pragma once

// ums/io.hpp: system calls on file descriptors, that park the fiber instead of blocking its carrier.
//
// Each does what the system call of its name does, on a blocking descriptor: it waits until it can do
// something, for as long as its limits allow. The typed sockets (ums/net.hpp) are made of these.
//
// Descriptors. Those that libums makes are non-blocking and close-on-exec. One from elsewhere is made
//            non-blocking at its first use here (O_NONBLOCK is of the open file: a child or another process that shares it sees it),
//            except 0, 1 and 2, whose open files belong to the terminal: they are asked first, and
//            a carrier may block in them when another process is faster. Pipes and terminals are written PIPE_BUF bytes at
//            a time there: write() until all is done, or its limits end.
//            A number that others may close, read, put another file under, duplicate or pass to a child is safe all the
//            same: each wait registers for itself, and the file's kind is asked again. wait_readable(), wait_writable()
//            and poll() leave the flags of the descriptor alone. But only close() ends the waits of other fibers.
//            The sockets of net:: keep a lasting registration, which saves a system call for each wait; their release() gives
//            it up. Others may read, write, poll and duplicate what their fd() says, and may not close it or put
//            another file under its number.
// Blocking:  parks the fiber, never its processor. On a plain kernel thread it blocks that. Regular
//            files, directories and block devices are always "ready", so what they do is done by
//            the off-load pool (ums/offload.hpp), or by io_uring.
// Fairness:  several fibers may wait for one descriptor; which of them gets what comes is not said.
// Ordering:  what the kernel orders; a close() happens before the return of the waits that it ends.
// Errors:    as the system call's, in a result. Also timed_out, operation_canceled (a stop), and
//            bad_file_descriptor to all that wait when another fiber closes the descriptor.
//            interrupted never comes, and SIGPIPE is never raised: broken_pipe it is.
//            resource_unavailable_try_again: only of what the kernel does not wait for either, see recv(), and of what
//            the off-load pool does (files, a connect() to a full Unix socket), if not one thread can be started.
// Cost:      one system call if it need not wait. A wait: two or three atomic read-modify-writes and a
//            switch; the first on a descriptor also registers it with the engine.

#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <poll.h>
#include <span>
#include <string>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "ums/export.hpp"
#include "ums/limits.hpp"
#include "ums/result.hpp"

namespace ums::io {

// --- Bytes ---
// A read of 0 bytes: the end.
UMS_EXPORT result<std::size_t> read(int fd, void* into, std::size_t bytes, const limits& l = {});
UMS_EXPORT result<std::size_t> write(int fd, const void* from, std::size_t bytes,
                                     const limits& l = {});
UMS_EXPORT result<std::size_t> readv(int fd, const iovec* into, int count, const limits& l = {});
UMS_EXPORT result<std::size_t> writev(int fd, const iovec* from, int count, const limits& l = {});
// All of it, or an error: then it is not known how much was done. read_all() that meets the end fails with
// no_message (ENOMSG).
[[nodiscard]] UMS_EXPORT result<void> read_all(int fd, void* into, std::size_t bytes,
                                               const limits& l = {});
[[nodiscard]] UMS_EXPORT result<void> write_all(int fd, const void* from, std::size_t bytes,
                                                const limits& l = {});

// --- Sockets ---
// MSG_DONTWAIT is ignored. With MSG_ERRQUEUE or MSG_OOB a receive does not wait, as in the kernel: poll() does, for no
// event (which leaves POLLERR) or for POLLPRI. recv() and recvfrom() of a stream heed MSG_WAITALL, recvmsg() does not.
UMS_EXPORT result<std::size_t> recv(int fd, void* into, std::size_t bytes, int flags = 0,
                                    const limits& l = {});
UMS_EXPORT result<std::size_t> send(int fd, const void* from, std::size_t bytes, int flags = 0,
                                    const limits& l = {});
UMS_EXPORT result<std::size_t> recvfrom(int fd, void* into, std::size_t bytes, int flags,
                                        sockaddr* from, socklen_t* from_bytes,
                                        const limits& l = {});
UMS_EXPORT result<std::size_t> sendto(int fd, const void* from, std::size_t bytes, int flags,
                                      const sockaddr* to, socklen_t to_bytes, const limits& l = {});
UMS_EXPORT result<std::size_t> recvmsg(int fd, msghdr* message, int flags = 0,
                                       const limits& l = {});
UMS_EXPORT result<std::size_t> sendmsg(int fd, const msghdr* message, int flags = 0,
                                       const limits& l = {});
// How many messages, at least one.
UMS_EXPORT result<std::size_t> recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags = 0,
                                        const limits& l = {});
UMS_EXPORT result<std::size_t> sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags = 0,
                                        const limits& l = {});

UMS_EXPORT result<int> socket(int domain, int type, int protocol = 0);
[[nodiscard]] UMS_EXPORT result<void> socketpair(int domain, int type, int protocol, int ends[2]);
[[nodiscard]] UMS_EXPORT result<void> connect(int fd, const sockaddr* to, socklen_t to_bytes,
                                              const limits& l = {});
// At the limit of descriptors (EMFILE, ENFILE) it waits until it is worth another try, without using
// the CPU, as long as its limits allow: a connection that is refused for want of one would be lost.
UMS_EXPORT result<int> accept(int fd, sockaddr* peer = nullptr, socklen_t* peer_bytes = nullptr,
                              const limits& l = {});
UMS_EXPORT result<void> shutdown(int fd, int how);

// --- Descriptors ---
// Ends the waits of all others on this descriptor. Waits for the peer if SO_LINGER says so.
UMS_EXPORT result<void> close(int fd);
// Drops what is known of the number, with its registration. Waits of others on it end as by a close(). For a number that
// a library is about to close or use otherwise; it need not be called for those that net:: does not own.
UMS_EXPORT void forget(int fd) noexcept;
UMS_EXPORT result<int> dup(int fd);
[[nodiscard]] UMS_EXPORT result<void> pipe(int ends[2]);
UMS_EXPORT result<std::size_t> sendfile(int out, int in, off_t* offset, std::size_t bytes,
                                        const limits& l = {});
UMS_EXPORT result<std::size_t> splice(int in, off_t* in_offset, int out, off_t* out_offset,
                                      std::size_t bytes, unsigned flags = 0, const limits& l = {});

// --- Files ---
UMS_EXPORT result<int> open(const char* path, int flags, mode_t mode = 0);
UMS_EXPORT result<std::size_t> pread(int fd, void* into, std::size_t bytes, off_t offset);
UMS_EXPORT result<std::size_t> pwrite(int fd, const void* from, std::size_t bytes, off_t offset);
[[nodiscard]] UMS_EXPORT result<void> fsync(int fd);
[[nodiscard]] UMS_EXPORT result<void> fdatasync(int fd);

// --- Readiness ---
// Wait until an attempt to read, or to write, is worth its system call, without a buffer. A hint: the attempt may find
// nothing all the same, if others use the descriptor too.
[[nodiscard]] UMS_EXPORT result<void> wait_readable(int fd, const limits& l = {});
[[nodiscard]] UMS_EXPORT result<void> wait_writable(int fd, const limits& l = {});

// For other libraries' loops.
// The events of `fd` that have come: of POLLIN, POLLOUT, POLLPRI, POLLRDHUP; and POLLERR, POLLHUP. POLLIN (also with
// POLLRDHUP) and POLLOUT, each alone, cost least, and only these waits are ended by a close().
UMS_EXPORT result<short> poll(int fd, short events, const limits& l = {});
// As the system calls of these names; 0 once the limits' deadline has passed.
UMS_EXPORT result<std::size_t> poll(pollfd* fds, std::size_t count, const limits& l = {});
UMS_EXPORT result<std::size_t> select(int count, fd_set* in, fd_set* out, fd_set* except,
                                      const limits& l = {});
UMS_EXPORT result<std::size_t> epoll_wait(int epoll, epoll_event* events, int most,
                                          const limits& l = {});

// Which engine waits for events: "epoll" or "io_uring", and why. What the next start would choose if
// no runtime runs.
[[nodiscard]] UMS_EXPORT std::string engine_name();

}  // namespace ums::io
