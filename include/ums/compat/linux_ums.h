/* SPDX-License-Identifier: MIT */
#ifndef UMS_COMPAT_LINUX_UMS_H
#define UMS_COMPAT_LINUX_UMS_H

/* ums/compat/linux_ums.h: the names of the Linux kernel modules for user-mode scheduling.
 *
 * A handle is a UMS scheduler, which groups any number of scheduler threads; a process may have
 * several. Lists have numbers of the whole process, so that threads of several handles can share one.
 * A scheduler thread calls a function of yours again and again: it asks which workers could run and
 * executes them, as it likes. docs/windows-ums.md says what differs from the modules.
 *
 * Names:     each function lives in the library as ums_linux_NAME.
 * Errors:    a negative error number or NULL, and errno. -EBADF: no such handle, list or worker.
 * Threads:   any, except where it is said.
 * Versions:  by default the signatures are those of the published report. Define UMS_LINUX_LIST_ID
 *            before the first include if your module's execute_ums_thread() takes the list's number.
 */

#include "ums/ums.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NAME(...) is the library's ums_linux_NAME(). */
#define UMS_LINUX(result, name, parameters) \
    UMS_API result name parameters __asm__("ums_linux_" #name)

/* Numbers of lists and workers. No number is given twice in a process. */
typedef unsigned long long ums_pid_t;

/* A worker that could run. */
typedef struct ums_worker_thread_data {
    ums_pid_t pid; /* The worker's number. */
    ums_pid_t completion_list_id;
    int (*work)(void* args);
    void* args;
    struct ums_worker_thread_data* next;
} ums_worker_thread_data;

typedef struct completion_list_data {
    ums_pid_t id;
    ums_worker_thread_data* head; /* NULL in what create_completion_list() returns. */
    int requested_size;           /* How many are listed, at least. */
} completion_list_data;

/* What the modules' library hands to the kernel; nothing here takes one. */
typedef struct sched_thread_data {
    unsigned long completion_list;
    int (*entry_point)(void* args);
    void* args;
} sched_thread_data;

/* A new handle, at least 1. -ENOMEM. */
UMS_LINUX(int, ums_init, (void));

/* Lives until the handle is closed. NULL: no handle, no memory. */
UMS_LINUX(completion_list_data*, create_completion_list, (int handle));

/* Queues a worker that runs work(args) when it is executed. 0; its number is in the listed items.
 * -EACCES: the list is marked. -EINVAL: no function. -EBADF, also after release_ums(). -ENOMEM. */
UMS_LINUX(int, add_worker_thread,
          (int handle, int (*work)(void* args), void* args, ums_pid_t list));

/* Makes the calling thread a scheduler thread of the handle: calls entry(arg) until that is
 * negative. 0 then. -EPERM: a worker, a fiber or a scheduler already. -EINVAL: no function. -ENOMEM. */
UMS_LINUX(int, enter_ums_scheduling_mode,
          (int handle, int (*entry)(void* arg), void* arg, ums_pid_t list));

/* All workers of the calling scheduler thread's list that could run, waiting for the first. The one at
 * the head could run when they were listed; others may have been executed by another thread since. The
 * caller's own until it asks again; do not relink it. NULL: the handle was released.
 * Cost: linear in what became ready, and in what this thread tried, since it asked last. */
UMS_LINUX(completion_list_data*, dequeue_ums_completion_list_items, (int handle));

/* Runs a worker, by a scheduler thread. 0: it has yielded, blocked or ended. -EACCES: it runs or is
 * blocked, or has not begun and there is no kernel thread for it now. -EBADF: it is gone. -EAGAIN: there
 * is no kernel thread for any worker. -EPERM: the caller is no scheduler thread of the handle. The list
 * is not looked at, and may be NULL. */
UMS_LINUX(int, execute_ums_thread, (int handle, ums_pid_t worker, completion_list_data* list));
/* The same with the list's number; UMS_LINUX_LIST_ID gives it the name above. */
UMS_LINUX(int, execute_ums_thread_by_id, (int handle, ums_pid_t worker, ums_pid_t list));
#ifdef UMS_LINUX_LIST_ID
#define execute_ums_thread execute_ums_thread_by_id
#endif

/* By a worker: back to its scheduler thread; another may run it next. -EPERM: no worker. */
UMS_LINUX(int, ums_thread_yield, (int handle));
/* By a worker: ends it, as if its function had returned. What it has on its stack is discarded,
 * without destructors. -EPERM: no worker. */
UMS_LINUX(int, exit_worker_thread, (int handle));

/* Marks the list: no more workers can be added. */
UMS_LINUX(int, destroy_comp_list, (int handle, ums_pid_t list));

/* Waits until the workers that were added by this handle, and those of the lists that its scheduler
 * threads serve, have ended; then these threads are told by NULL. Not by a scheduler thread or a
 * worker: -EPERM. */
UMS_LINUX(int, release_ums, (int handle));

/* Forgets a handle that was released and whose scheduler threads have returned, and its lists.
 * -EBUSY: not yet. */
UMS_LINUX(int, ums_close, (int handle));

#ifdef __cplusplus
}
#endif

#endif
