// SPDX-License-Identifier: MIT
#pragma once

// ums/io.hpp: system calls on file descriptors that park the fiber instead of blocking its carrier.
//
// Each function does what the system call of its name does on a blocking descriptor: it waits until
// it can do something, for as long as its limits allow. The typed sockets (ums/net.hpp) are built
// on these functions.
//
// Descriptors: libums makes its own non-blocking and close-on-exec. It makes a descriptor from
//            elsewhere non-blocking at its first use here. O_NONBLOCK belongs to the open file, so
//            a child or another process that shares the file sees it. Descriptors 0, 1 and 2 are
//            the exception, because their open files belong to the terminal: libums polls them
//            first, and a carrier may block in them if another process is faster. There it writes
//            PIPE_BUF bytes at a time to pipes and terminals, and write() continues until all is
//            written or its limits end. A number from elsewhere stays safe to use even if others
//            close it, read from it, put another file under it, duplicate it or pass it to a child:
//            each wait registers for itself and asks for the kind of the file again.
//            wait_readable(), wait_writable() and poll() leave the descriptor's flags alone. But
//            only close() ends the waits of other fibers. An operation that has waited fails with
//            bad_file_descriptor, and moves nothing, if the number has another file by then (two of
//            a kind that have no inode of their own, such as eventfds, look the same). Descriptors
//            that libums made, here (but not by open()), in net:: or in the C API, and those that
//            were adopted (adopt()) keep a lasting registration, which saves system calls; forget()
//            and the release() of net:: give it up. Others may read, write, poll and duplicate
//            their numbers, but must not close them or put another file under them: later waits on
//            the number could last for ever, and calls could block.
// Blocking:  parks the fiber, never its processor; blocks a plain kernel thread. Regular files,
//            directories and block devices are always "ready", so the off-load pool
//            (ums/offload.hpp) runs their operations.
// Fairness:  several fibers may wait for one descriptor; which of them gets what comes is not
//            specified.
// Ordering:  the kernel's; a close() happens before the return of the waits that it ends.
// Errors:    the system call's, in a result. Also timed_out, operation_canceled (a stop), and
//            bad_file_descriptor to all waiters when another fiber closes the descriptor.
//            interrupted never comes. SIGPIPE is never raised; the error is broken_pipe.
//            resource_unavailable_try_again comes only where the kernel does not wait either (see
//            recv()), and from the off-load pool (files, a connect() to a full Unix socket) if it
//            cannot start a single thread.
// Cost:      one system call if the operation need not wait. A read that has mostly found nothing
//            lets the ready fibers run before it tries (docs/io.md). A wait costs two or three
//            atomic read-modify-writes and a switch, an attempt before it and one after it; the
//            first on a descriptor also registers it with the engine. A fiber's write to what
//            pipe() made, or socketpair() (of streams or SOCK_SEQPACKET), also makes the fibers
//            ready that wait to read at the other end, so that no processor has to ask the kernel
//            for them. After dup(), forget() or from another process it does not; they wait for the
//            kernel's event.
//            Descriptors from elsewhere cost more: two calls at the first use of a number, to see
//            what it is (four for a socket), and for each wait one to begin it and one to see that
//            the number has the same file; one more for each read_all() and write_all(). Two more
//            for each operation (fcntl, fstat) on files, on terminals and others that refuse
//            RWF_NOWAIT (before Linux 6.5 pipes do), in accept(), connect(), dup(), sendfile() and
//            splice(), and while another fiber waits for the same number. Adopted ones cost as
//            those made here, but accept(), connect(), sendfile() and splice() ask for their flags,
//            and reads and writes of those that refuse RWF_NOWAIT poll first (one call each).
//            Before Linux 6.18 a write to a pipe changes the thread's signal mask and changes it
//            back (two calls).

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
// A read of 0 bytes means the end.
UMS_EXPORT result<std::size_t> read(int fd, void* into, std::size_t bytes, const limits& l = {});
UMS_EXPORT result<std::size_t> write(int fd, const void* from, std::size_t bytes,
                                     const limits& l = {});
UMS_EXPORT result<std::size_t> readv(int fd, const iovec* into, int count, const limits& l = {});
UMS_EXPORT result<std::size_t> writev(int fd, const iovec* from, int count, const limits& l = {});
// Transfer all bytes or fail; after an error it is not known how many bytes were transferred.
// read_all() fails with no_message (ENOMSG) if it meets the end.
[[nodiscard]] UMS_EXPORT result<void> read_all(int fd, void* into, std::size_t bytes,
                                               const limits& l = {});
[[nodiscard]] UMS_EXPORT result<void> write_all(int fd, const void* from, std::size_t bytes,
                                                const limits& l = {});

// --- Sockets ---
// MSG_DONTWAIT is ignored. As in the kernel, a receive with MSG_ERRQUEUE or MSG_OOB does not wait;
// poll() waits instead, for no event (which leaves POLLERR) or for POLLPRI. recv() and recvfrom()
// of a stream heed MSG_WAITALL, recvmsg() does not.
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
// Return the number of messages, at least one.
UMS_EXPORT result<std::size_t> recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags = 0,
                                        const limits& l = {});
UMS_EXPORT result<std::size_t> sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags = 0,
                                        const limits& l = {});

UMS_EXPORT result<int> socket(int domain, int type, int protocol = 0);
[[nodiscard]] UMS_EXPORT result<void> socketpair(int domain, int type, int protocol, int ends[2]);
[[nodiscard]] UMS_EXPORT result<void> connect(int fd, const sockaddr* to, socklen_t to_bytes,
                                              const limits& l = {});
// At the limit of descriptors (EMFILE, ENFILE) it waits, without using the CPU, until another try
// is worthwhile, as long as its limits allow: refusing would lose a connection.
UMS_EXPORT result<int> accept(int fd, sockaddr* peer = nullptr, socklen_t* peer_bytes = nullptr,
                              const limits& l = {});
UMS_EXPORT result<void> shutdown(int fd, int how);

// --- Descriptors ---
// Ends the waits of all other fibers on this descriptor. Waits for the peer if SO_LINGER says so. A
// call that the off-load pool has begun on a file is completed; if it has not yet reached the
// kernel, or runs there, close() waits until it ends or blocks.
UMS_EXPORT result<void> close(int fd);
// Drops what libums knows of the number, and its registration. Waits of other fibers on it end as
// by a close(). Call it for a number that libums made, or that was adopted, before anything else
// closes or reuses it; from then on it is like one from elsewhere, which needs no such call.
UMS_EXPORT void forget(int fd) noexcept;
// Gives a descriptor from elsewhere the lasting registration that those made here have, and saves
// the calls that ask what a number is. In return the caller promises that nothing closes the number
// or puts another file under it before close() or forget(): see Descriptors. No flag of the file is
// changed, so it may be shared with other programs, and may be blocking. Where the kernel has no
// call that does not block (on terminals; in accept(), sendfile() and splice() on a blocking one;
// on pipes before Linux 6.5), libums polls first, and a carrier may block if another process is
// faster. connect() makes a blocking socket non-blocking for the moment of its call. Waits of other
// fibers on the number end as by forget(). Has no effect on a number that has a lasting
// registration. Fails with bad_file_descriptor.
UMS_EXPORT result<void> adopt(int fd);
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
// Wait, without a buffer, until an attempt to read or to write is worth its system call. The answer
// is a hint: the attempt may still find nothing if others use the descriptor too.
[[nodiscard]] UMS_EXPORT result<void> wait_readable(int fd, const limits& l = {});
[[nodiscard]] UMS_EXPORT result<void> wait_writable(int fd, const limits& l = {});

// For loops of other libraries.
// Waits for events of `fd` and returns those that have come: POLLIN, POLLOUT, POLLPRI, POLLRDHUP as
// asked for, and POLLERR, POLLHUP. POLLIN (also with POLLRDHUP) or POLLOUT alone costs least, and
// close() ends only those waits.
UMS_EXPORT result<short> poll(int fd, short events, const limits& l = {});
// As the system calls of these names. They return 0 once the limits' deadline has passed.
UMS_EXPORT result<std::size_t> poll(pollfd* fds, std::size_t count, const limits& l = {});
UMS_EXPORT result<std::size_t> select(int count, fd_set* in, fd_set* out, fd_set* except,
                                      const limits& l = {});
UMS_EXPORT result<std::size_t> epoll_wait(int epoll, epoll_event* events, int most,
                                          const limits& l = {});

}  // namespace ums::io
