/* SPDX-License-Identifier: MIT */
#ifndef UMS_COMPAT_LINUX_UMS_H
#define UMS_COMPAT_LINUX_UMS_H

/* ums/compat/linux_ums.h: the names of the Linux kernel modules for user-mode scheduling.
 *
 * A handle is a UMS scheduler, which groups any number of scheduler threads; a process may have
 * several handles. List numbers are valid in the whole process, so threads of several handles can
 * share a list. A scheduler thread calls a function of yours again and again. That function asks
 * which workers could run and executes those it likes. docs/linux-ums.md says what differs from the
 * modules.
 *
 * Names:     each function lives in the library as ums_linux_NAME.
 * Blocking:  dequeue_ums_completion_list_items() and release_ums() wait. execute_ums_thread()
 *            returns when the worker has yielded, blocked or ended; enter_ums_scheduling_mode()
 *            when the scheduler thread's function returns a negative number.
 * Errors:    a negative error number or NULL, and errno. -EBADF: no such handle, list or worker.
 * Threads:   any thread may call a function, unless it says otherwise.
 * Versions:  by default the signatures are those of the published report. Define UMS_LINUX_LIST_ID
 *            before the first include if your module's execute_ums_thread() takes the list's
 *            number.
 */

#include "ums/ums.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NAME(...) is the library's ums_linux_NAME(). */
#define UMS_LINUX(result, name, parameters) \
    UMS_API result name parameters __asm__("ums_linux_" #name)

/* Numbers of lists and workers. A process never uses a number twice. */
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
    ums_worker_thread_data* head; /* NULL in the result of create_completion_list(). */
    int requested_size;           /* At least how many workers are listed. */
} completion_list_data;

/* The struct that the modules' library hands to the kernel; no function here takes one. */
typedef struct sched_thread_data {
    unsigned long completion_list;
    int (*entry_point)(void* args);
    void* args;
} sched_thread_data;

/* Makes a handle and returns its number, at least 1. -ENOMEM. */
UMS_LINUX(int, ums_init, (void));

/* Makes a list, which lives until the handle is closed. NULL: no such handle, or no memory. */
UMS_LINUX(completion_list_data*, create_completion_list, (int handle));

/* Queues a worker that runs work(args) when it is executed. Returns 0; the listed items hold the
 * worker's number. -EACCES: the list is marked. -EINVAL: no function. -EBADF: also after
 * release_ums(). -ENOMEM. */
UMS_LINUX(int, add_worker_thread,
          (int handle, int (*work)(void* args), void* args, ums_pid_t list));

/* Makes the calling thread a scheduler thread of the handle: calls entry(arg) until that returns a
 * negative number, then returns 0. -EPERM: the caller is a worker, a fiber or already a scheduler.
 * -EINVAL: no function. -ENOMEM. */
UMS_LINUX(int, enter_ums_scheduling_mode,
          (int handle, int (*entry)(void* arg), void* arg, ums_pid_t list));

/* Returns all workers of the calling scheduler thread's list that could run; waits for the first.
 * The worker at the head could run when the list was made; another thread may have executed others
 * since. The result belongs to the caller until it asks again; do not relink it. NULL: the handle
 * was released.
 * Cost: linear in the workers that became ready, and in those this thread tried, since it last
 * asked. */
UMS_LINUX(completion_list_data*, dequeue_ums_completion_list_items, (int handle));

/* Runs a worker; call it on a scheduler thread. Returns 0 when the worker has yielded, blocked or
 * ended. The function ignores `list`, which may be NULL.
 * -EACCES: the worker runs or is blocked, or it has not begun and there is no kernel thread for it
 * now. -EBADF: it is gone. -EAGAIN: there is no kernel thread for any worker. -EPERM: the caller is
 * no scheduler thread of the handle. */
UMS_LINUX(int, execute_ums_thread, (int handle, ums_pid_t worker, completion_list_data* list));
/* The same with the list's number; UMS_LINUX_LIST_ID gives it the name above. */
UMS_LINUX(int, execute_ums_thread_by_id, (int handle, ums_pid_t worker, ums_pid_t list));
#ifdef UMS_LINUX_LIST_ID
#define execute_ums_thread execute_ums_thread_by_id
#endif

/* Returns a worker to its scheduler thread; another may run it next. -EPERM: the caller is no
 * worker. */
UMS_LINUX(int, ums_thread_yield, (int handle));
/* Ends the calling worker, as if its function had returned. Discards what it has on its stack,
 * without destructors. -EPERM: the caller is no worker. */
UMS_LINUX(int, exit_worker_thread, (int handle));

/* Marks the list: it refuses further workers. */
UMS_LINUX(int, destroy_comp_list, (int handle, ums_pid_t list));

/* Waits until the workers that were added by this handle, and those of the lists that its scheduler
 * threads serve, have ended; then those threads get NULL. A thread that enters later serves its
 * list until no worker is left. -EPERM: the caller is a scheduler thread or a worker. */
UMS_LINUX(int, release_ums, (int handle));

/* Forgets a released handle whose scheduler threads have returned, and its lists. -EBUSY: they have
 * not. */
UMS_LINUX(int, ums_close, (int handle));

#ifdef __cplusplus
}
#endif

#endif
