// SPDX-License-Identifier: MIT
//
// The names of the Linux modules for user-mode scheduling: one handle, one list, and a scheduler
// that runs whatever is ready.
//
// Output:
//   worker 1: step 1
//   worker 2: step 1
//   worker 3: step 1
//   worker 1: step 2
//   worker 2: step 2
//   worker 3: step 2
//   all have ended
#include <pthread.h>
#include <stdio.h>
#include <ums/compat/linux_ums.h>

static int handle;
static ums_pid_t list;

static int work(void* number) {
    for (int step = 1; step <= 2; ++step) {
        printf("worker %d: step %d\n", *(int*)number, step);
        ums_thread_yield(handle);
    }
    return 0;
}

// Called again and again: asks what could run, and runs it.
static int schedule(void* argument) {
    (void)argument;
    completion_list_data* ready = dequeue_ums_completion_list_items(handle);
    if (ready == NULL) return -1;  // Released.
    for (const ums_worker_thread_data* one = ready->head; one != NULL; one = one->next)
        execute_ums_thread(handle, one->pid, ready);
    return 0;
}

static void* run_scheduler(void* argument) {
    enter_ums_scheduling_mode(handle, schedule, argument, list);
    return NULL;
}

int main(void) {
    static int numbers[] = {1, 2, 3};
    pthread_t scheduler;
    if ((handle = ums_init()) < 0) return 1;
    const completion_list_data* made = create_completion_list(handle);
    if (made == NULL) return 1;
    list = made->id;
    for (int i = 0; i < 3; ++i)
        if (add_worker_thread(handle, work, &numbers[i], list) != 0) return 1;
    if (pthread_create(&scheduler, NULL, run_scheduler, NULL) != 0) return 1;
    release_ums(handle);  // Waits for the workers.
    pthread_join(scheduler, NULL);
    puts("all have ended");
    return ums_close(handle) == 0 ? 0 : 1;
}
