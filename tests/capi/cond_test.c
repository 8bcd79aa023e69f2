// SPDX-License-Identifier: MIT
// variants: migrate p1 nosync
#include <pthread.h>

#include "check.h"

static void give_up(void* argument) {
    ums_mutex_t mutex = UMS_MUTEX_INIT;
    ums_cond_t cond = UMS_COND_INIT;
    ums_stop_t* stop;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK_IS(-EPERM, ums_cond_wait(&cond, &mutex));
    CHECK_IS(-EPERM, ums_cond_wait_until(&cond, &mutex, 0, NULL));
    CHECK_IS(0, ums_mutex_lock(&mutex));
    CHECK_IS(-ETIMEDOUT, ums_cond_wait_until(&cond, &mutex, ums_deadline_after(MS / 10), NULL));
    CHECK_IS(-ETIMEDOUT, ums_cond_wait_until(&cond, &mutex, ums_deadline_after(MS / 10), stop));
    CHECK(ums_stop_request(stop));
    CHECK_IS(-ECANCELED, ums_cond_wait_until(&cond, &mutex, UMS_NEVER, stop));
    CHECK_IS(0, ums_mutex_unlock(&mutex)); /* It was locked again each time. */
    ums_stop_destroy(stop);
}
static void a_wait_gives_up(void) { on_a_fiber_and_on_a_thread(give_up, NULL); }

enum { ITEMS = 2000, CONSUMERS = 4 };
struct box {
    ums_mutex_t mutex;
    ums_cond_t filled, emptied;
    int full;
    bool closed;
    long sum;
};
static void consume(void* argument) {
    struct box* b = argument;
    CHECK_IS(0, ums_mutex_lock(&b->mutex));
    for (;;) {
        while (b->full == 0 && !b->closed) {
            const int result =
                ums_cond_wait_until(&b->filled, &b->mutex, ums_deadline_after(MS), NULL);
            CHECK(result == 0 || result == -ETIMEDOUT);
        }
        if (b->full == 0) break;
        b->sum += b->full;
        b->full = 0;
        ums_cond_notify_one(&b->emptied);
    }
    CHECK_IS(0, ums_mutex_unlock(&b->mutex));
}
static void* consume_on_a_thread(void* argument) {
    consume(argument);
    return NULL;
}
static void produce(void* argument) {
    struct box* b = argument;
    ums_fiber_t fibers[CONSUMERS];
    for (int i = 0; i < CONSUMERS; ++i) fibers[i] = start(consume, b);
    CHECK_IS(0, ums_mutex_lock(&b->mutex));
    for (int i = 1; i <= ITEMS; ++i) {
        while (b->full != 0) CHECK_IS(0, ums_cond_wait(&b->emptied, &b->mutex));
        b->full = i;
        ums_cond_notify_one(&b->filled);
    }
    b->closed = true;
    ums_cond_notify_all(&b->filled);
    CHECK_IS(0, ums_mutex_unlock(&b->mutex));
    for (int i = 0; i < CONSUMERS; ++i) join(&fibers[i]);
}
static void nothing_is_lost_between_fibers_and_threads(void) {
    for (int kind = 0; kind < 3; ++kind) {
        struct box b = {.sum = 0};
        CHECK_IS(0, ums_mutex_init(&b.mutex, (ums_mutex_kind_t)kind));
        CHECK_IS(0, ums_runtime_start(NULL));
        pthread_t thread;
        CHECK_IS(0, pthread_create(&thread, NULL, consume_on_a_thread, &b));
        ums_fiber_t producer = start(produce, &b);
        join(&producer);
        pthread_join(thread, NULL);
        CHECK_IS(0, ums_runtime_stop());
        CHECK_IS((long)ITEMS * (ITEMS + 1) / 2, b.sum);
    }
}

int main(void) {
    RUN(a_wait_gives_up);
    RUN(nothing_is_lost_between_fibers_and_threads);
    return check_end();
}
