// SPDX-License-Identifier: MIT

// c_policy: your own scheduling policy in C: first come, first served, but a tag comes first.
//
// Output:
//   third
//   second
//   first

#include <pthread.h>
#include <stdio.h>
#include <ums/ums.h>

// One queue for all processors.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ums_fiber_queue_t queue = UMS_FIBER_QUEUE_INIT;

static void ignore(void* self, unsigned processor) { (void)self, (void)processor; }
static void ready(void* self, ums_ref_t fiber, unsigned processor) {
    (void)self, (void)processor;
    pthread_mutex_lock(&lock);
    ums_ref_tag(fiber) != 0 ? ums_fiber_queue_push_front(&queue, fiber)
                            : ums_fiber_queue_push_back(&queue, fiber);
    pthread_mutex_unlock(&lock);
}
static ums_ref_t next(void* self, unsigned processor) {
    (void)self, (void)processor;
    pthread_mutex_lock(&lock);
    const ums_ref_t fiber = ums_fiber_queue_pop_front(&queue);
    pthread_mutex_unlock(&lock);
    return fiber;
}
static bool empty(void* self, unsigned processor) {
    (void)self, (void)processor;
    pthread_mutex_lock(&lock);
    const size_t size = ums_fiber_queue_size(&queue);
    pthread_mutex_unlock(&lock);
    return size == 0;
}
// `ums check-policy` looks for this name when this file is a shared object.
const ums_policy_calls_t ums_policy_functions = {.size = sizeof(ums_policy_calls_t),
                                                 .attach = ignore,
                                                 .detach = ignore,
                                                 .ready = ready,
                                                 .next = next,
                                                 .empty = empty};

static void say(void* text) { puts(text); }
static void first(void* unused) {
    (void)unused;
    static char* const names[] = {"first", "second", "third"};
    ums_fiber_options_t options = UMS_FIBER_OPTIONS_INIT;
    ums_fiber_t fiber;
    for (options.tag = 0; options.tag < 3; ++options.tag)
        if (ums_fiber_create(&fiber, &options, say, names[options.tag]) == 0)
            ums_fiber_detach(&fiber);
}
int main(void) {
    ums_options_t options = UMS_OPTIONS_INIT;
    options.processors = 1;
    options.policy_calls = &ums_policy_functions;
    return ums_run(&options, first, NULL);
}
