// SPDX-License-Identifier: MIT
// variants: migrate p1 nosync
#define _GNU_SOURCE
#include "check.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ums/ums_io.h>

static void bytes(void* argument) {
    int ends[2];
    char buffer[16];
    ums_stop_t* stop;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK_IS(0, ums_pipe(ends));
    CHECK_IS(5, ums_write(ends[1], "hello", 5));
    CHECK_IS(5, ums_read(ends[0], buffer, sizeof buffer));
    CHECK_IS(-ETIMEDOUT, ums_read_until(ends[0], buffer, 1, ums_deadline_after(MS / 10), stop));
    CHECK_IS(2, ums_write_until(ends[1], "ab", 2, 0, stop));
    CHECK_IS(0, ums_write_all(ends[1], "cd", 2));
    CHECK_IS(0, ums_write_all_until(ends[1], "ef", 2, UMS_NEVER, NULL));
    CHECK_IS(0, ums_read_all(ends[0], buffer, 4));
    CHECK_IS(0, ums_read_all_until(ends[0], buffer, 2, UMS_NEVER, stop));
    struct iovec pieces[2] = {{buffer, 1}, {buffer + 1, 2}};
    CHECK_IS(3, ums_writev(ends[1], pieces, 2));
    CHECK_IS(3, ums_writev_until(ends[1], pieces, 2, 0, NULL));
    CHECK_IS(3, ums_readv(ends[0], pieces, 2));
    CHECK_IS(3, ums_readv_until(ends[0], pieces, 2, 0, NULL));
    CHECK(ums_stop_request(stop));
    CHECK_IS(-ECANCELED, ums_read_until(ends[0], buffer, 1, UMS_NEVER, stop));
    int twin = ums_dup(ends[1]);
    CHECK(twin >= 0);
    CHECK_IS(0, ums_close(ends[1]));
    ums_forget(twin); /* The file stays open. */
    CHECK_IS(0, ums_adopt(twin));
    CHECK_IS(0, ums_adopt(twin));
    CHECK_IS(-EBADF, ums_adopt(-1));
    CHECK_IS(1, ums_write(twin, "x", 1));
    CHECK_IS(0, ums_close(twin));
    CHECK_IS(1, ums_read(ends[0], buffer, 2));
    CHECK_IS(0, ums_read(ends[0], buffer, 1));
    CHECK_IS(-ENOMSG, ums_read_all(ends[0], buffer, 1));
    CHECK_IS(0, ums_close(ends[0]));
    CHECK_IS(-EBADF, ums_close(-1));
    CHECK_IS(-EBADF, ums_read(-1, buffer, 1));
    ums_stop_destroy(stop);
}
static void bytes_go_through_a_pipe(void) { on_a_fiber_and_on_a_thread(bytes, NULL); }

static void connections(void* argument) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    char buffer[16];
    (void)argument;
    int door = ums_socket(AF_INET, SOCK_STREAM, 0);
    CHECK_IS(0, bind(door, (struct sockaddr*)&at, sizeof at));
    CHECK_IS(0, listen(door, 10));
    CHECK_IS(0, getsockname(door, (struct sockaddr*)&at, &size));
    CHECK_IS(-ETIMEDOUT, ums_accept_until(door, NULL, NULL, ums_deadline_after(MS / 10), NULL));
    for (int i = 0; i < 2; ++i) {
        int there = ums_socket(AF_INET, SOCK_STREAM, 0);
        if (i == 0)
            CHECK_IS(0, ums_connect(there, (struct sockaddr*)&at, sizeof at));
        else
            CHECK_IS(0,
                     ums_connect_until(there, (struct sockaddr*)&at, sizeof at, UMS_NEVER, NULL));
        int here = ums_accept(door, NULL, NULL);
        CHECK(here >= 0);
        CHECK_IS(2, ums_send(there, "ab", 2, 0));
        CHECK_IS(2, ums_send_until(there, "cd", 2, 0, 0, NULL));
        CHECK_IS(1, ums_recv(here, buffer, 1, 0));
        CHECK_IS(3, ums_recv_until(here, buffer, 3, MSG_WAITALL, UMS_NEVER, NULL));
        CHECK_IS(0, ums_shutdown(there, SHUT_WR));
        CHECK_IS(0, ums_recv(here, buffer, 1, 0));
        CHECK_IS(0, ums_close(here));
        CHECK_IS(0, ums_close(there));
    }
    CHECK_IS(0, ums_close(door));
}
static void connections_are_made(void) { on_a_fiber_and_on_a_thread(connections, NULL); }

static void messages(void* argument) {
    int ends[2];
    char buffer[16];
    struct iovec piece = {buffer, 3};
    struct msghdr one = {.msg_iov = &piece, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = one};
    (void)argument;
    CHECK_IS(0, ums_socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    CHECK_IS(3, ums_sendto(ends[0], "abc", 3, 0, NULL, 0));
    CHECK_IS(3, ums_sendto_until(ends[0], "abc", 3, 0, NULL, 0, 0, NULL));
    CHECK_IS(3, ums_sendmsg(ends[0], &one, 0));
    CHECK_IS(3, ums_sendmsg_until(ends[0], &one, 0, 0, NULL));
    CHECK_IS(1, ums_sendmmsg(ends[0], &many, 1, 0));
    CHECK_IS(1, ums_sendmmsg_until(ends[0], &many, 1, 0, 0, NULL));
    CHECK_IS(3, ums_recvfrom(ends[1], buffer, 16, 0, NULL, NULL));
    CHECK_IS(3, ums_recvfrom_until(ends[1], buffer, 16, 0, NULL, NULL, 0, NULL));
    CHECK_IS(3, ums_recvmsg(ends[1], &one, 0));
    CHECK_IS(3, ums_recvmsg_until(ends[1], &one, 0, 0, NULL));
    CHECK_IS(1, ums_recvmmsg(ends[1], &many, 1, 0));
    CHECK_IS(1, ums_recvmmsg_until(ends[1], &many, 1, 0, 0, NULL));
    CHECK_IS(0, ums_close(ends[0]));
    CHECK_IS(0, ums_close(ends[1]));
}
static void messages_are_sent(void) { on_a_fiber_and_on_a_thread(messages, NULL); }

static void files(void* argument) {
    char path[] = "/tmp/ums-c-io-XXXXXX", buffer[16];
    int ends[2], through[2];
    off_t from = 0;
    (void)argument;
    close(mkstemp(path));
    int fd = ums_open(path, O_RDWR, 0);
    CHECK(fd >= 0);
    CHECK_IS(5, ums_pwrite(fd, "hello", 5, 0));
    CHECK_IS(0, ums_fsync(fd));
    CHECK_IS(0, ums_fdatasync(fd));
    CHECK_IS(4, ums_pread(fd, buffer, 16, 1));
    CHECK_IS(0, ums_socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    CHECK_IS(0, ums_pipe(through));
    CHECK_IS(5, ums_sendfile(ends[0], fd, &from, 5));
    from = 0;
    CHECK_IS(5, ums_sendfile_until(ends[0], fd, &from, 5, 0, NULL));
    CHECK_IS(4, ums_splice(ends[1], NULL, through[1], NULL, 4, 0));
    CHECK_IS(6, ums_splice_until(ends[1], NULL, through[1], NULL, 6, 0, 0, NULL));
    CHECK_IS(10, ums_read(through[0], buffer, 16));
    for (int i = 0; i < 2; ++i) {
        CHECK_IS(0, ums_close(ends[i]));
        CHECK_IS(0, ums_close(through[i]));
    }
    CHECK_IS(0, ums_close(fd));
    unlink(path);
    CHECK_IS(-ENOENT, ums_open("/nonexistent/file", O_RDONLY, 0));
}
static void files_are_used(void) { on_a_fiber_and_on_a_thread(files, NULL); }

static void loops(void* argument) {
    int ends[2];
    struct epoll_event on = {.events = EPOLLIN}, got;
    fd_set in;
    (void)argument;
    CHECK_IS(0, ums_pipe(ends));
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    CHECK_IS(0, epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &on));
    struct pollfd fd = {.fd = ends[0], .events = POLLIN};
    FD_ZERO(&in);
    FD_SET(ends[0], &in);
    CHECK_IS(0, ums_poll_until(&fd, 1, ums_deadline_after(MS / 10), NULL));
    CHECK_IS(0,
             ums_select_fds_until(ends[0] + 1, &in, NULL, NULL, ums_deadline_after(MS / 10), NULL));
    CHECK_IS(0, ums_epoll_wait_until(epoll, &got, 1, ums_deadline_after(MS / 10), NULL));
    CHECK_IS(1, ums_write(ends[1], "x", 1));
    FD_SET(ends[0], &in);
    CHECK_IS(1, ums_poll(&fd, 1));
    CHECK_IS(1, ums_select_fds(ends[0] + 1, &in, NULL, NULL));
    CHECK_IS(1, ums_epoll_wait(epoll, &got, 1));
    CHECK_IS(0, ums_close(epoll));
    CHECK_IS(0, ums_close(ends[0]));
    CHECK_IS(0, ums_close(ends[1]));
}
static void loops_of_others_wait(void) { on_a_fiber_and_on_a_thread(loops, NULL); }

static void set(void* argument) { *(int*)argument = 1; }
static void offload(void* argument) {
    int done = 0;
    (void)argument;
    CHECK_IS(0, ums_offload(set, &done));
    CHECK_IS(1, done);
}
static void what_blocks_is_done_elsewhere(void) { on_a_fiber_and_on_a_thread(offload, NULL); }

static void readiness(void* argument) {
    int ends[2];
    (void)argument;
    CHECK_IS(0, ums_socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    CHECK_IS(0, ums_wait_writable(ends[0]));
    CHECK_IS(0, ums_wait_writable_until(ends[0], 0, NULL));
    CHECK_IS(1, ums_write(ends[1], "x", 1));
    CHECK_IS(0, ums_wait_readable(ends[0]));
    CHECK_IS(0, ums_wait_readable_until(ends[0], UMS_NEVER, NULL));
    CHECK_IS(-EBADF, ums_wait_readable(-1));
    CHECK_IS(0, ums_close(ends[0]));
    CHECK_IS(0, ums_close(ends[1]));
}
static void readiness_is_waited_for(void) { on_a_fiber_and_on_a_thread(readiness, NULL); }

static void hosts(void* argument) {
    ums_address_t found[4];
    int why = 0;
    ums_stop_t* stop;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK(ums_resolve("127.0.0.1", "80", AF_INET, SOCK_STREAM, found, 4, &why) >= 1);
    CHECK_IS(sizeof(struct sockaddr_in), found[0].bytes);
    const struct sockaddr_in* first = (const struct sockaddr_in*)(const void*)&found[0].address;
    CHECK_IS(htonl(INADDR_LOOPBACK), first->sin_addr.s_addr);
    CHECK_IS(htons(80), first->sin_port);
    CHECK(ums_resolve_until("127.0.0.1", NULL, AF_UNSPEC, SOCK_STREAM, NULL, 0, NULL, UMS_NEVER,
                            stop) >= 1);
    CHECK_IS(-ENOENT, ums_resolve("127.0.0.1", "80", AF_INET6, SOCK_STREAM, found, 4, &why));
    CHECK(why != 0);
    ums_stop_destroy(stop);
}
static void hosts_are_resolved(void) { on_a_fiber_and_on_a_thread(hosts, NULL); }

static void children(void* argument) {
    int status = 0;
    char *const ends_with_7[] = {"sh", "-c", "exit 7", NULL}, *const sleeps[] = {"sleep", "1000",
                                                                                 NULL};
    pid_t pid;
    (void)argument;
    CHECK_IS(0, posix_spawnp(&pid, "sh", NULL, NULL, ends_with_7, NULL));
    CHECK_IS(0, ums_child_wait(pid, &status));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK_IS(-ECHILD, ums_child_wait(pid, NULL));
    CHECK_IS(0, posix_spawnp(&pid, "sleep", NULL, NULL, sleeps, NULL));
    CHECK_IS(-ETIMEDOUT, ums_child_wait_until(pid, NULL, ums_deadline_after(MS), NULL));
    CHECK_IS(0, kill(pid, SIGKILL));
    CHECK_IS(0, ums_child_wait_until(pid, &status, UMS_NEVER, NULL));
    CHECK(WIFSIGNALED(status));
}
static void children_are_waited_for(void) { on_a_fiber_and_on_a_thread(children, NULL); }

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#if defined(UNDER_TSAN) || defined(__SANITIZE_THREAD__)
static const int under_tsan = 1;
#else
static const int under_tsan = 0;
#endif

static void signals(void* argument) {
    const int numbers[] = {SIGUSR1, SIGWINCH}, none[] = {SIGKILL};
    ums_signals_t* events;
    (void)argument;
    CHECK_IS(-EINVAL, ums_signals_create(&events, none, 1));
    CHECK_IS(0, ums_signals_create(&events, numbers, 2));
    CHECK_IS(-ETIMEDOUT, ums_signals_wait_until(events, ums_deadline_after(MS), NULL));
    CHECK_IS(0, kill(getpid(), SIGWINCH));
    CHECK_IS(SIGWINCH, ums_signals_wait(events));
    CHECK_IS(0, kill(getpid(), SIGUSR1));
    CHECK_IS(SIGUSR1, ums_signals_wait_until(events, UMS_NEVER, NULL));
    ums_signals_destroy(events);
}
static void signals_are_events(void) { on_a_fiber_and_on_a_thread(signals, NULL); }

int main(void) {
    RUN(bytes_go_through_a_pipe);
    RUN(connections_are_made);
    RUN(messages_are_sent);
    RUN(files_are_used);
    RUN(loops_of_others_wait);
    RUN(what_blocks_is_done_elsewhere);
    RUN(readiness_is_waited_for);
    RUN(hosts_are_resolved);
    RUN(children_are_waited_for);
    // ThreadSanitizer delays a signal until its thread makes a call that it knows.
    if (!under_tsan) RUN(signals_are_events);
    return check_end();
}
