// SPDX-License-Identifier: MIT
//
// Two handles with two scheduler threads each, one list, and two batches of workers that yield
// once. Like the report's program, it ends without waiting for its scheduler threads and without
// closing the handles.
#include "Headers/ums_user_library.h"  // The report's program has it there.
#include <ums_user_library.h>

#include <stdio.h>

#define HANDLES 2
#define THREADS 4
#define WORKERS 1000

typedef struct arguments {
    int handle;
    ums_pid_t list;
} arguments;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int executed;

static int entry_point(void* given) {
    arguments* a = (arguments*)given;
    completion_list_data* ready = dequeue_ums_completion_list_items(a->handle);
    if (ready == NULL || ready->head == NULL) return -1;
    for (ums_worker_thread_data* one = ready->head; one != NULL; one = one->next) {
#ifdef UMS_LINUX_LIST_ID
        int got = execute_ums_thread(a->handle, one->pid, one->completion_list_id);
#else
        int got = execute_ums_thread(a->handle, one->pid, ready);
#endif
        if (got != -EACCES && got != -EBADF && got != -EFBIG) break;
    }
    return 0;
}

static int work(void* given) {
    if (ums_thread_yield(((arguments*)given)->handle) < 0) return -1;
    pthread_mutex_lock(&lock);
    ++executed;
    pthread_mutex_unlock(&lock);
    return 0;
}

static void* schedule(void* given) {
    arguments* a = (arguments*)given;
    enter_ums_scheduling_mode(a->handle, &entry_point, a, a->list);
    return NULL;
}

int main(void) {
    static arguments of_thread[THREADS], of_worker;
    int handles[HANDLES], added = 0;
    for (int i = 0; i < HANDLES; ++i)
        if ((handles[i] = ums_init()) < 0) return 1;
    completion_list_data* list = create_completion_list(handles[0]);
    if (list == NULL) return 1;
    of_worker.handle = handles[0];
    for (int batch = 0; batch < 2; ++batch) {
        for (int i = 0; i < WORKERS; ++i, ++added)
            if (add_worker_thread(handles[0], &work, &of_worker, list->id) != 0) return 1;
        for (int i = 0; batch == 0 && i < THREADS; ++i) {
            pthread_t thread;
            of_thread[i].handle = handles[i % HANDLES];
            of_thread[i].list = list->id;
            if (pthread_create(&thread, NULL, &schedule, &of_thread[i]) != 0) return 1;
        }
    }
    if (destroy_comp_list(handles[0], list->id) != 0) return 1;
    if (add_worker_thread(handles[0], &work, &of_worker, list->id) == 0) return 1;
    for (int i = 0; i < HANDLES; ++i)
        if (release_ums(handles[i]) != 0) return 1;
    printf("added %d, executed %d\n", added, executed);
    return 0;
}
