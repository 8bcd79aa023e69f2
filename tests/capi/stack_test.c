// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <stdint.h>

#include <ums/ums_stack.h>

#include "check.h"

struct pair {
    ums_stack_t *own, *other;
    int seen;
};

static void count_messages(void* argument, void* message) {
    struct pair* p = argument;
    for (;;) {
        p->seen += (int)(intptr_t)message;
        message = ums_stack_switch(p->other, p->own, (void*)(intptr_t)p->seen);
    }
}

static void messages_go_both_ways(void) {
    struct pair p = {NULL, NULL, 0};
    CHECK_IS(0, ums_stack_adopt(&p.own));
    CHECK_IS(0, ums_stack_create(&p.other, 64 * 1024, count_messages, &p));
    for (int i = 1; i <= 100; ++i)
        CHECK_IS(i * (i + 1) / 2, (intptr_t)ums_stack_switch(p.own, p.other, (void*)(intptr_t)i));
    ums_stack_destroy(p.other);
    ums_stack_destroy(p.own);
}

static void* go_on_elsewhere(void* argument) {
    struct pair* p = argument;
    CHECK_IS(0, ums_stack_adopt(&p->own));
    CHECK_IS(3, (intptr_t)ums_stack_switch(p->own, p->other, (void*)2));
    ums_stack_destroy(p->own);
    return NULL;
}

static void another_thread_goes_on_with_a_stack(void) {
    struct pair p = {NULL, NULL, 0};
    pthread_t thread;
    CHECK_IS(0, ums_stack_adopt(&p.own));
    ums_stack_t* const first = p.own;
    CHECK_IS(0, ums_stack_create(&p.other, 1, count_messages, &p));
    CHECK_IS(1, (intptr_t)ums_stack_switch(p.own, p.other, (void*)1));
    CHECK_IS(0, pthread_create(&thread, NULL, go_on_elsewhere, &p));
    CHECK_IS(0, pthread_join(thread, NULL));
    CHECK_IS(3, p.seen);
    ums_stack_destroy(p.other);
    ums_stack_destroy(first);
}

static void bad_stacks_are_refused(void) {
    ums_stack_t* stack;
    CHECK_IS(-EINVAL, ums_stack_create(&stack, 4096, NULL, NULL));
    CHECK_IS(-EINVAL, ums_stack_create(&stack, 0, count_messages, NULL));
    CHECK_IS(-ENOMEM, ums_stack_create(&stack, SIZE_MAX, count_messages, NULL));
    CHECK_IS(-ENOMEM, ums_stack_create(&stack, SIZE_MAX / 4, count_messages, NULL));
    ums_stack_destroy(NULL);
}

int main(void) {
    RUN(messages_go_both_ways);
    RUN(another_thread_goes_on_with_a_stack);
    RUN(bad_stacks_are_refused);
    return check_end();
}
