/* SPDX-License-Identifier: MIT */
#ifndef UMS_UMS_POSIX_H
#define UMS_UMS_POSIX_H

/* ums/ums_posix.h: POSIX's names for I/O and sleeping on fibers, for porting programs.
 *
 * ums_posix_NAME() does for fibers what POSIX says of NAME(). A program either calls these names,
 * or defines UMS_IO_NAMES and includes this header before all others, in every file:
 *
 *   cc -DUMS_IO_NAMES -include ums/ums_posix.h ...
 *
 * Then its calls of the names without ums_posix_ are calls of these, in C and in C++, and nothing
 * else is renamed. The header includes no other then, so a file may still define what it likes for
 * the C library's (_GNU_SOURCE). _FORTIFY_SOURCE is undefined, because its inline functions would
 * call the C library; errno becomes what ums_errno_location() returns. It goes with
 * UMS_PTHREAD_NAMES (ums/ums_pthread.h).
 *
 * Blocking:  parks the fiber. On a kernel thread that runs no fiber the call is the C library's.
 * Errors:    as POSIX says: -1 and errno. O_NONBLOCK, MSG_DONTWAIT and a socket's time limits
 *            (SO_RCVTIMEO, SO_SNDTIMEO) hold as ever, whatever code has set them. A write that may
 *            wait writes all. Where the reader is gone it fails with EPIPE, and raises SIGPIPE.
 * Descriptors: those made by these names have the lasting registration of ums_adopt(). So only
 *            these names may close them or put another file under their number, unless ums_forget()
 *            comes first. Others may be used, too; each wait for them costs some system calls more.
 * Signals:   a handler that runs on a fiber may call write() and send() where they need not wait,
 *            and close().
 *
 * Differences from POSIX:
 * - A signal does not end the wait of a fiber: no EINTR. It ends that of a plain thread, as main()
 *   is one.
 * - close() ends the waits of fibers for the number, with EBADF.
 * - These block the kernel thread, and are handed off: a wait with a signal mask (ppoll, pselect),
 *   a wait for a disk, a sleep by a clock that is neither CLOCK_REALTIME nor CLOCK_MONOTONIC, the
 *   connect() of a socket from elsewhere, and functions that have no name here, such as
 *   epoll_wait(), flock(), fgets() and gethostbyname().
 * - recv() may return less than SO_RCVLOWAT says.
 * - vfork() is fork(): the child has memory of its own.
 */

#ifdef UMS_IO_NAMES
#include "ums/impl/io_names.h"
#else

#include <poll.h>
#include <sched.h> /* struct timespec, in every mode */
#include <stdio.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "ums/ums.h"

struct addrinfo;

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the address of the caller's errno. It changes with the fiber's kernel thread; compilers
 * do not expect that of the C library's errno. */
UMS_API int* ums_errno_location(void);

/* --- Reading and writing ---------------------------------------------------------------------- */

/* These, like pread() and pwrite(), which have no name here, are the C library's calls on files. */
UMS_API ssize_t ums_posix_read(int fd, void* into, size_t bytes);
UMS_API ssize_t ums_posix_readv(int fd, const struct iovec* into, int count);
UMS_API ssize_t ums_posix_write(int fd, const void* from, size_t bytes);
UMS_API ssize_t ums_posix_writev(int fd, const struct iovec* from, int count);

/* --- Sockets ---------------------------------------------------------------------------------- */

UMS_API int ums_posix_socket(int domain, int type, int protocol);
UMS_API int ums_posix_socketpair(int domain, int type, int protocol, int ends[2]);
UMS_API ssize_t ums_posix_recv(int fd, void* into, size_t bytes, int flags);
UMS_API ssize_t ums_posix_recvfrom(int fd, void* into, size_t bytes, int flags,
                                   struct sockaddr* from, socklen_t* from_bytes);
UMS_API ssize_t ums_posix_recvmsg(int fd, struct msghdr* message, int flags);
UMS_API ssize_t ums_posix_send(int fd, const void* from, size_t bytes, int flags);
UMS_API ssize_t ums_posix_sendto(int fd, const void* from, size_t bytes, int flags,
                                 const struct sockaddr* to, socklen_t to_bytes);
UMS_API ssize_t ums_posix_sendmsg(int fd, const struct msghdr* message, int flags);
UMS_API int ums_posix_connect(int fd, const struct sockaddr* to, socklen_t to_bytes);
UMS_API int ums_posix_accept(int fd, struct sockaddr* peer, socklen_t* peer_bytes);
UMS_API int ums_posix_accept4(int fd, struct sockaddr* peer, socklen_t* peer_bytes, int flags);

/* --- Waiting for descriptors ------------------------------------------------------------------ */

/* One descriptor, for POLLIN or POLLOUT, costs least. */
UMS_API int ums_posix_poll(struct pollfd* fds, nfds_t count, int timeout_ms);
UMS_API int ums_posix_ppoll(struct pollfd* fds, nfds_t count, const struct timespec* limit,
                            const sigset_t* mask);
/* Leaves the limit as it is. */
UMS_API int ums_posix_select(int count, fd_set* in, fd_set* out, fd_set* except,
                             struct timeval* limit);
UMS_API int ums_posix_pselect(int count, fd_set* in, fd_set* out, fd_set* except,
                              const struct timespec* limit, const sigset_t* mask);

/* --- Descriptors ------------------------------------------------------------------------------ */

UMS_API int ums_posix_close(int fd);
UMS_API int ums_posix_dup(int fd);
UMS_API int ums_posix_dup2(int from, int onto);
UMS_API int ums_posix_dup3(int from, int onto, int flags);
UMS_API int ums_posix_pipe(int ends[2]);
UMS_API int ums_posix_pipe2(int ends[2], int flags);
/* Registers what F_DUPFD and F_DUPFD_CLOEXEC make. In a file that itself defines _FILE_OFFSET_BITS,
 * fcntl() stays the C library's, and these duplicates are descriptors from elsewhere. */
UMS_API int ums_posix_fcntl(int fd, int command, ...);
/* Forgets the number, because fclose() is to close it. */
UMS_API FILE* ums_posix_fdopen(int fd, const char* mode);

/* --- Sleeping --------------------------------------------------------------------------------- */

UMS_API unsigned ums_posix_sleep(unsigned seconds);
UMS_API int ums_posix_usleep(unsigned us);
UMS_API int ums_posix_nanosleep(const struct timespec* time, struct timespec* left);
/* Returns 0 or a positive error number. */
UMS_API int ums_posix_clock_nanosleep(clockid_t clock, int flags, const struct timespec* time,
                                      struct timespec* left);

/* --- Names ------------------------------------------------------------------------------------ */

/* Looks a name up in the off-load pool. Returns 0 or an EAI_ number. */
UMS_API int ums_posix_getaddrinfo(const char* host, const char* service,
                                  const struct addrinfo* hints, struct addrinfo** found);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* UMS_IO_NAMES */

#endif /* UMS_UMS_POSIX_H */
