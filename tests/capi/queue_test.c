/* SPDX-License-Identifier: MIT */
// variants: migrate p1 nosync
#include "check.h"

static void use_queue(void* argument) {
    ums_queue_t* q;
    ums_stop_t* stop;
    long in = 1, out = 0;
    size_t index = 7;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK_IS(-EINVAL, ums_queue_create(&q, sizeof in, 0));
    CHECK_IS(-EINVAL, ums_queue_create(&q, 0, 2));
    CHECK(q == NULL);
    CHECK_IS(0, ums_queue_create(&q, sizeof in, 2));
    CHECK_IS(2, ums_queue_capacity(q));
    CHECK_IS(-EAGAIN, ums_queue_trypop(q, &out));
    CHECK_IS(-ETIMEDOUT, ums_queue_pop_until(q, &out, ums_deadline_after(MS / 10), stop));
    CHECK_IS(0, ums_queue_push(q, &in));
    in = 2;
    CHECK_IS(0, ums_queue_trypush(q, &in));
    CHECK_IS(2, ums_queue_size(q));
    CHECK_IS(-EAGAIN, ums_queue_trypush(q, &in));
    CHECK_IS(-ETIMEDOUT, ums_queue_push_until(q, &in, ums_deadline_after(MS / 10), NULL));
    CHECK(ums_stop_request(stop));
    CHECK_IS(-ECANCELED, ums_queue_push_until(q, &in, UMS_NEVER, stop));
    const ums_select_case_t cases[] = {{ums_queue_channel(q), UMS_SELECT_RECEIVE, &out}};
    CHECK_IS(0, ums_tryselect(cases, 1, &index));
    CHECK(index == 0 && out == 1);
    CHECK(!ums_queue_is_closed(q));
    ums_queue_close(q);
    CHECK(ums_queue_is_closed(q));
    CHECK_IS(-EPIPE, ums_queue_push(q, &in));
    CHECK_IS(0, ums_queue_pop(q, &out));
    CHECK_IS(2, out);
    CHECK_IS(-EPIPE, ums_queue_pop(q, &out));
    ums_queue_destroy(q);
    ums_stop_destroy(stop);
}
static void a_queue_is_first_in_first_out(void) { on_a_fiber_and_on_a_thread(use_queue, NULL); }

enum { ITEMS = 1000, SIDES = 4 };
static atomic_long sum;
static void push_items(void* q) {
    for (long i = 1; i <= ITEMS; ++i) CHECK_IS(0, ums_queue_push(q, &i));
}
static void pop_items(void* q) {
    long item = 0;
    while (ums_queue_pop(q, &item) == 0) atomic_fetch_add(&sum, item);
}
static void move_items(void* argument) {
    for (int kind = 0; kind < 2; ++kind) {
        ums_queue_t* q;
        ums_fiber_t pushers[SIDES], poppers[SIDES];
        (void)argument;
        sum = 0;
        CHECK_IS(0, ums_queue_create(&q, sizeof(long), kind == 0 ? 3 : UMS_CHANNEL_UNBOUNDED));
        for (int i = 0; i < SIDES; ++i) {
            poppers[i] = start(pop_items, q);
            pushers[i] = start(push_items, q);
        }
        for (int i = 0; i < SIDES; ++i) join(&pushers[i]);
        ums_queue_close(q);
        for (int i = 0; i < SIDES; ++i) join(&poppers[i]);
        CHECK_IS((long)SIDES * ITEMS * (ITEMS + 1) / 2, sum);
        ums_queue_destroy(q);
    }
}
static void what_is_pushed_is_popped_once(void) { on_a_fiber_and_on_a_thread(move_items, NULL); }

int main(void) {
    RUN(a_queue_is_first_in_first_out);
    RUN(what_is_pushed_is_popped_once);
    return check_end();
}
