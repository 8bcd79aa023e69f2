// SPDX-License-Identifier: MIT
// variants: migrate p1
#include "check.h"

#include <errno.h>
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
}

int main(void) {
    RUN(each_detector);
    RUN(bad_options_are_refused);
    RUN(a_plain_thread_is_let_alone);
    return check_end();
}
