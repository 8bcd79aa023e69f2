// SPDX-License-Identifier: MIT
// variants: migrate p1
#include "check.h"

static void set_to_one(void* argument) { *(int*)argument = 1; }

static void run_calls_the_function_on_a_fiber_named_main(void* argument) {
    CHECK(ums_this_fiber_id() != 0);
    CHECK(strcmp(ums_this_fiber_name(), "main") == 0);
    CHECK_IS(-EPERM, ums_run(NULL, set_to_one, argument));
    CHECK_IS(-EPERM, ums_runtime_start(NULL));
    CHECK_IS(-EPERM, ums_runtime_stop());
    set_to_one(argument);
}

static void run_runs(void) {
    int done = 0;
    CHECK_IS(0, ums_run(NULL, run_calls_the_function_on_a_fiber_named_main, &done));
    CHECK_IS(1, done);
}

static void start_and_stop_go_round(void) {
    CHECK_IS(-EINVAL, ums_runtime_stop());
    for (int i = 0; i < 3; ++i) {
        int done = 0;
        CHECK_IS(0, ums_runtime_start(NULL));
        CHECK_IS(-EBUSY, ums_runtime_start(NULL));
        CHECK_IS(-EBUSY, ums_run(NULL, set_to_one, &done));
        ums_fiber_t fiber = start(set_to_one, &done);
        join(&fiber);
        CHECK_IS(1, done);
        CHECK_IS(0, ums_runtime_stop());
        CHECK_IS(-EINVAL, ums_runtime_stop());
    }
}

static void options_that_cannot_be_are_refused(void) {
    int done = 0;
    ums_options_t options = UMS_OPTIONS_INIT;
    options.processors = 1025;
    if (getenv("UMS_PROCESSORS") == NULL) CHECK_IS(-EINVAL, ums_run(&options, set_to_one, &done));
    options = (ums_options_t)UMS_OPTIONS_INIT;
    options.stack_bytes = 1;
    CHECK_IS(-EINVAL, ums_run(&options, set_to_one, &done));
    options = (ums_options_t)UMS_OPTIONS_INIT;
    options.policy = UMS_POLICY_FAIR_SHARE + 1;
    CHECK_IS(-EINVAL, ums_run(&options, set_to_one, &done));
    options.policy = -1;
    CHECK_IS(-EINVAL, ums_run(&options, set_to_one, &done));
    options = (ums_options_t)UMS_OPTIONS_INIT;
    options.guard = 7;
    CHECK_IS(-EINVAL, ums_run(&options, set_to_one, &done));
    options.guard = -1;
    CHECK_IS(-EINVAL, ums_run(&options, set_to_one, &done));
    options = (ums_options_t)UMS_OPTIONS_INIT;
    options.size = 3;
    CHECK_IS(-EINVAL, ums_run(&options, set_to_one, &done));
    CHECK_IS(-EINVAL, ums_runtime_start(&options));
    CHECK_IS(0, done);
}

/* Calls as a program would that was built with a later header. */
static void a_larger_struct_is_understood_if_its_rest_is_zero(void) {
    struct later {
        ums_options_t options;
        uint64_t more;
    } later = {UMS_OPTIONS_INIT, 0};
    int done = 0;
    later.options.size = sizeof later;
    CHECK_IS(0, ums_run(&later.options, set_to_one, &done));
    CHECK_IS(1, done);
    later.more = 1;
    CHECK_IS(-E2BIG, ums_run(&later.options, set_to_one, &done));
}

static void every_option_is_taken(void) {
    int done = 0;
    ums_options_t options = UMS_OPTIONS_INIT;
    options.processors = 2;
    options.stack_bytes = 128 * 1024;
    options.guard = UMS_GUARD_MPROTECT;
    options.policy = UMS_POLICY_FIFO;
    options.pin = true;
    options.spin_ns = 0;
    options.warm_stacks = 10;
    options.migrate = true;
    options.measure_stacks = true;
    options.membarrier = false;
    options.seed = 7;
    CHECK_IS(0, ums_run(&options, set_to_one, &done));
    CHECK_IS(1, done);
}

static void count_in_stats(void* argument) {
    ums_stats_t before = UMS_STATS_INIT, after = UMS_STATS_INIT;
    (void)argument;
    CHECK_IS(0, ums_stats_get(&before));
    int done = 0;
    ums_fiber_t fiber = start(set_to_one, &done);
    join(&fiber);
    ums_trim();
    CHECK_IS(0, ums_stats_get(&after));
    CHECK(after.spawned > before.spawned);
    CHECK(after.mapped_bytes > 0 && after.stacks_made > 0);
}

static void stats_count(void) {
    on_fibers(1, count_in_stats, NULL);
    ums_stats_t stats = UMS_STATS_INIT;
    stats.spawned = 5;
    CHECK_IS(0, ums_stats_get(&stats));
    CHECK_IS(0, stats.spawned);
    ums_trim();
    stats.size = 1;
    CHECK_IS(-EINVAL, ums_stats_get(&stats));
    /* The struct of an older program: what lies behind it is not touched. */
    stats.size = offsetof(ums_stats_t, finished);
    stats.finished = 5;
    CHECK_IS(0, ums_stats_get(&stats));
    CHECK_IS(5, stats.finished);
}

static void info_and_version_are_text(void) {
    char all[4096], cut[8] = "1234567";
    size_t length = 0;
    CHECK(strcmp(ums_version(), UMS_EXPECTED_VERSION) == 0);
    CHECK_IS(0, ums_info(all, sizeof all, &length));
    CHECK(length > 20 && strlen(all) == length);
    CHECK_IS(0, ums_info(cut, sizeof cut, NULL));
    CHECK(strlen(cut) == sizeof cut - 1 && strncmp(cut, all, sizeof cut - 1) == 0);
    CHECK_IS(0, ums_info(NULL, 0, &length));
    CHECK(ums_hardware_concurrency() >= 1);
}

int main(void) {
    RUN(run_runs);
    RUN(start_and_stop_go_round);
    RUN(options_that_cannot_be_are_refused);
    RUN(a_larger_struct_is_understood_if_its_rest_is_zero);
    RUN(every_option_is_taken);
    RUN(stats_count);
    RUN(info_and_version_are_text);
    return check_end();
}
