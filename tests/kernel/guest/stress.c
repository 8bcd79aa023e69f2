// SPDX-License-Identifier: MIT
// A hundred processes with workers that do everything, and that end in every way: by themselves, by
// a signal, by exec(), by exit() and by close() of the device. Nothing may be left of them.

#include "guest.h"

#include <dirent.h>

enum { rounds = 100, workers = 30, steps = 30 };
static int device, list, odd;
static _Atomic int done;
static _Atomic long blocks, yields;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void compute(int n) {
    for (volatile int i = 0; i < n; ++i) {
    }
}

static void step(unsigned* seed, int i) {
    switch (rand_r(seed) % 9) {
        case 0:
            nap((unsigned)rand_r(seed) % 300);
            break;
        case 1:
        case 2:
            ioctl(device, UMS_IOC_WORKER_YIELD, i);
            break;
        case 3: {
            char* memory =
                mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory == MAP_FAILED) break;
            memory[0] = memory[5000] = 1;
            munmap(memory, 65536);
            break;
        }
        case 4:
            sched_yield();
            break;
        case 5:
            compute(20000);
            break;
        case 6:
            pthread_mutex_lock(&lock);
            nap(20);
            pthread_mutex_unlock(&lock);
            break;
        case 7: {
            int q[2];
            char c = 1;
            if (pipe(q) != 0) break;
            if (write(q[1], &c, 1) == 1 && read(q[0], &c, 1) == 1) c = 0;
            close(q[0]);
            close(q[1]);
            break;
        }
        case 8:
            if (odd && rand_r(seed) % 20 == 0) {
                const pid_t child = fork();
                if (child == 0) _exit(0);
                if (child > 0) waitpid(child, NULL, 0);
            }
    }
}

static void* worker(void* argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    const struct ums_worker asked = {.list = (uint32_t)list, .flags = seed % 2 ? UMS_HOLD : 0};
    if (ioctl(device, UMS_IOC_WORKER_ENTER, &asked) != 0) return NULL;
    for (int i = 0; i < steps; ++i) step(&seed, i);
    done++;
    if (seed % 3) ioctl(device, UMS_IOC_WORKER_LEAVE);  // The others end without it.
    return NULL;
}

static void* scheduler(void* unused) {
    if (ioctl(device, UMS_IOC_SCHEDULER_ENTER) != 0) return unused;
    for (;;) {
        struct ums_item item;
        struct ums_dequeue d = {.items = (uintptr_t)&item, .room = 1, .timeout = -1};
        if (ioctl(list, UMS_IOC_DEQUEUE, &d) != 1) return unused;
        if (item.ended) continue;
        struct ums_execute e = {.worker = item.worker};
        while (ioctl(device, UMS_IOC_EXECUTE, &e) == 0 && e.reason == UMS_EVENT_YIELDED) yields++;
        blocks += e.reason == UMS_EVENT_BLOCKED;
    }
}

enum way { to_the_end, killed, execed, exited, closed, ways };

// Never returns. Workers that block share a mutex with held ones, so only some rounds can be sure
// to come to an end: those whose workers are executed by as many as it takes.
static void live(int round, int result) {
    odd = round & 1;
    device = open("/dev/ums", O_RDWR | (round % 3 ? O_CLOEXEC : 0));
    must(device >= 0 && attach(device, UMS_VERSION) == 0, "session");
    list = ioctl(device, UMS_IOC_LIST_CREATE);
    must(list >= 0, "list");
    pthread_t t;
    for (int i = 0; i < workers; ++i) start(&t, worker, (void*)(uintptr_t)(round * 1000 + i + 1));
    for (int i = 0; i < 1 + round % 4; ++i) start(&t, scheduler, NULL);
    unsigned seed = (unsigned)round;
    if (round % ways == execed) {
        nap(1000 + (unsigned)rand_r(&seed) % 20000);
        execl("/proc/self/exe", "stress", "again", NULL);
    }
    if (round % ways == exited) {
        nap(1000 + (unsigned)rand_r(&seed) % 20000);
        _exit(7);
    }
    if (round % ways == closed) {
        nap(1000 + (unsigned)rand_r(&seed) % 20000);
        close(device);
        nap(2000);
        _exit(8);
    }
    while (done < workers) nap(1000);
    const long told[2] = {blocks, yields};
    must(write(result, told, sizeof told) == sizeof told, "write of the result");
    _exit(0);
}

static int is_empty(const char* path) {
    DIR* directory = opendir(path);
    int n = 0;
    must(directory != NULL, path);
    while (readdir(directory)) ++n;
    closedir(directory);
    return n == 2;
}

int main(int argc, char** argv) {
    (void)argv;
    if (argc == 2) return 6;
    long all_blocks = 0, all_yields = 0;
    int as_expected = 0;
    for (int round = 0; round < rounds; ++round) {
        int result[2];
        must(pipe(result) == 0, "pipe");
        fflush(stdout);
        const pid_t child = fork();
        must(child >= 0, "fork");
        if (child == 0) live(round, result[1]);
        close(result[1]);
        if (round % ways == killed) {
            nap(3000 + (unsigned)round * 977 % 20000);
            kill(child, SIGSTOP);
            nap(1000);
            kill(child, SIGCONT);
            nap(1000);
            kill(child, SIGKILL);
        }
        int status;
        must(waitpid(child, &status, 0) == child, "waitpid");
        long told[2] = {0};
        if (read(result[0], told, sizeof told) == sizeof told)
            all_blocks += told[0], all_yields += told[1];
        close(result[0]);
        static const int codes[ways] = {0, -1, 6, 7, 8};
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        as_expected += code == codes[round % ways] || (round % ways == killed && code == 0);
    }
    printf("# %ld blocks, %ld yields\n", all_blocks, all_yields);
    check(as_expected == rounds, "a hundred processes end as they should");
    check(all_blocks > 0 && all_yields > 0, "their workers were executed");
    check(is_empty("/proc/ums"), "nothing is left in /proc/ums");
    return 0;
}
