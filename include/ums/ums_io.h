/* SPDX-License-Identifier: MIT */
#ifndef UMS_UMS_IO_H
#define UMS_UMS_IO_H

/* ums/ums_io.h: I/O that parks the fiber instead of blocking its kernel thread. The C face of
 * ums/io.hpp, which holds the contract.
 *
 * Each function does what the system call of its name does on a blocking descriptor.
 *
 * Blocking:  parks a fiber; blocks a plain kernel thread.
 * Results:   what the system call returns, or a negative error number; errno is not touched. poll,
 *            select and epoll_wait return 0 at their deadline. read_all and write_all return 0 or
 *            an error; read_all returns -ENOMSG if it meets the end.
 * Deadlines: NAME_until() also gives up at `deadline` with -ETIMEDOUT and, if `stop` is not NULL,
 *            once a stop is requested, with -ECANCELED.
 * Errors:    -EBADF also comes to waiters when another fiber closes the descriptor. Never -EINTR
 *            and never SIGPIPE. -EAGAIN only where ums/io.hpp says so.
 * Sharing:   others may use a descriptor too, and close it if it was not made here or adopted, or
 *            after ums_forget(). ums_close() also ends the waits on it.
 */

#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "ums/ums.h"

struct epoll_event;
struct mmsghdr;
struct pollfd;

#ifdef __cplusplus
extern "C" {
#endif

/* --- Reading and writing --------------------------------------------------------------------- */

UMS_API ssize_t ums_read(int fd, void* into, size_t bytes);
UMS_API ssize_t ums_read_until(int fd, void* into, size_t bytes, int64_t deadline,
                               ums_stop_t* stop);
UMS_API ssize_t ums_write(int fd, const void* from, size_t bytes);
UMS_API ssize_t ums_write_until(int fd, const void* from, size_t bytes, int64_t deadline,
                                ums_stop_t* stop);
UMS_API ssize_t ums_readv(int fd, const struct iovec* into, int count);
UMS_API ssize_t ums_readv_until(int fd, const struct iovec* into, int count, int64_t deadline,
                                ums_stop_t* stop);
UMS_API ssize_t ums_writev(int fd, const struct iovec* from, int count);
UMS_API ssize_t ums_writev_until(int fd, const struct iovec* from, int count, int64_t deadline,
                                 ums_stop_t* stop);
/* All of the bytes, by as many calls as it takes. -ENOMSG: the end came first. */
UMS_API int ums_read_all(int fd, void* into, size_t bytes);
UMS_API int ums_read_all_until(int fd, void* into, size_t bytes, int64_t deadline,
                               ums_stop_t* stop);
/* All of the bytes, by as many calls as it takes. */
UMS_API int ums_write_all(int fd, const void* from, size_t bytes);
UMS_API int ums_write_all_until(int fd, const void* from, size_t bytes, int64_t deadline,
                                ums_stop_t* stop);

/* --- Sockets --------------------------------------------------------------------------------- */

UMS_API int ums_socket(int domain, int type, int protocol);
UMS_API int ums_socketpair(int domain, int type, int protocol, int ends[2]);
UMS_API int ums_shutdown(int fd, int how);
UMS_API ssize_t ums_recv(int fd, void* into, size_t bytes, int flags);
UMS_API ssize_t ums_recv_until(int fd, void* into, size_t bytes, int flags, int64_t deadline,
                               ums_stop_t* stop);
UMS_API ssize_t ums_send(int fd, const void* from, size_t bytes, int flags);
UMS_API ssize_t ums_send_until(int fd, const void* from, size_t bytes, int flags, int64_t deadline,
                               ums_stop_t* stop);
UMS_API ssize_t ums_recvfrom(int fd, void* into, size_t bytes, int flags, struct sockaddr* from,
                             socklen_t* from_bytes);
UMS_API ssize_t ums_recvfrom_until(int fd, void* into, size_t bytes, int flags,
                                   struct sockaddr* from, socklen_t* from_bytes, int64_t deadline,
                                   ums_stop_t* stop);
UMS_API ssize_t ums_sendto(int fd, const void* from, size_t bytes, int flags,
                           const struct sockaddr* to, socklen_t to_bytes);
UMS_API ssize_t ums_sendto_until(int fd, const void* from, size_t bytes, int flags,
                                 const struct sockaddr* to, socklen_t to_bytes, int64_t deadline,
                                 ums_stop_t* stop);
UMS_API ssize_t ums_recvmsg(int fd, struct msghdr* message, int flags);
UMS_API ssize_t ums_recvmsg_until(int fd, struct msghdr* message, int flags, int64_t deadline,
                                  ums_stop_t* stop);
UMS_API ssize_t ums_sendmsg(int fd, const struct msghdr* message, int flags);
UMS_API ssize_t ums_sendmsg_until(int fd, const struct msghdr* message, int flags, int64_t deadline,
                                  ums_stop_t* stop);
UMS_API int ums_recvmmsg(int fd, struct mmsghdr* messages, unsigned count, int flags);
UMS_API int ums_recvmmsg_until(int fd, struct mmsghdr* messages, unsigned count, int flags,
                               int64_t deadline, ums_stop_t* stop);
UMS_API int ums_sendmmsg(int fd, struct mmsghdr* messages, unsigned count, int flags);
UMS_API int ums_sendmmsg_until(int fd, struct mmsghdr* messages, unsigned count, int flags,
                               int64_t deadline, ums_stop_t* stop);
UMS_API int ums_connect(int fd, const struct sockaddr* to, socklen_t to_bytes);
UMS_API int ums_connect_until(int fd, const struct sockaddr* to, socklen_t to_bytes,
                              int64_t deadline, ums_stop_t* stop);
UMS_API int ums_accept(int fd, struct sockaddr* peer, socklen_t* peer_bytes);
UMS_API int ums_accept_until(int fd, struct sockaddr* peer, socklen_t* peer_bytes, int64_t deadline,
                             ums_stop_t* stop);

/* --- Waiting for descriptors ----------------------------------------------------------------- */

UMS_API int ums_poll(struct pollfd* fds, size_t count);
UMS_API int ums_poll_until(struct pollfd* fds, size_t count, int64_t deadline, ums_stop_t* stop);
UMS_API int ums_select_fds(int count, fd_set* in, fd_set* out, fd_set* except);
UMS_API int ums_select_fds_until(int count, fd_set* in, fd_set* out, fd_set* except,
                                 int64_t deadline, ums_stop_t* stop);
UMS_API int ums_epoll_wait(int epoll, struct epoll_event* events, int most);
UMS_API int ums_epoll_wait_until(int epoll, struct epoll_event* events, int most, int64_t deadline,
                                 ums_stop_t* stop);

/* Wait, without a buffer, until an attempt is worth its system call. The answer is a hint. */
UMS_API int ums_wait_readable(int fd);
UMS_API int ums_wait_readable_until(int fd, int64_t deadline, ums_stop_t* stop);
UMS_API int ums_wait_writable(int fd);
UMS_API int ums_wait_writable_until(int fd, int64_t deadline, ums_stop_t* stop);

/* --- Files and descriptors ------------------------------------------------------------------- */

UMS_API ssize_t ums_sendfile(int out, int in, off_t* offset, size_t bytes);
UMS_API ssize_t ums_sendfile_until(int out, int in, off_t* offset, size_t bytes, int64_t deadline,
                                   ums_stop_t* stop);
UMS_API ssize_t ums_splice(int in, off_t* in_offset, int out, off_t* out_offset, size_t bytes,
                           unsigned flags);
UMS_API ssize_t ums_splice_until(int in, off_t* in_offset, int out, off_t* out_offset, size_t bytes,
                                 unsigned flags, int64_t deadline, ums_stop_t* stop);
/* Also ends the waits on it. */
UMS_API int ums_close(int fd);

/* Drops what is known of the number; waits on it end as by ums_close(). For a number that libums
 * made or that was adopted, before anything but ums_close() closes it or gives it to another file
 * (ums/io.hpp). */
UMS_API void ums_forget(int fd);

/* Gives a descriptor from elsewhere the lasting registration of those made here, until ums_forget()
 * or ums_close(). The caller promises that nothing else closes the number or gives it to another
 * file meanwhile: io::adopt() in ums/io.hpp says what breaks otherwise. */
UMS_API int ums_adopt(int fd);

UMS_API int ums_dup(int fd);
UMS_API int ums_pipe(int ends[2]);
UMS_API int ums_open(const char* path, int flags, mode_t mode);
UMS_API ssize_t ums_pread(int fd, void* into, size_t bytes, off_t offset);
UMS_API ssize_t ums_pwrite(int fd, const void* from, size_t bytes, off_t offset);
UMS_API int ums_fsync(int fd);
UMS_API int ums_fdatasync(int fd);

/* --- Off-load (ums/offload.hpp) -------------------------------------------------------------- */

/* Calls function(argument), which truly blocks, on a thread of the off-load pool (ums/offload.hpp),
 * and waits for it. A plain thread calls it itself. -EAGAIN: no thread. */
UMS_API int ums_offload(void (*function)(void*), void* argument);

/* --- Names (ums/resolve.hpp) ----------------------------------------------------------------- */

/* Looks up the addresses of a host (ums/resolve.hpp), best first. `service` is a port number or a
 * name; NULL means what it means to getaddrinfo(), which runs in the off-load pool. `family`:
 * AF_UNSPEC for any. `type`: SOCK_STREAM, say. Stores at most `most` addresses and returns how many
 * there are. -ENOENT: the resolver has none; *why, unless `why` is NULL, gets its EAI_ number.
 * Other errors are the system's, -ETIMEDOUT and -ECANCELED. */
typedef struct {
    struct sockaddr_storage address;
    socklen_t bytes;
} ums_address_t;
UMS_API int ums_resolve(const char* host, const char* service, int family, int type,
                        ums_address_t* into, int most, int* why);
UMS_API int ums_resolve_until(const char* host, const char* service, int family, int type,
                              ums_address_t* into, int most, int* why, int64_t deadline,
                              ums_stop_t* stop);

/* --- Child processes (ums/child.hpp) --------------------------------------------------------- */

/* Waits for the end of a child process (ums/child.hpp). *status, unless NULL, gets the status as
 * waitpid() gives it. -ECHILD: not a child, or already waited for. */
UMS_API int ums_child_wait(pid_t pid, int* status);
UMS_API int ums_child_wait_until(pid_t pid, int* status, int64_t deadline, ums_stop_t* stop);

/* --- Signals (ums/signals.hpp) --------------------------------------------------------------- */

/* Signals of the process as events (ums/signals.hpp). From create to destroy the signals have a
 * handler that notes them. wait returns the number of a signal that came. create fails with
 * -EINVAL: a number. */
typedef struct ums_signals ums_signals_t;
UMS_API int ums_signals_create(ums_signals_t** made, const int* numbers, size_t count);
UMS_API void ums_signals_destroy(ums_signals_t* events);
UMS_API int ums_signals_wait(ums_signals_t* events);
UMS_API int ums_signals_wait_until(ums_signals_t* events, int64_t deadline, ums_stop_t* stop);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* UMS_UMS_IO_H */
