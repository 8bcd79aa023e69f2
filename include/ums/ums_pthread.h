/* SPDX-License-Identifier: MIT */
#ifndef UMS_UMS_PTHREAD_H
#define UMS_UMS_PTHREAD_H

/* ums/ums_pthread.h: the names of <pthread.h> and <semaphore.h> on fibers, to port programs.
 *
 * ums_pthread_NAME() is what POSIX says of pthread_NAME(), for fibers; ums_sem_NAME() of sem_NAME(). A program either
 * calls these, or defines UMS_PTHREAD_NAMES before it includes this header in place of the two: then the names
 * without ums_ are macros for these. A runtime must run (ums_runtime_start() at the head of main() is enough).
 *
 * Blocking:  parks the fiber; on a plain kernel thread, which may call all of these too, blocks that.
 * Errors:    ums_pthread_: 0 or a positive error number, as POSIX says. ums_sem_: 0, or -1 and errno.
 * errno:     is the fiber's own, but a compiler may keep its address across calls, and a call that waits may
 *            return on another kernel thread. Read errno only in a function that has not
 *            used it before such a call, or use ums_semaphore_...(), which need none.
 * Deadlines: absolute, of CLOCK_REALTIME, or of the clock that is named: CLOCK_REALTIME or
 *            CLOCK_MONOTONIC.
 *
 * Differs from POSIX:
 * - A normal mutex tells its owner that locks it again (EDEADLK), and others that unlock it
 *   (EPERM), as one of PTHREAD_MUTEX_ERRORCHECK does.
 * - ums_pthread_create(): EPERM if no runtime runs.
 * - Without attributes a stack has the runtime's size (64 KiB), not megabytes.
 * - Not there: cancellation and cleanup handlers, signals to one thread, scheduling attributes, stacks of the
 *   program's own, process-shared objects, robust and priority mutexes, named semaphores, spin locks. With
 *   UMS_PTHREAD_NAMES a call of one that takes these types does not compile or not link.
 */

#include <errno.h>
#include <sys/types.h>
#include <time.h>

#include "ums/ums.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Threads ------------------------------------------------------------------------------------ */

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
/* Remembered, and no more: every stack has a guard. */
UMS_API int ums_pthread_attr_setguardsize(ums_pthread_attr_t* attr, size_t bytes);
UMS_API int ums_pthread_attr_getguardsize(const ums_pthread_attr_t* attr, size_t* bytes);

/* EAGAIN: no stack or no memory. EPERM: no runtime runs. */
UMS_API int ums_pthread_create(ums_pthread_t* thread, const ums_pthread_attr_t* attr,
                               void* (*function)(void*), void* argument);
/* EDEADLK: itself. EINVAL: detached, or not made by ums_pthread_create(). */
UMS_API int ums_pthread_join(ums_pthread_t thread, void** result);
UMS_API int ums_pthread_detach(ums_pthread_t thread); /* EINVAL: as above */
/* Of any fiber or plain thread. Lives until that ends or, if it is joinable, is joined. Ends the program
 * if there is no memory. */
UMS_API ums_pthread_t ums_pthread_self(void);
UMS_API int ums_pthread_equal(ums_pthread_t a, ums_pthread_t b);
/* What reports of the fiber say, at most 15 bytes. ERANGE: longer; the buffer is too small. EINVAL: neither made by
 * ums_pthread_create() nor the calling thread; setting that of a fiber made otherwise, which got it then. */
UMS_API int ums_pthread_setname_np(ums_pthread_t thread, const char* name);
UMS_API int ums_pthread_getname_np(ums_pthread_t thread, char* name, size_t bytes);
/* Ends the fiber: its stack is unwound as by a C++ exception, so C++ destructors on it run, a catch (...) must throw
 * on, and C code needs unwind tables, which compilers make by default on x86-64. In a fiber made in C, or a ums::fiber
 * or ums::jfiber; not where C++ keeps a function's exception for others: in ums::run(), spawn(), async() and scopes.
 *
 * Of a plain thread, what pthread_exit() does. If it is the main thread and ums_runtime_start() has started a
 * runtime that was not stopped: when the fibers of the standard cluster have ended, the process ends as by exit(0),
 * and with it the kernel threads of the program's own and the fibers of other clusters. */
UMS_API void ums_pthread_exit(void* result) __attribute__((noreturn));
UMS_API int ums_sched_yield(void);

/* --- Mutexes ------------------------------------------------------------------------------------ */

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

/* The first of each is supported, the others give ENOTSUP. */
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

/* --- Condition variables ------------------------------------------------------------------------ */

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

/* --- Reader-writer locks ------------------------------------------------------------------------ */

typedef ums_rwlock_t ums_pthread_rwlock_t;
#define UMS_PTHREAD_RWLOCK_INITIALIZER UMS_RWLOCK_INIT

typedef struct ums_pthread_rwlockattr {
    int unused;
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
UMS_API int ums_pthread_rwlock_unlock(
    ums_pthread_rwlock_t* lock); /* EPERM: nobody, or another, holds it */

/* --- Keys and once ------------------------------------------------------------------------------ */

typedef ums_key_t ums_pthread_key_t;

UMS_API int ums_pthread_key_create(ums_pthread_key_t* key, void (*destructor)(void*)); /* ENOMEM */
UMS_API int ums_pthread_key_delete(ums_pthread_key_t key);
UMS_API int ums_pthread_setspecific(ums_pthread_key_t key, const void* value); /* ENOMEM */
UMS_API void* ums_pthread_getspecific(ums_pthread_key_t key);

typedef ums_once_t ums_pthread_once_t;
#define UMS_PTHREAD_ONCE_INIT UMS_ONCE_INIT

UMS_API int ums_pthread_once(ums_pthread_once_t* once, void (*function)(void));

/* --- Barriers ----------------------------------------------------------------------------------- */

typedef ums_barrier_t ums_pthread_barrier_t;
#define UMS_PTHREAD_BARRIER_SERIAL_THREAD (-1)

typedef struct ums_pthread_barrierattr {
    int unused;
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

/* --- Semaphores: -1 and errno ------------------------------------------------------------------- */

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
