// SPDX-License-Identifier: MIT
// Watched threads, and the life of a session.

#include "guest.h"

#include <linux/userfaultfd.h>

static int device;

// ---- a thread that is watched ------------------------------------------------------------------

struct watched {
    pthread_t thread;
    int signal, error;
    void (*work)(struct watched*);
    int gate[2];  // It begins to work at a byte.
    int pipe[2];
    char* memory;
    int result;
    _Atomic uint32_t id;
    pthread_barrier_t ready;
    volatile struct ums_page* page;
};

static void* body(void* argument) {
    struct watched* w = argument;
    w->id = (uint32_t)gettid();
    w->error = error_of(ioctl(device, UMS_IOC_WATCH, w->signal));
    pthread_barrier_wait(&w->ready);
    // Not by read(): what is told of a read() is of the work.
    struct pollfd gate = {.fd = w->gate[0], .events = POLLIN};
    while (poll(&gate, 1, -1) < 0) {
    }
    if (w->work) w->work(w);
    return NULL;
}

static volatile struct ums_page* page_of(uint32_t id) {
    void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, device, (off_t)id * 4096);
    return page == MAP_FAILED ? NULL : page;
}

static void watch(struct watched* w, int signal, void (*work)(struct watched*)) {
    memset(w, 0, sizeof *w);
    w->signal = signal;
    w->work = work;
    must(pipe(w->gate) == 0 && pipe(w->pipe) == 0, "pipe");
    pthread_barrier_init(&w->ready, NULL, 2);
    start(&w->thread, body, w);
    pthread_barrier_wait(&w->ready);
    must(w->error == 0, "watch");
    w->page = page_of(w->id);
    must(w->page != NULL, "mmap of the page");
}

static void begin(struct watched* w) { must(write(w->gate[1], "x", 1) == 1, "write to the gate"); }

static void end(struct watched* w) {
    pthread_join(w->thread, NULL);
    munmap((void*)w->page, 4096);
    for (int i = 0; i < 2; ++i) close(w->gate[i]), close(w->pipe[i]);
    pthread_barrier_destroy(&w->ready);
}

static struct ums_notice next(void) {
    struct ums_notice n = {0};
    must(read(device, &n, sizeof n) == sizeof n, "read of a notice");
    return n;
}

// The next that is of its kind.
static struct ums_notice next_of(unsigned kind) {
    struct ums_notice n;
    do n = next();
    while (n.kind != kind);
    return n;
}

static int nothing_to_read(void) {
    struct pollfd p = {.fd = device, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

// ---- blocks ------------------------------------------------------------------------------------

static _Atomic int signals;
static _Atomic uint64_t handled;
static void on_signal(int n) {
    (void)n;
    handled = now();
    signals++;
}

static void read_a_byte(struct watched* w) {
    char c;
    w->result = (int)read(w->pipe[0], &c, 1);
}

static void a_block_is_told_of(void) {
    struct watched w;
    watch(&w, SIGRTMAX, read_a_byte);
    w.page->interest = 1;
    signals = 0;
    begin(&w);
    struct ums_notice n;
    do n = next();
    while (n.call == SYS_poll);
    check(n.kind == UMS_NOTICE_BLOCKED && n.thread == w.id && n.call == SYS_read,
          "a block is told of, with the thread and the call");
    check(w.page->sequence % 2 == 1, "the page says so, too");
    check(w.page->call == SYS_read && w.page->since == n.when, "and since when, and in which call");
    check(nothing_to_read(), "nothing else is told");
    const int before = signals;
    must(write(w.pipe[1], "x", 1) == 1, "write");
    n = next_of(UMS_NOTICE_ENDED);
    check(n.thread == w.id, "the end of a watched thread is told of");
    check(w.page->sequence % 2 == 0, "the page of a thread that runs is even");
    end(&w);
    check(w.result == 1 && signals == before + 1,
          "its call is not cut short, and a signal follows it");
}

static void without_interest(void) {
    struct watched w;
    watch(&w, SIGRTMAX, read_a_byte);
    signals = 0;
    const uint64_t before = w.page->sequence;
    begin(&w);
    must(write(w.pipe[1], "x", 1) == 1, "write");
    const struct ums_notice n = next();
    check(n.kind == UMS_NOTICE_ENDED && n.thread == w.id, "without interest no block is told of");
    check(signals == 0, "and no signal is sent");
    check(w.page->sequence >= before && w.page->sequence % 2 == 0, "the page counts on");
    end(&w);
}

static _Atomic int naps, cut_short, late;
static void many_naps(struct watched* w) {
    for (int i = 0; i < 300; ++i) {
        const int seen = signals;
        const uint64_t sequence = w->page->sequence;
        struct timespec t = {0, 500000};
        if (nanosleep(&t, NULL) != 0) cut_short++;
        // A short sleep may be over before the thread has left its processor.
        if (w->page->sequence == sequence) continue;
        naps++;
        if (signals == seen) late++;
    }
}

static void signals_come_at_the_return(void) {
    struct watched w;
    watch(&w, SIGRTMAX, many_naps);
    w.page->interest = 1;
    begin(&w);
    int told = 0;
    for (struct ums_notice n; (n = next()).kind != UMS_NOTICE_ENDED;)
        if (n.kind == UMS_NOTICE_BLOCKED) ++told;
    end(&w);
    printf("# %d of 300 naps blocked, %d notices, %d EINTR, %d signals late\n", naps, told,
           cut_short, late);
    check(naps > 200 && told >= naps, "each nap is told of");
    check(cut_short == 0, "none fails with EINTR");
    check(late == 0, "each signal is handled before the thread's next instruction");
}

static void touch(struct watched* w) { w->result = *(volatile char*)w->memory; }

static void page_faults(void) {
    const int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    must(faults >= 0, "userfaultfd");
    struct uffdio_api api = {.api = UFFD_API};
    must(ioctl(faults, UFFDIO_API, &api) == 0, "UFFDIO_API");
    struct watched w;
    watch(&w, SIGRTMAX, touch);
    w.memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {(uintptr_t)w.memory, 4096},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    must(ioctl(faults, UFFDIO_REGISTER, &range) == 0, "UFFDIO_REGISTER");
    w.page->interest = 1;
    begin(&w);
    struct uffd_msg message;
    struct pollfd p = {.fd = faults, .events = POLLIN};
    must(poll(&p, 1, -1) == 1 && read(faults, &message, sizeof message) > 0, "a fault");
    struct ums_notice n;
    do n = next();
    while (n.kind == UMS_NOTICE_BLOCKED && n.call != -1);
    check(n.kind == UMS_NOTICE_BLOCKED && n.thread == w.id, "a page fault is told of, as no call");
    static char source[4096] __attribute__((aligned(4096))) = {7};
    struct uffdio_copy copy = {
        .dst = (uintptr_t)w.memory, .src = (uintptr_t)source, .len = sizeof source};
    must(ioctl(faults, UFFDIO_COPY, &copy) == 0, "UFFDIO_COPY");
    next_of(UMS_NOTICE_ENDED);
    end(&w);
    check(w.result == 7, "and goes on with its page");
    munmap(w.memory, 4096);
    close(faults);
}

static void nap_often(struct watched* w) {
    while (w->page->sequence < 2 * 400) nap(1);
}

static void a_full_ring(void) {
    struct watched w;
    watch(&w, 0, nap_often);
    w.page->interest = 1;
    begin(&w);
    pthread_join(w.thread, NULL);
    const struct ums_notice first = next();
    check(first.kind == UMS_NOTICE_LOST && first.call > 0, "notices without room are counted");
    uint64_t told = 0;
    struct ums_notice many[64];
    while (!nothing_to_read()) {
        const long size = read(device, many, sizeof many);
        must(size > 0 && (size_t)size % sizeof many[0] == 0, "read of many");
        for (size_t i = 0; i < (size_t)size / sizeof many[0]; ++i)
            told += many[i].kind == UMS_NOTICE_BLOCKED;
    }
    // Of the 256 + lost ones one is the end's, unless it had no room either.
    check(told == 256, "and the others are all there");
    munmap((void*)w.page, 4096);
}

// ---- refusals ----------------------------------------------------------------------------------

static void versions(void) {
    const int other = open("/dev/ums", O_RDWR | O_CLOEXEC);
    must(other >= 0, "open");
    check(error_of(ioctl(other, UMS_IOC_WATCH, 0)) == EPROTO,
          "nothing before the version is checked");
    struct ums_attach a = {.version = UMS_VERSION + 1};
    check(error_of(ioctl(other, UMS_IOC_ATTACH, &a)) == EPROTONOSUPPORT && a.version == UMS_VERSION,
          "another version is refused, and told which it should be");
    check(error_of(ioctl(other, UMS_IOC_WATCH, 0)) == EPROTO, "and leaves the session closed");
    a.version = UMS_VERSION, a.pad = 1;
    check(error_of(ioctl(other, UMS_IOC_ATTACH, &a)) == EINVAL, "a field for later has to be 0");
    check(error_of(ioctl(other, UMS_IOC_ATTACH, NULL)) == EFAULT, "no memory, no version");
    check(attach(other, UMS_VERSION) == 0, "the right version is taken");
    check(error_of(ioctl(other, _IO(UMS_IOC, 99), 0)) == ENOTTY, "an unknown call is refused");
    close(other);
}

static void refusals(void) {
    check(error_of(ioctl(device, UMS_IOC_UNWATCH)) == ESRCH, "unwatch without watch");
    check(error_of(ioctl(device, UMS_IOC_WATCH, 65)) == EINVAL, "no signal 65");
    check(error_of(ioctl(device, UMS_IOC_WATCH, -1)) == EINVAL, "no signal -1");
    check(error_of(ioctl(device, UMS_IOC_WATCH, SIGKILL)) == EINVAL, "not SIGKILL");
    check(error_of(ioctl(device, UMS_IOC_WATCH, SIGSTOP)) == EINVAL, "not SIGSTOP");
    check(error_of(ioctl(device, UMS_IOC_WATCH, 0)) == 0, "watch");
    check(error_of(ioctl(device, UMS_IOC_WATCH, 0)) == EEXIST, "a thread is watched once");
    const int other = new_session();
    check(error_of(ioctl(other, UMS_IOC_WATCH, 0)) == EEXIST, "by all sessions together");
    check(error_of(ioctl(other, UMS_IOC_UNWATCH)) == ESRCH, "the other session does not know it");
    const off_t mine = (off_t)gettid() * 4096;
    const int rw = PROT_READ | PROT_WRITE;
    check(mmap(NULL, 8192, rw, MAP_SHARED, device, mine) == MAP_FAILED, "no two pages");
    check(mmap(NULL, 4096, rw, MAP_PRIVATE, device, mine) == MAP_FAILED, "no private page");
    check(mmap(NULL, 4096, rw, MAP_SHARED, device, 4096) == MAP_FAILED,
          "no page of another thread");
    check(mmap(NULL, 4096, rw, MAP_SHARED, other, mine) == MAP_FAILED, "nor by another session");
    close(other);
    check(error_of(ioctl(device, UMS_IOC_UNWATCH)) == 0, "unwatch");
    check(mmap(NULL, 4096, rw, MAP_SHARED, device, mine) == MAP_FAILED, "its page is gone");
    char small[4];
    check(error_of(read(device, small, sizeof small)) == EINVAL, "no part of a notice");
    fcntl(device, F_SETFL, O_NONBLOCK);
    struct ums_notice n;
    check(error_of(read(device, &n, sizeof n)) == EAGAIN, "O_NONBLOCK");
    fcntl(device, F_SETFL, 0);
}

// A system call as a 32-bit program makes it.
static long call_32(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)result;
}

static void callers_of_32_bits(void) {
    char* low =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    must(low != MAP_FAILED, "mmap");
    strcpy(low, "/dev/ums");
    check(call_32(5, (long)low, O_RDWR, 0) == -EOPNOTSUPP,
          "a 32-bit program cannot open the device");
    check(call_32(54, device, UMS_IOC_WATCH, 0) == -ENOTTY, "nor make its calls");
    munmap(low, 4096);
}

static void write_parameter(const char* value) {
    const int file = open("/sys/module/ums/parameters/max_per_user", O_WRONLY);
    must(file >= 0 && write(file, value, strlen(value)) == (long)strlen(value),
         "write of the parameter");
    close(file);
}

static int another_user(void) {
    if (setgid(1000) != 0 || setuid(1000) != 0) return 1;
    return open("/dev/ums", O_RDWR) < 0;
}

static void limits(void) {
    write_parameter("1");
    check(error_of(open("/dev/ums", O_RDWR)) == EDQUOT, "a user's limit holds for sessions");
    check(error_of(ioctl(device, UMS_IOC_WATCH, 0)) == EDQUOT, "and for threads");
    must(chmod("/dev/ums", 0666) == 0, "chmod");
    check(in_child(another_user) == 0, "another user has his own");
    write_parameter("65536");
    check(error_of(ioctl(device, UMS_IOC_WATCH, 0)) == 0, "a refusal costs nothing");
    ioctl(device, UMS_IOC_UNWATCH);
}

static void the_module_stays(void) {
    check(error_of(syscall(SYS_delete_module, "ums", O_NONBLOCK)) == EWOULDBLOCK,
          "a module in use is not unloaded");
}

// ---- processes ---------------------------------------------------------------------------------

static volatile struct ums_page* inherited;
static int use_in_child(void) {
    struct ums_notice n;
    if (error_of(ioctl(device, UMS_IOC_WATCH, 0)) != EPERM) return 1;
    if (attach(device, UMS_VERSION) != EPERM) return 2;
    if (error_of(read(device, &n, sizeof n)) != EPERM) return 3;
    if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, device, (off_t)getppid() * 4096) != MAP_FAILED)
        return 4;
    close(device);
    return 0;
}
static int write_in_child(void) { return (int)(inherited->interest = 1); }

static void a_forked_process(void) {
    check(in_child(use_in_child) == 0, "a fork()ed process can do nothing with the session");
    check(error_of(ioctl(device, UMS_IOC_WATCH, SIGRTMAX)) == 0, "its close() does not end it");
    inherited = page_of((uint32_t)gettid());
    must(inherited != NULL, "page");
    const int status = in_child(write_in_child);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "and it does not have the pages");
    munmap((void*)inherited, 4096);
    ioctl(device, UMS_IOC_UNWATCH);
}

static int session_of_exec;
static int exec_in_child(void) {
    session_of_exec = open("/dev/ums", O_RDWR);  // Stays open.
    if (session_of_exec < 0 || attach(session_of_exec, UMS_VERSION) != 0) return 1;
    if (ioctl(session_of_exec, UMS_IOC_WATCH, SIGUSR1) != 0) return 2;
    char number[12];
    snprintf(number, sizeof number, "%d", session_of_exec);
    execl("/proc/self/exe", "watch", number, NULL);
    return 3;
}
// After it: a watched block would end this process by SIGUSR1.
static int after_exec(int session) {
    if (error_of(ioctl(session, UMS_IOC_WATCH, 0)) != EPERM) return 4;
    nap(1000);
    nap(1000);
    device = new_session();
    return ioctl(device, UMS_IOC_WATCH, 0) == 0 ? 0 : 5;
}

static void* read_for_ever(void* result) {
    struct ums_notice n;
    *(int*)result = error_of(read(*(int*)result, &n, sizeof n));
    return NULL;
}

// Reads the session that it is given, and is watched by another one.
static int other_session, result_of_read;
static void read_a_session(struct watched* w) {
    (void)w;
    result_of_read = other_session;
    read_for_ever(&result_of_read);
}

static void a_close_under_a_reader(void) {
    other_session = new_session();
    const int twice = dup(other_session);
    close(twice);
    check(error_of(ioctl(other_session, UMS_IOC_UNWATCH)) == ESRCH,
          "one of two descriptors is closed");
    struct watched w;
    watch(&w, 0, read_a_session);
    w.page->interest = 1;
    const uint64_t before = now();
    begin(&w);
    struct ums_notice n;
    do n = next();
    while (n.when < before || n.call != SYS_read || w.page->sequence % 2 == 0);
    close(other_session);
    next_of(UMS_NOTICE_ENDED);
    end(&w);
    check(result_of_read == ECANCELED, "the last one: a read() that waits fails with ECANCELED");
}

static void* end_watched(void* unused) {
    ioctl(device, UMS_IOC_WATCH, 0);
    return unused;
}

static void many_threads(void) {
    pthread_t threads[16];
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 16; ++i) start(&threads[i], end_watched, NULL);
        for (int i = 0; i < 16; ++i) pthread_join(threads[i], NULL);
    }
    int ended = 0;
    for (struct ums_notice n; ended < 320; ended += n.kind == UMS_NOTICE_ENDED ? 1 : (int)n.call)
        if ((n = next()).kind != UMS_NOTICE_ENDED && n.kind != UMS_NOTICE_LOST) break;
    check(ended == 320, "320 watched threads end without a word, and each end is told of");
}

int main(int argc, char** argv) {
    if (argc == 2) return after_exec(atoi(argv[1]));
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGRTMAX, &action, NULL);
    versions();
    device = new_session();
    a_block_is_told_of();
    without_interest();
    signals_come_at_the_return();
    page_faults();
    a_full_ring();
    refusals();
    callers_of_32_bits();
    limits();
    the_module_stays();
    a_forked_process();
    check(in_child(exec_in_child) == 0, "an exec() leaves nothing of the session");
    a_close_under_a_reader();
    many_threads();
    must(ioctl(device, UMS_IOC_WATCH, 0) == 0, "watch");
    close(device);
    device = new_session();
    check(error_of(ioctl(device, UMS_IOC_WATCH, 0)) == 0,
          "a thread of a session that has gone joins another");
    close(device);
    return 0;
}
