/* SPDX-License-Identifier: MIT */
#ifndef UMS_UMS_SCHEDULING_H
#define UMS_UMS_SCHEDULING_H

/* ums/ums_scheduling.h: the UMS API. Real threads that never run unless a scheduler of yours executes them.
 *
 * worker:          a thread with its own stack, thread_local variables, errno, pthread_self() and exit code. It is
 *                  made with a context and queued on a completion list; from then on it runs only when it is
 *                  executed.
 * context:         the handle of a worker's state. User data can be attached.
 * completion list: where workers come that became ready: new ones, those whose blocking call has ended, and
 *                  those that have ended. Not those that yielded: the scheduler is given these.
 * scheduler:       a plain thread that called ums_scheduler_enter(). Its procedure is called for each reason to
 *                  decide anew what to run, always at the same depth of the thread's stack, and
 *                  decides by ums_worker_execute(), which does not return.
 *
 * No runtime is needed: neither ums_run() nor ums_runtime_start().
 *
 * States:    CREATED -> QUEUED (on a list) -> OWNED (dequeued) -> RUNNING; from there it yields (OWNED), blocks
 *            (BLOCKED, later QUEUED) or ends (TERMINATED, and queued once more).
 * Handles:   are numbers, 0 is none. A number that was never given out, or whose object is gone, is
 *            refused with -EBADF by every function; none is ever reused within 2^31 makings.
 * Errors:    0 or a negative error number; errno is never set.
 * Deadlines: as in ums/ums.h.
 * Threads:   what follows may be called by any thread, scheduler or worker, exceptions are marked. Not by fibers
 *            of the runtime, which get -EPERM where it matters, and not by signal handlers.
 * Cost:      a yield and the execution of the next worker cost two switches of the stack and of the thread
 *            register; see ums_scheduling_mode().
 */

#include "ums/ums.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t ums_context_t;
typedef uint64_t ums_completion_list_t;
typedef uint64_t ums_worker_t;

/* --- Completion lists --------------------------------------------------------------------------- */

UMS_API UMS_CHECK int ums_completion_list_create(ums_completion_list_t* made); /* -ENOMEM */

/* -EBUSY: it is not empty, a scheduler that is entered named it, or a worker that has not ended was made
 * for it. */
UMS_API int ums_completion_list_destroy(ums_completion_list_t list);

/* Takes all that is on the list; *first is the first, ums_context_next() gives the others; 0: none.
 * Waits until there is something or the deadline has passed. A deadline of 0 does not wait: then 0 is returned
 * and *first is 0 if the list is empty. With any other -ETIMEDOUT. When several wait, each
 * change of the list wakes one; it returns 0 with *first 0 if another consumer took all. */
UMS_API UMS_CHECK int ums_completion_list_dequeue(ums_completion_list_t list, int64_t deadline,
                                                  ums_context_t* first);

/* The one after it in the batch it was dequeued with; 0: it is the last, or unknown. Ask before you
 * execute it. */
UMS_API ums_context_t ums_context_next(ums_context_t context);

/* Calls notify(argument) at each change of the list from empty to not empty, by whoever queues: a thread that must
 * not be kept, so it neither blocks nor calls this API; it may be a thread whose thread_local variables
 * are a worker's. It is also called before this returns if the list is not empty. NULL: no longer; when this
 * returns no call runs. One at a time: a second is -EBUSY. */
UMS_API int ums_completion_list_set_notify(ums_completion_list_t list, void (*notify)(void*),
                                           void* argument);

/* A new descriptor for poll(): readable since the list changed from empty to not empty, until it is read (8
 * bytes) through any descriptor of the same list. May be readable although another consumer took all. The
 * caller closes it, before or after the list is destroyed. -EMFILE, -ENFILE, -ENOMEM. */
UMS_API UMS_CHECK int ums_completion_list_event(ums_completion_list_t list, int* fd);

/* --- Contexts ----------------------------------------------------------------------------------- */

UMS_API UMS_CHECK int ums_context_create(ums_context_t* made); /* -ENOMEM */
/* -EBUSY: its worker has not ended, or it has and the context is still on a list; a scheduler's own. */
UMS_API int ums_context_destroy(ums_context_t context);

/* In a worker: its context. In a scheduler's procedure: the scheduler's own. Otherwise 0. */
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

/* Of a worker's context, or a scheduler's own. *length (may be NULL) gets the size of what is asked for.
 * -EINVAL: such information cannot be asked for, or set. -EMSGSIZE: `bytes` is not its size. -EFAULT: no buffer. */
UMS_API int ums_context_query(ums_context_t context, ums_information_t what, void* buffer,
                              size_t bytes, size_t* length);
UMS_API int ums_context_set(ums_context_t context, ums_information_t what, const void* buffer,
                            size_t bytes);

/* --- Workers ------------------------------------------------------------------------------------ */

typedef intptr_t (*ums_worker_function_t)(void* argument);

typedef struct ums_worker_options {
    size_t size;
    ums_completion_list_t list; /* Where it is queued first. */
    ums_context_t context;      /* 0: a new one, which the caller destroys like any other. */
    size_t stack_bytes;         /* 0: 1 MiB; 32 KiB to 1 GiB, rounded up to pages */
    bool suspended;             /* Queued when it is resumed. */
    /* NULL: none. Called once when the worker has ended in whatever way, before its context is queued for the last
     * time; by its own thread, after the function and before thread_local destructors. It must not block
     * for long and not call this API. */
    void (*ended)(void* argument, intptr_t exit_code);
    void* ended_argument;
} ums_worker_options_t;

#define UMS_WORKER_OPTIONS_INIT \
    { sizeof(ums_worker_options_t), 0, 0, 0, false, NULL, NULL }

/* Makes a thread that will run function(argument) when it is executed; what that returns is the exit code. An
 * exception that leaves the function ends the program. The worker is joined or detached by its handle,
 * scheduled by its context.
 * -EINVAL: an option, no list or no function. -EBADF: list or context. -EBUSY: the context has a worker that has not
 * ended, or is still queued. -EAGAIN: no thread. -ENOMEM. -ENOTSUP: see ums_scheduling_mode(). */
UMS_API UMS_CHECK int ums_worker_create(ums_worker_t* made, const ums_worker_options_t* options,
                                        ums_worker_function_t function, void* argument);

/* Waits until the thread is gone, its thread_local destructors included. *exit_code may be NULL. The handle is gone
 * then. -EDEADLK: itself. -EINVAL: another joins it. */
UMS_API int ums_worker_join(ums_worker_t worker, intptr_t* exit_code);
/* Nobody will join it; the handle is gone. */
UMS_API int ums_worker_detach(ums_worker_t worker);
/* -EBUSY: it has not ended. Does not wait, and the handle stays. Of one that ends by pthread_exit() only
 * ums_worker_join() knows the result: here, and for ended(), it is 0. */
UMS_API int ums_worker_exit_code(ums_worker_t worker, intptr_t* exit_code);

UMS_API ums_context_t ums_worker_context(ums_worker_t worker); /* 0: unknown */
/* The thread's own id, wherever it runs; 0: unknown. Known as soon as ums_worker_create() returned. */
UMS_API int ums_worker_tid(ums_worker_t worker);
/* The handle of the calling worker; 0: no worker, or it has been detached. */
UMS_API ums_worker_t ums_worker_current(void);

/* Suspensions are counted: *previous (may be NULL) gets the count before the call. A suspended worker cannot be
 * executed, is not queued, and goes on only when it is queued or executed after the last resume. One that
 * suspends itself blocks; one that is suspended while it runs goes on until it next yields or blocks. One that was
 * suspended while owned is not queued by the resume: its scheduler asks for UMS_INFORMATION_SUSPENDED.
 * -ESRCH: it has ended, or is about to call ended(). -EOVERFLOW: 127 times suspended. -EINVAL (resume): it is not. */
UMS_API int ums_worker_suspend(ums_worker_t worker, unsigned* previous);
UMS_API int ums_worker_resume(ums_worker_t worker, unsigned* previous);

/* Ends it as ums_worker_exit() would: at once if it does not run (whoever executes it then is told -ESRCH), when it next
 * yields or blocks if it does; itself at once. One that was dequeued before comes to its list once more, so it may be
 * seen terminated both times. -ESRCH: it has ended, or is about to call ended(). */
UMS_API int ums_worker_terminate(ums_worker_t worker, intptr_t exit_code);

/* Ends the calling worker. Its frames are discarded, not unwound (pthread_exit() unwinds them; its
 * result is what ums_worker_join() gives); then the destructors of thread_local variables run. -EPERM: no worker. */
UMS_API int ums_worker_exit(intptr_t exit_code);

/* Back to the scheduler that executed the worker: its procedure is called with UMS_REASON_YIELD, this context and
 * the argument. Returns 0 when the worker is executed again. -EPERM: no worker, or inside a critical region. */
UMS_API int ums_worker_yield(void* argument);

/* Around a call that may block: hands the scheduler's thread back, so that its procedure is called with
 * UMS_REASON_BLOCKED and 1, and goes on on the worker's own kernel thread. leave() queues the worker on the
 * list of the scheduler that executed it last, and returns when it is executed again. Nothing happens on other
 * threads and inside a critical region; may be nested, each enter() needs one leave(). The errno of
 * the call in between is kept. */
UMS_API void ums_worker_blocking_enter(void);
UMS_API void ums_worker_blocking_leave(void);

/* In between blocking is hidden from the scheduler, whose thread waits with the worker: for locks that scheduler and
 * workers share. May be nested. On a scheduler's thread, and on others, nothing happens. */
UMS_API void ums_critical_enter(void);
UMS_API void ums_critical_leave(void);

/* --- Schedulers --------------------------------------------------------------------------------- */

enum ums_reason {
    UMS_REASON_STARTUP, /* payload 0 and the parameter given to enter(): once */
    UMS_REASON_BLOCKED, /* payload 1: in a system call, or it has ended; 0: in a page fault. Parameter NULL. Who: the
                           one executed last. It may be queued, even executed by another scheduler, before
                           this call comes. */
    UMS_REASON_YIELD /* payload: the context; the argument of ums_worker_yield() */
};
typedef int ums_reason_t;

typedef void (*ums_scheduler_procedure_t)(ums_reason_t reason, uintptr_t payload, void* parameter);

typedef struct ums_scheduler_options {
    size_t size;
    ums_completion_list_t list; /* Where workers come back that block. */
    ums_scheduler_procedure_t procedure;
    void* parameter;
} ums_scheduler_options_t;

#define UMS_SCHEDULER_OPTIONS_INIT \
    { sizeof(ums_scheduler_options_t), 0, NULL, NULL }

/* Makes the calling thread a scheduler. Returns 0 when its procedure returns; may be called again.
 * -EINVAL: no options, their size, no procedure. -EBADF: the list. -EPERM: a worker, a fiber, or a scheduler already.
 * -ENOMEM. -ENOTSUP: workers cannot be switched here (ums_scheduling_mode()), or the detector that
 * UMS_BLOCK asks for does not work. */
UMS_API int ums_scheduler_enter(const ums_scheduler_options_t* options);

/* Runs the worker, by a scheduler, inside its procedure. Does not return unless it fails; what the procedure has on
 * its stack is discarded, without destructors.
 * -EBADF: unknown. -EPERM: the caller is no scheduler in its procedure. -EAGAIN: it is just being queued, try again.
 * -EBUSY: it runs, blocks, or lies on a list. -EACCES: suspended. -ESRCH: ended, or
 * terminated while it did not run, or it never had a worker. */
UMS_API int ums_worker_execute(ums_context_t context);

/* Inside the procedure: as if it had returned. Its frames are discarded. -EPERM: not there. */
UMS_API int ums_scheduler_exit(void);

enum ums_thread_kind { UMS_THREAD_PLAIN, UMS_THREAD_SCHEDULER, UMS_THREAD_WORKER };

/* What the thread of this process with that id is; 0: the caller. A thread is a scheduler while it is inside
 * ums_scheduler_enter(). One that is not known is plain. */
UMS_API int ums_thread_kind(int tid);

/* The calling thread's own id: also in a worker, where gettid() names the kernel thread that runs it. */
UMS_API int ums_thread_id(void);

/* --- What goes on ------------------------------------------------------------------------------- */

/* How workers are switched: "fsgsbase: ...", or "unavailable: ..." with what is missing: then
 * ums_scheduler_enter() and ums_worker_create() fail with -ENOTSUP. */
UMS_API const char* ums_scheduling_mode(void);

/* Who finds that a worker blocks without a word, and why that one: "monitor: ...", "off: ...", or
 * "refused: ..." if what UMS_BLOCK asks for does not work here. Until the thread's next call. */
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

/* Of the process, since its start. */
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

/* -EINVAL, -E2BIG: the size. */
UMS_API int ums_scheduling_get_stats(ums_scheduling_stats_t* stats);

/* Of one scheduler or worker. Read while it runs, so each number is of a slightly different moment. */
typedef struct {
    size_t size;
    int pid;
    int tid;
    bool is_scheduler;
    bool is_running;            /* A scheduler: a worker runs on it. A worker: it runs. */
    int state;                  /* A worker's: ums_worker_state. */
    ums_completion_list_t list; /* A scheduler's; of a worker, where it was or will be queued. */
    ums_context_t partner; /* A scheduler's running worker; a worker's last scheduler. 0: none. */
    uint64_t switches, yields, blocked_in_syscall, blocked_in_fault;
    /* Nanoseconds, while times are measured (ums_scheduling_measure()); otherwise 0. */
    uint64_t running_ns;        /* A worker's time on schedulers. */
    uint64_t last_switch_at_ns; /* CLOCK_MONOTONIC; of the last that was timed. */
    uint64_t
        switch_ns; /* Total time a scheduler took from one worker to the next, its procedure included. */
    uint64_t measured_switches;
} ums_context_stats_t;

#define UMS_CONTEXT_STATS_INIT \
    { sizeof(ums_context_stats_t), 0, 0, false, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

UMS_API int ums_context_get_stats(ums_context_t context, ums_context_stats_t* stats);

/* Writes at most `room` contexts, those of entered schedulers first, then those with a worker. Returns how many
 * there are. */
UMS_API size_t ums_context_list(ums_context_t* contexts, size_t room);

/* Brings the files of statistics up to date: DIRECTORY/PID/schedulers/N/{info,workers/TID}; see docs/ums.md. False: they are turned off, by UMS_STATS_FILES=off or because they cannot be
 * written. */
UMS_API bool ums_scheduling_write_stats(void);
/* The DIRECTORY: UMS_STATS_DIRECTORY, else $XDG_RUNTIME_DIR/ums, else /tmp/ums-UID. "": they are turned off. Until
 * the thread's next call. */
UMS_API const char* ums_scheduling_stats_directory(void);

/* Whether switches are timed (two readings of the clock each). At first not, unless UMS_TIMES=1. */
UMS_API void ums_scheduling_measure(bool on);

#ifdef __cplusplus
}
#endif

#endif
