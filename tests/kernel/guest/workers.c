// SPDX-License-Identifier: MIT
// Lists, workers and schedulers. Each group of checks has a session of its own.

#include "guest.h"

static int device, list;

static void open_session(void) {
    device = new_session();
    list = ioctl(device, UMS_IOC_LIST_CREATE);
    must(list >= 0, "list");
    must(ioctl(device, UMS_IOC_SCHEDULER_ENTER) == 0, "scheduler");
}

static void close_session(void) {
    must(ioctl(device, UMS_IOC_SCHEDULER_LEAVE) == 0, "scheduler leave");
    close(list);
    close(device);
}

// ---- workers -----------------------------------------------------------------------------------

struct worker {
    pthread_t thread;
    void (*work)(struct worker*);
    unsigned flags, signal;
    int error;  // Of its UMS_IOC_WORKER_ENTER.
    int pipe[2];
    _Atomic uint32_t id;
    _Atomic long count;
    _Atomic int stop;
    int result;
};

static int enter(struct worker* w) {
    struct ums_worker asked = {
        .list = (uint32_t)list, .flags = w->flags, .signal = w->signal, .context = (uintptr_t)w};
    return error_of(ioctl(device, UMS_IOC_WORKER_ENTER, &asked));
}

static void* body(void* argument) {
    struct worker* w = argument;
    w->id = (uint32_t)gettid();
    w->error = enter(w);
    if (w->error == 0) w->work(w);
    return NULL;
}

static int dequeue(struct ums_item* items, unsigned room, int64_t timeout) {
    struct ums_dequeue d = {.items = (uintptr_t)items, .room = room, .timeout = timeout};
    const int n = ioctl(list, UMS_IOC_DEQUEUE, &d);
    return n < 0 ? -errno : n;
}

// The next item, which must be of this worker.
static int comes(struct worker* w, int ended) {
    struct ums_item i;
    return dequeue(&i, 1, -1) == 1 && i.worker == w->id && i.context == (uintptr_t)w &&
           (int)i.ended == ended;
}

static void begin(struct worker* w, unsigned flags, void (*work)(struct worker*)) {
    memset(w, 0, sizeof *w);
    w->flags = flags;
    w->work = work;
    must(pipe(w->pipe) == 0, "pipe");
    start(&w->thread, body, w);
    must(comes(w, 0), "a new worker is queued");
}

static void finish(struct worker* w) {
    pthread_join(w->thread, NULL);
    close(w->pipe[0]);
    close(w->pipe[1]);
}

static struct ums_execute execute(uint32_t id) {
    struct ums_execute e = {.worker = id};
    if (ioctl(device, UMS_IOC_EXECUTE, &e) != 0) e.reason = 1000 + (uint32_t)errno;
    return e;
}

// Executes it until it ends.
static int ends(struct worker* w) {
    for (;;) {
        const unsigned reason = execute(w->id).reason;
        struct ums_item i;
        if (reason != UMS_EVENT_BLOCKED && reason != UMS_EVENT_ENDED) return 0;
        if (dequeue(&i, 1, -1) != 1 || i.worker != w->id) return 0;
        if (i.ended) return 1;
        if (reason == UMS_EVENT_ENDED) return 0;
    }
}

static struct ums_info info_of(uint32_t id) {
    struct ums_info i = {.thread = id};
    if (ioctl(device, UMS_IOC_INFO, &i) != 0) i.role = 0;
    return i;
}

static void count(struct worker* w) { w->count++; }
static void yield_often(struct worker* w) {
    while (!w->stop) {
        w->count++;
        w->result = error_of(ioctl(device, UMS_IOC_WORKER_YIELD, 42));
    }
}
static void read_a_byte(struct worker* w) {
    char c;
    w->result = (int)read(w->pipe[0], &c, 1);
    w->count++;
}
static void calls(struct worker* w) {
    for (int i = 0; i < 10000; ++i) w->count += syscall(SYS_getppid) > 0;
}
static void fork_one(struct worker* w) {
    const pid_t child = fork();
    if (child == 0) _exit(error_of(ioctl(device, UMS_IOC_WORKER_YIELD, 0)) == EPERM ? 7 : 8);
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    w->result = WEXITSTATUS(status);
}

// ---- execute, yield, dequeue -------------------------------------------------------------------

static void one_blocks_the_other_runs(void) {
    open_session();
    struct worker a, b;
    begin(&a, UMS_HOLD, read_a_byte);
    begin(&b, UMS_HOLD, count);
    check(a.count == 0 && b.count == 0, "a worker does not run before it is executed");
    struct ums_execute e = execute(a.id);
    check(e.reason == UMS_EVENT_BLOCKED && e.call == SYS_read && e.context == (uintptr_t)&a,
          "its scheduler is told of a block, with the call");
    check(info_of(a.id).state == UMS_BLOCKED, "its state says so");
    check(execute(a.id).reason == 1000 + EBUSY, "a blocked worker cannot be executed");
    struct ums_item items[4];
    check(dequeue(items, 4, 0) == -EAGAIN, "it is not on the list");
    check(dequeue(items, 4, 20000000) == -ETIME, "nor 20 ms later");
    check(ends(&b) && b.count == 1, "the other worker runs, and its end is queued");
    struct pollfd p = {.fd = list, .events = POLLIN};
    check(poll(&p, 1, 0) == 0, "poll() of an empty list");
    must(write(a.pipe[1], "x", 1) == 1, "write");
    check(poll(&p, 1, -1) == 1 && p.revents == POLLIN, "poll() wakes when its call is over");
    check(info_of(a.id).state == UMS_QUEUED && a.count == 0, "it is held on its way back");
    check(comes(&a, 0) && info_of(a.id).state == UMS_OWNED, "the list has it");
    check(ends(&a) && a.count == 1 && a.result == 1, "executed, it goes on with its byte");
    finish(&a);
    finish(&b);
    check(execute(a.id).reason == 1000 + ESRCH, "one that has ended cannot be executed");
    begin(&a, UMS_HOLD, calls);
    check(execute(a.id).reason == UMS_EVENT_ENDED && a.count == 10000,
          "calls that do not wait are no event");
    check(comes(&a, 1), "its end is queued");
    finish(&a);
    close_session();
}

static void text_of(const char* path, char* to, size_t size) {
    const int file = open(path, O_RDONLY);
    const long n = file < 0 ? 0 : read(file, to, size - 1);
    to[n < 0 ? 0 : n] = 0;
    if (file >= 0) close(file);
}

static void yields_and_information(void) {
    open_session();
    struct worker a;
    begin(&a, 0, yield_often);
    int good = 1;
    for (int i = 0; i < 1000; ++i) {
        const struct ums_execute e = execute(a.id);
        good &= e.reason == UMS_EVENT_YIELDED && e.param == 42 && a.count == i + 1;
    }
    check(good, "a thousand yields are told of one by one");
    const struct ums_info worker = info_of(a.id), scheduler = info_of((uint32_t)gettid());
    check(worker.role == UMS_WORKER && worker.switches == 1000 && worker.yields == 1000 &&
              worker.running_ns > 0 && worker.other == (uint32_t)gettid() &&
              worker.context == (uintptr_t)&a,
          "a worker's information");
    check(scheduler.role == UMS_SCHEDULER && scheduler.switches == 1000 && scheduler.other == 0 &&
              scheduler.mean_switch_ns > 0 && scheduler.last_switch_ns > 0,
          "a scheduler's, with the mean time of a switch");
    printf("# mean switch %llu ns\n", (unsigned long long)scheduler.mean_switch_ns);
    char path[80], text[400], expected[80];
    snprintf(path, sizeof path, "/proc/ums/%d/schedulers/%d/info", getpid(), gettid());
    text_of(path, text, sizeof text);
    snprintf(expected, sizeof expected, "mean switch ns: %llu\n",
             (unsigned long long)scheduler.mean_switch_ns);
    check(strstr(text, "switches: 1000\n") && strstr(text, expected),
          "/proc has the same of the scheduler");
    snprintf(path, sizeof path, "/proc/ums/%d/schedulers/%d/workers", getpid(), gettid());
    text_of(path, text, sizeof text);
    snprintf(expected, sizeof expected, "%u owned switches 1000 yields 1000 ", a.id);
    check(strstr(text, expected) != NULL, "and of the worker");
    a.stop = 1;
    check(ends(&a), "it ends");
    finish(&a);
    close_session();
}

static _Atomic int signals;
static void on_signal(int n) {
    (void)n;
    signals++;
}

static void read_and_yield(struct worker* w) {
    read_a_byte(w);
    w->result = error_of(ioctl(device, UMS_IOC_WORKER_YIELD, 0));
    w->count++;
}

static void without_hold(void) {
    open_session();
    struct worker a;
    signals = 0;
    memset(&a, 0, sizeof a);
    a.signal = SIGRTMAX;
    a.work = read_and_yield;
    must(pipe(a.pipe) == 0, "pipe");
    start(&a.thread, body, &a);
    must(comes(&a, 0), "queued");
    check(execute(a.id).reason == UMS_EVENT_BLOCKED, "a worker without UMS_HOLD blocks");
    must(write(a.pipe[1], "x", 1) == 1, "write");
    check(comes(&a, 0), "it queues itself by its next yield");
    check(signals == 1 && a.count == 1, "it was not held, but got its signal");
    check(ends(&a) && a.count == 2 && a.result == 0, "and is executed as any other");
    finish(&a);
    close_session();
}

// ---- signals -----------------------------------------------------------------------------------

static void enter_again(struct worker* w) { w->count = 1; }
static void* cancelled(void* argument) {
    struct worker* w = argument;
    w->id = (uint32_t)gettid();
    w->error = enter(w);
    w->result = error_of(ioctl(device, UMS_IOC_WORKER_LEAVE));
    return NULL;
}
static void* again(void* argument) {
    struct worker* w = argument;
    w->id = (uint32_t)gettid();
    while ((w->error = enter(w)) == EINTR) w->count++;
    return NULL;
}
static void signal_worker(struct worker* w, int number) {
    must(syscall(SYS_tgkill, getpid(), w->id, number) == 0, "tgkill");
}

static void a_signal_ends_a_wait(void) {
    open_session();
    struct worker a;
    memset(&a, 0, sizeof a);
    start(&a.thread, cancelled, &a);
    check(comes(&a, 0), "a worker waits");
    signal_worker(&a, SIGUSR1);
    check(comes(&a, 1), "a signal lets it leave");
    pthread_join(a.thread, NULL);
    check(a.error == EINTR && a.result == 0, "its call has failed with EINTR");
    memset(&a, 0, sizeof a);
    start(&a.thread, again, &a);
    check(comes(&a, 0), "another waits");
    signals = 0;
    signal_worker(&a, SIGUSR1);
    check(execute(a.id).reason == UMS_EVENT_ENDED && comes(&a, 1),
          "after a signal it can be executed");
    pthread_join(a.thread, NULL);
    check(a.error == 0, "the call that is made again goes on waiting");
    begin(&a, 0, enter_again);
    signal_worker(&a, SIGUSR2);  // SA_RESTART
    check(ends(&a) && a.count == 1 && a.error == 0,
          "with SA_RESTART the program sees nothing of it");
    finish(&a);
    close_session();
}

// A process with a held worker, one that waits and one that is blocked is stopped and continued.
static int to_be_stopped(void) {
    open_session();
    struct worker a, b, c;
    begin(&a, UMS_HOLD, read_a_byte);
    begin(&b, 0, count);
    begin(&c, UMS_HOLD, read_a_byte);
    if (execute(a.id).reason != UMS_EVENT_BLOCKED || execute(c.id).reason != UMS_EVENT_BLOCKED)
        return 1;
    if (write(a.pipe[1], "x", 1) != 1 || !comes(&a, 0)) return 2;
    raise(SIGSTOP);
    // The stop has taken c out of its read(), and made it wait before it reads again.
    if (!comes(&c, 0) || c.count != 0 || execute(c.id).reason != UMS_EVENT_BLOCKED) return 8;
    if (a.count != 0 || info_of(a.id).state != UMS_OWNED) return 3;
    if (!ends(&a) || a.result != 1) return 4;
    if (!ends(&b) || b.count != 1) return 5;
    if (write(c.pipe[1], "x", 1) != 1 || !comes(&c, 0) || !ends(&c)) return 6;
    return c.result == 1 ? 0 : 7;
}

static void stop_and_continue(void) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) _exit(to_be_stopped());
    int status;
    must(waitpid(child, &status, WUNTRACED) == child, "waitpid");
    check(WIFSTOPPED(status), "a process with workers in every state stops");
    kill(child, SIGCONT);
    must(waitpid(child, &status, 0) == child, "waitpid");
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "continued, it goes on where it was");
}

// ---- ends --------------------------------------------------------------------------------------

static void the_list_goes(void) {
    open_session();
    struct worker a, b, c;
    begin(&a, UMS_HOLD, read_a_byte);
    must(execute(a.id).reason == UMS_EVENT_BLOCKED, "a blocks");
    must(write(a.pipe[1], "x", 1) == 1, "write");
    struct pollfd p = {.fd = list, .events = POLLIN};
    must(poll(&p, 1, -1) == 1, "a is held");
    const int first = list;
    list = ioctl(device, UMS_IOC_LIST_CREATE);
    begin(&c, 0, count);
    const int second = list;
    list = first;
    memset(&b, 0, sizeof b);
    b.work = count;
    must(pipe(b.pipe) == 0, "pipe");
    start(&b.thread, body, &b);
    do must(poll(&p, 1, -1) == 1, "poll");
    while (info_of(b.id).state != UMS_QUEUED);
    close(first);
    finish(&a);
    finish(&b);
    check(a.result == 1, "a list is closed: its held worker runs on");
    check(b.error == ECANCELED && b.count == 0, "one that waits gets ECANCELED");
    list = second;
    check(ends(&c) && c.count == 1, "those of other lists stay");
    finish(&c);
    close_session();
}

static int session_2, list_2;
static _Atomic int waiting_2;
static void* wait_for_items(void* result) {
    struct ums_item i;
    struct ums_dequeue d = {.items = (uintptr_t)&i, .room = 1, .timeout = -1};
    waiting_2 = 1;
    *(int*)result = error_of(ioctl(list_2, UMS_IOC_DEQUEUE, &d));
    return NULL;
}
static void* wait_to_run(void* result) {
    struct ums_worker asked = {.list = (uint32_t)list_2};
    *(int*)result = error_of(ioctl(session_2, UMS_IOC_WORKER_ENTER, &asked));
    return NULL;
}

static void the_session_goes(void) {
    session_2 = new_session();
    list_2 = ioctl(session_2, UMS_IOC_LIST_CREATE);
    must(list_2 >= 0, "list");
    pthread_t worker, taker;
    int of_worker = 0, of_taker = 0;
    start(&worker, wait_to_run, &of_worker);
    struct pollfd p = {.fd = list_2, .events = POLLIN};
    must(poll(&p, 1, -1) == 1, "queued");
    close(session_2);
    check(poll(&p, 1, 0) == 1 && p.revents & POLLHUP, "a session is closed: poll() says so");
    pthread_join(worker, NULL);
    check(of_worker == ECANCELED, "a worker that waits gets ECANCELED");
    start(&taker, wait_for_items, &of_taker);
    pthread_join(taker, NULL);
    check(of_taker == ECANCELED, "so does a dequeue");
    close(list_2);
}

static struct worker* orphan;
static void* short_scheduler(void* unused) {
    must(ioctl(device, UMS_IOC_SCHEDULER_ENTER) == 0, "scheduler");
    must(execute(orphan->id).reason == UMS_EVENT_BLOCKED, "blocks");
    return unused;
}

static void a_scheduler_goes(void) {
    open_session();
    struct worker a;
    begin(&a, UMS_HOLD, read_a_byte);
    orphan = &a;
    pthread_t other;
    start(&other, short_scheduler, NULL);
    pthread_join(other, NULL);
    must(write(a.pipe[1], "x", 1) == 1, "write");
    check(comes(&a, 0) && ends(&a), "a worker whose scheduler has ended is executed by another");
    finish(&a);
    begin(&a, UMS_HOLD, fork_one);
    check(ends(&a) && a.result == 7, "a worker may fork(): the child is none");
    finish(&a);
    close_session();
}

static int to_be_killed(void) {
    static struct worker w[5];
    open_session();
    begin(&w[0], UMS_HOLD, read_a_byte);
    begin(&w[1], UMS_HOLD, read_a_byte);
    begin(&w[2], 0, count);
    begin(&w[3], 0, yield_often);
    if (execute(w[0].id).reason != UMS_EVENT_BLOCKED ||
        execute(w[1].id).reason != UMS_EVENT_BLOCKED)
        return 1;
    if (write(w[0].pipe[1], "x", 1) != 1 || !comes(&w[0], 0)) return 2;
    if (execute(w[3].id).reason != UMS_EVENT_YIELDED) return 3;
    kill(getpid(), SIGKILL);
    for (;;) execute(w[3].id);
}
static int to_exec(void) {
    to_be_killed();
    return 9;
}
static void* exec_in_worker(void* unused) {
    struct worker w = {.id = (uint32_t)gettid()};
    if (enter(&w) == 0) execl("/proc/self/exe", "workers", "again", NULL);
    _exit(4);
    return unused;
}
static int worker_that_execs(void) {
    open_session();
    pthread_t thread;
    start(&thread, exec_in_worker, NULL);
    struct ums_item i;
    if (dequeue(&i, 1, -1) != 1) return 1;
    for (;;) {
        const unsigned reason = execute(i.worker).reason;
        if (reason != UMS_EVENT_BLOCKED || dequeue(&i, 1, -1) != 1) return 2;
    }
}

static void processes_end(void) {
    const int killed = in_child(to_exec);
    check(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL,
          "a process with workers in every state is killed");
    const int execed = in_child(worker_that_execs);
    check(WIFEXITED(execed) && WEXITSTATUS(execed) == 0,
          "a worker may exec(): the new program is none");
}

// ---- refusals ----------------------------------------------------------------------------------

static int enter_as(struct ums_worker asked) {
    return error_of(ioctl(device, UMS_IOC_WORKER_ENTER, &asked));
}

static void refusals(void) {
    open_session();
    struct ums_item items[1];
    check(enter_as((struct ums_worker){.list = (uint32_t)list}) == EEXIST,
          "a scheduler is no worker");
    must(ioctl(device, UMS_IOC_SCHEDULER_LEAVE) == 0, "leave");
    check(execute(1).reason == 1000 + EPERM, "only a scheduler executes");
    check(enter_as((struct ums_worker){.list = 999}) == EBADF, "no list");
    check(enter_as((struct ums_worker){.list = (uint32_t)device}) == EBADF,
          "another file is no list");
    check(enter_as((struct ums_worker){.list = (uint32_t)list, .flags = 2}) == EINVAL,
          "an unknown flag");
    check(enter_as((struct ums_worker){.list = (uint32_t)list, .pad = 1}) == EINVAL,
          "a field for later");
    check(enter_as((struct ums_worker){.list = (uint32_t)list, .signal = SIGKILL}) == EINVAL,
          "not SIGKILL");
    check(error_of(ioctl(device, UMS_IOC_WORKER_ENTER, 8)) == EFAULT, "no memory");
    check(error_of(ioctl(device, UMS_IOC_WORKER_YIELD, 0)) == ESRCH, "only a worker yields");
    check(error_of(ioctl(device, UMS_IOC_WORKER_LEAVE)) == ESRCH, "only a worker leaves");
    check(error_of(ioctl(device, UMS_IOC_SCHEDULER_LEAVE)) == ESRCH, "only a scheduler leaves");
    check(dequeue(items, 0, 0) == -EINVAL, "no room");
    check(error_of(ioctl(list, UMS_IOC_EXECUTE, items)) == ENOTTY, "a list only dequeues");
    check(error_of(ioctl(device, UMS_IOC_DEQUEUE, items)) == ENOTTY, "and nothing else does");
    check(info_of(1).role == 0, "no information of strangers");
    const int other = new_session();
    struct ums_worker asked = {.list = (uint32_t)list};
    check(error_of(ioctl(other, UMS_IOC_WORKER_ENTER, &asked)) == EBADF,
          "a list is of one session");
    close(other);
    must(ioctl(device, UMS_IOC_SCHEDULER_ENTER) == 0, "enter");
    check(error_of(ioctl(device, UMS_IOC_SCHEDULER_ENTER)) == EEXIST, "a scheduler is one once");
    close_session();
}

int main(int argc, char** argv) {
    (void)argv;
    if (argc == 2) {  // After exec_in_worker().
        nap(100);
        device = new_session();
        return ioctl(device, UMS_IOC_SCHEDULER_ENTER) != 0;
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGRTMAX, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR2, &action, NULL);
    one_blocks_the_other_runs();
    yields_and_information();
    without_hold();
    a_signal_ends_a_wait();
    stop_and_continue();
    the_list_goes();
    the_session_goes();
    a_scheduler_goes();
    processes_end();
    refusals();
    return 0;
}
