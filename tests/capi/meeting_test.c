// SPDX-License-Identifier: MIT
// variants: migrate p1 nosync

/* Latches, wait groups, events, barriers, once. */
#include "check.h"

static void use_latch(void* argument) {
    ums_latch_t latch;
    ums_stop_t* stop;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK_IS(-EINVAL, ums_latch_init(&latch, -1));
    CHECK_IS(0, ums_latch_init(&latch, 2));
    CHECK_IS(-EAGAIN, ums_latch_trywait(&latch));
    CHECK_IS(-EINVAL, ums_latch_count_down(&latch, -1));
    CHECK_IS(-EINVAL, ums_latch_arrive_and_wait(&latch, -1));
    CHECK_IS(0, ums_latch_count_down(&latch, 1));
    CHECK_IS(-ETIMEDOUT, ums_latch_wait_until(&latch, ums_deadline_after(MS / 10), NULL));
    CHECK_IS(-ETIMEDOUT, ums_latch_wait_until(&latch, ums_deadline_after(MS / 10), stop));
    CHECK(ums_stop_request(stop));
    CHECK_IS(-ECANCELED, ums_latch_wait_until(&latch, UMS_NEVER, stop));
    CHECK_IS(0, ums_latch_arrive_and_wait(&latch, 1));
    CHECK_IS(0, ums_latch_trywait(&latch));
    CHECK_IS(0, ums_latch_wait_until(&latch, 0, stop));
    ums_latch_wait(&latch);
    ums_stop_destroy(stop);
}
static void a_latch_opens_once(void) { on_a_fiber_and_on_a_thread(use_latch, NULL); }

static void be_done(void* argument) {
    ums_this_fiber_yield();
    ums_wait_group_done(argument);
}
static void use_group(void* argument) {
    ums_wait_group_t group = UMS_WAIT_GROUP_INIT;
    ums_stop_t* stop;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK_IS(0, ums_wait_group_trywait(&group));
    ums_wait_group_wait(&group);
    ums_wait_group_add(&group, 2);
    ums_wait_group_add(&group, -1);
    CHECK_IS(-EAGAIN, ums_wait_group_trywait(&group));
    CHECK_IS(-ETIMEDOUT, ums_wait_group_wait_until(&group, 0, NULL));
    CHECK(ums_stop_request(stop));
    CHECK_IS(-ECANCELED, ums_wait_group_wait_until(&group, UMS_NEVER, stop));
    ums_wait_group_done(&group);
    CHECK_IS(0, ums_wait_group_wait_until(&group, 0, NULL));
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 10; ++i) {
            ums_wait_group_add(&group, 1);
            ums_fiber_t fiber = start(be_done, &group);
            CHECK_IS(0, ums_fiber_detach(&fiber));
        }
        ums_wait_group_wait(&group);
    }
    ums_stop_destroy(stop);
}
static void a_wait_group_waits_for_all(void) { on_a_fiber_and_on_a_thread(use_group, NULL); }

static void use_event(void* argument) {
    ums_stop_t* stop;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    ums_event_t event = UMS_EVENT_INIT;
    CHECK_IS(-EINVAL, ums_event_init(&event, 2, false));
    CHECK_IS(-EINVAL, ums_event_init(&event, -1, false));
    for (int kind = 0; kind < 2; ++kind) {
        const bool manual = kind == UMS_EVENT_MANUAL;
        CHECK_IS(0, ums_event_init(&event, (ums_event_kind_t)kind, true));
        CHECK_IS(0, ums_event_trywait(&event));
        CHECK_IS(manual ? 0 : -EAGAIN, ums_event_trywait(&event));
        ums_event_reset(&event);
        CHECK_IS(-EAGAIN, ums_event_trywait(&event));
        CHECK_IS(-ETIMEDOUT, ums_event_wait_until(&event, ums_deadline_after(MS / 10), NULL));
        CHECK_IS(-ETIMEDOUT, ums_event_wait_until(&event, ums_deadline_after(MS / 10), stop));
        ums_event_set(&event);
        ums_event_set(&event);
        CHECK_IS(0, ums_event_wait_until(&event, 0, stop));
        ums_event_reset(&event);
        ums_event_set(&event);
        ums_event_wait(&event);
        CHECK_IS(manual ? 0 : -EAGAIN, ums_event_trywait(&event));
    }
    CHECK(ums_stop_request(stop));
    ums_event_reset(&event);
    CHECK_IS(-ECANCELED, ums_event_wait_until(&event, UMS_NEVER, stop));
    CHECK_IS(0, ums_event_init(&event, UMS_EVENT_AUTO, false));
    CHECK_IS(-ECANCELED, ums_event_wait_until(&event, UMS_NEVER, stop));
    ums_stop_destroy(stop);
}
static void events_of_both_kinds_are_set_and_reset(void) {
    on_a_fiber_and_on_a_thread(use_event, NULL);
}

enum { PHASES = 200, PARTIES = 6 };
struct race {
    ums_barrier_t barrier;
    int phase; /* Belongs to the completion function. */
};
static void next_phase(void* argument) { ++((struct race*)argument)->phase; }
static void use_barrier(void* argument) {
    ums_stop_t* stop;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    struct race race = {.phase = 0};
    CHECK_IS(-EINVAL, ums_barrier_init(&race.barrier, -1, NULL, NULL));
    CHECK_IS(0, ums_barrier_init(&race.barrier, 3, next_phase, &race));
    uint64_t phase = 99;
    CHECK_IS(-EINVAL, ums_barrier_arrive(&race.barrier, 0, NULL));
    CHECK_IS(0, ums_barrier_arrive(&race.barrier, 2, &phase));
    CHECK_IS(-ETIMEDOUT,
             ums_barrier_wait_until(&race.barrier, phase, ums_deadline_after(MS / 10), NULL));
    CHECK_IS(-ETIMEDOUT, ums_barrier_wait_until(&race.barrier, phase, 0, stop));
    CHECK(ums_stop_request(stop));
    CHECK_IS(-ECANCELED, ums_barrier_wait_until(&race.barrier, phase, UMS_NEVER, stop));
    ums_barrier_arrive_and_drop(&race.barrier);
    CHECK_IS(1, race.phase);
    CHECK_IS(0, ums_barrier_wait_until(&race.barrier, phase, 0, NULL));
    CHECK_IS(0, ums_barrier_arrive(&race.barrier, 2, NULL)); /* One was dropped. */
    CHECK_IS(2, race.phase);
    ums_stop_destroy(stop);
}
static void a_barrier_has_phases(void) { on_a_fiber_and_on_a_thread(use_barrier, NULL); }

struct counted {
    ums_barrier_t barrier;
    int phase;
    atomic_int last;
};
static void count_phase(void* argument) { ++((struct counted*)argument)->phase; }
static void walk(void* argument) {
    struct counted* c = argument;
    for (int i = 0; i < PHASES; ++i) {
        bool was_last = false;
        CHECK_IS(i, c->phase);
        ums_barrier_arrive_and_wait(&c->barrier, &was_last);
        if (was_last) ++c->last;
    }
}
static void walk_together(void* argument) {
    struct counted c = {.phase = 0};
    ums_fiber_t all[PARTIES];
    (void)argument;
    CHECK_IS(0, ums_barrier_init(&c.barrier, PARTIES, count_phase, &c));
    for (int i = 0; i < PARTIES; ++i) all[i] = start(walk, &c);
    for (int i = 0; i < PARTIES; ++i) join(&all[i]);
    CHECK_IS(PHASES, c.phase);
    CHECK_IS(PHASES, c.last);
}
static void all_see_the_same_phase(void) { on_fibers(2, walk_together, NULL); }

static ums_once_t once = UMS_ONCE_INIT;
static int calls;
static void call_slowly(void* argument) {
    (void)argument;
    ums_this_fiber_sleep_ns(MS);
    ++calls;
}
static void call_once(void* argument) {
    ums_once_call(&once, call_slowly, argument);
    CHECK_IS(1, calls);
}
static void call_together(void* argument) {
    ums_fiber_t all[PARTIES];
    for (int i = 0; i < PARTIES; ++i) all[i] = start(call_once, argument);
    for (int i = 0; i < PARTIES; ++i) join(&all[i]);
}
static void once_is_once(void) { on_fibers(2, call_together, NULL); }

int main(void) {
    RUN(a_latch_opens_once);
    RUN(a_wait_group_waits_for_all);
    RUN(events_of_both_kinds_are_set_and_reset);
    RUN(a_barrier_has_phases);
    RUN(all_see_the_same_phase);
    RUN(once_is_once);
    return check_end();
}
