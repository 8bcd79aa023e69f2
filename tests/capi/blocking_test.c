// SPDX-License-Identifier: MIT
// variants: migrate p1
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ends[2];

static void read_one(void* argument) {
    char c = 0;
    ums_blocking_enter();
    ums_blocking_enter();
    const ssize_t n = read(ends[0], &c, 1);
    ums_blocking_leave();
    ums_blocking_leave();
    CHECK_IS(1, (int)n);
    *(char*)argument = c;
}

static void other_fibers_run_meanwhile(void* argument) {
    (void)argument;
    char got = 0;
    ums_fiber_t reader;
    CHECK_IS(0, ums_fiber_create(&reader, NULL, read_one, &got));
    ums_this_fiber_yield();
    CHECK_IS(1, (int)write(ends[1], "c", 1));
    CHECK_IS(0, ums_fiber_join(&reader));
    CHECK(got == 'c');
    ums_uninterruptible_enter();
    ums_uninterruptible_leave();
    errno = EBADF;
    ums_blocking_enter();
    ums_blocking_leave();
    CHECK_IS(EBADF, errno);
    ums_stats_t stats = UMS_STATS_INIT;
    CHECK_IS(0, ums_stats_get(&stats));
    CHECK(stats.carriers >= 1 && stats.carriers_peak >= stats.carriers);
    CHECK(stats.hand_offs >= 1);
}

static void each_detector(void) {
    CHECK_IS(0, pipe(ends));
    for (int block = UMS_BLOCK_AUTOMATIC; block <= UMS_BLOCK_OFF; ++block) {
        if (block == UMS_BLOCK_PERF) continue; /* This one is refused: see below. */
        ums_options_t options = UMS_OPTIONS_INIT;
        options.processors = 1;
        options.block = block;
        options.carriers = 8;
        options.time_slice_us = block == UMS_BLOCK_OFF ? 0 : 5000;
        CHECK_IS(0, ums_run(&options, other_fibers_run_meanwhile, NULL));
    }
    close(ends[0]);
    close(ends[1]);
}

static void bad_options_are_refused(void) {
    ums_options_t options = UMS_OPTIONS_INIT;
    options.block = -1;
    CHECK_IS(-EINVAL, ums_run(&options, other_fibers_run_meanwhile, NULL));
    options.block = UMS_BLOCK_OFF + 1;
    CHECK_IS(-EINVAL, ums_run(&options, other_fibers_run_meanwhile, NULL));
    options.block = UMS_BLOCK_PERF;
    CHECK_IS(-EOPNOTSUPP, ums_run(&options, other_fibers_run_meanwhile, NULL));
    options = (ums_options_t)UMS_OPTIONS_INIT;
    options.carriers = 1;
    CHECK_IS(-EINVAL, ums_run(&options, other_fibers_run_meanwhile, NULL));
    options = (ums_options_t)UMS_OPTIONS_INIT;
    options.time_slice_us = 99;
    CHECK_IS(-EINVAL, ums_run(&options, other_fibers_run_meanwhile, NULL));
    options = (ums_options_t)UMS_OPTIONS_INIT;
    options.time_slice_us = 100;
    options.block = UMS_BLOCK_OFF;
    CHECK_IS(-EOPNOTSUPP, ums_run(&options, other_fibers_run_meanwhile, NULL));
    options = (ums_options_t)UMS_OPTIONS_INIT;
    options.signal = 9;
    CHECK_IS(-EINVAL, ums_run(&options, other_fibers_run_meanwhile, NULL));
}

static void a_plain_thread_is_let_alone(void) {
    ums_blocking_enter();
    ums_blocking_leave();
    CHECK_IS(0, ums_keep_carrier_enter());
    ums_keep_carrier_leave();
}

/* POSIX has neither this nor the like: compilers take pthread_self() for a constant. */
extern long syscall(long number, ...);
static long this_thread(void) { return syscall(SYS_gettid); }

static _Atomic int rounds_left = 200;

static void keeps_its_thread(void* argument) {
    CHECK_IS(0, ums_keep_carrier_enter());
    CHECK_IS(0, ums_keep_carrier_enter()); /* They nest. */
    const long thread = this_thread();
    while (rounds_left-- > 0) {
        ums_this_fiber_yield();
        ums_this_fiber_sleep_ns(1000);
        CHECK_IS(thread, this_thread());
    }
    ums_cluster_t* other = NULL;
    const ums_cluster_options_t options = UMS_CLUSTER_OPTIONS_INIT;
    CHECK_IS(0, ums_cluster_create(&other, &options));
    CHECK_IS(-EBUSY, ums_this_fiber_migrate(other));
    CHECK_IS(0, ums_cluster_destroy(other));
    ums_keep_carrier_leave();
    if (*(int*)argument % 2 == 0) ums_keep_carrier_leave(); /* The others end inside. */
}

static void is_refused(void* argument) {
    (void)argument;
    CHECK_IS(-EAGAIN, ums_keep_carrier_enter());
}

static void past_the_bound(void* argument) {
    CHECK_IS(0, ums_keep_carrier_enter());
    ums_fiber_t fiber;
    if (argument == NULL) {
        CHECK_IS(0, ums_fiber_create(&fiber, NULL, past_the_bound, &fiber));
        CHECK_IS(0, ums_fiber_join(&fiber)); /* It ended inside: its thread is free again. */
        CHECK_IS(0, ums_fiber_create(&fiber, NULL, past_the_bound, &fiber));
        CHECK_IS(0, ums_fiber_join(&fiber));
    } else {
        CHECK_IS(0, ums_fiber_create(&fiber, NULL, is_refused, NULL));
        CHECK_IS(0, ums_fiber_join(&fiber));
    }
}

static void keepers(void* argument) {
    (void)argument;
    int numbers[8];
    ums_fiber_t fibers[8];
    for (int i = 0; i < 8; ++i) {
        numbers[i] = i + 1;
        CHECK_IS(0, ums_fiber_create(&fibers[i], NULL, keeps_its_thread, &numbers[i]));
    }
    for (int i = 0; i < 8; ++i) CHECK_IS(0, ums_fiber_join(&fibers[i]));
}

static void a_fiber_keeps_its_kernel_thread(void) { CHECK_IS(0, ums_run(NULL, keepers, NULL)); }

static void a_scope_past_the_bound_is_refused(void) {
    ums_options_t options = UMS_OPTIONS_INIT;
    options.processors = 1;
    options.carriers = 3;
    options.block = UMS_BLOCK_OFF; /* A fiber found blocked would take the place of a scope. */
    if (getenv("UMS_PROCESSORS") == NULL || atoi(getenv("UMS_PROCESSORS")) == 1)
        CHECK_IS(0, ums_run(&options, past_the_bound, NULL));
}

int main(void) {
    RUN(each_detector);
    RUN(bad_options_are_refused);
    RUN(a_plain_thread_is_let_alone);
    RUN(a_fiber_keeps_its_kernel_thread);
    RUN(a_scope_past_the_bound_is_refused);
    return check_end();
}
