// SPDX-License-Identifier: MIT

// c_ported: a program written for threads runs on fibers. Only the first two lines of code are new,
// and the two calls that start and stop the runtime.
//
// Output:
//   ping 0
//   pong 0
//   ping 1
//   pong 1

#define UMS_PTHREAD_NAMES
#include <ums/ums_pthread.h>

#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;

static void* play(void* argument) {
    const int me = *(const int*)argument;
    for (int round = 0; round < 2; ++round) {
        pthread_mutex_lock(&mutex);
        while (turn % 2 != me) pthread_cond_wait(&changed, &mutex);
        printf("%s %d\n", me == 0 ? "ping" : "pong", round);
        ++turn;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(void) {
    static const int numbers[2] = {0, 1};
    pthread_t players[2];
    if (ums_runtime_start(NULL) != 0) return 1;
    for (int i = 0; i < 2; ++i)
        if (pthread_create(&players[i], NULL, play, (void*)&numbers[i]) != 0) return 1;
    for (int i = 0; i < 2; ++i) pthread_join(players[i], NULL);
    return ums_runtime_stop() == 0 ? 0 : 1;
}
