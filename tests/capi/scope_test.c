/* SPDX-License-Identifier: MIT */
// variants: migrate p1 nosync
#include "check.h"

#include <ums/ums_pthread.h>

static atomic_int ended;

static int count_up(void* argument, ums_stop_t* stop) {
    (void)argument, (void)stop;
    ums_this_fiber_yield();
    atomic_fetch_add(&ended, 1);
    return 0;
}
static int fail_with(void* argument, ums_stop_t* stop) {
    (void)stop;
    atomic_fetch_add(&ended, 1);
    return *(const int*)argument;
}
static int wait_for_stop(void* argument, ums_stop_t* stop) {
    (void)argument;
    while (ums_this_fiber_park_until(UMS_NEVER, stop) != -ECANCELED) continue;
    CHECK(ums_stop_requested(stop));
    atomic_fetch_add(&ended, 1);
    return -ECANCELED; /* Later failures are dropped. */
}
static int leave(void* argument, ums_stop_t* stop) {
    (void)argument, (void)stop;
    ums_pthread_exit(NULL);
}
/* A child may spawn. */
static int spawn_more(void* scope, ums_stop_t* stop) {
    (void)stop;
    for (int i = 0; i < 10; ++i) CHECK_IS(0, ums_scope_spawn(scope, NULL, count_up, NULL));
    return 0;
}

static void use_scope(void* argument) {
    ums_scope_t* scope;
    int error = -EIO;
    (void)argument;
    ended = 0;
    CHECK_IS(0, ums_scope_create(&scope, NULL));
    CHECK_IS(0, ums_scope_join(scope));
    for (int i = 0; i < 10; ++i) CHECK_IS(0, ums_scope_spawn(scope, NULL, spawn_more, scope));
    CHECK_IS(0, ums_scope_spawn(scope, NULL, leave, NULL));
    CHECK_IS(0, ums_scope_join(scope));
    CHECK_IS(100, ended);
    CHECK(!ums_stop_requested(ums_scope_stop(scope)));

    for (int i = 0; i < 5; ++i) CHECK_IS(0, ums_scope_spawn(scope, NULL, wait_for_stop, NULL));
    CHECK_IS(0, ums_scope_spawn(scope, NULL, fail_with, &error));
    CHECK_IS(-EIO, ums_scope_join(scope));
    CHECK_IS(106, ended);
    CHECK(ums_stop_requested(ums_scope_stop(scope)));
    CHECK_IS(0, ums_scope_join(scope)); /* The first join already reported it. */
    ums_scope_destroy(scope);

    ums_fiber_options_t options = UMS_FIBER_OPTIONS_INIT;
    CHECK_IS(0, ums_scope_create(&scope, NULL));
    CHECK_IS(-EINVAL, ums_scope_spawn(scope, NULL, NULL, NULL));
    options.size = 1;
    CHECK_IS(-EINVAL, ums_scope_spawn(scope, &options, count_up, NULL));
    ums_scope_destroy(scope);
}
static void children_end_before_join_returns(void) { on_a_fiber_and_on_a_thread(use_scope, NULL); }

static void use_stops(void* argument) {
    ums_stop_t* parent;
    ums_scope_t* scope;
    (void)argument;
    ended = 0;
    CHECK_IS(0, ums_stop_create(&parent));
    CHECK_IS(0, ums_scope_create(&scope, parent));
    for (int i = 0; i < 5; ++i) CHECK_IS(0, ums_scope_spawn(scope, NULL, wait_for_stop, NULL));
    CHECK(ums_stop_request(parent));
    CHECK_IS(-ECANCELED, ums_scope_join(scope));
    CHECK_IS(5, ended);
    ums_scope_destroy(scope);
    ums_stop_destroy(parent);

    CHECK_IS(0, ums_scope_create(&scope, NULL));
    CHECK_IS(0, ums_scope_spawn(scope, NULL, wait_for_stop, NULL));
    CHECK(ums_stop_request(ums_scope_stop(scope)));
    CHECK_IS(-ECANCELED, ums_scope_join(scope));
    ums_scope_destroy(scope);

    CHECK_IS(0, ums_scope_create(&scope, NULL));
    for (int i = 0; i < 5; ++i) CHECK_IS(0, ums_scope_spawn(scope, NULL, wait_for_stop, NULL));
    ums_scope_destroy(scope); /* This requests the stop. */
    CHECK_IS(11, ended);
}
static void a_stop_of_the_parent_or_the_scope_stops_the_children(void) {
    on_a_fiber_and_on_a_thread(use_stops, NULL);
}

static void without_a_runtime_nothing_is_spawned(void) {
    ums_scope_t* scope;
    CHECK_IS(0, ums_scope_create(&scope, NULL));
    CHECK_IS(-EPERM, ums_scope_spawn(scope, NULL, count_up, NULL));
    CHECK_IS(0, ums_scope_join(scope));
    ums_scope_destroy(scope);
}

int main(void) {
    RUN(children_end_before_join_returns);
    RUN(a_stop_of_the_parent_or_the_scope_stops_the_children);
    RUN(without_a_runtime_nothing_is_spawned);
    return check_end();
}
