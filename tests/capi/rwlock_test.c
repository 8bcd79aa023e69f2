// SPDX-License-Identifier: MIT
// variants: migrate p1 nosync
#include "check.h"

struct trial {
    ums_rwlock_t* lock;
    bool reads, writes;
};
static void try_it(void* argument) {
    struct trial* t = argument;
    t->reads = ums_rwlock_trylock_shared(t->lock) == 0;
    if (t->reads) CHECK_IS(0, ums_rwlock_unlock_shared(t->lock));
    t->writes = ums_rwlock_trylock(t->lock) == 0;
    if (t->writes) CHECK_IS(0, ums_rwlock_unlock(t->lock));
    ums_stop_t* stop;
    CHECK_IS(0, ums_stop_create(&stop));
    if (!t->reads) {
        CHECK_IS(-EBUSY, ums_rwlock_trylock_shared(t->lock));
        CHECK_IS(-ETIMEDOUT,
                 ums_rwlock_lock_shared_until(t->lock, ums_deadline_after(MS / 10), NULL));
        CHECK_IS(-ETIMEDOUT, ums_rwlock_lock_shared_until(t->lock, 0, stop));
    }
    if (!t->writes) {
        CHECK_IS(-EBUSY, ums_rwlock_trylock(t->lock));
        CHECK_IS(-EPERM, ums_rwlock_unlock(t->lock));
        CHECK_IS(-ETIMEDOUT, ums_rwlock_lock_until(t->lock, ums_deadline_after(MS / 10), NULL));
        CHECK_IS(-ETIMEDOUT, ums_rwlock_lock_until(t->lock, 0, stop));
    }
    CHECK(ums_stop_request(stop));
    if (!t->reads) CHECK_IS(-ECANCELED, ums_rwlock_lock_shared_until(t->lock, UMS_NEVER, stop));
    if (!t->writes) CHECK_IS(-ECANCELED, ums_rwlock_lock_until(t->lock, UMS_NEVER, stop));
    ums_stop_destroy(stop);
}
static struct trial others(ums_rwlock_t* lock) {
    struct trial t = {lock, false, false};
    ums_fiber_t fiber = start(try_it, &t);
    join(&fiber);
    return t;
}

static void lock_and_unlock(void* argument) {
    ums_rwlock_t lock = UMS_RWLOCK_INIT;
    (void)argument;
    CHECK_IS(-EPERM, ums_rwlock_unlock(&lock));
    CHECK_IS(-EPERM, ums_rwlock_unlock_shared(&lock));
    CHECK_IS(0, ums_rwlock_lock(&lock));
    CHECK_IS(-EDEADLK, ums_rwlock_lock(&lock));
    CHECK_IS(-EDEADLK, ums_rwlock_lock_shared(&lock));
    CHECK_IS(-EDEADLK, ums_rwlock_lock_until(&lock, UMS_NEVER, NULL));
    CHECK_IS(-EDEADLK, ums_rwlock_lock_shared_until(&lock, UMS_NEVER, NULL));
    struct trial t = others(&lock);
    CHECK(!t.reads && !t.writes);
    CHECK_IS(0, ums_rwlock_unlock(&lock));
    CHECK_IS(0, ums_rwlock_lock_shared(&lock));
    CHECK_IS(0, ums_rwlock_lock_shared_until(&lock, 0, NULL));
    t = others(&lock);
    CHECK(t.reads && !t.writes);
    CHECK_IS(-EPERM, ums_rwlock_unlock(&lock));
    CHECK_IS(0, ums_rwlock_unlock_shared(&lock));
    CHECK_IS(0, ums_rwlock_unlock_shared(&lock));
    t = others(&lock);
    CHECK(t.reads && t.writes);
    CHECK_IS(0, ums_rwlock_lock_until(&lock, 0, NULL));
    CHECK_IS(0, ums_rwlock_unlock(&lock));
}
static void a_rwlock_locks_and_unlocks(void) { on_a_fiber_and_on_a_thread(lock_and_unlock, NULL); }

struct shared {
    ums_rwlock_t lock;
    long a, b;
};
static void write_both(void* argument) {
    struct shared* s = argument;
    for (int i = 0; i < 500; ++i) {
        CHECK_IS(0, ums_rwlock_lock(&s->lock));
        ++s->a;
        if (i % 8 == 0) ums_this_fiber_yield();
        ++s->b;
        CHECK_IS(0, ums_rwlock_unlock(&s->lock));
    }
}
static void read_both(void* argument) {
    struct shared* s = argument;
    for (int i = 0; i < 500; ++i) {
        CHECK_IS(0, ums_rwlock_lock_shared(&s->lock));
        const long a = s->a;
        if (i % 8 == 0) ums_this_fiber_yield();
        CHECK_IS(a, s->b);
        CHECK_IS(0, ums_rwlock_unlock_shared(&s->lock));
    }
}
static void write_and_read(void* argument) {
    struct shared s = {.a = 0};
    ums_fiber_t all[8];
    (void)argument;
    for (int i = 0; i < 8; ++i) all[i] = start(i < 3 ? write_both : read_both, &s);
    for (int i = 0; i < 8; ++i) join(&all[i]);
    CHECK_IS(1500, s.a);
}
static void readers_see_what_writers_wrote_whole(void) { on_fibers(2, write_and_read, NULL); }

int main(void) {
    RUN(a_rwlock_locks_and_unlocks);
    RUN(readers_see_what_writers_wrote_whole);
    return check_end();
}
