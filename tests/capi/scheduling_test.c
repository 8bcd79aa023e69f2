// SPDX-License-Identifier: MIT
#include "check.h"

#include <poll.h>
#include <unistd.h>

#include <ums/ums_scheduling.h>

static ums_completion_list_t list;
static ums_context_t ready[16];
static int count, ended, blocked, wanted;

static void take(int64_t deadline) {
    ums_context_t c = 0;
    CHECK_IS(0, ums_completion_list_dequeue(list, deadline, &c));
    for (; c != 0; c = ums_context_next(c)) {
        unsigned char is = 0;
        CHECK_IS(0, ums_context_query(c, UMS_INFORMATION_TERMINATED, &is, 1, NULL));
        if (is)
            ++ended;
        else
            ready[count++] = c;
    }
}

static void decide(ums_reason_t reason, uintptr_t payload, void* parameter) {
    if (reason == UMS_REASON_STARTUP) CHECK(parameter == &list);
    if (reason == UMS_REASON_YIELD) ready[count++] = payload;
    blocked += reason == UMS_REASON_BLOCKED;
    CHECK_IS(UMS_THREAD_SCHEDULER, ums_thread_kind(0));
    while (ended < wanted) {
        while (count != 0) CHECK_IS(0, ums_worker_execute(ready[--count]));
        take(UMS_NEVER);
    }
    if (wanted == 2) ums_scheduler_exit();
}

static void run(int workers) {
    ums_scheduler_options_t options = UMS_SCHEDULER_OPTIONS_INIT;
    options.list = list;
    options.procedure = decide;
    options.parameter = &list;
    count = ended = blocked = 0;
    wanted = workers;
    CHECK_IS(0, ums_scheduler_enter(&options));
    CHECK_IS(workers, ended);
}

static intptr_t work(void* argument) {
    int* step = argument;
    *step = 1;
    CHECK_IS(0, ums_worker_yield(NULL));
    ums_worker_blocking_enter();
    *step = 2;
    ums_worker_blocking_leave();
    ums_critical_enter();
    CHECK_IS(-EPERM, ums_worker_yield(NULL));
    ums_critical_leave();
    const ums_worker_t self = ums_worker_current(); /* 0 once it is detached. */
    CHECK(self == 0 || ums_context_current() == ums_worker_context(self));
    CHECK(self == 0 || ums_thread_id() == ums_worker_tid(self));
    if (*step == 2) ums_worker_exit(5);
    return 6;
}

static void noted(void* argument, intptr_t code) { *(intptr_t*)argument = code; }

static void a_worker_yields_blocks_and_exits(void) {
    ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
    ums_worker_t worker = 0;
    intptr_t told = 0, code = 0;
    int step = 0;
    CHECK_IS(0, ums_completion_list_create(&list));
    options.list = list;
    options.ended = noted;
    options.ended_argument = &told;
    options.suspended = true;
    CHECK_IS(0, ums_worker_create(&worker, &options, work, &step));
    const ums_context_t context = ums_worker_context(worker);
    unsigned before = 0;
    CHECK_IS(0, ums_worker_suspend(worker, &before));
    CHECK_IS(1, before);
    CHECK_IS(0, ums_worker_resume(worker, NULL));
    CHECK_IS(0, ums_worker_resume(worker, NULL));
    CHECK_IS(-EBUSY, ums_worker_exit_code(worker, &code));
    run(1);
    CHECK_IS(2, step);
    CHECK_IS(2, blocked);
    CHECK_IS(5, told);
    CHECK_IS(0, ums_worker_exit_code(worker, &code));
    CHECK_IS(5, code);
    CHECK_IS(0, ums_worker_join(worker, &code));
    CHECK_IS(5, code);
    ums_context_stats_t stats = UMS_CONTEXT_STATS_INIT;
    CHECK_IS(0, ums_context_get_stats(context, &stats));
    CHECK_IS(3, stats.switches);
    ums_context_t all[2];
    CHECK_IS(1, ums_context_list(all, 2));
    CHECK_IS(0, ums_context_destroy(context));
    CHECK_IS(0, ums_completion_list_destroy(list));
}

static void touched(void* argument) { atomic_fetch_add((atomic_int*)argument, 1); }

static void workers_end_without_running_and_are_heard_of(void) {
    static atomic_int calls;
    ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
    ums_worker_t killed = 0, detached = 0;
    ums_context_t own = 0;
    int step = 0, fd = -1;
    void* data = &step;
    CHECK_IS(0, ums_completion_list_create(&list));
    CHECK_IS(0, ums_completion_list_event(list, &fd));
    CHECK_IS(0, ums_completion_list_set_notify(list, touched, &calls));
    CHECK_IS(0, ums_context_create(&own));
    CHECK_IS(0, ums_context_set(own, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data));
    options.list = list;
    options.context = own;
    CHECK_IS(0, ums_worker_create(&killed, &options, work, &step));
    CHECK_IS(0, ums_worker_terminate(killed, 9));
    options.context = 0;
    CHECK_IS(0, ums_worker_create(&detached, &options, work, &step));
    const ums_context_t other = ums_worker_context(detached);
    const int tid = ums_worker_tid(detached);
    CHECK_IS(0, ums_worker_detach(detached));
    intptr_t code = 0;
    CHECK_IS(0, ums_worker_join(killed, &code));
    CHECK_IS(9, code);
    struct pollfd is_ready = {fd, POLLIN, 0};
    CHECK_IS(1, poll(&is_ready, 1, -1));
    run(2);
    CHECK(calls > 0);
    CHECK_IS(0, ums_context_destroy(own));
    CHECK_IS(0, ums_context_destroy(other));
    CHECK_IS(0, ums_completion_list_set_notify(list, NULL, NULL));
    CHECK_IS(0, ums_completion_list_destroy(list));
    close(fd);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d", tid);
    while (access(path, F_OK) == 0) { /* The detached one ends alone. */
    }
}

static void what_goes_on_is_said(void) {
    ums_scheduling_stats_t stats = UMS_SCHEDULING_STATS_INIT;
    CHECK_IS(0, ums_scheduling_get_stats(&stats));
    CHECK_IS(2 + 1, stats.workers_created);
    CHECK_IS(stats.workers_created, stats.workers_ended);
    CHECK(strlen(ums_scheduling_mode()) > 6);
    CHECK(strchr(ums_scheduling_detector(), ':') != NULL);
    (void)ums_scheduling_write_stats();
    CHECK(ums_scheduling_stats_directory() != NULL);
    ums_scheduling_measure(true);
    ums_scheduling_measure(false);
    CHECK_IS(-EPERM, ums_worker_execute(0));
    CHECK_IS(-EPERM, ums_worker_exit(0));
}

int main(void) {
    RUN(a_worker_yields_blocks_and_exits);
    RUN(workers_end_without_running_and_are_heard_of);
    RUN(what_goes_on_is_said);
    return check_end();
}
