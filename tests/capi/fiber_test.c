// SPDX-License-Identifier: MIT
// variants: migrate p1
#include <pthread.h>
#include <sched.h>

#include "check.h"

static void fail(void* argument) {
    (void)argument;
    for (int i = 1; i < 100; ++i) {
        ums_set_last_error(i);
        if (i % 2 == 0)
            ums_this_fiber_yield();
        else
            (void)ums_this_fiber_tryyield();
        CHECK_IS(i, ums_last_error());
    }
}
static void the_last_error_is_the_fibers(void) {
    ums_fiber_t all[10];
    CHECK_IS(0, ums_runtime_start(NULL));
    for (int i = 0; i < 10; ++i) all[i] = start(fail, NULL);
    for (int i = 0; i < 10; ++i) join(&all[i]);
    CHECK_IS(0, ums_runtime_stop());
}

/* Another test, in C++, shows that marks come into a trace: here nothing is recorded. */
static void mark(void* argument) {
    (void)argument;
    ums_set_last_error(5);
    ums_trace_event("a mark");
    CHECK_IS(5, ums_last_error());
}
static void a_mark_that_nobody_records_does_nothing(void) {
    on_a_fiber_and_on_a_thread(mark, NULL);
}

static void add_one(void* argument) { atomic_fetch_add((atomic_int*)argument, 1); }

static void create_and_join(void* argument) {
    atomic_int count = 0;
    ums_fiber_t all[100];
    (void)argument;
    for (int i = 0; i < 100; ++i) all[i] = start(add_one, &count);
    for (int i = 0; i < 100; ++i) {
        CHECK(ums_fiber_joinable(&all[i]));
        CHECK(ums_fiber_id(&all[i]) != 0);
        CHECK_IS(ums_fiber_id(&all[i]), ums_ref_id(ums_fiber_ref(&all[i])));
        join(&all[i]);
        CHECK(!ums_fiber_joinable(&all[i]));
        CHECK_IS(0, ums_fiber_id(&all[i]));
        CHECK(ums_fiber_ref(&all[i]).who == NULL);
        CHECK_IS(-EINVAL, ums_fiber_join(&all[i]));
        CHECK_IS(-EINVAL, ums_fiber_detach(&all[i]));
    }
    CHECK_IS(100, count);
}
static void fibers_are_created_and_joined(void) {
    on_a_fiber_and_on_a_thread(create_and_join, NULL);
}

static void ask_for_itself(void* argument) {
    const ums_fiber_t* self = argument;
    CHECK(ums_fiber_joinable(self));
    CHECK_IS(ums_ref_id(ums_this_fiber_ref()), ums_fiber_id(self));
}
static void create_who_ask_for_themselves(void* argument) {
    ums_fiber_options_t options = UMS_FIBER_OPTIONS_INIT;
    ums_fiber_t self;
    (void)argument;
    options.launch = UMS_LAUNCH_DISPATCH; /* The fiber runs before ums_fiber_create() returns. */
    CHECK_IS(0, ums_fiber_create(&self, &options, ask_for_itself, &self));
    join(&self);
}
static void a_fiber_that_runs_finds_its_own_handle(void) {
    on_a_fiber_and_on_a_thread(create_who_ask_for_themselves, NULL);
}

static void detached_fibers_end_before_the_runtime(void) {
    atomic_int count = 0;
    CHECK_IS(0, ums_runtime_start(NULL));
    for (int i = 0; i < 100; ++i) {
        ums_fiber_t fiber = start(add_one, &count);
        CHECK_IS(0, ums_fiber_detach(&fiber));
        CHECK(!ums_fiber_joinable(&fiber));
    }
    CHECK_IS(0, ums_runtime_stop());
    CHECK_IS(100, count);
}

static void refuse(void* argument) {
    ums_fiber_t fiber;
    ums_fiber_options_t options = UMS_FIBER_OPTIONS_INIT;
    options.stack_bytes = (size_t)2 << 30;
    CHECK_IS(-EINVAL, ums_fiber_create(&fiber, &options, add_one, argument));
    CHECK(!ums_fiber_joinable(&fiber));
    options = (ums_fiber_options_t)UMS_FIBER_OPTIONS_INIT;
    options.launch = 9;
    CHECK_IS(-EINVAL, ums_fiber_create(&fiber, &options, add_one, argument));
    options.launch = -1;
    CHECK_IS(-EINVAL, ums_fiber_create(&fiber, &options, add_one, argument));
    options = (ums_fiber_options_t)UMS_FIBER_OPTIONS_INIT;
    options.size = 1;
    CHECK_IS(-EINVAL, ums_fiber_create(&fiber, &options, add_one, argument));
    CHECK_IS(-EINVAL, ums_fiber_create(&fiber, NULL, NULL, argument));
}
static void bad_fibers_are_refused(void) {
    atomic_int count = 0;
    ums_fiber_t fiber;
    CHECK_IS(-EPERM, ums_fiber_create(&fiber, NULL, add_one, &count));
    on_a_fiber_and_on_a_thread(refuse, &count);
    CHECK_IS(0, count);
}

static ums_fiber_t itself;
static void join_itself(void* argument) {
    ums_this_fiber_park();
    CHECK_IS(-EDEADLK, ums_fiber_join(&itself));
    add_one(argument);
}
static void itself_main(void* argument) {
    itself = start(join_itself, argument);
    ums_ref_unpark(ums_fiber_ref(&itself));
    join(&itself);
}
static void a_fiber_cannot_join_itself(void) {
    atomic_int count = 0;
    on_fibers(2, itself_main, &count);
    CHECK_IS(1, count);
}

static void look_at_itself(void* argument) {
    CHECK(strcmp(ums_this_fiber_name(), "deep") == 0);
    CHECK(strcmp(ums_ref_name(ums_this_fiber_ref()), "deep") == 0);
    CHECK_IS(77, ums_ref_tag(ums_this_fiber_ref()));
    ums_ref_set_tag(ums_this_fiber_ref(), 78);
    CHECK_IS(78, ums_ref_tag(ums_this_fiber_ref()));
    CHECK(ums_this_fiber_stack_high_water_bytes() > 0);
    CHECK_IS(ums_this_fiber_id(), ums_ref_id(ums_this_fiber_ref()));
    add_one(argument);
}
static void options_main(void* argument) {
    ums_fiber_options_t options = UMS_FIBER_OPTIONS_INIT;
    options.name = "deep";
    options.stack_bytes = 1 << 20;
    options.tag = 77;
    options.pinned = true;
    options.cluster = ums_cluster_standard();
    options.launch = UMS_LAUNCH_DISPATCH;
    ums_fiber_t fiber;
    CHECK_IS(0, ums_fiber_create(&fiber, &options, look_at_itself, argument));
    join(&fiber);
}
static void a_fibers_options_are_taken(void) {
    atomic_int count = 0;
    on_fibers(1, options_main, &count);
    CHECK_IS(1, count);
}

static void a_plain_thread_has_no_name_and_no_id(void) {
    CHECK_IS(0, ums_this_fiber_id());
    CHECK(strcmp(ums_this_fiber_name(), "") == 0);
    CHECK_IS(0, ums_ref_id(ums_this_fiber_ref()));
    CHECK_IS(0, ums_this_fiber_stack_high_water_bytes());
    CHECK(ums_this_fiber_ref().who == ums_this_fiber_ref().who);
    CHECK_IS(0, ums_ref_id((ums_ref_t){NULL}));
}

struct pair {
    ums_ref_t parent;
    atomic_int turns;
};
static void answer(void* argument) {
    struct pair* pair = argument;
    for (int i = 0; i < 1000; ++i) {
        ums_this_fiber_park();
        atomic_fetch_add(&pair->turns, 1);
        ums_ref_unpark(pair->parent);
    }
}
static void ask(void* argument) {
    struct pair pair = {ums_this_fiber_ref(), 0};
    (void)argument;
    ums_fiber_t fiber = start(answer, &pair);
    const ums_ref_t other = ums_fiber_ref(&fiber);
    for (int i = 1; i <= 1000; ++i) {
        ums_ref_unpark(other);
        do /* Once for each unpark, or one would be left for the next test. */
            ums_this_fiber_park();
        while (pair.turns != i);
    }
    join(&fiber);
}
static void parks_and_unparks_alternate(void) { on_a_fiber_and_on_a_thread(ask, NULL); }

static void wait_three_ways(void* argument) {
    ums_stop_t* stop = NULL;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK_IS(-ETIMEDOUT, ums_this_fiber_park_until(ums_now(), NULL));
    CHECK_IS(-ETIMEDOUT, ums_this_fiber_park_until(ums_deadline_after(MS), stop));
    ums_ref_unpark(ums_this_fiber_ref());
    CHECK_IS(0, ums_this_fiber_park_until(UMS_NEVER, stop));
    ums_ref_unpark(ums_this_fiber_ref());
    CHECK_IS(0, ums_this_fiber_park_until(0, NULL));
    CHECK(!ums_stop_requested(stop));
    CHECK(ums_stop_request(stop));
    CHECK(!ums_stop_request(stop));
    CHECK(ums_stop_requested(stop));
    CHECK_IS(-ECANCELED, ums_this_fiber_park_until(UMS_NEVER, stop));
    ums_stop_destroy(stop);
}
static void a_park_ends_in_three_ways(void) { on_a_fiber_and_on_a_thread(wait_three_ways, NULL); }

static void sleep_well(void* argument) {
    (void)argument;
    int64_t begin = ums_now();
    ums_this_fiber_sleep_ns(2 * MS);
    CHECK(ums_now() - begin >= 2 * MS);
    begin = ums_now();
    ums_this_fiber_sleep_until(begin + 2 * MS);
    CHECK(ums_now() - begin >= 2 * MS);
    ums_this_fiber_sleep_ns(0);
    ums_this_fiber_sleep_ns(-5);
    ums_this_fiber_yield();
}

static void a_plain_threads_try_says_nothing(void) { CHECK(!ums_this_fiber_tryyield()); }

static void sleeps_are_not_short(void) { on_a_fiber_and_on_a_thread(sleep_well, NULL); }

// The fiber that sees the request destroys the stop at once, while the request is still being made.
enum { STOPS = 5000 };
static _Atomic(ums_stop_t*) to_stop;
static atomic_int requested;
static void* request_stops(void* argument) {
    for (int i = 0; i < STOPS; ++i) {
        ums_stop_t* stop;
        while ((stop = atomic_exchange(&to_stop, NULL)) == NULL) sched_yield();
        CHECK(ums_stop_request(stop));
        atomic_fetch_add(&requested, 1);
    }
    return argument;
}
static void a_stop_may_be_destroyed_by_who_sees_the_request(void) {
    pthread_t thread;
    requested = 0;
    CHECK_IS(0, pthread_create(&thread, NULL, request_stops, NULL));
    for (int i = 0; i < STOPS; ++i) {
        ums_stop_t* stop;
        CHECK_IS(0, ums_stop_create(&stop));
        to_stop = stop;
        while (!ums_stop_requested(stop)) sched_yield();
        ums_stop_destroy(stop);
        while (requested != i + 1) sched_yield();
    }
    CHECK_IS(0, pthread_join(thread, NULL));
}

static void deadlines_do_not_overflow(void) {
    CHECK_IS(UMS_NEVER, ums_deadline_after(UMS_NEVER));
    CHECK_IS(UMS_NEVER, ums_deadline_after(UMS_NEVER - 1));
    const int64_t now = ums_now();
    CHECK(ums_deadline_after(-1) >= now && ums_deadline_after(-1) < now + 1000LL * 1000 * MS);
    CHECK(ums_deadline_after(1000) >= now + 1000);
}

int main(void) {
    RUN(the_last_error_is_the_fibers);
    RUN(a_mark_that_nobody_records_does_nothing);
    RUN(fibers_are_created_and_joined);
    RUN(a_fiber_that_runs_finds_its_own_handle);
    RUN(detached_fibers_end_before_the_runtime);
    RUN(bad_fibers_are_refused);
    RUN(a_fiber_cannot_join_itself);
    RUN(a_fibers_options_are_taken);
    RUN(a_plain_thread_has_no_name_and_no_id);
    RUN(parks_and_unparks_alternate);
    RUN(a_park_ends_in_three_ways);
    RUN(a_plain_threads_try_says_nothing);
    RUN(sleeps_are_not_short);
    RUN(a_stop_may_be_destroyed_by_who_sees_the_request);
    RUN(deadlines_do_not_overflow);
    return check_end();
}
