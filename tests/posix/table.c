/* SPDX-License-Identifier: MIT */

/* What POSIX's names for I/O return and leave in errno, call by call: one line for each.
 *
 * table thread   each case on a thread of its own, by pthread_create()
 * table main     each case in main()
 *
 * Compiled once as it is and once with UMS_PTHREAD_NAMES and UMS_IO_NAMES, it prints the same
 * (table_test.py), so nothing here knows of libums, and a result that depends on time or on the
 * sizes of buffers is reduced to what POSIX says of it. */

#ifndef _GNU_SOURCE
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#endif
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 1 << 20 };

static const char* case_name;
static char many[MANY];
static volatile sig_atomic_t signals;
static volatile int too_few = -1;

static void show(const char* what, long result) {
    if (result == -1)
        printf("%s: %s: -1 %s\n", case_name, what, strerror(errno));
    else
        printf("%s: %s: %ld\n", case_name, what, result);
}
#define SHOW(call) show(#call, (long)(call))

static void must(int is) {
    if (is) return;
    fprintf(stderr, "%s: cannot go on: %s\n", case_name, strerror(errno));
    _exit(2);
}

/* --- Partners: threads that act while the case waits ------------------------------------------ */

struct partner {
    pthread_t thread;
    int fd;
    void (*act)(int fd);
};

static void* run_partner(void* argument) {
    struct partner* p = (struct partner*)argument;
    p->act(p->fd);
    return NULL;
}
static void start(struct partner* p, void (*act)(int), int fd) {
    p->fd = fd;
    p->act = act;
    must(pthread_create(&p->thread, NULL, run_partner, p) == 0);
}
static void join(struct partner* p) { must(pthread_join(p->thread, NULL) == 0); }

static void puts_three(int fd) { must(write(fd, "abc", 3) == 3); }
static void puts_in_parts(int fd) {
    must(send(fd, "abc", 3, 0) == 3);
    must(poll(NULL, 0, 5) == 0);
    must(send(fd, "def", 3, 0) == 3);
}
static void puts_and_ends(int fd) {
    puts_three(fd);
    must(shutdown(fd, SHUT_WR) == 0);
}
static void shuts(int fd) { must(shutdown(fd, SHUT_RDWR) == 0); }
static void ends(int fd) { must(close(fd) == 0); }
static void drains(int fd) {
    char* room = (char*)malloc(MANY);
    for (long all = 0; all < MANY;) {
        const ssize_t n = read(fd, room, 10000);
        must(n > 0);
        all += n;
    }
    free(room);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif

/* --- What the cases are made of --------------------------------------------------------------- */

static void pair(int ends[2]) { must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0); }
static void close_both(const int ends[2]) {
    close(ends[0]);
    close(ends[1]);
}
static void set_blocking(int fd, int blocking) {
    const int flags = fcntl(fd, F_GETFL);
    must(fcntl(fd, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) == 0);
}
static void set_limit(int fd, int name, int ms) {
    struct timeval limit;
    limit.tv_sec = 0;
    limit.tv_usec = ms * 1000;
    must(setsockopt(fd, SOL_SOCKET, name, &limit, sizeof limit) == 0);
}
static int listen_at(struct sockaddr_in* at) {
    socklen_t bytes = sizeof *at;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    memset(at, 0, sizeof *at);
    at->sin_family = AF_INET;
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(fd >= 0 && bind(fd, (struct sockaddr*)at, sizeof *at) == 0 && listen(fd, 8) == 0);
    must(getsockname(fd, (struct sockaddr*)at, &bytes) == 0);
    return fd;
}
static int connect_to(const struct sockaddr_in* to) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    must(fd >= 0 && connect(fd, (const struct sockaddr*)to, sizeof *to) == 0);
    return fd;
}
static int udp_at(struct sockaddr_in* at) {
    socklen_t bytes = sizeof *at;
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    memset(at, 0, sizeof *at);
    at->sin_family = AF_INET;
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(fd >= 0 && bind(fd, (struct sockaddr*)at, sizeof *at) == 0);
    must(getsockname(fd, (struct sockaddr*)at, &bytes) == 0);
    return fd;
}
static int file_of(const char* text) {
    char path[] = "/tmp/ums-table-XXXXXX";
    const int fd = mkstemp(path);
    must(fd >= 0 && unlink(path) == 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    must(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}
/* Whether O_NONBLOCK and FD_CLOEXEC are set, as two digits. */
static int flags_of(int fd) {
    return ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) * 10 + ((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
}
static void count_signal(int number) {
    (void)number;
    signals = signals + 1;
}
static void handle(int number) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count_signal;
    signals = 0;
    must(sigaction(number, &action, NULL) == 0);
}

/* --- Reading ---------------------------------------------------------------------------------- */

static void read_errors(void) {
    char b[8];
    int two[2];
    const int folder = open("/", O_RDONLY);
    SHOW(read(-1, b, 1));
    SHOW(read(999, b, 1));
    SHOW(read(folder, b, 1));
    must(pipe(two) == 0);
    SHOW(read(two[1], b, 1));
    SHOW(read(two[0], b, 0));
    close_both(two);
#ifndef UNDER_TSAN /* It takes a file that another thread has there meanwhile for the closed one. */
    SHOW(read(two[0], b, 1));
#endif
    close(folder);
}

static void read_waits(void) {
    char b[8];
    int two[2];
    struct partner p;
    must(pipe(two) == 0);
    start(&p, puts_three, two[1]);
    SHOW(read(two[0], b, 8));
    join(&p);
    start(&p, ends, two[1]);
    SHOW(read(two[0], b, 8));
    join(&p);
    close(two[0]);
    pair(two);
    start(&p, puts_three, two[1]);
    SHOW(read(two[0], b, 2));
    SHOW(read(two[0], b, 2));
    join(&p);
    start(&p, shuts, two[0]);
    SHOW(read(two[0], b, 2));
    join(&p);
    close_both(two);
}

static void read_does_not_wait(void) {
    char b[8];
    int two[2], on = 1, off = 0;
    struct partner p;
    pair(two);
    SHOW(recv(two[0], b, 8, MSG_DONTWAIT));
    set_blocking(two[0], 0);
    SHOW(read(two[0], b, 8));
    SHOW(read(two[0], b, 8));
    set_blocking(two[0], 1);
    start(&p, puts_three, two[1]);
    SHOW(read(two[0], b, 8));
    join(&p);
    must(ioctl(two[0], FIONBIO, &on) == 0);
    SHOW(recv(two[0], b, 8, 0));
    must(ioctl(two[0], FIONBIO, &off) == 0);
    start(&p, puts_three, two[1]);
    SHOW(recv(two[0], b, 8, 0));
    join(&p);
    SHOW(flags_of(two[0]));
    close_both(two);
}

/* The flags belong to the file, and a duplicate sets them too. */
static void read_by_a_duplicate(void) {
    char b[8];
    int two[2];
    pair(two);
    const int other = dup(two[0]);
    set_blocking(other, 0);
    SHOW(read(two[0], b, 8));
    SHOW(flags_of(two[0]));
    close(other);
    close_both(two);
}

static void read_until_a_limit(void) {
    char b[8];
    int two[2];
    struct partner p;
    pair(two);
    set_limit(two[0], SO_RCVTIMEO, 10);
    SHOW(read(two[0], b, 8));
    SHOW(recv(two[0], b, 8, 0));
    SHOW(recv(two[0], b, 8, MSG_WAITALL));
    set_limit(two[0], SO_RCVTIMEO, 0);
    start(&p, puts_three, two[1]);
    SHOW(read(two[0], b, 8));
    join(&p);
    close_both(two);
}

static void read_pieces(void) {
    char a[2], b[8];
    int two[2];
    struct iovec v[2];
    struct partner p;
    v[0].iov_base = a;
    v[0].iov_len = sizeof a;
    v[1].iov_base = b;
    v[1].iov_len = sizeof b;
    pair(two);
    start(&p, puts_three, two[1]);
    SHOW(readv(two[0], v, 2));
    join(&p);
    SHOW(readv(two[0], v, too_few));
    SHOW(readv(-1, v, 2));
    close_both(two);
}

static void files(void) {
    char b[8];
    int two[2];
    const int fd = file_of("hello world");
    SHOW(read(fd, b, 8));
    SHOW(read(fd, b, 8));
    SHOW(read(fd, b, 8));
    SHOW(pread(fd, b, 8, 6));
    SHOW(pread(fd, b, 8, -1));
    SHOW(pwrite(fd, "W", 1, 6));
    SHOW(pread(fd, b, 8, 6));
    SHOW(b[0]);
    must(pipe(two) == 0);
    SHOW(pread(two[0], b, 8, 0));
    SHOW(pwrite(two[1], b, 8, 0));
    SHOW(pread(-1, b, 8, 0));
    close_both(two);
    const int other = dup(fd);
    SHOW(lseek(other, 0, SEEK_SET));
    SHOW(read(other, b, 8));
    SHOW(write(other, "!", 1));
    close(other);
    close(fd);
}

/* --- Writing ---------------------------------------------------------------------------------- */

static void write_errors(void) {
    int two[2];
    SHOW(write(-1, "a", 1));
    must(pipe(two) == 0);
    SHOW(write(two[0], "a", 1));
    handle(SIGPIPE);
    close(two[0]);
    SHOW(write(two[1], "a", 1));
    SHOW(signals);
    close(two[1]);
    pair(two);
    close(two[0]);
    SHOW(write(two[1], "a", 1));
    SHOW(send(two[1], "a", 1, 0));
    SHOW(signals);
    SHOW(send(two[1], "a", 1, MSG_NOSIGNAL));
    SHOW(signals);
    close(two[1]);
}

static void write_all_of_it(void) {
    int two[2];
    struct partner p;
    struct iovec v[3];
    struct msghdr m;
    must(pipe(two) == 0);
    start(&p, drains, two[0]);
    SHOW(write(two[1], many, MANY));
    join(&p);
    close_both(two);
    pair(two);
    start(&p, drains, two[0]);
    SHOW(write(two[1], many, MANY));
    join(&p);
    start(&p, drains, two[0]);
    SHOW(send(two[1], many, MANY, 0));
    join(&p);
    v[0].iov_base = many;
    v[0].iov_len = 3;
    v[1].iov_base = many + 3;
    v[1].iov_len = MANY / 2;
    v[2].iov_base = many + 3 + MANY / 2;
    v[2].iov_len = MANY - 3 - MANY / 2;
    start(&p, drains, two[0]);
    SHOW(writev(two[1], v, 3));
    join(&p);
    memset(&m, 0, sizeof m);
    m.msg_iov = v;
    m.msg_iovlen = 3;
    start(&p, drains, two[0]);
    SHOW(sendmsg(two[1], &m, 0));
    join(&p);
    SHOW(writev(two[1], v, too_few));
    close_both(two);
}

static void write_without_room(void) {
    int two[2];
    pair(two);
    set_limit(two[1], SO_SNDTIMEO, 10);
    const ssize_t part = write(two[1], many, MANY);
    SHOW(part > 0 && part < MANY);
    SHOW(write(two[1], many, MANY));
    close_both(two);
    pair(two);
    set_blocking(two[1], 0);
    const ssize_t some = send(two[1], many, MANY, 0);
    SHOW(some > 0 && some < MANY);
    SHOW(send(two[1], many, MANY, 0));
    SHOW(write(two[1], many, MANY));
    close_both(two);
    must(pipe(two) == 0);
    set_blocking(two[1], 0);
    const ssize_t in_pipe = write(two[1], many, MANY);
    SHOW(in_pipe > 0 && in_pipe < MANY);
    SHOW(write(two[1], many, MANY));
    close_both(two);
}

/* The reader goes before the write, or in it. */
static void write_to_one_that_goes(void) {
    int two[2];
    struct partner p;
    handle(SIGPIPE);
    pair(two);
    const ssize_t filled = send(two[1], many, MANY, MSG_DONTWAIT);
    SHOW(filled > 0);
    start(&p, ends, two[0]);
    SHOW(write(two[1], many, MANY) == -1 && (errno == ECONNRESET || errno == EPIPE));
    join(&p);
    SHOW(write(two[1], many, MANY));
    SHOW(signals > 0);
    close(two[1]);
}

/* --- Sockets ---------------------------------------------------------------------------------- */

static void socket_errors(void) {
    char b[8];
    int two[2];
    struct sockaddr_in at;
    socklen_t bytes = sizeof at;
    SHOW(socket(-1, SOCK_STREAM, 0));
    SHOW(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
    SHOW(socketpair(AF_INET, SOCK_STREAM, 0, two));
    must(pipe(two) == 0);
    SHOW(recv(two[0], b, 8, 0));
    SHOW(send(two[1], b, 8, 0));
    SHOW(recvfrom(two[0], b, 8, 0, NULL, NULL));
    SHOW(sendto(two[1], b, 8, 0, NULL, 0));
    SHOW(accept(two[0], NULL, NULL));
    SHOW(connect(two[0], (struct sockaddr*)&at, bytes));
    close_both(two);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    handle(SIGPIPE);
    SHOW(recv(fd, b, 8, 0));
    SHOW(send(fd, b, 8, MSG_NOSIGNAL));
    SHOW(accept(fd, NULL, NULL));
    close(fd);
    SHOW(accept(fd, NULL, NULL));
    SHOW(recv(-1, b, 8, 0));
    SHOW(send(-1, b, 8, 0));
}

static void receive_by_flags(void) {
    char b[8];
    int two[2];
    struct partner p;
    pair(two);
    start(&p, puts_in_parts, two[1]);
    SHOW(recv(two[0], b, 6, MSG_WAITALL));
    join(&p);
    start(&p, puts_three, two[1]);
    SHOW(recv(two[0], b, 8, MSG_PEEK));
    join(&p);
    SHOW(recv(two[0], b, 8, MSG_PEEK));
    SHOW(recvfrom(two[0], b, 8, 0, NULL, NULL));
    start(&p, puts_and_ends, two[1]);
    SHOW(recvfrom(two[0], b, 8, MSG_WAITALL, NULL, NULL));
    join(&p);
    SHOW(recv(two[0], b, 8, MSG_WAITALL));
    SHOW(recv(two[0], b, 8, 0));
    close_both(two);
}

/* A Unix stream gives at once what it has. */
static void look_at_all(void) {
    char b[8];
    struct sockaddr_in at;
    struct partner p;
    struct iovec piece = {b, 6};
    struct msghdr message;
    const int door = listen_at(&at), fd = connect_to(&at), peer = accept(door, NULL, NULL);
    memset(&message, 0, sizeof message);
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    start(&p, puts_in_parts, peer);
    SHOW(recv(fd, b, 6, MSG_PEEK | MSG_WAITALL));
    join(&p);
    SHOW(recvfrom(fd, b, 6, MSG_PEEK | MSG_WAITALL, NULL, NULL));
    SHOW(recvmsg(fd, &message, MSG_PEEK | MSG_WAITALL));
    SHOW(recv(fd, b, 8, 0));
    set_limit(fd, SO_RCVTIMEO, 10);
    SHOW(recv(fd, b, 6, MSG_PEEK | MSG_WAITALL));
    set_blocking(fd, 0);
    SHOW(recv(fd, b, 6, MSG_PEEK | MSG_WAITALL));
    close(peer);
    close(fd);
    close(door);
}

static void receive_messages(void) {
    char b[8], c[8];
    int two[2];
    struct iovec v[2];
    struct msghdr m;
    struct partner p;
    memset(&m, 0, sizeof m);
    v[0].iov_base = b;
    v[0].iov_len = 2;
    v[1].iov_base = c;
    v[1].iov_len = sizeof c;
    m.msg_iov = v;
    m.msg_iovlen = 2;
    pair(two);
    start(&p, puts_three, two[1]);
    SHOW(recvmsg(two[0], &m, 0));
    join(&p);
    v[1].iov_len = 4;
    start(&p, puts_in_parts, two[1]);
    SHOW(recvmsg(two[0], &m, MSG_WAITALL));
    join(&p);
    SHOW(recvmsg(two[0], &m, MSG_DONTWAIT));
    close_both(two);
    must(socketpair(AF_UNIX, SOCK_DGRAM, 0, two) == 0);
    SHOW(write(two[1], "abcdefghij", 10));
    SHOW(recv(two[0], b, 4, 0));
    SHOW(write(two[1], "abcdefghij", 10));
    m.msg_iovlen = 1;
    SHOW(recvmsg(two[0], &m, 0));
    SHOW((m.msg_flags & MSG_TRUNC) != 0);
    SHOW(write(two[1], "", 0));
    SHOW(read(two[0], b, 8));
    SHOW(write(two[1], many, MANY));
    close_both(two);
}

static void pass_a_descriptor(void) {
    char b[8], control[CMSG_SPACE(sizeof(int))];
    int two[2], passed[2], got = -1;
    struct iovec v;
    struct msghdr m;
    memset(&m, 0, sizeof m);
    memset(control, 0, sizeof control);
    v.iov_base = b;
    v.iov_len = 1;
    m.msg_iov = &v;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    struct cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    pair(two);
    must(pipe(passed) == 0);
    memcpy(CMSG_DATA(c), &passed[0], sizeof(int));
    SHOW(sendmsg(two[1], &m, 0));
    close(passed[0]);
    SHOW(recvmsg(two[0], &m, 0));
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
    struct partner p;
    start(&p, puts_three, passed[1]);
    SHOW(read(got, b, 8));
    join(&p);
    SHOW(flags_of(got));
    set_blocking(got, 0);
    SHOW(read(got, b, 8));
    close(got);
    close(passed[1]);
    close_both(two);
}

static void datagrams(void) {
    char b[8];
    struct sockaddr_in at, to, from;
    socklen_t bytes = sizeof from;
    const int one = udp_at(&at), other = udp_at(&to);
    SHOW(sendto(one, "abc", 3, 0, (struct sockaddr*)&to, sizeof to));
    SHOW(recvfrom(other, b, 8, 0, (struct sockaddr*)&from, &bytes));
    SHOW(bytes == sizeof from && from.sin_port == at.sin_port);
    SHOW(send(one, "abc", 3, 0));
    SHOW(connect(one, (struct sockaddr*)&to, sizeof to));
    SHOW(send(one, "abc", 3, 0));
    SHOW(read(other, b, 2));
    SHOW(recv(other, b, 2, MSG_DONTWAIT));
    SHOW(send(one, many, MANY, 0));
    set_limit(other, SO_RCVTIMEO, 10);
    SHOW(recvfrom(other, b, 8, 0, NULL, NULL));
    close(other);
    SHOW(send(one, "abc", 3, 0));
    SHOW(recv(one, b, 8, 0));
    close(one);
}

static struct sockaddr_in door_at;
static void connects(int unused) {
    (void)unused;
    const int fd = connect_to(&door_at);
    puts_three(fd);
    close(fd);
}

static void accept_connections(void) {
    char b[8];
    struct sockaddr_in peer;
    socklen_t bytes = sizeof peer;
    struct partner p;
    const int door = listen_at(&door_at);
    start(&p, connects, 0);
    int fd = accept(door, (struct sockaddr*)&peer, &bytes);
    must(fd >= 0);
    SHOW(bytes == sizeof peer && peer.sin_family == AF_INET);
    SHOW(flags_of(fd));
    SHOW(read(fd, b, 8));
    SHOW(read(fd, b, 8));
    join(&p);
    close(fd);
    set_blocking(door, 0);
    SHOW(accept(door, NULL, NULL));
    set_blocking(door, 1);
    set_limit(door, SO_RCVTIMEO, 10);
    SHOW(accept(door, NULL, NULL));
    set_limit(door, SO_RCVTIMEO, 0);
    start(&p, shuts, door);
    SHOW(accept(door, NULL, NULL));
    join(&p);
    SHOW(accept(door, NULL, NULL));
    close(door);
    const int udp = udp_at(&peer);
    SHOW(accept(udp, NULL, NULL));
    close(udp);
}

static void connect_errors(void) {
    struct sockaddr_in at;
    struct sockaddr_un nowhere;
    memset(&nowhere, 0, sizeof nowhere);
    nowhere.sun_family = AF_UNIX;
    strcpy(nowhere.sun_path, "/nowhere/at/all");
    const int door = listen_at(&at), fd = connect_to(&at);
    SHOW(flags_of(fd));
    SHOW(connect(fd, (struct sockaddr*)&at, sizeof at));
    close(fd);
    close(door);
    const int refused = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(connect(refused, (struct sockaddr*)&at, sizeof at));
    SHOW(connect(refused, (struct sockaddr*)&at, sizeof at));
    SHOW(connect(refused, (struct sockaddr*)&at, 1));
    SHOW(connect(refused, (struct sockaddr*)&at, sizeof at));
    close(refused);
    const int local = socket(AF_UNIX, SOCK_STREAM, 0);
    SHOW(connect(local, (struct sockaddr*)&nowhere, sizeof nowhere));
    close(local);
    SHOW(connect(-1, (struct sockaddr*)&at, sizeof at));
}

/* A peer that resets tells each side once. */
static void reset_by_the_peer(void) {
    char b[8];
    struct sockaddr_in at;
    struct linger hard;
    const int door = listen_at(&at), fd = connect_to(&at), peer = accept(door, NULL, NULL);
    handle(SIGPIPE);
    hard.l_onoff = 1;
    hard.l_linger = 0;
    must(setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, sizeof hard) == 0);
    SHOW(close(peer));
    SHOW(recv(fd, b, 8, 0));
    SHOW(recv(fd, b, 8, 0));
    SHOW(send(fd, "a", 1, MSG_NOSIGNAL));
    close(fd);
    close(door);
}

/* --- Waiting for descriptors ------------------------------------------------------------------ */

static void poll_one(void) {
    int two[2];
    struct pollfd f;
    struct partner p;
    pair(two);
    f.fd = two[0];
    f.events = POLLIN;
    SHOW(poll(&f, 1, 0));
    SHOW(poll(&f, 1, 5));
    SHOW(f.revents);
    start(&p, puts_three, two[1]);
    SHOW(poll(&f, 1, -1));
    SHOW(f.revents);
    join(&p);
    f.events = POLLIN | POLLOUT;
    SHOW(poll(&f, 1, -1));
    SHOW(f.revents);
    start(&p, ends, two[1]);
    f.events = POLLPRI;
    SHOW(poll(&f, 1, -1));
    SHOW(f.revents);
    join(&p);
    close(two[0]);
    f.events = POLLIN;
    SHOW(poll(&f, 1, -1));
    SHOW(f.revents);
    f.fd = -1;
    SHOW(poll(&f, 1, 5));
    SHOW(f.revents);
    SHOW(poll(NULL, 0, 5));
}

static void poll_several(void) {
    char b[8];
    int one[2], other[2];
    struct pollfd f[3];
    struct partner p;
    pair(one);
    must(pipe(other) == 0);
    f[0].fd = one[0];
    f[1].fd = other[0];
    f[2].fd = -1;
    f[0].events = f[1].events = f[2].events = POLLIN;
    SHOW(poll(f, 3, 5));
    start(&p, puts_three, other[1]);
    SHOW(poll(f, 3, -1));
    SHOW(f[0].revents);
    SHOW(f[1].revents);
    join(&p);
    SHOW(read(other[0], b, 8));
#ifdef _GNU_SOURCE
    struct timespec limit;
    limit.tv_sec = 0;
    limit.tv_nsec = 5000000;
    SHOW(ppoll(f, 2, &limit, NULL));
    limit.tv_nsec = -1;
    SHOW(ppoll(f, 2, &limit, NULL));
    start(&p, shuts, one[1]);
    SHOW(ppoll(f, 2, NULL, NULL));
    SHOW(f[0].revents);
    join(&p);
#endif
    f[2].fd = 999;
    SHOW(poll(f, 3, -1));
    SHOW(f[2].revents);
    close_both(one);
    close_both(other);
}

static void select_several(void) {
    int two[2];
    fd_set in, out;
    struct timeval limit;
    struct timespec soon;
    struct partner p;
    pair(two);
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(two[0], &in);
    limit.tv_sec = 0;
    limit.tv_usec = 5000;
    SHOW(select(two[0] + 1, &in, NULL, NULL, &limit));
    SHOW(FD_ISSET(two[0], &in) != 0);
    FD_SET(two[0], &in);
    start(&p, puts_three, two[1]);
    SHOW(select(two[0] + 1, &in, NULL, NULL, NULL));
    SHOW(FD_ISSET(two[0], &in) != 0);
    join(&p);
    FD_SET(two[1], &out);
    SHOW(select(two[1] + 1, &in, &out, NULL, NULL));
    SHOW(FD_ISSET(two[1], &out) != 0);
    SHOW(select(-1, &in, NULL, NULL, NULL));
    limit.tv_sec = -1;
    SHOW(select(1, NULL, NULL, NULL, &limit));
    limit.tv_sec = 0;
    limit.tv_usec = 5000;
    SHOW(select(0, NULL, NULL, NULL, &limit));
    soon.tv_sec = 0;
    soon.tv_nsec = 5000000;
    FD_ZERO(&in);
    FD_SET(two[1], &in);
    SHOW(pselect(two[1] + 1, &in, NULL, NULL, &soon, NULL));
    close_both(two);
    FD_ZERO(&in);
    FD_SET(two[0], &in);
    SHOW(select(two[0] + 1, &in, NULL, NULL, NULL));
}

/* --- Descriptors ------------------------------------------------------------------------------ */

static void duplicates(void) {
    char b[8];
    int one[2], other[2];
    struct partner p;
    SHOW(dup(-1));
    SHOW(dup2(-1, 5));
    SHOW(close(-1));
    pair(one);
    pair(other);
    SHOW(dup2(one[0], -1));
    SHOW(dup2(one[0], one[0]) == one[0]);
    SHOW(dup2(999, other[0]));
    start(&p, puts_three, other[1]);
    SHOW(read(other[0], b, 8));
    join(&p);
    SHOW(dup2(one[0], other[0]) == other[0]);
    start(&p, puts_three, one[1]);
    SHOW(read(other[0], b, 8));
    join(&p);
    SHOW(flags_of(other[0]));
    const int far_away = fcntl(one[0], F_DUPFD, 100);
    SHOW(far_away >= 100);
    close(one[0]);
    start(&p, puts_three, one[1]);
    SHOW(read(far_away, b, 8));
    join(&p);
    SHOW(fcntl(far_away, F_DUPFD, -1));
    SHOW(fcntl(999, F_GETFL));
    const int private_one = fcntl(far_away, F_DUPFD_CLOEXEC, 100);
    SHOW(flags_of(private_one));
    SHOW(close(private_one));
    SHOW(close(private_one));
    close(far_away);
    close(one[1]);
    close_both(other);
}

static void pipes(void) {
    int two[2];
    SHOW(pipe(two));
    SHOW(flags_of(two[0]));
    close_both(two);
}

#ifdef _GNU_SOURCE
static void flags_when_made(void) {
    char b[8];
    int two[2];
    struct sockaddr_in at;
    SHOW(pipe2(two, -1));
    SHOW(pipe2(two, O_NONBLOCK | O_CLOEXEC));
    SHOW(flags_of(two[1]));
    SHOW(read(two[0], b, 8));
    SHOW(dup3(two[0], two[0], 0));
    SHOW(dup3(two[0], two[1], -1));
    SHOW(dup3(two[0], two[1], O_CLOEXEC) == two[1]);
    SHOW(flags_of(two[1]));
    close_both(two);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    SHOW(flags_of(fd));
    close(fd);
    const int door = listen_at(&at), client = connect_to(&at);
    SHOW(accept4(door, NULL, NULL, -1));
    const int server = accept4(door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    SHOW(flags_of(server));
    SHOW(read(server, b, 8));
    close(server);
    close(client);
    close(door);
}
#endif

/* stdio closes the number, and the next file gets it. */
#ifdef _GNU_SOURCE
/* What the child does with its descriptors is nothing to the parent's threads. */
static char seen[8];
static void reads_two_bytes(int fd) {
    must(read(fd, seen, 1) == 1);
    must(read(fd, seen + 1, 1) == 1);
}
static void child_of_vfork(void) {
    int out[2], status = -1;
    struct partner p;
    must(pipe(out) == 0);
    start(&p, reads_two_bytes, out[0]);
    must(write(out[1], "a", 1) == 1);
    must(poll(NULL, 0, 5) == 0); /* It waits for the second, mostly. */
    const pid_t child = vfork();
    if (child == 0) {
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execl("/bin/sh", "sh", "-c", "printf b", (char*)NULL);
        _exit(127);
    }
    SHOW(child > 0);
    SHOW(waitpid(child, &status, 0) == child);
    SHOW(WEXITSTATUS(status));
    join(&p);
    SHOW(memcmp(seen, "ab", 2));
    close_both(out);
}
#endif

static int closed_by_handler, result_of_handler;
static void close_it(int number) {
    (void)number;
    result_of_handler = close(closed_by_handler);
}
static void close_in_a_handler(void) {
    int two[2];
    char b[8];
    struct sigaction action;
    pair(two);
    memset(&action, 0, sizeof action);
    action.sa_handler = close_it;
    must(sigaction(SIGUSR1, &action, NULL) == 0);
    closed_by_handler = two[1];
    must(raise(SIGUSR1) == 0);
    SHOW(result_of_handler);
    SHOW(read(two[0], b, 8));
    SHOW(write(two[1], b, 8));
    must(raise(SIGUSR1) == 0);
    SHOW(result_of_handler);
    close(two[0]);
}

static void numbers_of_stdio(void) {
    char line[8];
    int two[2];
    struct partner p;
    pair(two);
    FILE* file = fdopen(two[0], "r");
    must(file != NULL);
    start(&p, puts_and_ends, two[1]);
    SHOW(fgets(line, sizeof line, file) == line);
    join(&p);
    SHOW(fclose(file));
    SHOW(close(two[0]));
    close(two[1]);
    pair(two);
    start(&p, puts_three, two[1]);
    SHOW(read(two[0], line, 8));
    join(&p);
    close_both(two);
    SHOW(fdopen(-1, "r") == NULL);
}

/* --- Sleeping --------------------------------------------------------------------------------- */

static long ms_since(const struct timespec* begun) {
    struct timespec now;
    must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (now.tv_sec - begun->tv_sec) * 1000 + (now.tv_nsec - begun->tv_nsec) / 1000000;
}

static void sleeps(void) {
    struct timespec begun, t, left;
    must(clock_gettime(CLOCK_MONOTONIC, &begun) == 0);
    t.tv_sec = 0;
    t.tv_nsec = 10000000;
    SHOW(nanosleep(&t, &left));
    SHOW(ms_since(&begun) >= 10);
    SHOW(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &left));
    SHOW(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL));
    SHOW(ms_since(&begun) >= 20);
    t = begun;
    ++t.tv_sec;
    t.tv_sec -= t.tv_nsec < 950000000;
    t.tv_nsec = (t.tv_nsec + 50000000) % 1000000000;
    SHOW(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL));
    SHOW(ms_since(&begun) >= 50);
    SHOW(clock_nanosleep(-99, 0, &t, NULL));
    t.tv_nsec = 1000000000;
    SHOW(nanosleep(&t, NULL));
    SHOW(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL));
    t.tv_nsec = 0;
    t.tv_sec = -1;
    SHOW(nanosleep(&t, NULL));
    t.tv_sec = 0;
    SHOW(nanosleep(&t, NULL));
    SHOW(sleep(0));
#ifdef _GNU_SOURCE
    SHOW(usleep(1000));
#endif
}

/* --- Names ------------------------------------------------------------------------------------ */

static void names(void) {
    struct addrinfo hints, *found = NULL;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    SHOW(getaddrinfo("127.0.0.1", "80", &hints, &found));
    SHOW(found->ai_family == AF_INET);
    freeaddrinfo(found);
    SHOW(getaddrinfo("localhost", "80", &hints, &found));
    freeaddrinfo(found);
    SHOW(getaddrinfo(NULL, NULL, &hints, &found));
    SHOW(getaddrinfo("127.0.0.1", "no such service", &hints, &found));
    hints.ai_flags = AI_NUMERICHOST;
    SHOW(getaddrinfo("localhost", "80", &hints, &found));
    hints.ai_family = -1;
    SHOW(getaddrinfo("127.0.0.1", "80", &hints, &found));
}

/* --- errno ------------------------------------------------------------------------------------ */

/* The compiler may keep the address of errno in this function; a wait may change it. */
static void errno_after_waits(void) {
    char b[8];
    int two[2], wrong = 0;
    pair(two);
    set_limit(two[0], SO_RCVTIMEO, 1);
    for (int i = 0; i < 50; ++i) {
        errno = 0;
        wrong += read(-1, b, 1) != -1 || errno != EBADF;
        wrong += read(two[0], b, 1) != -1 || errno != EAGAIN;
    }
    SHOW(wrong);
    close_both(two);
}

/* What has one of the names, but is no function of the C library, keeps it. */
static void other_things_of_these_names(void) {
    struct {
        int read, close, poll;
        ssize_t (*write)(int, const void*, size_t);
    } thing = {1, 2, 3, write};
    int select = thing.read + thing.close + thing.poll;
    SHOW(select);
    SHOW(thing.write(-1, "", 1));
}

/* --- Signals: to the process, whose first thread gets them ------------------------------------ */

static void interrupted(void) {
    char b[8];
    int two[2];
    struct sockaddr_in at;
    struct timespec long_time;
    struct itimerval often, never;
    struct pollfd f;
    memset(&often, 0, sizeof often);
    memset(&never, 0, sizeof never);
    often.it_value.tv_usec = often.it_interval.tv_usec = 5000;
    long_time.tv_sec = 100;
    long_time.tv_nsec = 0;
    handle(SIGALRM);
    pair(two);
    const int door = listen_at(&at);
    f.fd = two[0];
    f.events = POLLIN;
    must(setitimer(ITIMER_REAL, &often, NULL) == 0);
    SHOW(read(two[0], b, 8));
    SHOW(recv(two[0], b, 8, 0));
    SHOW(accept(door, NULL, NULL));
    SHOW(poll(&f, 1, -1));
    SHOW(nanosleep(&long_time, NULL));
    SHOW(sleep(100) > 0);
    must(setitimer(ITIMER_REAL, &never, NULL) == 0);
    SHOW(signals > 0);
    close(door);
    close_both(two);
}

struct test {
    const char* name;
    void (*run)(void);
};

static void* run_case(void* argument) {
    const struct test* test = (const struct test*)argument;
    case_name = test->name;
    test->run();
    return NULL;
}

#define CASE(name) \
    { #name, name }
static const struct test tests[] = {
    CASE(read_errors),
    CASE(read_waits),
    CASE(read_does_not_wait),
    CASE(read_by_a_duplicate),
    CASE(read_until_a_limit),
    CASE(read_pieces),
    CASE(files),
    CASE(write_errors),
    CASE(write_all_of_it),
    CASE(write_without_room),
    CASE(write_to_one_that_goes),
    CASE(socket_errors),
    CASE(receive_by_flags),
    CASE(look_at_all),
    CASE(receive_messages),
    CASE(pass_a_descriptor),
    CASE(datagrams),
    CASE(accept_connections),
    CASE(connect_errors),
    CASE(reset_by_the_peer),
    CASE(poll_one),
    CASE(poll_several),
    CASE(select_several),
    CASE(duplicates),
    CASE(pipes),
#ifdef _GNU_SOURCE
    CASE(flags_when_made),
    CASE(child_of_vfork),
#endif
    CASE(close_in_a_handler),
    CASE(numbers_of_stdio),
    CASE(sleeps),
    CASE(names),
    CASE(errno_after_waits),
    CASE(other_things_of_these_names),
};
static const struct test in_main[] = {CASE(interrupted)};

int main(int count, char** words) {
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* What a hang has printed before is seen. */
    const int threads = count == 2 && strcmp(words[1], "thread") == 0;
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
        pthread_t thread;
        if (!threads) {
            run_case((void*)&tests[i]);
            continue;
        }
        must(pthread_create(&thread, NULL, run_case, (void*)&tests[i]) == 0);
        must(pthread_join(thread, NULL) == 0);
    }
    if (!threads) run_case((void*)&in_main[0]);
    return 0;
}
