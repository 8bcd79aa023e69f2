// SPDX-License-Identifier: MIT
// variants: migrate p1
#include <pthread.h>

#include "check.h"

static ums_key_t key, other;
static atomic_int destroyed;

static void destroy(void* value) {
    CHECK(ums_key_get(key) == NULL);
    atomic_fetch_add(&destroyed, *(int*)value);
}
static int one = 1, ten = 10;

/* Sets its own key again, once. */
static void destroy_again(void* value) {
    atomic_fetch_add(&destroyed, *(int*)value);
    if (value == &ten) CHECK_IS(0, ums_key_set(other, &one));
}

static void use_values(void* argument) {
    CHECK(ums_key_get(key) == NULL);
    CHECK_IS(0, ums_key_set(key, NULL));
    CHECK(ums_key_get(key) == NULL);
    CHECK_IS(0, ums_key_set(key, &ten));
    CHECK_IS(0, ums_key_set(key, argument));
    for (int i = 0; i < 10; ++i) {
        ums_this_fiber_yield();
        CHECK(ums_key_get(key) == argument);
    }
}
static void* use_on_a_thread(void* argument) {
    use_values(argument);
    return NULL;
}
static void values_belong_to_a_fiber_or_thread_and_go_with_it(void) {
    pthread_t thread;
    ums_fiber_t all[20];
    destroyed = 0;
    CHECK_IS(0, ums_runtime_start(NULL));
    CHECK_IS(0, ums_key_create(&key, destroy));
    CHECK_IS(0, pthread_create(&thread, NULL, use_on_a_thread, &one));
    for (int i = 0; i < 20; ++i) all[i] = start(use_values, &one);
    for (int i = 0; i < 20; ++i) join(&all[i]);
    pthread_join(thread, NULL);
    CHECK_IS(21, destroyed);
    ums_key_delete(key);
    CHECK_IS(0, ums_runtime_stop());
}

static void set_ten(void* argument) {
    (void)argument;
    CHECK_IS(0, ums_key_set(other, &ten));
}
static void a_destructor_may_set_a_value(void) {
    destroyed = 0;
    CHECK_IS(0, ums_key_create(&other, destroy_again));
    CHECK_IS(0, ums_run(NULL, set_ten, NULL));
    CHECK_IS(11, destroyed);
    ums_key_delete(other);
}

static void outlive(void* argument) {
    (void)argument;
    CHECK_IS(0, ums_key_set(other, &ten));
    ums_key_delete(other);
    CHECK_IS(0, ums_key_create(&other, NULL));
    CHECK(ums_key_get(other) == NULL);
    CHECK_IS(0, ums_key_set(other, &one));
}
static void a_deleted_key_destroys_nothing(void) {
    destroyed = 0;
    CHECK_IS(0, ums_key_create(&other, destroy_again));
    CHECK_IS(0, ums_run(NULL, outlive, NULL));
    CHECK_IS(0, destroyed);
    ums_key_delete(other);
}

int main(void) {
    RUN(values_belong_to_a_fiber_or_thread_and_go_with_it);
    RUN(a_destructor_may_set_a_value);
    RUN(a_deleted_key_destroys_nothing);
    return check_end();
}
