/* SPDX-License-Identifier: MIT */
#ifndef UMS_UMS_SCHEDULING_H
#define UMS_UMS_SCHEDULING_H

/* ums/ums_scheduling.h: the UMS API: real threads that run only while a scheduler of yours executes
 * them.
 *
 * worker:          a thread with its own stack, thread_local variables, errno, pthread_self() and
 *                  exit code. It is made with a context and queued on a completion list. From then
 *                  on it runs only while a scheduler executes it.
 * context:         the handle of a worker's state. The program can attach user data.
 * completion list: holds the workers that became ready: new workers, workers whose blocking call
 *                  has ended, and workers that have ended. A worker that yields does not come to
 *                  the list: its scheduler gets it directly.
 * scheduler:       a plain thread that called ums_scheduler_enter(). The API calls its procedure
 *                  for each reason to decide anew what to run, always at the same depth of the
 *                  thread's stack. The procedure decides by ums_worker_execute(), which does not
 *                  return.
 *
 * No runtime is needed: neither ums_run() nor ums_runtime_start().
 *
 * States:    CREATED -> QUEUED (on a list) -> OWNED (dequeued) -> RUNNING. From there a worker
 *            yields (OWNED), blocks (BLOCKED, later QUEUED) or ends (TERMINATED, and queued once
 *            more).
 * Handles:   numbers; 0 is none. Every function refuses with -EBADF a number that was never given
 *            out or whose object is gone. No number is reused within 2^31 makings.
 * Errors:    0 or a negative error number; errno is never set.
 * Deadlines: as in ums/ums.h.
 * Threads:   any thread, scheduler or worker may call a function, unless it says otherwise. Fibers
 *            of the runtime may not (they get -EPERM where it matters), and neither may signal
 *            handlers.
 * Cost:      a yield and the execution of the next worker cost two switches of the stack and of the
 *            thread register; see ums_scheduling_mode().
 */

#include "ums/ums.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t ums_context_t;
typedef uint64_t ums_completion_list_t;
typedef uint64_t ums_worker_t;

/* --- Completion lists ------------------------------------------------------------------------- */

/* Makes an empty list. */
UMS_API UMS_CHECK int ums_completion_list_create(ums_completion_list_t* made); /* -ENOMEM */

/* Frees the list. -EBUSY: the list is not empty, or an entered scheduler named it, or a worker
 * that has not ended was made for it. */
UMS_API int ums_completion_list_destroy(ums_completion_list_t list);

/* Takes everything that is on the list. *first is the first context, ums_context_next() gives the
 * others; 0: none. Waits until the list has something or the deadline has passed (-ETIMEDOUT). With
 * a deadline of 0 it does not wait: it returns 0, and *first is 0 if the list is empty. When
 * several threads wait, each change of the list wakes one of them; if another consumer took
 * everything, it returns 0 with *first 0. */
UMS_API UMS_CHECK int ums_completion_list_dequeue(ums_completion_list_t list, int64_t deadline,
                                                  ums_context_t* first);

/* Returns the next context of the batch that was dequeued together; 0: the last one, or unknown.
 * Ask before you execute `context`. */
UMS_API ums_context_t ums_context_next(ums_context_t context);

/* Calls notify(argument) at each change of the list from empty to not empty, on the thread that
 * queues. That thread must not be held up, so notify() neither blocks nor calls this API; the
 * thread may have the thread_local variables of a worker. If the list is not empty now, notify() is
 * called before this returns. NULL ends the notifications: when this returns, no call is running. A
 * list has one notify function: a second one is refused with -EBUSY. */
UMS_API int ums_completion_list_set_notify(ums_completion_list_t list, void (*notify)(void*),
                                           void* argument);

/* Makes a descriptor for poll(). It is readable from the list's change from empty to not empty
 * until a consumer reads it (8 bytes), through any descriptor of the same list. It may be readable
 * although another consumer took everything. The caller closes it, before or after the list is
 * destroyed. -EMFILE, -ENFILE, -ENOMEM. */
UMS_API UMS_CHECK int ums_completion_list_event(ums_completion_list_t list, int* fd);

/* --- Contexts --------------------------------------------------------------------------------- */

/* Makes a context without a worker. */
UMS_API UMS_CHECK int ums_context_create(ums_context_t* made); /* -ENOMEM */
/* Frees the context. -EBUSY: the worker of the context has not ended, or the context is still on
 * a list, or belongs to a scheduler. */
UMS_API int ums_context_destroy(ums_context_t context);

/* Returns the calling worker's context; in a scheduler's procedure, the scheduler's own; otherwise
 * 0. */
UMS_API ums_context_t ums_context_current(void);

enum ums_information {
    UMS_INFORMATION_INVALID,
    UMS_INFORMATION_USER_CONTEXT, /* void *; can be set; NULL at first */
    UMS_INFORMATION_PRIORITY,     /* reserved: -EINVAL */
    UMS_INFORMATION_AFFINITY,     /* reserved: -EINVAL */
    UMS_INFORMATION_TEB,          /* reserved: -EINVAL */
    UMS_INFORMATION_SUSPENDED,    /* one byte, 0 or 1; cannot be set: -EINVAL */
    UMS_INFORMATION_TERMINATED    /* one byte, 0 or 1; cannot be set: -EINVAL */
};
typedef int ums_information_t;

/* Query or set information of a worker's context, or of a scheduler's own. *length, unless NULL,
 * gets the size of the information. -EINVAL: this information cannot be queried, or set. -EMSGSIZE:
 * `bytes` is not its size. -EFAULT: no buffer. */
UMS_API int ums_context_query(ums_context_t context, ums_information_t what, void* buffer,
                              size_t bytes, size_t* length);
UMS_API int ums_context_set(ums_context_t context, ums_information_t what, const void* buffer,
                            size_t bytes);

/* --- Workers ---------------------------------------------------------------------------------- */

typedef intptr_t (*ums_worker_function_t)(void* argument);

typedef struct ums_worker_options {
    size_t size;
    ums_completion_list_t list; /* The list on which the worker is queued first. */
    ums_context_t context;      /* 0: a new one, which the caller destroys like any other. */
    size_t stack_bytes;         /* 0: 1 MiB; 32 KiB to 1 GiB, rounded up to pages */
    bool suspended;             /* The worker is queued only when it is resumed. */
    /* NULL: none. The worker's own thread calls it once, however the worker ends: after the
     * function, before the thread_local destructors, and before its context is queued for the last
     * time. It must not block for long and must not call this API. */
    void (*ended)(void* argument, intptr_t exit_code);
    void* ended_argument;
} ums_worker_options_t;

#define UMS_WORKER_OPTIONS_INIT \
    { sizeof(ums_worker_options_t), 0, 0, 0, false, NULL, NULL }

/* Makes a thread that runs function(argument) when it is executed. The function's result is the
 * exit code. An exception that leaves the function ends the program. The handle is for joining and
 * detaching, the context for scheduling. *made is written before the worker can run or be taken
 * from its list; it is 0 if no thread could be made.
 * -EINVAL: an option, no list or no function. -EBADF: the list or the context. -EBUSY: the context
 * has a worker that has not ended, or is still queued. -EAGAIN: no thread. -ENOMEM. -ENOTSUP: see
 * ums_scheduling_mode(). */
UMS_API UMS_CHECK int ums_worker_create(ums_worker_t* made, const ums_worker_options_t* options,
                                        ums_worker_function_t function, void* argument);

/* Waits until the thread is gone, its thread_local destructors included. *exit_code may be NULL.
 * The handle is gone then. -EDEADLK: a worker joins itself. -EINVAL: another thread joins it. */
UMS_API int ums_worker_join(ums_worker_t worker, intptr_t* exit_code);
/* Declares that nobody will join the worker; the handle is gone. */
UMS_API int ums_worker_detach(ums_worker_t worker);
/* Does not wait, and the handle stays. -EBUSY: the worker has not ended. If it ended by
 * pthread_exit(), only ums_worker_join() knows its result; here, and for ended(), it is 0. */
UMS_API int ums_worker_exit_code(ums_worker_t worker, intptr_t* exit_code);

/* Returns the worker's context; 0: unknown. */
UMS_API ums_context_t ums_worker_context(ums_worker_t worker);
/* Returns the thread's own id, wherever it runs; 0: unknown. Known as soon as ums_worker_create()
 * has returned. */
UMS_API int ums_worker_tid(ums_worker_t worker);
/* Returns the handle of the calling worker; 0: the caller is no worker, or it has been detached. */
UMS_API ums_worker_t ums_worker_current(void);

/* Suspensions are counted; *previous, unless NULL, gets the count before the call. A suspended
 * worker cannot be executed and is not queued. It continues only when it is queued or executed
 * after the last resume. A worker that suspends itself blocks. A worker that is suspended while it
 * runs continues until it next yields or blocks. The resume does not queue a worker that was
 * suspended while owned: its scheduler must ask for UMS_INFORMATION_SUSPENDED.
 * -ESRCH: the worker has ended, or is about to call ended(). -EOVERFLOW: suspended 127 times
 * already. -EINVAL (resume): it is not suspended. */
UMS_API int ums_worker_suspend(ums_worker_t worker, unsigned* previous);
UMS_API int ums_worker_resume(ums_worker_t worker, unsigned* previous);

/* Ends the worker as ums_worker_exit() would. A worker that does not run ends at once; a scheduler
 * that executes it then gets -ESRCH. A running worker ends when it next yields or blocks; the
 * caller itself ends at once. A worker that was dequeued before comes to its list once more, so the
 * scheduler may see it terminated twice. -ESRCH: it has ended, or is about to call ended(). */
UMS_API int ums_worker_terminate(ums_worker_t worker, intptr_t exit_code);

/* Ends the calling worker. Its frames are discarded, not unwound; then the destructors of
 * thread_local variables run. (pthread_exit() unwinds the frames, and its result is what
 * ums_worker_join() gives.) -EPERM: the caller is no worker. */
UMS_API int ums_worker_exit(intptr_t exit_code);

/* Returns the worker to the scheduler that executed it: calls its procedure with UMS_REASON_YIELD,
 * this context and the argument. Returns 0 when the worker is executed again. -EPERM: the caller is
 * no worker, or is inside a critical region. */
UMS_API int ums_worker_yield(void* argument);

/* Put these around a call that may block. enter() hands the scheduler's thread back, so that its
 * procedure is called with UMS_REASON_BLOCKED and 1, and continues on the worker's own kernel
 * thread. leave() queues the worker on the list of the scheduler that executed it last, and returns
 * when the worker is executed again. On other threads, and inside a critical region, nothing
 * happens. Pairs nest: each enter() needs one leave(). The errno of the call in between is kept. */
UMS_API void ums_worker_blocking_enter(void);
UMS_API void ums_worker_blocking_leave(void);

/* Between the two the scheduler does not learn that the worker blocks; its thread waits with the
 * worker. Use them for locks that the scheduler and its workers share. Pairs nest. On a scheduler's
 * thread, and on others, nothing happens. */
UMS_API void ums_critical_enter(void);
UMS_API void ums_critical_leave(void);

/* --- Schedulers ------------------------------------------------------------------------------- */

enum ums_reason {
    /* Once. Payload 0, and the parameter given to enter(). */
    UMS_REASON_STARTUP,
    /* The worker executed last has blocked. Payload 1: in a system call, or it has ended; 0: in a
     * page fault. Parameter NULL. The worker may be queued, and even be executed by another
     * scheduler, before this call comes. */
    UMS_REASON_BLOCKED,
    /* Payload: the context. Parameter: the argument of ums_worker_yield(). */
    UMS_REASON_YIELD
};
typedef int ums_reason_t;

typedef void (*ums_scheduler_procedure_t)(ums_reason_t reason, uintptr_t payload, void* parameter);

typedef struct ums_scheduler_options {
    size_t size;
    ums_completion_list_t list; /* The list to which blocked workers return. */
    ums_scheduler_procedure_t procedure;
    void* parameter;
} ums_scheduler_options_t;

#define UMS_SCHEDULER_OPTIONS_INIT \
    { sizeof(ums_scheduler_options_t), 0, NULL, NULL }

/* Makes the calling thread a scheduler. Returns 0 when its procedure returns; may be called again.
 * -EINVAL: no options, their size, or no procedure. -EBADF: the list. -EPERM: the caller is a
 * worker, a fiber, or already a scheduler. -ENOMEM. -ENOTSUP: workers cannot be switched here
 * (ums_scheduling_mode()), or the detector that UMS_BLOCK asks for does not work. */
UMS_API int ums_scheduler_enter(const ums_scheduler_options_t* options);

/* Runs the worker; call it in a scheduler's procedure. Returns only on failure; otherwise discards
 * what the procedure has on its stack, without destructors.
 * -EBADF: unknown. -EPERM: the caller is no scheduler in its procedure. -EAGAIN: the worker is just
 * being queued; try again. -EBUSY: it runs, blocks, or lies on a list. -EACCES: it is suspended.
 * -ESRCH: it has ended, or was terminated while it did not run, or the context never had a
 * worker. */
UMS_API int ums_worker_execute(ums_context_t context);

/* In the procedure: ends the scheduler as if the procedure had returned. Discards its frames.
 * -EPERM: the caller is no scheduler in its procedure. */
UMS_API int ums_scheduler_exit(void);

enum ums_thread_kind { UMS_THREAD_PLAIN, UMS_THREAD_SCHEDULER, UMS_THREAD_WORKER };

/* Returns the kind of the thread with that id in this process; 0 means the caller. A thread is a
 * scheduler while it is inside ums_scheduler_enter(). An unknown thread is plain. */
UMS_API int ums_thread_kind(int tid);

/* Returns the calling thread's own id, also in a worker, where gettid() names the kernel thread
 * that runs it. */
UMS_API int ums_thread_id(void);

/* --- Statistics ------------------------------------------------------------------------------- */

/* Returns how workers are switched: "fsgsbase: ...", or "unavailable: ..." with what is missing.
 * Then ums_scheduler_enter() and ums_worker_create() fail with -ENOTSUP. */
UMS_API const char* ums_scheduling_mode(void);

/* Returns which detector finds that a worker blocks in an unmarked call, and why that one:
 * "monitor: ...", "off: ...", or "refused: ..." if the one that UMS_BLOCK asks for does not work
 * here. The text is valid until the thread's next call. */
UMS_API const char* ums_scheduling_detector(void);

enum ums_worker_state {
    UMS_WORKER_NONE, /* no worker: an unused context, or a scheduler's */
    UMS_WORKER_CREATED,
    UMS_WORKER_QUEUED,
    UMS_WORKER_OWNED,
    UMS_WORKER_RUNNING,
    UMS_WORKER_BLOCKED,
    UMS_WORKER_TERMINATED
};

/* Counts of the process since its start. */
typedef struct {
    size_t size;
    uint64_t switches; /* executions of a worker */
    uint64_t yields;
    uint64_t blocked_in_syscall;
    uint64_t blocked_in_fault;
    uint64_t workers_created, workers_ended;
    uint64_t schedulers; /* entered now */
} ums_scheduling_stats_t;

#define UMS_SCHEDULING_STATS_INIT \
    { sizeof(ums_scheduling_stats_t), 0, 0, 0, 0, 0, 0, 0 }

/* Fills the members that stats->size covers. -EINVAL, -E2BIG: the size. */
UMS_API int ums_scheduling_get_stats(ums_scheduling_stats_t* stats);

/* Counts of one scheduler or worker. Read while it runs, so each number is of a slightly different
 * moment. */
typedef struct {
    size_t size;
    int pid;
    int tid;
    bool is_scheduler;
    bool is_running;            /* A scheduler runs a worker; a worker runs. */
    int state;                  /* A worker's: ums_worker_state. */
    ums_completion_list_t list; /* A scheduler's; of a worker, where it was or will be queued. */
    ums_context_t partner; /* A scheduler's running worker; a worker's last scheduler. 0: none. */
    uint64_t switches, yields, blocked_in_syscall, blocked_in_fault;
    /* Nanoseconds while times are measured (ums_scheduling_measure()); otherwise 0. */
    uint64_t running_ns;        /* A worker's time on schedulers. */
    uint64_t last_switch_at_ns; /* CLOCK_MONOTONIC time of the last switch that was timed. */
    /* Total time from one worker to the next on a scheduler, including its procedure. */
    uint64_t switch_ns;
    uint64_t measured_switches;
} ums_context_stats_t;

#define UMS_CONTEXT_STATS_INIT \
    { sizeof(ums_context_stats_t), 0, 0, false, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills *stats. -EINVAL, -E2BIG: the size. -EBADF: the context. */
UMS_API int ums_context_get_stats(ums_context_t context, ums_context_stats_t* stats);

/* Writes at most `room` contexts: first those of entered schedulers, then those with a worker.
 * Returns how many there are. */
UMS_API size_t ums_context_list(ums_context_t* contexts, size_t room);

/* Brings the files of statistics up to date: DIRECTORY/PID/schedulers/N/{info,workers/TID}; see
 * docs/ums.md. False: they are turned off, by UMS_STATS_FILES=off or because they cannot be
 * written. */
UMS_API bool ums_scheduling_write_stats(void);
/* Returns the DIRECTORY: UMS_STATS_DIRECTORY, else $XDG_RUNTIME_DIR/ums, else /tmp/ums-UID. "": the
 * files are turned off. The text is valid until the thread's next call. */
UMS_API const char* ums_scheduling_stats_directory(void);

/* Turns the timing of switches on or off (two readings of the clock for each). It is off at first,
 * unless UMS_DEBUG=times. */
UMS_API void ums_scheduling_measure(bool on);

#ifdef __cplusplus
}
#endif

#endif
