/* SPDX-License-Identifier: MIT */
// variants: migrate p1 nosync
#include <pthread.h>

#include "check.h"

#include <ums/ums_pthread.h>

struct pair {
    long a, b;
};

static void use_promise(void* argument) {
    const struct pair given = {3, 4};
    struct pair got = {0, 0};
    ums_promise_t* promise;
    ums_future_t *future, *other;
    ums_stop_t* stop;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK_IS(0, ums_promise_create(&promise, &future, sizeof given));
    CHECK(!ums_future_is_ready(future));
    CHECK_IS(-ETIMEDOUT, ums_future_get_until(future, &got, ums_deadline_after(MS / 10), NULL));
    CHECK_IS(-ETIMEDOUT, ums_future_get_until(future, &got, ums_deadline_after(MS / 10), stop));
    CHECK(ums_stop_request(stop));
    CHECK_IS(-ECANCELED, ums_future_get_until(future, &got, UMS_NEVER, stop));
    CHECK_IS(0, ums_future_copy(&other, future));
    CHECK_IS(-EINVAL, ums_promise_fail(promise, 0));
    CHECK_IS(0, ums_promise_set(promise, &given));
    CHECK_IS(-EALREADY, ums_promise_set(promise, &given));
    CHECK_IS(-EALREADY, ums_promise_fail(promise, -EIO));
    ums_promise_destroy(promise);
    CHECK(ums_future_is_ready(future));
    CHECK_IS(0, ums_future_get(future, &got));
    CHECK(got.a == 3 && got.b == 4);
    ums_future_destroy(future);
    got.a = 0;
    CHECK_IS(0, ums_future_get_until(other, &got, 0, stop));
    CHECK(got.a == 3 && got.b == 4);
    CHECK_IS(0, ums_future_get(other, NULL));
    ums_future_destroy(other);

    CHECK_IS(0, ums_promise_create(&promise, &future, 0));
    CHECK_IS(0, ums_promise_fail(promise, -EIO));
    CHECK_IS(-EIO, ums_future_get(future, NULL));
    CHECK_IS(-EIO, ums_future_get_until(future, NULL, UMS_NEVER, NULL));
    ums_promise_destroy(promise);
    ums_future_destroy(future);

    CHECK_IS(0, ums_promise_create(&promise, &future, 0));
    ums_promise_destroy(promise);
    CHECK(ums_future_is_ready(future));
    CHECK_IS(-EPIPE, ums_future_get(future, NULL));
    ums_future_destroy(future);

    CHECK_IS(0, ums_promise_create(&promise, &future, 0));
    ums_future_destroy(future);
    CHECK_IS(0, ums_promise_set(promise, NULL));
    ums_promise_destroy(promise);
    ums_stop_destroy(stop);
}
static void a_promise_has_one_outcome(void) { on_a_fiber_and_on_a_thread(use_promise, NULL); }

enum { READERS = 8, ROUNDS = 50 };
static void read_value(void* future) {
    long got = 0;
    CHECK_IS(0, ums_future_get(future, &got));
    CHECK_IS(42, got);
}
static void* read_on_thread(void* future) {
    read_value(future);
    return NULL;
}
static void provide_value(void* promise) {
    const long value = 42;
    CHECK_IS(0, ums_promise_set(promise, &value));
    ums_promise_destroy(promise);
}
static void many_read(void* argument) {
    (void)argument;
    for (int round = 0; round < ROUNDS; ++round) {
        ums_promise_t* promise;
        ums_future_t* future;
        ums_fiber_t readers[READERS];
        CHECK_IS(0, ums_promise_create(&promise, &future, sizeof(long)));
        for (int i = 0; i < READERS; ++i) readers[i] = start(read_value, future);
        ums_fiber_t provider = start(provide_value, promise);
        for (int i = 0; i < READERS; ++i) join(&readers[i]);
        join(&provider);
        ums_future_destroy(future);
    }
}
static void every_reader_gets_the_value(void) {
    on_a_fiber_and_on_a_thread(many_read, NULL);
    ums_promise_t* promise;
    ums_future_t* future;
    pthread_t thread;
    CHECK_IS(0, ums_promise_create(&promise, &future, sizeof(long)));
    CHECK_IS(0, pthread_create(&thread, NULL, read_on_thread, future));
    CHECK_IS(0, ums_runtime_start(NULL));
    ums_fiber_t provider = start(provide_value, promise);
    join(&provider);
    CHECK_IS(0, ums_runtime_stop());
    CHECK_IS(0, pthread_join(thread, NULL));
    ums_future_destroy(future);
}

static int add(void* argument, void* value) {
    const struct pair* of = argument;
    long* sum = value;
    CHECK_IS(0, *sum);
    ums_this_fiber_yield();
    *sum = of->a + of->b;
    return 0;
}
static int fail(void* argument, void* value) {
    (void)argument, (void)value;
    return -EDOM;
}
static int leave(void* argument, void* value) {
    (void)argument, (void)value;
    ums_pthread_exit(NULL);
}
static int say_name(void* argument, void* value) {
    (void)argument;
    strcpy(value, ums_this_fiber_name());
    return 1; /* No error. */
}
static ums_key_t key;
static void forget(void* count) {
    for (int i = 0; i < 10; ++i) ums_this_fiber_yield();
    atomic_fetch_add((atomic_int*)count, 1);
}
static int remember(void* count, void* value) {
    (void)value;
    return ums_key_set(key, count);
}
static int remember_and_leave(void* count, void* value) {
    CHECK_IS(0, remember(count, value));
    ums_pthread_exit(NULL);
}
static void use_async(void* argument) {
    atomic_int forgotten = 0;
    struct pair of = {3, 4};
    long sum = 0;
    char name[8] = "";
    ums_future_t* future;
    ums_fiber_options_t options = UMS_FIBER_OPTIONS_INIT;
    (void)argument;
    CHECK_IS(0, ums_async(&future, NULL, sizeof sum, add, &of));
    CHECK_IS(0, ums_future_get(future, &sum));
    CHECK_IS(7, sum);
    ums_future_destroy(future);
    CHECK_IS(0, ums_async(&future, NULL, 0, fail, NULL));
    CHECK_IS(-EDOM, ums_future_get(future, NULL));
    ums_future_destroy(future);
    CHECK_IS(0, ums_async(&future, NULL, 0, leave, NULL));
    CHECK_IS(-EPIPE, ums_future_get(future, NULL));
    ums_future_destroy(future);
    options.name = "worker";
    CHECK_IS(0, ums_async(&future, &options, sizeof name, say_name, NULL));
    CHECK_IS(0, ums_future_get(future, name));
    CHECK(strcmp(name, "worker") == 0);
    ums_future_destroy(future);
    CHECK_IS(0, ums_async(&future, NULL, sizeof sum, add, &of));
    CHECK_IS(0, ums_future_get(future, NULL));
    ums_future_destroy(future);
    CHECK_IS(0, ums_key_create(&key, forget));
    CHECK_IS(0, ums_async(&future, NULL, 0, remember, &forgotten));
    CHECK_IS(0, ums_future_get(future, NULL));
    CHECK_IS(1, forgotten);
    ums_future_destroy(future);
    CHECK_IS(0, ums_async(&future, NULL, 0, remember_and_leave, &forgotten));
    CHECK_IS(-EPIPE, ums_future_get(future, NULL));
    CHECK_IS(2, forgotten);
    ums_future_destroy(future);
    ums_key_delete(key);
    CHECK_IS(-EINVAL, ums_async(&future, NULL, 0, NULL, NULL));
    options.launch = 7;
    CHECK_IS(-EINVAL, ums_async(&future, &options, 0, fail, NULL));
    CHECK(future == NULL);
}
static void async_returns_what_the_function_wrote_or_its_error(void) {
    ums_future_t* future;
    CHECK_IS(-EPERM, ums_async(&future, NULL, 0, fail, NULL));
    on_a_fiber_and_on_a_thread(use_async, NULL);
}

int main(void) {
    RUN(a_promise_has_one_outcome);
    RUN(every_reader_gets_the_value);
    RUN(async_returns_what_the_function_wrote_or_its_error);
    return check_end();
}
