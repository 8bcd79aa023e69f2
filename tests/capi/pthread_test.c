// SPDX-License-Identifier: MIT
// variants: migrate p1 nosync
#include <ums/ums_pthread.h>

#include <pthread.h>

#include "check.h"

static struct timespec in_ms(clockid_t clock, long ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += ms * MS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}
static const struct timespec never = {1L << 40, 0}, past = {0, 0}, bad = {0, 1000000000};

static atomic_int count;

static void* itself(void* argument) {
    CHECK(ums_pthread_equal(ums_pthread_self(), ums_pthread_self()));
    CHECK_IS(EDEADLK, ums_pthread_join(ums_pthread_self(), NULL));
    atomic_fetch_add(&count, 1);
    return argument;
}
static void* detach_itself(void* argument) {
    CHECK_IS(0, ums_pthread_detach(ums_pthread_self()));
    CHECK_IS(EINVAL, ums_pthread_detach(ums_pthread_self()));
    atomic_fetch_add(&count, 1);
    return argument;
}
static void exit_deeply(int depth) {
    if (depth > 0) exit_deeply(depth - 1);
    if (count >= 0) ums_pthread_exit(&count);
}
static void* leave(void* argument) {
    (void)argument;
    exit_deeply(5);
    return NULL;
}
static void use_threads(void* argument) {
    ums_pthread_t thread, other;
    ums_pthread_attr_t attr;
    void* result = NULL;
    int state = -1;
    size_t bytes = 0;
    (void)argument;
    count = 0;
    CHECK_IS(0, ums_pthread_create(&thread, NULL, itself, &state));
    CHECK_IS(0, ums_pthread_create(&other, NULL, itself, &bytes));
    CHECK(!ums_pthread_equal(thread, other));
    CHECK(!ums_pthread_equal(thread, ums_pthread_self()));
    CHECK_IS(0, ums_pthread_join(thread, &result));
    CHECK(result == &state);
    CHECK_IS(0, ums_pthread_join(other, NULL));
    CHECK_IS(EDEADLK, ums_pthread_join(ums_pthread_self(), NULL));
    CHECK_IS(EINVAL, ums_pthread_detach(ums_pthread_self()));

    CHECK_IS(0, ums_pthread_attr_init(&attr));
    CHECK_IS(0, ums_pthread_attr_getstacksize(&attr, &bytes));
    CHECK(bytes >= 16 * 1024);
    CHECK_IS(0, ums_pthread_attr_setstacksize(&attr, bytes));
    CHECK_IS(0, ums_pthread_attr_getguardsize(&attr, &bytes));
    CHECK(bytes > 0);
    CHECK_IS(0, ums_pthread_attr_setguardsize(&attr, 12345));
    CHECK_IS(0, ums_pthread_attr_getguardsize(&attr, &bytes));
    CHECK_IS(12345, bytes);
    CHECK_IS(EINVAL, ums_pthread_attr_setdetachstate(&attr, 7));
    CHECK_IS(EINVAL, ums_pthread_attr_setstacksize(&attr, 1));
    CHECK_IS(0, ums_pthread_attr_setstacksize(&attr, 1 << 20));
    CHECK_IS(0, ums_pthread_attr_getstacksize(&attr, &bytes));
    CHECK_IS(1 << 20, bytes);
    CHECK_IS(0, ums_pthread_attr_setdetachstate(&attr, UMS_PTHREAD_CREATE_DETACHED));
    CHECK_IS(0, ums_pthread_attr_getdetachstate(&attr, &state));
    CHECK_IS(UMS_PTHREAD_CREATE_DETACHED, state);
    for (int i = 0; i < 20; ++i) {
        CHECK_IS(0, ums_pthread_create(&thread, &attr, itself, NULL));
        CHECK_IS(0, ums_pthread_create(&thread, NULL, detach_itself, NULL));
        CHECK_IS(0, ums_pthread_create(&thread, NULL, itself, NULL));
        CHECK_IS(0, ums_pthread_detach(thread));
    }
    CHECK_IS(0, ums_pthread_attr_destroy(&attr));
    while (count != 62) CHECK_IS(0, ums_sched_yield());

    CHECK_IS(0, ums_pthread_create(&thread, NULL, leave, NULL));
    CHECK_IS(0, ums_pthread_join(thread, &result));
    CHECK(result == &count);
}
static void threads_are_made_and_joined(void) {
    ums_pthread_t thread;
    CHECK_IS(EPERM, ums_pthread_create(&thread, NULL, itself, NULL));
    on_a_fiber_and_on_a_thread(use_threads, NULL);
}

static void a_stack_without_a_size_has_the_runtimes(void) {
    ums_options_t options = UMS_OPTIONS_INIT;
    ums_pthread_attr_t attr;
    size_t bytes = 0;
    options.stack_bytes = 256 * 1024;
    CHECK_IS(0, ums_pthread_attr_init(&attr));
    CHECK_IS(0, ums_pthread_attr_getstacksize(&attr, &bytes));
    CHECK_IS(256 * 1024, bytes);
    CHECK_IS(0, ums_runtime_start(&options));
    CHECK_IS(0, ums_pthread_attr_getstacksize(&attr, &bytes));
    CHECK_IS(256 * 1024, bytes);
    CHECK_IS(0, ums_runtime_stop());
}

static void* name_itself(void* argument) {
    char name[16];
    (void)argument;
    CHECK_IS(0, ums_pthread_getname_np(ums_pthread_self(), name, sizeof name));
    CHECK(strcmp(name, "") == 0);
    CHECK_IS(ERANGE, ums_pthread_setname_np(ums_pthread_self(), "sixteen letters!"));
    CHECK_IS(0, ums_pthread_setname_np(ums_pthread_self(), "fifteen letters"));
    CHECK(strcmp(ums_this_fiber_name(), "fifteen letters") == 0);
    CHECK_IS(ERANGE, ums_pthread_getname_np(ums_pthread_self(), name, 15));
    CHECK_IS(0, ums_pthread_setname_np(ums_pthread_self(), "short"));
    return NULL;
}
static void* borrow_name(void* other) {
    CHECK_IS(EINVAL, ums_pthread_setname_np(*(ums_pthread_t*)other, "not its own"));
    return NULL;
}
static void name_threads(void* argument) {
    ums_pthread_t thread, self = ums_pthread_self();
    char name[16], before[16];
    (void)argument;
    CHECK_IS(0, ums_pthread_create(&thread, NULL, name_itself, NULL));
    while (ums_pthread_getname_np(thread, name, sizeof name) == 0 && strcmp(name, "short") != 0)
        ums_sched_yield();
    CHECK_IS(0, ums_pthread_setname_np(thread, "another"));
    CHECK_IS(0, ums_pthread_getname_np(thread, name, sizeof name));
    CHECK(strcmp(name, "another") == 0);
    CHECK_IS(0, ums_pthread_join(thread, NULL));
    CHECK_IS(0, ums_pthread_create(&thread, NULL, borrow_name, &self));
    CHECK_IS(0, ums_pthread_join(thread, NULL));
    CHECK_IS(0, ums_pthread_getname_np(self, before, sizeof before));
    if (ums_this_fiber_id() != 0) {
        CHECK(strcmp(before, "main") == 0);
        CHECK_IS(EINVAL, ums_pthread_setname_np(self, "other"));
    } else {
        CHECK_IS(0, ums_pthread_setname_np(self, "plain"));
        CHECK_IS(0, ums_pthread_getname_np(self, name, sizeof name));
        CHECK(strcmp(name, "plain") == 0);
        CHECK_IS(0, ums_pthread_setname_np(self, before));
    }
}
static void threads_have_names(void) { on_a_fiber_and_on_a_thread(name_threads, NULL); }

static void* leave_plain(void* argument) { ums_pthread_exit(argument); }
static void a_plain_thread_may_exit(void) {
    pthread_t thread;
    void* result = NULL;
    CHECK_IS(0, pthread_create(&thread, NULL, leave_plain, &result));
    CHECK_IS(0, pthread_join(thread, &result));
    CHECK(result == &result);
}

static void leave_main(void* argument) {
    *(int*)argument = 1;
    ums_pthread_exit(NULL);
}
static void the_main_fiber_may_exit(void) {
    int done = 0;
    CHECK_IS(0, ums_run(NULL, leave_main, &done));
    CHECK_IS(1, done);
}

static ums_pthread_mutex_t held = UMS_PTHREAD_MUTEX_INITIALIZER;
static void* try_held(void* argument) {
    struct timespec limit = in_ms(CLOCK_REALTIME, 1);
    (void)argument;
    CHECK_IS(EBUSY, ums_pthread_mutex_trylock(&held));
    CHECK_IS(EPERM, ums_pthread_mutex_unlock(&held));
    CHECK_IS(ETIMEDOUT, ums_pthread_mutex_timedlock(&held, &limit));
    CHECK_IS(ETIMEDOUT, ums_pthread_mutex_timedlock(&held, &past));
    CHECK_IS(EINVAL, ums_pthread_mutex_timedlock(&held, &bad));
    limit = in_ms(CLOCK_MONOTONIC, 1);
    CHECK_IS(ETIMEDOUT, ums_pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &limit));
    CHECK_IS(EINVAL, ums_pthread_mutex_clocklock(&held, 99, &limit));
    return NULL;
}
static void use_mutexes(void* argument) {
    ums_pthread_t thread;
    ums_pthread_mutexattr_t attr;
    ums_pthread_mutex_t m, recursive = UMS_PTHREAD_RECURSIVE_MUTEX_INITIALIZER,
                           checked = UMS_PTHREAD_ERRORCHECK_MUTEX_INITIALIZER;
    int type = -1;
    (void)argument;
    CHECK_IS(0, ums_pthread_mutex_lock(&held));
    CHECK_IS(EBUSY, ums_pthread_mutex_destroy(&held));
    CHECK_IS(0, ums_pthread_create(&thread, NULL, try_held, NULL));
    CHECK_IS(0, ums_pthread_join(thread, NULL));
    CHECK_IS(0, ums_pthread_mutex_unlock(&held));
    CHECK_IS(0, ums_pthread_mutex_timedlock(&held, &never));
    CHECK_IS(EDEADLK, ums_pthread_mutex_timedlock(&held, &never));
    CHECK_IS(0, ums_pthread_mutex_unlock(&held));
    CHECK_IS(0, ums_pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &past));
    CHECK_IS(0, ums_pthread_mutex_unlock(&held));

    CHECK_IS(0, ums_pthread_mutexattr_init(&attr));
    CHECK_IS(EINVAL, ums_pthread_mutexattr_settype(&attr, 9));
    CHECK_IS(0, ums_pthread_mutexattr_settype(&attr, UMS_PTHREAD_MUTEX_RECURSIVE));
    CHECK_IS(0, ums_pthread_mutexattr_gettype(&attr, &type));
    CHECK_IS(UMS_PTHREAD_MUTEX_RECURSIVE, type);
    CHECK_IS(0, ums_pthread_mutexattr_setpshared(&attr, UMS_PTHREAD_PROCESS_PRIVATE));
    CHECK_IS(ENOTSUP, ums_pthread_mutexattr_setpshared(&attr, UMS_PTHREAD_PROCESS_SHARED));
    CHECK_IS(EINVAL, ums_pthread_mutexattr_setpshared(&attr, 7));
    CHECK_IS(0, ums_pthread_mutexattr_getpshared(&attr, &type));
    CHECK_IS(UMS_PTHREAD_PROCESS_PRIVATE, type);
    CHECK_IS(0, ums_pthread_mutexattr_setprotocol(&attr, UMS_PTHREAD_PRIO_NONE));
    CHECK_IS(ENOTSUP, ums_pthread_mutexattr_setprotocol(&attr, UMS_PTHREAD_PRIO_INHERIT));
    CHECK_IS(ENOTSUP, ums_pthread_mutexattr_setprotocol(&attr, UMS_PTHREAD_PRIO_PROTECT));
    CHECK_IS(EINVAL, ums_pthread_mutexattr_setprotocol(&attr, 7));
    CHECK_IS(0, ums_pthread_mutexattr_getprotocol(&attr, &type));
    CHECK_IS(UMS_PTHREAD_PRIO_NONE, type);
    CHECK_IS(0, ums_pthread_mutexattr_setrobust(&attr, UMS_PTHREAD_MUTEX_STALLED));
    CHECK_IS(ENOTSUP, ums_pthread_mutexattr_setrobust(&attr, UMS_PTHREAD_MUTEX_ROBUST));
    CHECK_IS(0, ums_pthread_mutexattr_getrobust(&attr, &type));
    CHECK_IS(UMS_PTHREAD_MUTEX_STALLED, type);
    CHECK_IS(0, ums_pthread_mutexattr_gettype(&attr, &type));
    CHECK_IS(UMS_PTHREAD_MUTEX_RECURSIVE, type);
    CHECK_IS(0, ums_pthread_mutex_init(&m, &attr));
    CHECK_IS(0, ums_pthread_mutexattr_destroy(&attr));
    CHECK_IS(0, ums_pthread_mutex_lock(&m));
    CHECK_IS(0, ums_pthread_mutex_lock(&m));
    CHECK_IS(0, ums_pthread_mutex_unlock(&m));
    CHECK_IS(0, ums_pthread_mutex_unlock(&m));
    CHECK_IS(EPERM, ums_pthread_mutex_unlock(&m));
    CHECK_IS(0, ums_pthread_mutex_destroy(&m));
    CHECK_IS(0, ums_pthread_mutex_init(&m, NULL));
    CHECK_IS(0, ums_pthread_mutex_lock(&m));
    CHECK_IS(EDEADLK, ums_pthread_mutex_lock(&m));
    CHECK_IS(0, ums_pthread_mutex_unlock(&m));
    CHECK_IS(0, ums_pthread_mutex_lock(&recursive));
    CHECK_IS(0, ums_pthread_mutex_trylock(&recursive));
    CHECK_IS(0, ums_pthread_mutex_unlock(&recursive));
    CHECK_IS(0, ums_pthread_mutex_unlock(&recursive));
    CHECK_IS(0, ums_pthread_mutex_lock(&checked));
    CHECK_IS(EDEADLK, ums_pthread_mutex_lock(&checked));
    CHECK_IS(0, ums_pthread_mutex_unlock(&checked));
}
static void mutexes_lock(void) { on_a_fiber_and_on_a_thread(use_mutexes, NULL); }

static void use_conds(void* argument) {
    ums_pthread_mutex_t m = UMS_PTHREAD_MUTEX_INITIALIZER;
    ums_pthread_cond_t cond = UMS_PTHREAD_COND_INITIALIZER;
    ums_pthread_condattr_t attr;
    clockid_t clock = 99;
    int shared = -1;
    struct timespec limit = in_ms(CLOCK_REALTIME, 1);
    (void)argument;
    CHECK_IS(EPERM, ums_pthread_cond_wait(&cond, &m));
    CHECK_IS(EPERM, ums_pthread_cond_timedwait(&cond, &m, &limit));
    CHECK_IS(0, ums_pthread_mutex_lock(&m));
    CHECK_IS(ETIMEDOUT, ums_pthread_cond_timedwait(&cond, &m, &limit));
    CHECK_IS(EINVAL, ums_pthread_cond_timedwait(&cond, &m, &bad));
    limit = in_ms(CLOCK_MONOTONIC, 1);
    CHECK_IS(ETIMEDOUT, ums_pthread_cond_clockwait(&cond, &m, CLOCK_MONOTONIC, &limit));
    CHECK_IS(EINVAL, ums_pthread_cond_clockwait(&cond, &m, 99, &limit));
    CHECK_IS(0, ums_pthread_cond_destroy(&cond));

    CHECK_IS(0, ums_pthread_condattr_init(&attr));
    CHECK_IS(0, ums_pthread_condattr_getclock(&attr, &clock));
    CHECK_IS(CLOCK_REALTIME, clock);
    CHECK_IS(EINVAL, ums_pthread_condattr_setclock(&attr, 99));
    CHECK_IS(0, ums_pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    CHECK_IS(0, ums_pthread_condattr_setpshared(&attr, UMS_PTHREAD_PROCESS_PRIVATE));
    CHECK_IS(ENOTSUP, ums_pthread_condattr_setpshared(&attr, UMS_PTHREAD_PROCESS_SHARED));
    CHECK_IS(0, ums_pthread_condattr_getpshared(&attr, &shared));
    CHECK_IS(UMS_PTHREAD_PROCESS_PRIVATE, shared);
    CHECK_IS(0, ums_pthread_condattr_getclock(&attr, &clock));
    CHECK_IS(CLOCK_MONOTONIC, clock);
    CHECK_IS(0, ums_pthread_cond_init(&cond, &attr));
    CHECK_IS(0, ums_pthread_condattr_destroy(&attr));
    limit = in_ms(CLOCK_MONOTONIC, 1);
    CHECK_IS(ETIMEDOUT, ums_pthread_cond_timedwait(&cond, &m, &limit));
    CHECK_IS(0, ums_pthread_mutex_unlock(&m));
    CHECK_IS(0, ums_pthread_cond_init(&cond, NULL));
}
static void conds_time_out(void) { on_a_fiber_and_on_a_thread(use_conds, NULL); }

static struct {
    ums_pthread_mutex_t mutex;
    ums_pthread_cond_t changed;
    int turn;
} ring = {UMS_PTHREAD_MUTEX_INITIALIZER, UMS_PTHREAD_COND_INITIALIZER, 0};
enum { PLAYERS = 5, ROUNDS = 200 };
static void* play(void* argument) {
    const int me = *(int*)argument;
    for (int i = 0; i < ROUNDS; ++i) {
        CHECK_IS(0, ums_pthread_mutex_lock(&ring.mutex));
        while (ring.turn % PLAYERS != me) {
            if (i % 2 == 0)
                CHECK_IS(0, ums_pthread_cond_wait(&ring.changed, &ring.mutex));
            else
                CHECK_IS(0, ums_pthread_cond_timedwait(&ring.changed, &ring.mutex, &never));
        }
        ++ring.turn;
        CHECK_IS(0, ums_pthread_cond_broadcast(&ring.changed));
        CHECK_IS(0, ums_pthread_cond_signal(&ring.changed));
        CHECK_IS(0, ums_pthread_mutex_unlock(&ring.mutex));
    }
    return NULL;
}
static void play_all(void* argument) {
    ums_pthread_t all[PLAYERS];
    int numbers[PLAYERS];
    (void)argument;
    ring.turn = 0;
    for (int i = 0; i < PLAYERS; ++i) {
        numbers[i] = i;
        CHECK_IS(0, ums_pthread_create(&all[i], NULL, play, &numbers[i]));
    }
    for (int i = 0; i < PLAYERS; ++i) CHECK_IS(0, ums_pthread_join(all[i], NULL));
    CHECK_IS(PLAYERS * ROUNDS, ring.turn);
}
static void conds_pass_turns(void) { on_a_fiber_and_on_a_thread(play_all, NULL); }

static ums_pthread_rwlock_t lock = UMS_PTHREAD_RWLOCK_INITIALIZER;
static void* try_written(void* argument) {
    struct timespec limit = in_ms(CLOCK_REALTIME, 1);
    (void)argument;
    CHECK_IS(EBUSY, ums_pthread_rwlock_tryrdlock(&lock));
    CHECK_IS(EBUSY, ums_pthread_rwlock_trywrlock(&lock));
    CHECK_IS(ETIMEDOUT, ums_pthread_rwlock_timedrdlock(&lock, &limit));
    CHECK_IS(ETIMEDOUT, ums_pthread_rwlock_timedwrlock(&lock, &limit));
    CHECK_IS(EINVAL, ums_pthread_rwlock_timedrdlock(&lock, &bad));
    CHECK_IS(EINVAL, ums_pthread_rwlock_timedwrlock(&lock, &bad));
    limit = in_ms(CLOCK_MONOTONIC, 1);
    CHECK_IS(ETIMEDOUT, ums_pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &limit));
    CHECK_IS(ETIMEDOUT, ums_pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &limit));
    CHECK_IS(EINVAL, ums_pthread_rwlock_clockrdlock(&lock, 99, &limit));
    CHECK_IS(EINVAL, ums_pthread_rwlock_clockwrlock(&lock, 99, &limit));
    CHECK_IS(EPERM, ums_pthread_rwlock_unlock(&lock));
    return NULL;
}
static void use_rwlock(void* argument) {
    ums_pthread_t thread;
    ums_pthread_rwlockattr_t attr;
    int shared = -1;
    (void)argument;
    CHECK_IS(0, ums_pthread_rwlockattr_init(&attr));
    CHECK_IS(0, ums_pthread_rwlockattr_setpshared(&attr, UMS_PTHREAD_PROCESS_PRIVATE));
    CHECK_IS(ENOTSUP, ums_pthread_rwlockattr_setpshared(&attr, UMS_PTHREAD_PROCESS_SHARED));
    CHECK_IS(0, ums_pthread_rwlockattr_getpshared(&attr, &shared));
    CHECK_IS(UMS_PTHREAD_PROCESS_PRIVATE, shared);
    CHECK_IS(0, ums_pthread_rwlock_init(&lock, &attr));
    CHECK_IS(0, ums_pthread_rwlockattr_destroy(&attr));
    CHECK_IS(0, ums_pthread_rwlock_destroy(&lock));
    CHECK_IS(0, ums_pthread_rwlock_init(&lock, NULL));
    CHECK_IS(EPERM, ums_pthread_rwlock_unlock(&lock));
    CHECK_IS(0, ums_pthread_rwlock_wrlock(&lock));
    CHECK_IS(EDEADLK, ums_pthread_rwlock_wrlock(&lock));
    CHECK_IS(EDEADLK, ums_pthread_rwlock_rdlock(&lock));
    CHECK_IS(EDEADLK, ums_pthread_rwlock_timedwrlock(&lock, &never));
    CHECK_IS(EBUSY, ums_pthread_rwlock_destroy(&lock));
    CHECK_IS(0, ums_pthread_create(&thread, NULL, try_written, NULL));
    CHECK_IS(0, ums_pthread_join(thread, NULL));
    CHECK_IS(0, ums_pthread_rwlock_unlock(&lock));
    CHECK_IS(0, ums_pthread_rwlock_rdlock(&lock));
    CHECK_IS(0, ums_pthread_rwlock_tryrdlock(&lock));
    CHECK_IS(0, ums_pthread_rwlock_timedrdlock(&lock, &past));
    CHECK_IS(EBUSY, ums_pthread_rwlock_trywrlock(&lock));
    for (int i = 0; i < 3; ++i) CHECK_IS(0, ums_pthread_rwlock_unlock(&lock));
    CHECK_IS(0, ums_pthread_rwlock_timedwrlock(&lock, &past));
    CHECK_IS(0, ums_pthread_rwlock_unlock(&lock));
    CHECK_IS(0, ums_pthread_rwlock_destroy(&lock));
}
static void rwlocks_lock(void) { on_a_fiber_and_on_a_thread(use_rwlock, NULL); }

static ums_pthread_key_t key;
static ums_pthread_once_t once = UMS_PTHREAD_ONCE_INIT;
static atomic_int destroyed, initialised;
static void destroy(void* value) { atomic_fetch_add(&destroyed, *(int*)value); }
static void initialise(void) {
    CHECK_IS(0, ums_pthread_key_create(&key, destroy));
    ++initialised;
}
static void* use_key(void* argument) {
    CHECK_IS(0, ums_pthread_once(&once, initialise));
    CHECK(ums_pthread_getspecific(key) == NULL);
    CHECK_IS(0, ums_pthread_setspecific(key, argument));
    CHECK(ums_pthread_getspecific(key) == argument);
    if (*(int*)argument == 1) ums_pthread_exit(NULL); /* This destroys it, too. */
    return NULL;
}
static void use_keys(void* argument) {
    ums_pthread_t all[4];
    int numbers[4] = {1, 10, 100, 1000};
    (void)argument;
    destroyed = 0;
    for (int i = 0; i < 4; ++i)
        CHECK_IS(0, ums_pthread_create(&all[i], NULL, use_key, &numbers[i]));
    for (int i = 0; i < 4; ++i) CHECK_IS(0, ums_pthread_join(all[i], NULL));
    CHECK_IS(1111, destroyed);
    CHECK_IS(1, initialised);
}
static void keys_and_once(void) {
    on_a_fiber_and_on_a_thread(use_keys, NULL);
    CHECK_IS(0, ums_pthread_key_delete(key));
}

static ums_pthread_barrier_t barrier;
static void* meet(void* argument) {
    for (int i = 0; i < 100; ++i) {
        const int result = ums_pthread_barrier_wait(&barrier);
        CHECK(result == 0 || result == UMS_PTHREAD_BARRIER_SERIAL_THREAD);
        if (result != 0) atomic_fetch_add((atomic_int*)argument, 1);
    }
    return NULL;
}
static void meet_all(void* argument) {
    ums_pthread_t all[4];
    ums_pthread_barrierattr_t attr;
    atomic_int serial = 0;
    int shared = -1;
    (void)argument;
    CHECK_IS(EINVAL, ums_pthread_barrier_init(&barrier, NULL, 0));
    CHECK_IS(0, ums_pthread_barrierattr_init(&attr));
    CHECK_IS(0, ums_pthread_barrierattr_setpshared(&attr, UMS_PTHREAD_PROCESS_PRIVATE));
    CHECK_IS(ENOTSUP, ums_pthread_barrierattr_setpshared(&attr, UMS_PTHREAD_PROCESS_SHARED));
    CHECK_IS(0, ums_pthread_barrierattr_getpshared(&attr, &shared));
    CHECK_IS(UMS_PTHREAD_PROCESS_PRIVATE, shared);
    CHECK_IS(0, ums_pthread_barrier_init(&barrier, &attr, 1));
    CHECK_IS(0, ums_pthread_barrierattr_destroy(&attr));
    CHECK_IS(0, ums_pthread_barrier_destroy(&barrier));
    CHECK_IS(0, ums_pthread_barrier_init(&barrier, NULL, 4));
    for (int i = 0; i < 4; ++i) CHECK_IS(0, ums_pthread_create(&all[i], NULL, meet, &serial));
    for (int i = 0; i < 4; ++i) CHECK_IS(0, ums_pthread_join(all[i], NULL));
    CHECK_IS(0, ums_pthread_barrier_destroy(&barrier));
    CHECK_IS(100, serial);
}
static void barriers_name_one_thread(void) { on_a_fiber_and_on_a_thread(meet_all, NULL); }

/* A function of its own reads errno: see ums_pthread.h. */
static __attribute__((noinline)) int error_of(int result) { return result == -1 ? errno : result; }

static void* post(void* argument) {
    CHECK_IS(0, ums_sem_post(argument));
    return NULL;
}
static void use_semaphores(void* argument) {
    ums_sem_t s;
    ums_pthread_t thread;
    int value = -1;
    struct timespec limit = in_ms(CLOCK_REALTIME, 1);
    (void)argument;
    CHECK_IS(ENOSYS, error_of(ums_sem_init(&s, 1, 0)));
    CHECK_IS(EINVAL, error_of(ums_sem_init(&s, 0, 0x80000000u)));
    CHECK_IS(0, ums_sem_init(&s, 0, UMS_SEMAPHORE_MAX));
    CHECK_IS(EOVERFLOW, error_of(ums_sem_post(&s)));
    CHECK_IS(0, ums_sem_init(&s, 0, 1));
    CHECK_IS(0, ums_sem_getvalue(&s, &value));
    CHECK_IS(1, value);
    CHECK_IS(0, ums_sem_wait(&s));
    CHECK_IS(EAGAIN, error_of(ums_sem_trywait(&s)));
    CHECK_IS(ETIMEDOUT, error_of(ums_sem_timedwait(&s, &limit)));
    CHECK_IS(EINVAL, error_of(ums_sem_timedwait(&s, &bad)));
    limit = in_ms(CLOCK_MONOTONIC, 1);
    CHECK_IS(ETIMEDOUT, error_of(ums_sem_clockwait(&s, CLOCK_MONOTONIC, &limit)));
    CHECK_IS(EINVAL, error_of(ums_sem_clockwait(&s, 99, &limit)));
    CHECK_IS(0, ums_pthread_create(&thread, NULL, post, &s));
    CHECK_IS(0, ums_sem_wait(&s));
    CHECK_IS(0, ums_pthread_join(thread, NULL));
    CHECK_IS(0, ums_sem_post(&s));
    CHECK_IS(0, ums_sem_timedwait(&s, &past));
    CHECK_IS(0, ums_sem_destroy(&s));
}
static void semaphores_use_errno(void) { on_a_fiber_and_on_a_thread(use_semaphores, NULL); }

int main(void) {
    RUN(threads_are_made_and_joined);
    RUN(a_stack_without_a_size_has_the_runtimes);
    RUN(threads_have_names);
    RUN(a_plain_thread_may_exit);
    RUN(the_main_fiber_may_exit);
    RUN(mutexes_lock);
    RUN(conds_time_out);
    RUN(conds_pass_turns);
    RUN(rwlocks_lock);
    RUN(keys_and_once);
    RUN(barriers_name_one_thread);
    RUN(semaphores_use_errno);
    return check_end();
}
