// SPDX-License-Identifier: MIT
// Calls of all kinds, in a random order and with random arguments, by four threads of a process
// that has several sessions. Another thread sends signals, so that no call waits for ever. The seed
// and the number of calls may be given.

#include "guest.h"

enum { threads = 4, descriptors = 8 };
static int table[descriptors];
static long calls;
static unsigned first_seed;
static _Atomic int running;
static _Atomic int ids[threads];
static char* memory;  // Two pages, of which the second cannot be used.

static void on_signal(int n) { (void)n; }

static unsigned any(unsigned* seed, unsigned below) { return (unsigned)rand_r(seed) % below; }

static void* pointer(unsigned* seed) {
    switch (any(seed, 8)) {
        case 0:
            return NULL;
        case 1:
            return memory + 4096 - any(seed, 64);
        case 2:
            return (void*)(uintptr_t)0xffff888000000000;
        default:
            return memory + 8 * any(seed, 400);
    }
}

static unsigned thread_id(unsigned* seed) {
    return any(seed, 4) ? (unsigned)ids[any(seed, threads)] : any(seed, 1000);
}

static void call(int device, int other, unsigned* seed) {
    static const unsigned long random_commands[] = {UMS_IOC_ATTACH,       UMS_IOC_WATCH,
                                                    UMS_IOC_WORKER_ENTER, UMS_IOC_EXECUTE,
                                                    UMS_IOC_INFO,         UMS_IOC_DEQUEUE};
    // Only such as the process survives, and such as there are not.
    static const long signals[8] = {0, SIGUSR1, SIGUSR1, 64, 65, -1, SIGKILL, SIGSTOP};
    struct ums_notice notices[3];
    struct ums_item items[4];
    struct pollfd p = {.fd = device, .events = POLLIN};
    switch (any(seed, 22)) {
        case 0:
            ioctl(device, random_commands[any(seed, 6)], pointer(seed));
            break;
        case 1:
            ioctl(device, _IO(UMS_IOC, any(seed, 20)), pointer(seed));
            break;
        case 2:
        case 3:
            attach(device, UMS_VERSION);
            break;
        case 4:
            ioctl(device, UMS_IOC_WATCH, signals[any(seed, 8)]);
            break;
        case 5:
            ioctl(device, UMS_IOC_UNWATCH);
            break;
        case 6: {
            const int list = ioctl(device, UMS_IOC_LIST_CREATE);
            if (list < 0) break;
            dup2(list, other);
            close(list);
            break;
        }
        case 7:
        case 8: {
            const struct ums_worker asked = {.list = (unsigned)other,
                                             .flags = any(seed, 2),
                                             .signal = any(seed, 2) ? SIGUSR1 : 0};
            ioctl(device, UMS_IOC_WORKER_ENTER, &asked);
            break;
        }
        case 9:
        case 10:
            ioctl(device, UMS_IOC_WORKER_YIELD, any(seed, 9));
            break;
        case 11:
            ioctl(device, UMS_IOC_WORKER_LEAVE);
            break;
        case 12:
            ioctl(device, UMS_IOC_SCHEDULER_ENTER);
            break;
        case 13:
            ioctl(device, UMS_IOC_SCHEDULER_LEAVE);
            break;
        case 14:
        case 15: {
            struct ums_execute e = {.worker = thread_id(seed)};
            ioctl(device, UMS_IOC_EXECUTE, &e);
            break;
        }
        case 16:
        case 17: {
            struct ums_dequeue d = {
                .items = any(seed, 9) ? (uintptr_t)items : (uintptr_t)pointer(seed),
                .room = any(seed, 5),
                .timeout = (int)any(seed, 3) - 1};
            ioctl(device, UMS_IOC_DEQUEUE, &d);
            break;
        }
        case 18: {
            struct ums_info i = {.thread = thread_id(seed)};
            ioctl(device, UMS_IOC_INFO, &i);
            break;
        }
        case 19: {
            void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, device,
                              (off_t)thread_id(seed) * 4096);
            if (page == MAP_FAILED) break;
            memset(page, (int)any(seed, 3), 4096);
            if (any(seed, 4)) munmap(page, 4096);
            break;
        }
        case 20:
            if (poll(&p, 1, 0) == 1)
                (void)!read(device, any(seed, 9) ? notices : pointer(seed),
                            any(seed, sizeof notices));
            break;
        case 21:
            nap(any(seed, 50));
            break;
    }
}

static void renew(int at, unsigned* seed) {
    const int fresh = open(any(seed, 16) ? "/dev/ums" : "/dev/null",
                           O_RDWR | O_CLOEXEC | (any(seed, 2) ? O_NONBLOCK : 0));
    if (fresh < 0) return;
    attach(fresh, UMS_VERSION);
    dup2(fresh, table[at]);
    close(fresh);
}

static void* caller(void* argument) {
    const int me = (int)(uintptr_t)argument;
    unsigned seed = first_seed * threads + (unsigned)me;
    ids[me] = gettid();
    for (long i = 0; i < calls; ++i) {
        if (any(&seed, 60) == 0) renew((int)any(&seed, descriptors / 2), &seed);
        if (any(&seed, 500) == 0) {
            const pid_t child = fork();
            if (child == 0) {
                for (int k = 0; k < 20; ++k)
                    call(table[any(&seed, descriptors)], table[any(&seed, descriptors)], &seed);
                _exit(0);
            }
            while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
            }
        }
        call(table[any(&seed, descriptors / 2)],
             table[descriptors / 2 + any(&seed, descriptors / 2)], &seed);
        call(table[any(&seed, descriptors)], table[any(&seed, descriptors)], &seed);
    }
    ids[me] = 0;
    running--;
    return NULL;
}

static int process(void) {
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    for (int n = 1; n < 65; ++n)
        if (n != SIGUSR1 && n != SIGSEGV && n != SIGBUS && n != SIGCHLD) signal(n, SIG_IGN);
    memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED && mprotect(memory + 4096, 4096, PROT_NONE) == 0, "memory");
    for (int i = 0; i < descriptors; ++i)
        table[i] = i < descriptors / 2 ? new_session() : open("/dev/null", O_RDWR);
    running = threads;
    pthread_t t[threads];
    for (int i = 0; i < threads; ++i) start(&t[i], caller, (void*)(uintptr_t)i);
    while (running > 0) {
        nap(300);
        for (int i = 0; i < threads; ++i)
            if (ids[i]) syscall(SYS_tgkill, getpid(), ids[i], SIGUSR1);
    }
    return 0;
}

int main(int argc, char** argv) {
    calls = argc > 2 ? atol(argv[2]) : 1500;
    for (unsigned round = 0; round < 4; ++round) {
        first_seed = (argc > 1 ? (unsigned)atoi(argv[1]) : 1) + round;
        const int status = in_child(process);
        if (status) printf("# seed %u: status %x\n", first_seed, (unsigned)status);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a process makes random calls");
    }
    return 0;
}
