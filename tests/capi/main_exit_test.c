// SPDX-License-Identifier: MIT
// variants: migrate p1

/* main() ends as a thread does: the destructors of its keys run, the other threads continue, and
 * after the last of them the process ends with status 0. */
#include <ums/ums_pthread.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS = 4 };

static atomic_int forgotten, ended;
static ums_pthread_t joinable;

static void forget(void* value) {
    (void)value;
    forgotten = 1;
}

static void* work(void* child) {
    ums_pthread_t thread;
    while (!forgotten) ums_sched_yield();
    for (int i = 0; i < 100; ++i) ums_sched_yield();
    if (child != NULL &&
        (ums_pthread_create(&thread, NULL, work, NULL) != 0 || ums_pthread_detach(thread) != 0))
        abort();
    ++ended;
    return NULL;
}

static void look(void) {
    if (ended == WORKERS && ums_runtime_stop() != 0) return;
    fprintf(stderr, "%d of %d have ended\n", (int)ended, WORKERS);
    _Exit(1);
}

int main(void) {
    ums_pthread_key_t key;
    ums_pthread_t detached;
    if (atexit(look) != 0 || ums_runtime_start(NULL) != 0) return 2;
    if (ums_pthread_key_create(&key, forget) != 0 || ums_pthread_setspecific(key, &key) != 0)
        return 3;
    for (int i = 0; i < WORKERS - 2; ++i)
        if (ums_pthread_create(&detached, NULL, work, NULL) != 0 ||
            ums_pthread_detach(detached) != 0)
            return 4;
    if (ums_pthread_create(&joinable, NULL, work, &key) != 0) return 5;
    ums_pthread_exit(&key);
}
