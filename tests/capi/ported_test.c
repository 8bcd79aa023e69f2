// SPDX-License-Identifier: MIT
// variants: migrate p1

/* A program of the old style: a bounded queue between producers and consumers. Only the include and
 * the start and stop of the runtime are new. */
#define UMS_PTHREAD_NAMES
#include <ums/ums_pthread.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

enum { CAPACITY = 8, PRODUCERS = 3, CONSUMERS = 4, ITEMS = 1000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int queue[CAPACITY], first, filled, producing = PRODUCERS;

static pthread_rwlock_t total_lock = PTHREAD_RWLOCK_INITIALIZER;
static long total;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t sum_key;
static sem_t done;
static pthread_barrier_t all_here;

static void add_sum(void* value) {
    pthread_rwlock_wrlock(&total_lock);
    total += *(long*)value;
    pthread_rwlock_unlock(&total_lock);
    free(value);
}
static void make_key(void) { pthread_key_create(&sum_key, add_sum); }

static void* produce(void* argument) {
    (void)argument;
    pthread_barrier_wait(&all_here);
    for (int i = 1; i <= ITEMS; ++i) {
        pthread_mutex_lock(&mutex);
        while (filled == CAPACITY) pthread_cond_wait(&not_full, &mutex);
        queue[(first + filled++) % CAPACITY] = i;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_lock(&mutex);
    if (--producing == 0) pthread_cond_broadcast(&not_empty);
    pthread_mutex_unlock(&mutex);
    sem_post(&done);
    return NULL;
}

static void* consume(void* argument) {
    pthread_once(&once, make_key);
    long* sum = calloc(1, sizeof *sum);
    pthread_setspecific(sum_key, sum);
    pthread_barrier_wait(&all_here);
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (filled == 0 && producing != 0) pthread_cond_wait(&not_empty, &mutex);
        if (filled == 0) break;
        *sum += queue[first];
        first = (first + 1) % CAPACITY;
        --filled;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
    pthread_exit(argument);
}

int main(void) {
    if (ums_runtime_start(NULL) != 0) return 2;
    pthread_t threads[PRODUCERS + CONSUMERS];
    pthread_barrier_init(&all_here, NULL, PRODUCERS + CONSUMERS);
    sem_init(&done, 0, 0);
    for (int i = 0; i < PRODUCERS + CONSUMERS; ++i)
        if (pthread_create(&threads[i], NULL, i < PRODUCERS ? produce : consume, threads) != 0)
            return 3;
    for (int i = 0; i < PRODUCERS; ++i) sem_wait(&done);
    for (int i = 0; i < PRODUCERS + CONSUMERS; ++i) {
        void* result;
        if (pthread_join(threads[i], &result) != 0) return 4;
        if (result != (i < PRODUCERS ? NULL : threads)) return 5;
    }
    pthread_key_delete(sum_key);
    if (ums_runtime_stop() != 0) return 6;
    const long expected = (long)PRODUCERS * ITEMS * (ITEMS + 1) / 2;
    if (total != expected) fprintf(stderr, "%ld, should be %ld\n", total, expected);
    return total == expected ? 0 : 1;
}
