// SPDX-License-Identifier: MIT
// variants: p1
#include <string.h>

#include "check.h"

static void the_text_is_cut_and_its_length_is_told(void* argument) {
    static char all[64 * 1024];
    char some[100];
    size_t length = 0;
    (void)argument;
    CHECK_IS(0, ums_metrics(all, sizeof all, &length));
    CHECK(length < sizeof all);
    CHECK_IS(length, strlen(all));
    CHECK(strcmp(all + length - 6, "# EOF\n") == 0);
    CHECK(strstr(all, "\nums_fibers_spawned_total ") != NULL);
    CHECK_IS(0, ums_metrics(some, sizeof some, &length));
    CHECK_IS(sizeof some - 1, strlen(some));
    CHECK(length > sizeof some);
    CHECK_IS(0, ums_metrics(NULL, 0, &length));
    CHECK_IS(0, ums_metrics(some, sizeof some, NULL));
}
static void metrics_are_text(void) {
    // Without a runtime, too.
    the_text_is_cut_and_its_length_is_told(NULL);
    on_a_fiber_and_on_a_thread(the_text_is_cut_and_its_length_is_told, NULL);
}

static ums_semaphore_t never;

static void wait_for_ever(void* argument) {
    (void)argument;
    ums_semaphore_acquire(&never);
}

struct seen {
    int calls, waiting;
    uint64_t waiter;
};

static int count(void* context, const ums_fiber_info_t* one) {
    struct seen* s = context;
    ++s->calls;
    CHECK_IS(sizeof *one, one->size);
    CHECK(one->id != 0);
    if (strcmp(one->name, "the waiter") != 0) return 0;
    CHECK(one->spawned_at != NULL);
    s->waiter = one->id;
    if (one->state != UMS_FIBER_WAITING) return 0;
    CHECK(strcmp(one->waits_for, "semaphore") == 0);
    CHECK_IS((uintptr_t)&never, one->waits_in);
    ++s->waiting;
    return 0;
}

static int stop_at_once(void* context, const ums_fiber_info_t* one) {
    (void)one;
    ++*(int*)context;
    return -42;
}

static void list_them(void* argument) {
    ums_fiber_t waiter;
    ums_fiber_options_t options = UMS_FIBER_OPTIONS_INIT;
    struct seen s;
    int calls = 0;
    (void)argument;
    options.name = "the waiter";
    CHECK_IS(0, ums_semaphore_init(&never, 0));
    CHECK_IS(0, ums_fiber_create(&waiter, &options, wait_for_ever, NULL));
    do {
        memset(&s, 0, sizeof s);
        ums_this_fiber_yield();
        CHECK_IS(0, ums_fibers(count, &s));
        CHECK_IS(ums_fiber_id(&waiter), s.waiter);
        CHECK(s.calls >= 1);
    } while (s.waiting == 0);
    CHECK_IS(-42, ums_fibers(stop_at_once, &calls));
    CHECK_IS(1, calls);
    CHECK_IS(0, ums_semaphore_release(&never, 1));
    join(&waiter);
}
static void fibers_are_listed(void) {
    struct seen s = {0, 0, 0};
    CHECK_IS(0, ums_fibers(count, &s));
    CHECK_IS(0, s.calls);
    on_a_fiber_and_on_a_thread(list_them, NULL);
}

int main(void) {
    RUN(metrics_are_text);
    RUN(fibers_are_listed);
    return check_end();
}
