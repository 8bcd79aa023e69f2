// SPDX-License-Identifier: MIT
// variants: migrate p1 nosync
#include "check.h"

#include <pthread.h>

static ums_mutex_t statics[] = {UMS_MUTEX_INIT, UMS_FAIR_MUTEX_INIT, UMS_RECURSIVE_MUTEX_INIT};
static ums_mutex_t zero;

static bool others_get(ums_mutex_t* m);

static void lock_and_unlock(void* argument) {
    ums_mutex_t* m = argument;
    const bool recursive = m->kind == UMS_MUTEX_RECURSIVE;
    const int again = recursive ? 0 : -EDEADLK;
    ums_stop_t* stop;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK_IS(-EPERM, ums_mutex_unlock(m));
    CHECK_IS(0, ums_mutex_lock(m));
    CHECK_IS(-EBUSY, ums_mutex_destroy(m));
    CHECK(!others_get(m));
    CHECK_IS(again, ums_mutex_lock(m));
    CHECK_IS(again, ums_mutex_lock_until(m, UMS_NEVER, NULL));
    CHECK_IS(again, ums_mutex_lock_until(m, UMS_NEVER, stop));
    CHECK_IS(recursive ? 0 : -EBUSY, ums_mutex_trylock(m));
    for (int i = 0; recursive && i < 4; ++i) CHECK_IS(0, ums_mutex_unlock(m));
    CHECK(!others_get(m));
    CHECK_IS(0, ums_mutex_unlock(m));
    CHECK(others_get(m));
    CHECK_IS(0, ums_mutex_trylock(m));
    CHECK_IS(0, ums_mutex_unlock(m));
    CHECK_IS(0, ums_mutex_lock_until(m, 0, NULL));
    CHECK_IS(0, ums_mutex_unlock(m));
    CHECK_IS(0, ums_mutex_lock_until(m, 0, stop));
    CHECK_IS(0, ums_mutex_unlock(m));
    CHECK_IS(0, ums_mutex_destroy(m));
    ums_stop_destroy(stop);
}

struct trial {
    ums_mutex_t* mutex;
    bool got;
};
static void try_it(void* argument) {
    struct trial* t = argument;
    ums_stop_t* stop;
    CHECK_IS(0, ums_stop_create(&stop));
    t->got = ums_mutex_trylock(t->mutex) == 0;
    if (t->got) {
        CHECK_IS(0, ums_mutex_unlock(t->mutex));
    } else {
        CHECK_IS(-EPERM, ums_mutex_unlock(t->mutex));
        CHECK_IS(-ETIMEDOUT, ums_mutex_lock_until(t->mutex, ums_deadline_after(MS / 10), NULL));
        CHECK_IS(-ETIMEDOUT, ums_mutex_lock_until(t->mutex, 0, stop));
        CHECK(ums_stop_request(stop));
        CHECK_IS(-ECANCELED, ums_mutex_lock_until(t->mutex, UMS_NEVER, stop));
    }
    ums_stop_destroy(stop);
}
static bool others_get(ums_mutex_t* m) {
    struct trial t = {m, false};
    ums_fiber_t fiber = start(try_it, &t);
    join(&fiber);
    return t.got;
}

static void every_kind_locks_and_unlocks(void) {
    for (int kind = 0; kind < 3; ++kind) {
        ums_mutex_t m;
        CHECK_IS(0, ums_mutex_init(&m, (ums_mutex_kind_t)kind));
        on_a_fiber_and_on_a_thread(lock_and_unlock, &m);
        CHECK_IS(kind, statics[kind].kind);
        on_a_fiber_and_on_a_thread(lock_and_unlock, &statics[kind]);
    }
    on_a_fiber_and_on_a_thread(lock_and_unlock, &zero);
    CHECK_IS(-EINVAL, ums_mutex_init(&zero, 3));
    CHECK_IS(-EINVAL, ums_mutex_init(&zero, -1));
}

enum { SECTIONS = 500, FIBERS = 8 };
struct counted {
    ums_mutex_t mutex;
    long count;
};
static void count_up(void* argument) {
    struct counted* c = argument;
    for (int i = 0; i < SECTIONS; ++i) {
        if (i % 3 == 0)
            CHECK_IS(0, ums_mutex_lock(&c->mutex));
        else
            while (ums_mutex_lock_until(&c->mutex, ums_deadline_after(MS / 100), NULL) != 0)
                continue;
        const long seen = c->count;
        if (i % 16 == 0) ums_this_fiber_yield();
        c->count = seen + 1;
        CHECK_IS(0, ums_mutex_unlock(&c->mutex));
    }
}
static void* count_on_a_thread(void* argument) {
    count_up(argument);
    return NULL;
}
static void sections_exclude_each_other(void) {
    for (int kind = 0; kind < 3; ++kind) {
        struct counted c = {.count = 0};
        ums_fiber_t all[FIBERS];
        pthread_t threads[2];
        CHECK_IS(0, ums_mutex_init(&c.mutex, (ums_mutex_kind_t)kind));
        CHECK_IS(0, ums_runtime_start(NULL));
        for (int i = 0; i < FIBERS; ++i) all[i] = start(count_up, &c);
        for (int i = 0; i < 2; ++i)
            CHECK_IS(0, pthread_create(&threads[i], NULL, count_on_a_thread, &c));
        for (int i = 0; i < FIBERS; ++i) join(&all[i]);
        for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
        CHECK_IS(0, ums_runtime_stop());
        CHECK_IS((FIBERS + 2) * SECTIONS, c.count);
    }
}

int main(void) {
    RUN(every_kind_locks_and_unlocks);
    RUN(sections_exclude_each_other);
    return check_end();
}
