// SPDX-License-Identifier: MIT

// subject WAY [ARGUMENTS]: a program with kernel threads, for tests of `ums run`.
//
//   queue ITEMS           a thread hands items to another, one at a time, by a mutex and conditions
//   unseen ITEMS          the same, while its parent is stopped and cannot look
//   unseen-yield TIMES    the same with yield
//   serve N               N threads, each echoes what one connection sends; prints its port first
//   load PORT N REQUESTS  its client: so many requests over N connections, one at a time on each
//   yield TIMES           four threads yield to each other
//   compute MILLIONS      four threads compute, each with a mutex of its own
//   timer TIMES           waits at a condition variable that nothing signals, 100 us each
//   children              vfork(), system() and posix_spawn(), each of which it checks
//   mask                  prints which signals are blocked, and which ignored
//   hidden                forbids others of its user to look at it
//   tell                  says a line, waits for SIGTERM, says another and exits with 5

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

enum { most_connections = 64 };

static void must(int is_so, const char* what) {
    if (is_so) return;
    perror(what);
    exit(1);
}

static void start(pthread_t* threads, int n, void* (*run)(void*), void* arguments, size_t size) {
    for (int i = 0; i < n; ++i)
        must(pthread_create(&threads[i], NULL, run, (char*)arguments + (size_t)i * size) == 0,
             "pthread_create");
}

static void join(pthread_t* threads, int n) {
    for (int i = 0; i < n; ++i) pthread_join(threads[i], NULL);
}

// --- queue ---

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_full;
static long items;

static void* play(void* argument) {
    const int is_consumer = *(int*)argument;
    for (long i = 0; i < items; ++i) {
        pthread_mutex_lock(&mutex);
        while (is_full != is_consumer) pthread_cond_wait(&changed, &mutex);
        is_full = !is_full;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void queue(void) {
    int is_consumer[] = {0, 1};
    pthread_t threads[2];
    start(threads, 2, play, is_consumer, sizeof is_consumer[0]);
    join(threads, 2);
}

// --- serve, load ---

static void* echo(void* argument) {
    char buffer[64];
    const int fd = *(int*)argument;
    for (ssize_t n; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;)
        must(send(fd, buffer, (size_t)n, MSG_NOSIGNAL) == n, "send");
    close(fd);
    return NULL;
}

static void serve(int n) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(bind(listener, (struct sockaddr*)&at, size) == 0, "bind");
    must(listen(listener, n) == 0, "listen");
    must(getsockname(listener, (struct sockaddr*)&at, &size) == 0, "getsockname");
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    pthread_t threads[most_connections];
    int fds[most_connections];
    for (int i = 0; i < n; ++i) {
        fds[i] = accept(listener, NULL, NULL);
        must(fds[i] >= 0, "accept");
        start(&threads[i], 1, echo, &fds[i], 0);
    }
    join(threads, n);
}

static void load(int port, int n, long requests) {
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((unsigned short)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct pollfd all[most_connections];
    char c = 'x';
    for (int i = 0; i < n; ++i) {
        all[i] = (struct pollfd){socket(AF_INET, SOCK_STREAM, 0), POLLIN, 0};
        must(connect(all[i].fd, (struct sockaddr*)&at, sizeof at) == 0, "connect");
    }
    for (int i = 0; i < n; ++i) must(send(all[i].fd, &c, 1, 0) == 1, "send");
    while (requests > 0) {
        must(poll(all, (nfds_t)n, -1) > 0, "poll");
        for (int i = 0; i < n; ++i) {
            if (all[i].revents == 0) continue;
            must(recv(all[i].fd, &c, 1, 0) == 1, "recv");
            --requests;
            must(send(all[i].fd, &c, 1, 0) == 1, "send");
        }
    }
}

// --- compute, timer ---

static void* compute(void* argument) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    unsigned long state = (unsigned long)argument;
    for (long i = 0; i < items * 10; ++i) {
        pthread_mutex_lock(&own);
        for (int k = 0; k < 100 * 1000; ++k) state = state * 6364136223846793005u + 1;
        pthread_mutex_unlock(&own);
    }
    return (void*)state;
}

static void* yield(void* argument) {
    for (long i = 0; i < items; ++i) sched_yield();
    return argument;
}

static void timer(void) {
    pthread_mutex_lock(&mutex);
    for (long i = 0; i < items; ++i) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100 * 1000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        must(pthread_cond_timedwait(&changed, &mutex, &until) == ETIMEDOUT,
             "pthread_cond_timedwait");
    }
    pthread_mutex_unlock(&mutex);
}

// --- children, mask, tell ---

static void children(void) {
    int status = 0;
    const pid_t child = vfork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 4", (char*)NULL);
        _exit(127);
    }
    must(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4, "vfork");
    status = system("exit 6");
    must(WIFEXITED(status) && WEXITSTATUS(status) == 6, "system");
    char* words[] = {"sh", "-c", "exit 7", NULL};
    pid_t spawned;
    must(posix_spawn(&spawned, "/bin/sh", NULL, NULL, words, environ) == 0, "posix_spawn");
    must(waitpid(spawned, &status, 0) == spawned && WEXITSTATUS(status) == 7, "posix_spawn");
    // There is no other child.
    must(waitpid(-1, &status, 0) == -1 && errno == ECHILD, "waitpid");
}

static void mask(void) {
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < 32; ++i) {
        struct sigaction action;
        if (sigismember(&blocked, i)) printf("blocked %d\n", i);
        if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            printf("not by default %d\n", i);
    }
}

static void tell(void) {
    sigset_t one;
    int signal = 0;
    sigemptyset(&one);
    sigaddset(&one, SIGTERM);
    sigprocmask(SIG_BLOCK, &one, NULL);
    puts("ready");
    fflush(stdout);
    sigwait(&one, &signal);
    puts("ending");
    exit(5);
}

int main(int argc, char** argv) {
    const char* const way = argc > 1 ? argv[1] : "";
    items = argc > 2 ? atol(argv[2]) : 0;
    const int is_unseen = strncmp(way, "unseen", 6) == 0;
    if (is_unseen) must(kill(getppid(), SIGSTOP) == 0, "kill");
    if (strcmp(way, "queue") == 0 || strcmp(way, "unseen") == 0) {
        queue();
    } else if (strcmp(way, "serve") == 0) {
        serve((int)items);
    } else if (strcmp(way, "load") == 0 && argc == 5) {
        load((int)items, atoi(argv[3]), atol(argv[4]));
    } else if (strcmp(way, "compute") == 0 || strstr(way, "yield") != NULL) {
        pthread_t threads[4];
        start(threads, 4, strcmp(way, "compute") == 0 ? compute : yield, NULL, 1);
        join(threads, 4);
    } else if (strcmp(way, "timer") == 0) {
        timer();
    } else if (strcmp(way, "children") == 0) {
        children();
    } else if (strcmp(way, "mask") == 0) {
        mask();
    } else if (strcmp(way, "hidden") == 0) {
        must(prctl(PR_SET_DUMPABLE, 0) == 0, "prctl");
        items = 100;  // So that looks come meanwhile.
        compute(NULL);
        puts("unseen");
    } else if (strcmp(way, "tell") == 0) {
        tell();
    } else {
        fprintf(stderr, "subject: no such way\n");
        return 2;
    }
    if (is_unseen) must(kill(getppid(), SIGCONT) == 0, "kill");
    return 0;
}
