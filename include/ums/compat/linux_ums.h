/* SPDX-License-Identifier: MIT */
#ifndef UMS_COMPAT_LINUX_UMS_H
#define UMS_COMPAT_LINUX_UMS_H

/* ums/compat/linux_ums.h: the names that the kernel modules for user-mode scheduling on Linux have.
 *
 * A handle is one scheduler; a process may have several. Lists have numbers of the whole process, so that
 * schedulers of several handles can share one. A scheduler is a function that is called again and again: it asks
 * which workers could run and executes them, one after the other, as it likes.
 *
 * Unlike with the modules a yield leaves the worker where it is, on its own stack, so that workers go on in any order,
 * and a worker that blocks gives its scheduler back.
 *
 * Names:     each function lives in the library as ums_linux_NAME.
 * Errors:    0 or a negative error number; NULL. -EBADF: no such handle, list or worker. errno is not set.
 * Threads:   any, except where it is said.
 */

#include "ums/ums.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NAME(...) is the library's ums_linux_NAME(). */
#define UMS_LINUX(result, name, parameters) \
    UMS_API result name parameters __asm__("ums_linux_" #name)

/* A worker that could run. */
typedef struct ums_worker_thread_data {
    int pid; /* The thread's id. */
    int completion_list_id;
    int (*work)(void* args);
    void* args;
    struct ums_worker_thread_data* next;
} ums_worker_thread_data;

typedef struct completion_list_data {
    int id;
    ums_worker_thread_data* head; /* NULL in what create_completion_list() returns. */
} completion_list_data;

/* A new handle, at least 1. -ENOMEM. */
UMS_LINUX(int, ums_init, (void));

/* Lives until the handle is closed. NULL: no handle, no memory. */
UMS_LINUX(completion_list_data*, create_completion_list, (int handle));

/* A thread that runs work(args) when it is executed. Its id, or -EACCES: the list is marked. -EINVAL: no function.
 * -EAGAIN, -ENOMEM. */
UMS_LINUX(int, add_worker_thread, (int handle, int (*work)(void* args), void* args, int list));

/* Makes the calling thread the handle's scheduler: calls entry(arg) until that is negative. 0 then.
 * -EBUSY: it has one. -EPERM: a worker, a fiber or a scheduler already. -EINVAL: no function. -ENOMEM. */
UMS_LINUX(int, enter_ums_scheduling_mode,
          (int handle, int (*entry)(void* arg), void* arg, int list));

/* The workers that could run, waiting for the first. By the handle's scheduler, of whose list they are; valid until it
 * asks again. At least one was free when they were listed; another scheduler that shares the list may be faster.
 * NULL: the handle was released. */
UMS_LINUX(completion_list_data*, dequeue_ums_completion_list_items, (int handle));

/* Runs a worker, by a scheduler. 0: it has yielded, blocked or ended. -EACCES: it runs, or is blocked. -EBADF: it is gone.
 * -EPERM: the caller is not the handle's scheduler. */
UMS_LINUX(int, execute_ums_thread, (int handle, int pid, int list));

/* By a worker: back to its scheduler; another may run it next. -EPERM: no worker. */
UMS_LINUX(int, ums_thread_yield, (int handle));
/* By a worker: ends it. -EPERM: no worker. */
UMS_LINUX(int, exit_worker_thread, (int handle));

/* Marks the list: no more workers can be added. */
UMS_LINUX(int, destroy_comp_list, (int handle, int list));

/* Waits until all workers that were added by this handle have ended; then its scheduler is told by NULL. Not by a
 * scheduler or worker: -EPERM. */
UMS_LINUX(int, release_ums, (int handle));

/* Forgets a handle that was released and whose scheduler has returned, and its lists. -EBUSY: not yet. */
UMS_LINUX(int, ums_close, (int handle));

#ifdef __cplusplus
}
#endif

#endif
