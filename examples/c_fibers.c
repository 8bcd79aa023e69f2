// SPDX-License-Identifier: MIT

// c_fibers: the C API. Fibers add to a sum under a mutex, and a wait group reports when all have
// done so.
//
// Output:
//   1000 fibers added up to 500500

#include <stdio.h>
#include <stdlib.h>

#include <ums/ums.h>

enum { FIBERS = 1000 };

static ums_mutex_t mutex = UMS_MUTEX_INIT;
static ums_wait_group_t all = UMS_WAIT_GROUP_INIT;
static long sum;

static void add(void* argument) {
    ums_mutex_lock(&mutex);
    sum += *(const int*)argument;
    ums_mutex_unlock(&mutex);
    ums_wait_group_done(&all);
}

// The first fiber.
static void first(void* argument) {
    int* numbers = argument;
    ums_wait_group_add(&all, FIBERS);
    for (int i = 0; i < FIBERS; ++i) {
        ums_fiber_t fiber;
        numbers[i] = i + 1;
        // Returns 0, or a negative error number; errno is never used.
        if (ums_fiber_create(&fiber, NULL, add, &numbers[i]) != 0) abort();
        ums_fiber_detach(&fiber);
    }
    ums_wait_group_wait(&all);
    printf("%d fibers added up to %ld\n", FIBERS, sum);
}

int main(void) {
    static int numbers[FIBERS];
    ums_options_t options = UMS_OPTIONS_INIT;  // Sets the size, and the defaults.
    options.processors = 2;
    return ums_run(&options, first, numbers) == 0 ? 0 : 1;
}
