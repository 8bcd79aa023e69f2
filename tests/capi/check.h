/* SPDX-License-Identifier: MIT */
#ifndef UMS_TESTS_CAPI_CHECK_H
#define UMS_TESTS_CAPI_CHECK_H

/* check.h: what the tests in C are made of.
 *
 *   static void a_sentence_that_is_true(void) { CHECK(1 + 1 == 2); CHECK_IS(-EINVAL, ums_...()); }
 *   int main(void) { RUN(a_sentence_that_is_true); return check_end(); }
 *
 * A failed check says where, and the program goes on. After each test as many kernel threads and
 * file descriptors are left as before.
 */

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ums/ums.h>

static atomic_int check_failures;

static inline void check_true(bool is, const char* what, const char* file, int line) {
    if (is) return;
    atomic_fetch_add(&check_failures, 1);
    fprintf(stderr, "%s:%d: is false: %s\n", file, line, what);
}

static inline void check_is(long long expected, long long got, const char* what, const char* file,
                            int line) {
    if (expected == got) return;
    atomic_fetch_add(&check_failures, 1);
    fprintf(stderr, "%s:%d: %s is %lld, should be %lld\n", file, line, what, got, expected);
}

#define CHECK(what) check_true((what), #what, __FILE__, __LINE__)
#define CHECK_IS(expected, what) \
    check_is((long long)(expected), (long long)(what), #what, __FILE__, __LINE__)

/* Ending threads are not counted: the kernel may list them after they were joined. Nor is a thread
 * of the lowest class that was told to end and waits for a CPU to do so (SCHED_IDLE is 5, with or
 * without SCHED_RESET_ON_FORK). */
static inline int check_threads(void) {
    int count = 0;
    DIR* folder = opendir("/proc/self/task");
    if (folder == NULL) abort();
    for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) {
        char path[300], line[512];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        FILE* file = fopen(path, "r");
        if (file == NULL) continue;
        char state = 'X';
        unsigned flags = 0;
        if (fgets(line, sizeof line, file) != NULL && strrchr(line, ')') != NULL)
            sscanf(strrchr(line, ')') + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags);
        fclose(file);
        const unsigned exiting = 4;
        if (state == 'R' && (sched_getscheduler(atoi(entry->d_name)) & ~0x40000000) == 5) continue;
        count += (flags & exiting) == 0 && state != 'Z' && state != 'X';
    }
    closedir(folder);
    return count;
}

static inline int check_fds(void) {
    int count = 0;
    DIR* folder = opendir("/proc/self/fd");
    if (folder == NULL) abort();
    while (readdir(folder) != NULL) ++count;
    closedir(folder);
    return count;
}

static inline void check_nothing(void* argument) { (void)argument; }

static inline void check_run(void (*test)(void), const char* name) {
    static bool is_warm;
    if (!is_warm && ums_run(NULL, check_nothing, NULL) != 0) abort();
    is_warm = true;
    const int threads = check_threads(), fds = check_fds(), failures = check_failures;
    test();
    CHECK_IS(threads, check_threads());
    CHECK_IS(fds, check_fds());
    printf("%s %s\n", check_failures == failures ? "ok  " : "FAIL", name);
    fflush(stdout);
}

#define RUN(test) check_run(test, #test)

static inline int check_end(void) { return check_failures == 0 ? 0 : 1; }

/* Runs a body on the first fiber of a runtime with `processors`. */
static inline void on_fibers(unsigned processors, void (*body)(void*), void* argument) {
    ums_options_t options = UMS_OPTIONS_INIT;
    options.processors = processors;
    CHECK_IS(0, ums_run(&options, body, argument));
}

/* Runs the same body on a fiber and, while a runtime runs, on a plain thread. */
static inline void on_a_fiber_and_on_a_thread(void (*body)(void*), void* argument) {
    on_fibers(2, body, argument);
    ums_options_t options = UMS_OPTIONS_INIT;
    options.processors = 2;
    CHECK_IS(0, ums_runtime_start(&options));
    body(argument);
    CHECK_IS(0, ums_runtime_stop());
}

static inline ums_fiber_t start(void (*function)(void*), void* argument) {
    ums_fiber_t fiber;
    CHECK_IS(0, ums_fiber_create(&fiber, NULL, function, argument));
    return fiber;
}

static inline void join(ums_fiber_t* fiber) { CHECK_IS(0, ums_fiber_join(fiber)); }

enum { MS = 1000 * 1000 };

#endif
