// SPDX-License-Identifier: MIT
// variants: migrate p1 nosync
#include "check.h"

static void count(void* argument) {
    ums_semaphore_t s = UMS_SEMAPHORE_INIT;
    ums_stop_t* stop;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK_IS(-EAGAIN, ums_semaphore_tryacquire(&s));
    CHECK_IS(0, ums_semaphore_release(&s, 3));
    CHECK_IS(3, ums_semaphore_value(&s));
    CHECK_IS(0, ums_semaphore_tryacquire(&s));
    ums_semaphore_acquire(&s);
    CHECK_IS(0, ums_semaphore_acquire_until(&s, 0, stop));
    CHECK_IS(0, ums_semaphore_value(&s));
    CHECK_IS(-ETIMEDOUT, ums_semaphore_acquire_until(&s, ums_deadline_after(MS / 10), NULL));
    CHECK_IS(-ETIMEDOUT, ums_semaphore_acquire_until(&s, ums_deadline_after(MS / 10), stop));
    CHECK(ums_stop_request(stop));
    CHECK_IS(-ECANCELED, ums_semaphore_acquire_until(&s, UMS_NEVER, stop));
    ums_stop_destroy(stop);

    CHECK_IS(-EINVAL, ums_semaphore_init(&s, (uint32_t)UMS_SEMAPHORE_MAX + 1));
    CHECK_IS(0, ums_semaphore_init(&s, UMS_SEMAPHORE_MAX));
    CHECK_IS(UMS_SEMAPHORE_MAX, ums_semaphore_value(&s));
    CHECK_IS(-EOVERFLOW, ums_semaphore_release(&s, 1));
}
static void a_semaphore_counts(void) { on_a_fiber_and_on_a_thread(count, NULL); }

struct limited {
    ums_semaphore_t permits;
    atomic_int inside, most;
};
static void go_in_and_out(void* argument) {
    struct limited* l = argument;
    for (int i = 0; i < 300; ++i) {
        if (i % 2 == 0)
            ums_semaphore_acquire(&l->permits);
        else
            while (ums_semaphore_acquire_until(&l->permits, ums_deadline_after(MS / 100), NULL) !=
                   0)
                continue;
        const int now = atomic_fetch_add(&l->inside, 1) + 1;
        if (now > l->most) l->most = now;
        if (i % 8 == 0) ums_this_fiber_yield();
        atomic_fetch_sub(&l->inside, 1);
        CHECK_IS(0, ums_semaphore_release(&l->permits, 1));
    }
}
static void limit(void* argument) {
    struct limited l = {.most = 0};
    ums_fiber_t all[16];
    (void)argument;
    CHECK_IS(0, ums_semaphore_init(&l.permits, 3));
    for (int i = 0; i < 16; ++i) all[i] = start(go_in_and_out, &l);
    for (int i = 0; i < 16; ++i) join(&all[i]);
    CHECK(l.most <= 3);
    CHECK_IS(3, ums_semaphore_value(&l.permits));
}
static void permits_are_conserved(void) { on_fibers(2, limit, NULL); }

int main(void) {
    RUN(a_semaphore_counts);
    RUN(permits_are_conserved);
    return check_end();
}
