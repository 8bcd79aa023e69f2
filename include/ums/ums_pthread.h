/* SPDX-License-Identifier: MIT */
#ifndef UMS_UMS_PTHREAD_H
#define UMS_UMS_PTHREAD_H

/* ums/ums_pthread.h: the names of <pthread.h> and <semaphore.h> on fibers, for porting programs.
 *
 * ums_pthread_NAME() does for fibers what POSIX says of pthread_NAME(), and ums_sem_NAME() what it
 * says of sem_NAME(). A program either calls these names, or defines UMS_PTHREAD_NAMES before it
 * includes this header in place of the two. Then the names without ums_ are macros for these. A
 * runtime must be running (ums_runtime_start() at the start of main() is enough).
 *
 * Blocking:  a wait parks the fiber. Plain kernel threads may call all functions too; a wait blocks
 *            them.
 * Errors:    ums_pthread_: 0 or a positive error number, as POSIX says. ums_sem_: 0, or -1 and
 *            errno.
 * errno:     belongs to the fiber, but a compiler may keep its address across calls, and a call
 *            that waits may return on another kernel thread. Read errno only in a function that has
 *            not used it before such a call, or use ums_semaphore_...(), which need no errno.
 * Deadlines: absolute times of CLOCK_REALTIME, or of the clock that the caller names:
 *            CLOCK_REALTIME or CLOCK_MONOTONIC.
 *
 * Differences from POSIX:
 * - A normal mutex reports EDEADLK to an owner that locks it again, and EPERM to others that unlock
 *   it, as a PTHREAD_MUTEX_ERRORCHECK mutex does.
 * - ums_pthread_create() returns EPERM if no runtime is running.
 * - Without attributes a stack has the runtime's size (256 KiB), not megabytes.
 * - Missing: cancellation and cleanup handlers, signals to one thread, scheduling attributes,
 *   stacks of the program's own, process-shared objects, robust and priority mutexes, named
 *   semaphores, spin locks. With UMS_PTHREAD_NAMES a call of a missing function that takes these
 *   types does not compile or does not link.
 */

#include <errno.h>
#include <sched.h> /* struct timespec, in every mode */
#include <sys/types.h>
#include <time.h>

#include "ums/ums.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Threads ---------------------------------------------------------------------------------- */

typedef struct ums_pthread* ums_pthread_t;

enum { UMS_PTHREAD_CREATE_JOINABLE, UMS_PTHREAD_CREATE_DETACHED };

typedef struct ums_pthread_attr {
    size_t stack_bytes;
    size_t guard_bytes;
    int detach_state;
} ums_pthread_attr_t;

UMS_API int ums_pthread_attr_init(ums_pthread_attr_t* attr);
UMS_API int ums_pthread_attr_destroy(ums_pthread_attr_t* attr);
UMS_API int ums_pthread_attr_setdetachstate(ums_pthread_attr_t* attr, int state); /* EINVAL */
UMS_API int ums_pthread_attr_getdetachstate(const ums_pthread_attr_t* attr, int* state);
UMS_API int ums_pthread_attr_setstacksize(ums_pthread_attr_t* attr, size_t bytes); /* EINVAL */
UMS_API int ums_pthread_attr_getstacksize(const ums_pthread_attr_t* attr, size_t* bytes);
/* Only remembers the number: every stack has a guard. */
UMS_API int ums_pthread_attr_setguardsize(ums_pthread_attr_t* attr, size_t bytes);
UMS_API int ums_pthread_attr_getguardsize(const ums_pthread_attr_t* attr, size_t* bytes);

/* EAGAIN: no stack or no memory. EPERM: no runtime is running. */
UMS_API int ums_pthread_create(ums_pthread_t* thread, const ums_pthread_attr_t* attr,
                               void* (*function)(void*), void* argument);
/* Waits for the thread's end. EDEADLK: a thread joins itself. EINVAL: it is detached, or was not
 * made by ums_pthread_create(). */
UMS_API int ums_pthread_join(ums_pthread_t thread, void** result);
UMS_API int ums_pthread_detach(ums_pthread_t thread); /* EINVAL: as above */
/* Returns the handle of the calling fiber or plain thread. It lives until the caller ends or, if it
 * is joinable, is joined. Ends the program if there is no memory. */
UMS_API ums_pthread_t ums_pthread_self(void);

UMS_API int ums_pthread_equal(ums_pthread_t a, ums_pthread_t b);
/* The name that reports show for the fiber, at most 15 bytes. ERANGE: the name is longer, or the
 * buffer too small. EINVAL: the thread is neither the caller nor made by ums_pthread_create(); or
 * set for a fiber made otherwise, which got its name when it was made. */
UMS_API int ums_pthread_setname_np(ums_pthread_t thread, const char* name);
UMS_API int ums_pthread_getname_np(ums_pthread_t thread, char* name, size_t bytes);
/* Ends the calling fiber. Unwinds its stack as a C++ exception would: C++ destructors on it run, a
 * catch (...) must rethrow, and C code needs unwind tables, which compilers make by default on
 * x86-64. Works in a fiber made in C, in a ums::fiber and in a ums::jfiber. Does not work where C++
 * keeps a function's exception for others: in ums::run(), spawn(), async() and scopes.
 *
 * On a plain thread it does what pthread_exit() does. The main thread is special if
 * ums_runtime_start() has started a runtime that was not stopped: when the fibers of the standard
 * cluster have ended, the process ends as by exit(0). The program's own kernel threads and the
 * fibers of other clusters end with it. */
UMS_API void ums_pthread_exit(void* result) __attribute__((noreturn));

UMS_API int ums_sched_yield(void);

/* --- Mutexes ---------------------------------------------------------------------------------- */

typedef ums_mutex_t ums_pthread_mutex_t;
#define UMS_PTHREAD_MUTEX_INITIALIZER UMS_MUTEX_INIT
#define UMS_PTHREAD_ERRORCHECK_MUTEX_INITIALIZER UMS_MUTEX_INIT
#define UMS_PTHREAD_RECURSIVE_MUTEX_INITIALIZER UMS_RECURSIVE_MUTEX_INIT

enum {
    UMS_PTHREAD_MUTEX_NORMAL,
    UMS_PTHREAD_MUTEX_RECURSIVE,
    UMS_PTHREAD_MUTEX_ERRORCHECK,
    UMS_PTHREAD_MUTEX_DEFAULT = UMS_PTHREAD_MUTEX_NORMAL
};

/* The first value of each enum is supported; the others give ENOTSUP. */
enum { UMS_PTHREAD_PROCESS_PRIVATE, UMS_PTHREAD_PROCESS_SHARED };
enum { UMS_PTHREAD_PRIO_NONE, UMS_PTHREAD_PRIO_INHERIT, UMS_PTHREAD_PRIO_PROTECT };
enum { UMS_PTHREAD_MUTEX_STALLED, UMS_PTHREAD_MUTEX_ROBUST };

typedef struct ums_pthread_mutexattr {
    int type;
} ums_pthread_mutexattr_t;

UMS_API int ums_pthread_mutexattr_init(ums_pthread_mutexattr_t* attr);
UMS_API int ums_pthread_mutexattr_destroy(ums_pthread_mutexattr_t* attr);
UMS_API int ums_pthread_mutexattr_settype(ums_pthread_mutexattr_t* attr, int type); /* EINVAL */
UMS_API int ums_pthread_mutexattr_gettype(const ums_pthread_mutexattr_t* attr, int* type);
/* ENOTSUP, EINVAL. */
UMS_API int ums_pthread_mutexattr_setpshared(ums_pthread_mutexattr_t* attr, int shared);
UMS_API int ums_pthread_mutexattr_getpshared(const ums_pthread_mutexattr_t* attr, int* shared);
UMS_API int ums_pthread_mutexattr_setprotocol(ums_pthread_mutexattr_t* attr, int protocol);
UMS_API int ums_pthread_mutexattr_getprotocol(const ums_pthread_mutexattr_t* attr, int* protocol);
UMS_API int ums_pthread_mutexattr_setrobust(ums_pthread_mutexattr_t* attr, int robust);
UMS_API int ums_pthread_mutexattr_getrobust(const ums_pthread_mutexattr_t* attr, int* robust);

UMS_API int ums_pthread_mutex_init(ums_pthread_mutex_t* mutex, const ums_pthread_mutexattr_t* attr);
UMS_API int ums_pthread_mutex_destroy(ums_pthread_mutex_t* mutex); /* EBUSY */
UMS_API int ums_pthread_mutex_lock(ums_pthread_mutex_t* mutex);    /* EDEADLK */
UMS_API int ums_pthread_mutex_trylock(ums_pthread_mutex_t* mutex); /* EBUSY */
/* ETIMEDOUT; EINVAL: the time, or the clock; EDEADLK. */
UMS_API int ums_pthread_mutex_timedlock(ums_pthread_mutex_t* mutex, const struct timespec* limit);
UMS_API int ums_pthread_mutex_clocklock(ums_pthread_mutex_t* mutex, clockid_t clock,
                                        const struct timespec* limit);
UMS_API int ums_pthread_mutex_unlock(ums_pthread_mutex_t* mutex); /* EPERM */

/* --- Condition variables ---------------------------------------------------------------------- */

typedef struct ums_pthread_cond {
    ums_cond_t cond;
    clockid_t clock;
} ums_pthread_cond_t;
#define UMS_PTHREAD_COND_INITIALIZER \
    { UMS_COND_INIT, 0 }

typedef struct ums_pthread_condattr {
    clockid_t clock;
} ums_pthread_condattr_t;

UMS_API int ums_pthread_condattr_init(ums_pthread_condattr_t* attr);
UMS_API int ums_pthread_condattr_destroy(ums_pthread_condattr_t* attr);
UMS_API int ums_pthread_condattr_setclock(ums_pthread_condattr_t* attr,
                                          clockid_t clock); /* EINVAL */
UMS_API int ums_pthread_condattr_getclock(const ums_pthread_condattr_t* attr, clockid_t* clock);
UMS_API int ums_pthread_condattr_setpshared(ums_pthread_condattr_t* attr,
                                            int shared); /* ENOTSUP, EINVAL */
UMS_API int ums_pthread_condattr_getpshared(const ums_pthread_condattr_t* attr, int* shared);

UMS_API int ums_pthread_cond_init(ums_pthread_cond_t* cond, const ums_pthread_condattr_t* attr);
UMS_API int ums_pthread_cond_destroy(ums_pthread_cond_t* cond);
UMS_API int ums_pthread_cond_wait(ums_pthread_cond_t* cond, ums_pthread_mutex_t* mutex); /* EPERM */
/* ETIMEDOUT; EINVAL: the time, or the clock; EPERM. */
UMS_API int ums_pthread_cond_timedwait(ums_pthread_cond_t* cond, ums_pthread_mutex_t* mutex,
                                       const struct timespec* limit);
UMS_API int ums_pthread_cond_clockwait(ums_pthread_cond_t* cond, ums_pthread_mutex_t* mutex,
                                       clockid_t clock, const struct timespec* limit);

UMS_API int ums_pthread_cond_signal(ums_pthread_cond_t* cond);
UMS_API int ums_pthread_cond_broadcast(ums_pthread_cond_t* cond);

/* --- Reader-writer locks ---------------------------------------------------------------------- */

typedef ums_rwlock_t ums_pthread_rwlock_t;
#define UMS_PTHREAD_RWLOCK_INITIALIZER UMS_RWLOCK_INIT

typedef struct ums_pthread_rwlockattr {
    int reserved;
} ums_pthread_rwlockattr_t;

UMS_API int ums_pthread_rwlockattr_init(ums_pthread_rwlockattr_t* attr);
UMS_API int ums_pthread_rwlockattr_destroy(ums_pthread_rwlockattr_t* attr);
UMS_API int ums_pthread_rwlockattr_setpshared(ums_pthread_rwlockattr_t* attr,
                                              int shared); /* ENOTSUP, EINVAL */
UMS_API int ums_pthread_rwlockattr_getpshared(const ums_pthread_rwlockattr_t* attr, int* shared);

UMS_API int ums_pthread_rwlock_init(ums_pthread_rwlock_t* lock,
                                    const ums_pthread_rwlockattr_t* attr);
UMS_API int ums_pthread_rwlock_destroy(ums_pthread_rwlock_t* lock);   /* EBUSY */
UMS_API int ums_pthread_rwlock_rdlock(ums_pthread_rwlock_t* lock);    /* EDEADLK */
UMS_API int ums_pthread_rwlock_wrlock(ums_pthread_rwlock_t* lock);    /* EDEADLK */
UMS_API int ums_pthread_rwlock_tryrdlock(ums_pthread_rwlock_t* lock); /* EBUSY */
UMS_API int ums_pthread_rwlock_trywrlock(ums_pthread_rwlock_t* lock); /* EBUSY */
/* ETIMEDOUT; EINVAL: the time, or the clock; EDEADLK. */
UMS_API int ums_pthread_rwlock_timedrdlock(ums_pthread_rwlock_t* lock,
                                           const struct timespec* limit);
UMS_API int ums_pthread_rwlock_timedwrlock(ums_pthread_rwlock_t* lock,
                                           const struct timespec* limit);
UMS_API int ums_pthread_rwlock_clockrdlock(ums_pthread_rwlock_t* lock, clockid_t clock,
                                           const struct timespec* limit);
UMS_API int ums_pthread_rwlock_clockwrlock(ums_pthread_rwlock_t* lock, clockid_t clock,
                                           const struct timespec* limit);
/* EPERM: nobody holds it, or another does. */
UMS_API int ums_pthread_rwlock_unlock(ums_pthread_rwlock_t* lock);

/* --- Keys and once ---------------------------------------------------------------------------- */

typedef ums_key_t ums_pthread_key_t;

UMS_API int ums_pthread_key_create(ums_pthread_key_t* key, void (*destructor)(void*)); /* ENOMEM */
UMS_API int ums_pthread_key_delete(ums_pthread_key_t key);
UMS_API int ums_pthread_setspecific(ums_pthread_key_t key, const void* value); /* ENOMEM */
UMS_API void* ums_pthread_getspecific(ums_pthread_key_t key);

typedef ums_once_t ums_pthread_once_t;
#define UMS_PTHREAD_ONCE_INIT UMS_ONCE_INIT

/* Waits while another caller makes the call. */
UMS_API int ums_pthread_once(ums_pthread_once_t* once, void (*function)(void));

/* --- Barriers --------------------------------------------------------------------------------- */

typedef ums_barrier_t ums_pthread_barrier_t;
#define UMS_PTHREAD_BARRIER_SERIAL_THREAD (-1)

typedef struct ums_pthread_barrierattr {
    int reserved;
} ums_pthread_barrierattr_t;

UMS_API int ums_pthread_barrierattr_init(ums_pthread_barrierattr_t* attr);
UMS_API int ums_pthread_barrierattr_destroy(ums_pthread_barrierattr_t* attr);
UMS_API int ums_pthread_barrierattr_setpshared(ums_pthread_barrierattr_t* attr,
                                               int shared); /* ENOTSUP, EINVAL */
UMS_API int ums_pthread_barrierattr_getpshared(const ums_pthread_barrierattr_t* attr, int* shared);

UMS_API int ums_pthread_barrier_init(ums_pthread_barrier_t* barrier,
                                     const ums_pthread_barrierattr_t* attr,
                                     unsigned count); /* EINVAL: 0 */
UMS_API int ums_pthread_barrier_destroy(ums_pthread_barrier_t* barrier);
UMS_API int ums_pthread_barrier_wait(ums_pthread_barrier_t* barrier);

/* --- Semaphores: -1 and errno ----------------------------------------------------------------- */

typedef ums_semaphore_t ums_sem_t;

/* EINVAL: too many permits. ENOSYS: shared between processes. */
UMS_API int ums_sem_init(ums_sem_t* semaphore, int shared, unsigned permits);

UMS_API int ums_sem_destroy(ums_sem_t* semaphore);
UMS_API int ums_sem_wait(ums_sem_t* semaphore);
UMS_API int ums_sem_trywait(ums_sem_t* semaphore); /* EAGAIN */
/* ETIMEDOUT; EINVAL: the time, or the clock. */
UMS_API int ums_sem_timedwait(ums_sem_t* semaphore, const struct timespec* limit);
UMS_API int ums_sem_clockwait(ums_sem_t* semaphore, clockid_t clock, const struct timespec* limit);
UMS_API int ums_sem_post(ums_sem_t* semaphore); /* EOVERFLOW */

UMS_API int ums_sem_getvalue(ums_sem_t* semaphore, int* value);

#ifdef __cplusplus
} /* extern "C" */
#endif

#ifdef UMS_PTHREAD_NAMES
#include "ums/impl/pthread_names.h"
#endif

#endif /* UMS_UMS_PTHREAD_H */
