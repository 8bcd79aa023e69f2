/* SPDX-License-Identifier: MIT */
#ifndef UMS_UMS_H
#define UMS_UMS_H

/* ums/ums.h: the C face of libums, for C11 and C++.
 *
 * Every function does what its C++ twin does. The headers named below hold the whole contract
 * (Blocking, Fairness, Ordering, Lifetime, Cost). These rules differ, or belong to C alone:
 *
 * Errors:    a function that can fail returns 0 or a negative error number (-EINVAL), and never
 *            sets errno. Its comment names the errors. No C++ exception leaves a function.
 * Deadlines: int64_t, nanoseconds of CLOCK_MONOTONIC; UMS_NEVER means no deadline.
 *            ums_deadline_after() makes one. A wait that need not wait succeeds even after its
 *            deadline.
 * Waits:     NAME(...) waits for ever. NAME_until(..., deadline, stop) also ends at the deadline
 *            with -ETIMEDOUT and, if `stop` is not NULL, once a stop is requested, with -ECANCELED.
 *            Success wins over both. A wait parks a fiber and blocks a plain kernel thread.
 * Objects:   embed types that are complete here (ums_mutex_t) by value, and never copy or move them
 *            while they are in use; all their members are private. All zero, and UMS_..._INIT, is a
 *            valid free object where the type says so. Functions make and destroy the types that
 *            are incomplete here.
 * Structs with a `size`: begin with UMS_..._INIT, which sets it, so that a program built with this
 *            header works with later libraries. -EINVAL: no version had this size. -E2BIG: a member
 *            that this library does not know yet is not zero.
 * Threads:   fibers and plain kernel threads alike may call a function, unless it says otherwise.
 *
 * Not in C: a jfiber is a fiber and a ums_stop_t; a packaged_task and a value_fiber are
 * ums_async().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UMS_API __attribute__((visibility("default")))
#define UMS_CHECK __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

#define UMS_NEVER INT64_MAX

typedef struct ums_stop ums_stop_t;
typedef struct ums_cluster ums_cluster_t;

/* Owns a fiber until it is joined or detached. A NULL handle owns none. Copying the struct does not
 * copy the duty to join or detach. */
typedef struct ums_fiber {
    void* handle;
} ums_fiber_t;

/* Names a fiber, or a plain thread (ums/fiber_ref.hpp). Valid until the fiber or thread has
 * ended. */
typedef struct ums_ref {
    void* who;
} ums_ref_t;

/* --- Time ------------------------------------------------------------------------------------- */

/* Returns the time now, in nanoseconds. */
UMS_API int64_t ums_now(void);

/* Returns now + ns. Returns now if ns is negative, and UMS_NEVER if the sum is beyond the clock. */
UMS_API int64_t ums_deadline_after(int64_t ns);

/* --- Policies (ums/policy.hpp) ---------------------------------------------------------------- */

/* ready() gets this when the caller is no processor of the cluster. */
#define UMS_OUTSIDE (~0u)

/* A policy of your own. `self` is what make() returned, or the argument if make is NULL. destroy,
 * steal and all behind empty may be NULL; the others may not. The scheduler calls the functions
 * concurrently, between two fibers: they must be thread-safe and short, and must not wait. */
typedef struct ums_policy_calls {
    size_t size;
    void* (*make)(void* argument); /* Called at each start of a cluster. NULL fails with -ENOMEM. */
    void (*destroy)(void* self);
    void (*attach)(void* self, unsigned processor);
    void (*detach)(void* self, unsigned processor);
    void (*ready)(void* self, ums_ref_t fiber, unsigned processor);
    ums_ref_t (*next)(void* self, unsigned processor);
    ums_ref_t (*steal)(void* self, unsigned thief, unsigned victim);
    bool (*empty)(void* self, unsigned processor);
    /* What runs instead of a fiber that yields. NULL: next() is asked. */
    ums_ref_t (*instead_of)(void* self, ums_ref_t fiber, unsigned processor);
    /* The fiber stops there: it waits, or ends. */
    void (*left)(void* self, ums_ref_t fiber, unsigned processor);
    /* Returns whether mutexes lend priorities, and raised is called. Asked often; the answer must
     * not change. NULL: they do not. */
    bool (*has_priorities)(void* self);
    /* ums_ref_effective_priority(fiber) has risen, because a more urgent fiber waits for a mutex
     * that it holds. Called from anywhere, also while the policy does not hold the fiber. NULL:
     * ignored. */
    void (*raised)(void* self, ums_ref_t fiber);
    /* Passes on a call of ums_cluster_set_group_weight(). Returns whether the policy has groups.
     * NULL: it has none. */
    bool (*set_group_weight)(void* self, unsigned group, unsigned weight);
    /* The fiber, which runs, went there by ums_this_fiber_migrate_to(). The processor may have been
     * removed since. */
    void (*placed)(void* self, ums_ref_t fiber, unsigned processor);
} ums_policy_calls_t;

#define UMS_POLICY_CALLS_INIT                                                                   \
    {                                                                                           \
        sizeof(ums_policy_calls_t), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            NULL, NULL, NULL, NULL                                                              \
    }

/* An intrusive first-in, first-out list of ready fibers, for policies. Not thread-safe. Zero is
 * empty. */
typedef struct ums_fiber_queue {
    void* ends[2];
    size_t count;
} ums_fiber_queue_t;

#define UMS_FIBER_QUEUE_INIT \
    { {NULL, NULL}, 0 }

/* Puts a ready fiber at the end, or at the front. */
UMS_API void ums_fiber_queue_push_back(ums_fiber_queue_t* queue, ums_ref_t fiber);
UMS_API void ums_fiber_queue_push_front(ums_fiber_queue_t* queue, ums_ref_t fiber);
/* Returns {NULL} if the queue is empty. */
UMS_API ums_ref_t ums_fiber_queue_pop_front(ums_fiber_queue_t* queue);
/* Returns how many fibers the queue holds. */
UMS_API size_t ums_fiber_queue_size(const ums_fiber_queue_t* queue);

/* The same list in order of keys: the lowest key first; among equal keys, the fiber that came
 * first. Zero is empty. */
typedef struct ums_ordered_queue {
    void* root;
    size_t count;
    uint64_t arrivals;
} ums_ordered_queue_t;

#define UMS_ORDERED_QUEUE_INIT \
    { NULL, 0, 0 }

/* Puts a ready fiber behind those whose key is equal or lower. */
UMS_API void ums_ordered_queue_push(ums_ordered_queue_t* queue, ums_ref_t fiber, uint64_t key);
/* Returns {NULL} if the queue is empty. */
UMS_API ums_ref_t ums_ordered_queue_pop_front(ums_ordered_queue_t* queue);
/* Returns the key of the first fiber. Requires: the queue is not empty. */
UMS_API uint64_t ums_ordered_queue_front_key(const ums_ordered_queue_t* queue);
/* Returns how many fibers the queue holds. */
UMS_API size_t ums_ordered_queue_size(const ums_ordered_queue_t* queue);

/* --- Runtime (ums/run.hpp, ums/options.hpp) --------------------------------------------------- */

/* Kinds are ints; a kind that has no name here is refused with -EINVAL. */
enum ums_guard { UMS_GUARD_AUTOMATIC, UMS_GUARD_LIGHTWEIGHT, UMS_GUARD_MPROTECT };
typedef int ums_guard_t;
enum ums_policy {
    UMS_POLICY_WORK_STEALING,
    UMS_POLICY_GLOBAL_FIFO,
    UMS_POLICY_LOCAL_LOCKED,
    UMS_POLICY_LOCAL_MPSC,
    UMS_POLICY_LOCAL_MPSC_INTRUSIVE,
    UMS_POLICY_PRIORITY,
    UMS_POLICY_EARLIEST_DEADLINE_FIRST,
    UMS_POLICY_FAIR_SHARE,
    UMS_POLICY_STEAL = UMS_POLICY_WORK_STEALING, /* Former names. */
    UMS_POLICY_FIFO = UMS_POLICY_GLOBAL_FIFO
};
typedef int ums_policy_t;
/* Returns the policy that UMS_POLICY=name would choose. -EINVAL: there is none of that name. */
UMS_API ums_policy_t ums_policy_named(const char* name);
/* How the runtime finds a fiber that has blocked in the kernel. UMS_BLOCK_PERF is refused
 * (-EOPNOTSUPP). */
enum ums_block { UMS_BLOCK_AUTOMATIC, UMS_BLOCK_PERF, UMS_BLOCK_MONITOR, UMS_BLOCK_OFF };
typedef int ums_block_t;

/* ums/options.hpp describes each member; the comments here give the default and the range. The
 * environment variables UMS_* override them. */
typedef struct ums_options {
    size_t size;
    size_t stack_bytes;                     /* 256 KiB; 16 KiB to 1 GiB */
    const ums_policy_calls_t* policy_calls; /* NULL: `policy`. Must live until the runtime stops. */
    void* policy_argument;
    uint64_t seed;
    uint32_t processors; /* 0: one for each usable CPU */
    ums_guard_t guard;
    ums_policy_t policy;
    uint32_t spin_ns;     /* 5000 */
    uint32_t warm_stacks; /* 16384 */
    bool pin;
    bool migrate;
    bool measure_stacks;
    bool membarrier; /* true */
    ums_block_t block;
    uint32_t carriers;      /* 10000; 2 to 1000000 */
    uint32_t time_slice_us; /* 10000; 0: none; 100 to 60000000. See ums_run() for -EOPNOTSUPP. */
    int signal;             /* 0: one that nobody uses */
    const char* cpus;       /* NULL or "": any; as in ums_cluster_options_t */
} ums_options_t;

#define UMS_OPTIONS_INIT                                                                          \
    {                                                                                             \
        sizeof(ums_options_t), 256 * 1024, NULL, NULL, 1, 0, UMS_GUARD_AUTOMATIC,                 \
            UMS_POLICY_STEAL, 5000, 16384, false, false, false, true, UMS_BLOCK_AUTOMATIC, 10000, \
            10000, 0, NULL                                                                        \
    }

/* Starts a runtime, calls function(argument) on its first fiber ("main"), waits until every fiber
 * has ended, and stops the runtime. Blocks the calling thread. `options` may be NULL.
 * -EBUSY: a runtime is running. -EINVAL: an option. -EOPNOTSUPP: the kernel cannot make the guards,
 * or the requested detector does not work, or time slices other than the default lack a detector or
 * a clock (the default then means none or late ones). -EAGAIN: no thread. -EPERM: the caller is a
 * fiber. -ENOMEM. */
UMS_API UMS_CHECK int ums_run(const ums_options_t* options, void (*function)(void*),
                              void* argument);

/* The same in two steps, for plain threads. ums_runtime_start() fails as ums_run() does.
 * ums_runtime_stop() waits until every fiber has ended. -EPERM: the caller is a fiber. -EINVAL: no
 * runtime was started by ums_runtime_start(). */
UMS_API UMS_CHECK int ums_runtime_start(const ums_options_t* options);
UMS_API int ums_runtime_stop(void);

/* --- Fibers (ums/fiber.hpp, ums/fiber_ref.hpp) ------------------------------------------------ */

enum ums_launch { UMS_LAUNCH_POST, UMS_LAUNCH_DISPATCH };
typedef int ums_launch_t;

typedef struct ums_fiber_options {
    size_t size;
    const char* name;       /* Copied; at most 256 bytes. NULL: none. */
    size_t stack_bytes;     /* 0: the runtime's default */
    ums_cluster_t* cluster; /* NULL: the creator's; for a plain thread the default cluster */
    uint64_t tag;           /* A word for the cluster's policy. */
    ums_launch_t launch;
    bool pinned;
    int priority;     /* -4 to 3, the most urgent. For UMS_POLICY_PRIORITY. */
    unsigned weight;  /* 1 to 10000; 0: 100. For UMS_POLICY_FAIR_SHARE, as the group. */
    unsigned group;   /* 0 to 63 */
    int64_t deadline; /* UMS_NEVER, 0: none. For UMS_POLICY_EARLIEST_DEADLINE_FIRST. */
} ums_fiber_options_t;

#define UMS_FIBER_OPTIONS_INIT \
    { sizeof(ums_fiber_options_t), NULL, 0, NULL, 0, UMS_LAUNCH_POST, false, 0, 100, 0, UMS_NEVER }

/* Runs function(argument) on a new fiber. `options` may be NULL. *made is written before the fiber
 * can run. A C++ exception that leaves the function ends the program.
 * -EAGAIN: no stack. -EINVAL: an option, or no function. -EPERM: no runtime is running. */
UMS_API UMS_CHECK int ums_fiber_create(ums_fiber_t* made, const ums_fiber_options_t* options,
                                       void (*function)(void*), void* argument);

/* Waits until the fiber's function has returned, then sets the handle to none. Any fiber or thread
 * may join, once. -EINVAL: the handle is none. -EDEADLK: the fiber joins itself. */
UMS_API int ums_fiber_join(ums_fiber_t* fiber);

/* Lets the fiber run on alone and sets the handle to none. -EINVAL: the handle is none. */
UMS_API int ums_fiber_detach(ums_fiber_t* fiber);

/* Returns whether the handle owns a fiber. */
UMS_API bool ums_fiber_joinable(const ums_fiber_t* fiber);
/* Names the fiber, so that others can unpark it. {NULL}: the handle owns none. */
UMS_API ums_ref_t ums_fiber_ref(const ums_fiber_t* fiber);
/* Returns the fiber's id. 0: the handle owns none. */
UMS_API uint64_t ums_fiber_id(const ums_fiber_t* fiber);

/* Returns the number of CPUs that this process may use. */
UMS_API unsigned ums_hardware_concurrency(void);

/* Ends the current or next park of the fiber or thread. Never blocks; not from a signal handler. */
UMS_API void ums_ref_unpark(ums_ref_t who);
/* The same for each of an array, waking at most one processor of each cluster for all of them. None
 * may be {NULL}. */
UMS_API void ums_ref_unpark_all(const ums_ref_t* all, size_t count);
/* Returns the fiber's id. 0: `who` names a plain thread, or is {NULL}. */
UMS_API uint64_t ums_ref_id(ums_ref_t who);
/* Returns the fiber's name, "" if it has none. The text lives as long as the fiber. */
UMS_API const char* ums_ref_name(ums_ref_t who);
/* A word that the fiber keeps for its policy. Requires: `who` names a fiber. */
UMS_API uint64_t ums_ref_tag(ums_ref_t who);
UMS_API void ums_ref_set_tag(ums_ref_t who, uint64_t tag);
/* What the built-in policies go by; see ums_fiber_options_t. A change counts from the next time the
 * fiber becomes ready. Requires: `who` names a fiber, and the value is in its range. */
UMS_API int ums_ref_priority(ums_ref_t who);
UMS_API void ums_ref_set_priority(ums_ref_t who, int priority);
UMS_API int64_t ums_ref_deadline(ums_ref_t who);
UMS_API void ums_ref_set_deadline(ums_ref_t who, int64_t deadline);
UMS_API unsigned ums_ref_weight(ums_ref_t who);
UMS_API void ums_ref_set_weight(ums_ref_t who, unsigned weight);
UMS_API unsigned ums_ref_group(ums_ref_t who);
UMS_API void ums_ref_set_group(ums_ref_t who, unsigned group);
/* Its own priority, or that of a more urgent fiber that waits for a mutex it holds. */
UMS_API int ums_ref_effective_priority(ums_ref_t who);

/* --- This fiber, or plain thread (ums/this_fiber.hpp) ----------------------------------------- */

/* Lets the other ready fibers of this processor run first. */
UMS_API void ums_this_fiber_yield(void);
/* The same, and returns whether the caller stopped for anything. False: nothing else was ready
 * here; on a plain thread always. */
UMS_API bool ums_this_fiber_tryyield(void);
/* Returns the caller's id. 0: the caller is a plain thread. */
UMS_API uint64_t ums_this_fiber_id(void);
/* Returns the caller's name, "" if it has none. The text lives as long as the fiber. */
UMS_API const char* ums_this_fiber_name(void);
/* Read and set errno in code that may wait in between (ums/last_error.hpp). */
UMS_API int ums_last_error(void);
UMS_API void ums_set_last_error(int number);
/* Names the caller, so that others can unpark it. */
UMS_API ums_ref_t ums_this_fiber_ref(void);

/* Waits for an unpark, which may have come since the last park. park_until() returns 0 if an unpark
 * ended the wait, else -ETIMEDOUT or -ECANCELED. */
UMS_API void ums_this_fiber_park(void);
UMS_API int ums_this_fiber_park_until(int64_t deadline, ums_stop_t* stop);

/* Wait for that long, or until then. They never return early. */
UMS_API void ums_this_fiber_sleep_ns(int64_t ns);
UMS_API void ums_this_fiber_sleep_until(int64_t deadline);

/* Moves the calling fiber to another cluster. -EPERM: the caller is a plain thread. -EBUSY: it is
 * inside ums_keep_carrier_enter(), and `to` is not its cluster. */
UMS_API int ums_this_fiber_migrate(ums_cluster_t* to);
/* The same, but to the processor of that index, also within its own cluster: the fiber runs there
 * when this returns, and may run elsewhere later, as its policy wants. A pinned one stays pinned,
 * to that processor. Errors as above; -EINVAL: there is no such processor. */
UMS_API UMS_CHECK int ums_this_fiber_migrate_to(ums_cluster_t* to, unsigned processor);

/* How deep the fiber's stack has been used, in bytes, in whole pages; 0 on a plain thread. Unless
 * stacks are measured (measure_stacks), what lay below a park of several seconds does not count any
 * more, because its memory was given back. */
UMS_API size_t ums_this_fiber_stack_high_water_bytes(void);

/* --- Stop ------------------------------------------------------------------------------------- */

/* A stop source, as std::stop_source. A request lasts for ever. The program may destroy the stop
 * while others still wait with it. */
UMS_API UMS_CHECK int ums_stop_create(ums_stop_t** made); /* -ENOMEM */
/* Frees the stop. */
UMS_API void ums_stop_destroy(ums_stop_t* stop);
/* Requests the stop and wakes everything that waits with it. */
UMS_API bool ums_stop_request(ums_stop_t* stop); /* Returns whether this call was the first. */
/* Returns whether the stop was requested. */
UMS_API bool ums_stop_requested(const ums_stop_t* stop);

/* --- Clusters (ums/cluster.hpp) --------------------------------------------------------------- */

typedef struct ums_cluster_options {
    size_t size;
    const char* name; /* "cluster" */
    /* NULL: `policy`. Must live until the cluster is destroyed. */
    const ums_policy_calls_t* policy_calls;
    void* policy_argument;
    uint32_t processors; /* 1; at most 1024 */
    ums_policy_t policy;
    bool pin;
    uint32_t carriers;      /* 10000; 2 to 1000000 */
    uint32_t time_slice_us; /* 10000; 0: none; 100 to 60000000. */
    /* The CPUs that its threads may use: "0-3,8", "node:1", "auto". NULL or "": any. */
    const char* cpus;
} ums_cluster_options_t;

#define UMS_CLUSTER_OPTIONS_INIT                                                                 \
    {                                                                                            \
        sizeof(ums_cluster_options_t), "cluster", NULL, NULL, 1, UMS_POLICY_STEAL, false, 10000, \
            10000, NULL                                                                          \
    }

/* Makes a cluster and its kernel threads. -EPERM: no runtime is running. -EINVAL: an option.
 * -EOPNOTSUPP: time slices without a detector, or CPUs that this process may not use. -EAGAIN: no
 * thread. -ENOMEM. */
UMS_API UMS_CHECK int ums_cluster_create(ums_cluster_t** made,
                                         const ums_cluster_options_t* options);

/* Waits until every fiber of the cluster has ended or left, then destroys it. -EINVAL: it is the
 * standard cluster. -EDEADLK: the caller is one of its fibers. */
UMS_API int ums_cluster_destroy(ums_cluster_t* cluster);

/* Adds a processor; *index, unless `index` is NULL, gets its index. -EAGAIN: no thread, or 1024
 * processors already. */
UMS_API int ums_cluster_add_processor(ums_cluster_t* cluster, unsigned* index);
/* Removes the processor with the highest index and waits for that. -EINVAL: it is the last one. */
UMS_API int ums_cluster_remove_processor(ums_cluster_t* cluster);

/* Moves a processor to another cluster; *index, unless `index` is NULL, gets its index there.
 * -EINVAL: it is the last one, or the clusters are the same. -EAGAIN: as in adding one. Nothing has
 * changed then. */
UMS_API UMS_CHECK int ums_cluster_move_processor(ums_cluster_t* from, ums_cluster_t* to,
                                                 unsigned* index);

/* Runs function(argument) on a new, detached fiber of the cluster, and does not wait for it.
 * `options` may be NULL. Errors: as ums_fiber_create(); -EINVAL: they name another cluster. */
UMS_API UMS_CHECK int ums_cluster_post(ums_cluster_t* cluster, const ums_fiber_options_t* options,
                                       void (*function)(void*), void* argument);
/* Runs function(arguments[i]) on a new, detached fiber for each of `count` arguments. The fibers
 * become ready together, in order, and one idle processor is woken for all of them. If the call
 * fails, none of them runs.
 * Errors: as ums_cluster_post(); -EINVAL: UMS_LAUNCH_DISPATCH. */
UMS_API UMS_CHECK int ums_cluster_post_each(ums_cluster_t* cluster,
                                            const ums_fiber_options_t* options,
                                            void (*function)(void*), void* const* arguments,
                                            size_t count);
/* Stops the cluster's fibers, and returns once none runs: each is ready, parked, stopped, or in a
 * call outside of its processor. What becomes ready meanwhile waits, deadlines too. Calls are
 * counted. Waits until each running fiber has switched or was stopped. -EDEADLK: the caller is a
 * fiber of this cluster. -ESRCH: fork() left the cluster behind. */
UMS_API UMS_CHECK int ums_cluster_pause(ums_cluster_t* cluster);
/* The cluster continues after as many calls as there were of ums_cluster_pause(). -EPERM: it is not
 * paused. */
UMS_API int ums_cluster_resume(ums_cluster_t* cluster);

/* Sets how much the fibers of a group get together: a weight of 1 to 10000, 100 unless set.
 * -EINVAL: a value out of range. -EOPNOTSUPP: the cluster's policy has no groups. */
UMS_API UMS_CHECK int ums_cluster_set_group_weight(ums_cluster_t* cluster, unsigned group,
                                                   unsigned weight);
/* Returns the number of processors now. */
UMS_API unsigned ums_cluster_processors(const ums_cluster_t* cluster);
/* Writes the name, cut to bytes - 1 characters, and a zero. Returns the length of the whole
 * name. */
UMS_API size_t ums_cluster_name(const ums_cluster_t* cluster, char* buffer, size_t bytes);

/* Returns the cluster that the runtime started with. Requires: a runtime is running. */
UMS_API ums_cluster_t* ums_cluster_standard(void);

/* --- Calls that block in the kernel (ums/blocking.hpp) ---------------------------------------- */

/* Code between the two calls, on the same fiber, may block in the kernel: meanwhile other fibers
 * run on its processor. Pairs nest. leave() may wait for the fiber's turn, and keeps errno. */
UMS_API void ums_blocking_enter(void);
UMS_API void ums_blocking_leave(void);

/* Between the two calls, libums's signal does not stop the fiber. Pairs nest. A stop that came due
 * inside takes effect in the outermost leave(), which keeps errno and the kernel thread. */
UMS_API void ums_uninterruptible_enter(void);
UMS_API void ums_uninterruptible_leave(void);

/* Between the two calls, on the same fiber, the fiber stays on the kernel thread that it runs on,
 * through all waits (ums/keep_carrier.hpp). Pairs nest; a fiber that ends inside leaves. -EAGAIN:
 * there are as many kernel threads as there may be, or the kernel refuses one. -ENOMEM. */
UMS_API UMS_CHECK int ums_keep_carrier_enter(void);
UMS_API void ums_keep_carrier_leave(void);

/* --- Statistics (ums/stats.hpp) -------------------------------------------------------------- */

typedef struct ums_stats {
    size_t size;
    uint64_t spawned, finished;
    uint64_t steals, stolen;
    uint64_t idle_waits, wakes;
    uint64_t slabs;
    uint64_t stacks_made, stacks_warm, stacks_cold, stacks_trimmed;
    uint64_t mapped_bytes;
    uint64_t stack_high_water_bytes;
    uint32_t carriers, carriers_peak, carriers_spare;
    uint64_t hand_offs;
    uint64_t blocked_in_calls, blocked_in_faults, blocked_in_regions;
    uint64_t stops, preemptions;
    uint64_t carrier_waits, carrier_refusals;
} ums_stats_t;

#define UMS_STATS_INIT \
    { sizeof(ums_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills the members that stats->size covers; zeros if no runtime is running. -EINVAL: the size. */
UMS_API int ums_stats_get(ums_stats_t* stats);
/* Gives the memory of free stacks back to the kernel (ums::trim()). */
UMS_API void ums_trim(void);
/* Writes what ums::info() returns, cut to bytes - 1 characters, and a zero. *length, unless NULL,
 * gets the length of the whole text. -ENOMEM. */
UMS_API int ums_info(char* buffer, size_t bytes, size_t* length);
/* Returns the version, such as "0.2.0". */
UMS_API const char* ums_version(void);

/* --- Marks in a trace (ums/trace.hpp) --------------------------------------------------------- */

/* Adds a mark to the trace while one is recorded, and does nothing otherwise. Copies up to 64 bytes
 * of the text. Never blocks. May be called from anywhere but a signal handler. */
UMS_API void ums_trace_event(const char* text);

/* --- Metrics and fibers (ums/metrics.hpp) ----------------------------------------------------- */

/* The Content-Type of ums_metrics(). */
#define UMS_METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Writes what ums::metrics() returns, cut to bytes - 1 characters, and a zero. *length, unless
 * NULL, gets the length of the whole text, which differs from call to call. -ENOMEM. */
UMS_API int ums_metrics(char* buffer, size_t bytes, size_t* length);

enum ums_fiber_state {
    UMS_FIBER_ACTIVE,  /* Runs, is ready, is blocked in the kernel, or was stopped. */
    UMS_FIBER_WAITING, /* Waits, or was woken and has not run since. */
    UMS_FIBER_ENDED,   /* Has ended and was not joined yet. */
};

/* The texts are valid until the function that gets this returns. */
typedef struct ums_fiber_info {
    size_t size; /* Of this struct as the library knows it. */
    uint64_t id;
    uint64_t made_by;       /* The id of the fiber that spawned it; 0: a plain thread did. */
    const void* spawned_at; /* Where the code that spawned it continues. */
    const char* name;       /* As given, cut to 256 bytes; often "". */
    const char* waits_for;  /* In the words of `ums ps --waits`; "" unless it waits. */
    uint64_t waits_in;      /* As in ums::fiber_info. */
    int state;              /* One of enum ums_fiber_state. */
} ums_fiber_info_t;

/* Calls each(context, ...) for every fiber that ums::fibers() would list, until a call returns
 * something other than 0. Returns that number, or 0. -ENOMEM. */
UMS_API int ums_fibers(int (*each)(void* context, const ums_fiber_info_t* one), void* context);

/* --- Mutexes (ums/mutex.hpp) ------------------------------------------------------------------ */

enum ums_mutex_kind {
    UMS_MUTEX_NORMAL,    /* Running fibers may overtake a waiter, for a millisecond. */
    UMS_MUTEX_FAIR,      /* First come, first served. */
    UMS_MUTEX_RECURSIVE, /* As normal; its owner may lock it again, and must unlock it as often. */
};
typedef int ums_mutex_kind_t;

/* Zero is free, and of the normal kind. */
typedef struct ums_mutex {
    uint64_t words[4];
    uint32_t kind;
    uint32_t spare;
} ums_mutex_t;

#define UMS_MUTEX_INIT \
    { {0, 0, 0, 0}, UMS_MUTEX_NORMAL, 0 }
#define UMS_FAIR_MUTEX_INIT \
    { {0, 0, 0, 0}, UMS_MUTEX_FAIR, 0 }
#define UMS_RECURSIVE_MUTEX_INIT \
    { {0, 0, 0, 0}, UMS_MUTEX_RECURSIVE, 0 }

/* Makes the mutex free, and of that kind. */
UMS_API int ums_mutex_init(ums_mutex_t* mutex, ums_mutex_kind_t kind); /* -EINVAL: the kind */
/* Optional: memory of a free mutex may simply go away. -EBUSY: somebody holds the mutex. */
UMS_API int ums_mutex_destroy(ums_mutex_t* mutex);

/* Locks the mutex. -EDEADLK: the caller holds it, and it is not recursive. -EAGAIN: locked
 * 2^32 - 1 times already. */
UMS_API int ums_mutex_lock(ums_mutex_t* mutex);
UMS_API UMS_CHECK int ums_mutex_lock_until(ums_mutex_t* mutex, int64_t deadline, ums_stop_t* stop);
/* Locks the mutex if it is free. -EBUSY: somebody holds it (the caller too, unless it is
 * recursive). */
UMS_API UMS_CHECK int ums_mutex_trylock(ums_mutex_t* mutex);
/* Unlocks the mutex. -EPERM: the caller does not hold it. */
UMS_API int ums_mutex_unlock(ums_mutex_t* mutex);

/* --- Reader-writer locks (ums/shared_mutex.hpp) ----------------------------------------------- */

/* One writer or many readers hold it. Zero is free. */
typedef struct ums_rwlock {
    uint64_t words[4];
} ums_rwlock_t;

#define UMS_RWLOCK_INIT \
    {                   \
        { 0, 0, 0, 0 }  \
    }

/* Locks it for the caller alone, as the writer. -EDEADLK: the caller holds it as the writer. */
UMS_API int ums_rwlock_lock(ums_rwlock_t* lock);
UMS_API UMS_CHECK int ums_rwlock_lock_until(ums_rwlock_t* lock, int64_t deadline, ums_stop_t* stop);
/* Locks it as the writer if nobody holds it or waits for it. */
UMS_API UMS_CHECK int ums_rwlock_trylock(ums_rwlock_t* lock); /* -EBUSY */
/* Ends the hold of the writer. */
UMS_API int ums_rwlock_unlock(ums_rwlock_t* lock); /* -EPERM: the caller is not the writer */
/* Locks it as a reader, beside other readers. -EDEADLK: the caller holds it as the writer. */
UMS_API int ums_rwlock_lock_shared(ums_rwlock_t* lock);
UMS_API UMS_CHECK int ums_rwlock_lock_shared_until(ums_rwlock_t* lock, int64_t deadline,
                                                   ums_stop_t* stop);
/* Locks it as a reader if no writer holds it and nobody waits for it. */
UMS_API UMS_CHECK int ums_rwlock_trylock_shared(ums_rwlock_t* lock); /* -EBUSY */
/* Ends the hold of one reader. */
UMS_API int ums_rwlock_unlock_shared(ums_rwlock_t* lock); /* -EPERM: no reader holds it */

/* --- Condition variables (ums/condition_variable.hpp) ----------------------------------------- */

/* Zero has no waiters. */
typedef struct ums_cond {
    uint64_t words[4];
} ums_cond_t;

#define UMS_COND_INIT  \
    {                  \
        { 0, 0, 0, 0 } \
    }

/* Works with a mutex of any kind. Unlocks it once, waits, and locks it again whatever the result.
 * -EPERM: the caller does not hold the mutex. */
UMS_API int ums_cond_wait(ums_cond_t* cond, ums_mutex_t* mutex);
UMS_API UMS_CHECK int ums_cond_wait_until(ums_cond_t* cond, ums_mutex_t* mutex, int64_t deadline,
                                          ums_stop_t* stop);
/* Wake one waiter, the longest, or all. They never block; the caller need not hold the mutex. */
UMS_API void ums_cond_notify_one(ums_cond_t* cond);
UMS_API void ums_cond_notify_all(ums_cond_t* cond);

/* --- Semaphores (ums/semaphore.hpp) ----------------------------------------------------------- */

#define UMS_SEMAPHORE_MAX INT32_MAX

/* Zero has no permits. */
typedef struct ums_semaphore {
    uint64_t words[4];
} ums_semaphore_t;

#define UMS_SEMAPHORE_INIT \
    {                      \
        { 0, 0, 0, 0 }     \
    }

/* Gives the semaphore that many permits. -EINVAL: more than UMS_SEMAPHORE_MAX permits. */
UMS_API int ums_semaphore_init(ums_semaphore_t* semaphore, uint32_t permits);
/* Takes a permit, and waits while there is none. */
UMS_API void ums_semaphore_acquire(ums_semaphore_t* semaphore);
UMS_API UMS_CHECK int ums_semaphore_acquire_until(ums_semaphore_t* semaphore, int64_t deadline,
                                                  ums_stop_t* stop);
/* Takes a permit if there is one. */
UMS_API UMS_CHECK int ums_semaphore_tryacquire(ums_semaphore_t* semaphore); /* -EAGAIN */
/* Adds permits, and wakes that many waiters. -EOVERFLOW: the sum would exceed UMS_SEMAPHORE_MAX. */
UMS_API int ums_semaphore_release(ums_semaphore_t* semaphore, uint32_t permits);
/* The free permits at that moment. */
UMS_API uint32_t ums_semaphore_value(const ums_semaphore_t* semaphore);

/* --- Latches (ums/latch.hpp) ------------------------------------------------------------------ */

/* Zero has already counted down. */
typedef struct ums_latch {
    uint64_t words[4];
} ums_latch_t;

/* Sets the count. */
UMS_API int ums_latch_init(ums_latch_t* latch, ptrdiff_t count); /* -EINVAL: negative */
/* Takes n from the count. Counting below zero ends the program with a message. */
UMS_API int ums_latch_count_down(ums_latch_t* latch, ptrdiff_t n); /* -EINVAL: negative */
/* Returns 0 if the count is zero. */
UMS_API UMS_CHECK int ums_latch_trywait(const ums_latch_t* latch); /* -EAGAIN */
/* Waits until the count is zero. */
UMS_API void ums_latch_wait(ums_latch_t* latch);
UMS_API UMS_CHECK int ums_latch_wait_until(ums_latch_t* latch, int64_t deadline, ums_stop_t* stop);
/* Counts down by n, then waits until the count is zero. */
UMS_API int ums_latch_arrive_and_wait(ums_latch_t* latch, ptrdiff_t n); /* -EINVAL: negative */

/* --- Wait groups (ums/wait_group.hpp) --------------------------------------------------------- */

/* Zero has no work to wait for. */
typedef struct ums_wait_group {
    uint64_t words[4];
} ums_wait_group_t;

#define UMS_WAIT_GROUP_INIT \
    {                       \
        { 0, 0, 0, 0 }      \
    }

/* Adds n, which may be negative, to the count. A count below zero ends the program with a
 * message. */
UMS_API void ums_wait_group_add(ums_wait_group_t* group, ptrdiff_t n);
/* Takes one from the count. */
UMS_API void ums_wait_group_done(ums_wait_group_t* group);
/* Returns 0 if the count is zero. */
UMS_API UMS_CHECK int ums_wait_group_trywait(const ums_wait_group_t* group); /* -EAGAIN */
/* Waits until the count is zero. */
UMS_API void ums_wait_group_wait(ums_wait_group_t* group);
UMS_API UMS_CHECK int ums_wait_group_wait_until(ums_wait_group_t* group, int64_t deadline,
                                                ums_stop_t* stop);

/* --- Events (ums/event.hpp) ------------------------------------------------------------------- */

enum ums_event_kind {
    UMS_EVENT_AUTO,   /* Each set() lets one waiter through. */
    UMS_EVENT_MANUAL, /* Lets everybody through until it is reset. */
};
typedef int ums_event_kind_t;

/* Zero is an automatic event that is not set. */
typedef struct ums_event {
    uint64_t words[4];
    uint32_t kind;
    uint32_t spare;
} ums_event_t;

#define UMS_EVENT_INIT \
    { {0, 0, 0, 0}, UMS_EVENT_AUTO, 0 }

/* Makes it an event of that kind. -EINVAL: the kind. */
UMS_API int ums_event_init(ums_event_t* event, ums_event_kind_t kind, bool is_set);
/* Lets waiters through, as the kind says. A set() while nobody waits is remembered, but only
 * one. */
UMS_API void ums_event_set(ums_event_t* event);
/* Makes the event not set. */
UMS_API void ums_event_reset(ums_event_t* event);
/* Goes through if the event is set. */
UMS_API UMS_CHECK int ums_event_trywait(ums_event_t* event); /* -EAGAIN */
/* Waits until the event is set, and goes through. */
UMS_API void ums_event_wait(ums_event_t* event);
UMS_API UMS_CHECK int ums_event_wait_until(ums_event_t* event, int64_t deadline, ums_stop_t* stop);

/* --- Barriers (ums/barrier.hpp) --------------------------------------------------------------- */

typedef struct ums_barrier {
    uint64_t words[6];
    void (*completion)(void*);
    void* argument;
} ums_barrier_t;

/* The last to arrive calls completion(argument), unless `completion` is NULL. -EINVAL: a negative
 * count. */
UMS_API int ums_barrier_init(ums_barrier_t* barrier, ptrdiff_t expected, void (*completion)(void*),
                             void* argument);
/* Arrives and waits. *was_last, unless NULL, gets whether this arrival ended the phase. */
UMS_API void ums_barrier_arrive_and_wait(ums_barrier_t* barrier, bool* was_last);
/* Arrives `n` times and does not wait. *phase, unless NULL, gets the phase for wait_until().
 * -EINVAL: n < 1. More arrivals than expected end the program with a message. */
UMS_API int ums_barrier_arrive(ums_barrier_t* barrier, ptrdiff_t n, uint64_t* phase);
/* Arrives once, for the last time: the phases that follow expect one less. Does not wait. */
UMS_API void ums_barrier_arrive_and_drop(ums_barrier_t* barrier);
/* Waits until the phase that ums_barrier_arrive() gave has ended. */
UMS_API UMS_CHECK int ums_barrier_wait_until(ums_barrier_t* barrier, uint64_t phase,
                                             int64_t deadline, ums_stop_t* stop);

/* --- Once (ums/once.hpp) ---------------------------------------------------------------------- */

/* Zero has not been called yet. */
typedef struct ums_once {
    uint64_t words[4];
} ums_once_t;

#define UMS_ONCE_INIT  \
    {                  \
        { 0, 0, 0, 0 } \
    }

/* Calls function(argument) unless such a call has already returned; waits while one is in
 * progress. */
UMS_API void ums_once_call(ums_once_t* once, void (*function)(void*), void* argument);

/* --- Values of a fiber's own (ums/fiber_local.hpp) -------------------------------------------- */

typedef struct ums_key* ums_key_t;

/* Makes a key, under which each fiber and each plain thread has a value of its own, NULL at first.
 * `destructor` may be NULL. Each fiber or plain thread that ends calls it on its own value, unless
 * that is NULL, before ums_fiber_join() returns. -ENOMEM. */
UMS_API UMS_CHECK int ums_key_create(ums_key_t* made, void (*destructor)(void*));
/* Calls no destructor for values that are left. Nobody may use the key any more. */
UMS_API void ums_key_delete(ums_key_t key);
/* Sets the caller's value. -ENOMEM. */
UMS_API UMS_CHECK int ums_key_set(ums_key_t key, const void* value);
/* Returns the caller's value. NULL: none was set. */
UMS_API void* ums_key_get(ums_key_t key);

/* --- Channels (ums/channel.hpp) --------------------------------------------------------------- */

/* A channel of elements of one size, which it copies. -EPIPE: the channel is closed and, to
 * receive, drained. */
typedef struct ums_channel ums_channel_t;

#define UMS_CHANNEL_UNBOUNDED SIZE_MAX
#define UMS_CHANNEL_ELEMENT_MAX 1024

/* With capacity 0 a send and a receive meet. -EINVAL: 0 or more than UMS_CHANNEL_ELEMENT_MAX bytes
 * (send pointers to larger objects), or an impossible capacity. -ENOMEM. */
UMS_API UMS_CHECK int ums_channel_create(ums_channel_t** made, size_t element_bytes,
                                         size_t capacity);
/* Requires: nobody waits in the channel. Drops the elements that are left. */
UMS_API void ums_channel_destroy(ums_channel_t* channel);

/* Waits for room. The element must not change until the call returns, here and below. -EPIPE. An
 * unbounded channel: -ENOMEM. */
UMS_API UMS_CHECK int ums_channel_send(ums_channel_t* channel, const void* element);
UMS_API UMS_CHECK int ums_channel_send_until(ums_channel_t* channel, const void* element,
                                             int64_t deadline, ums_stop_t* stop);
/* Does not wait. -EAGAIN: there is no room. -EPIPE. */
UMS_API UMS_CHECK int ums_channel_trysend(ums_channel_t* channel, const void* element);
/* Waits for an element. -EPIPE. */
UMS_API UMS_CHECK int ums_channel_receive(ums_channel_t* channel, void* element);
UMS_API UMS_CHECK int ums_channel_receive_until(ums_channel_t* channel, void* element,
                                                int64_t deadline, ums_stop_t* stop);
/* Does not wait. -EAGAIN: there is no element. -EPIPE. */
UMS_API UMS_CHECK int ums_channel_tryreceive(ums_channel_t* channel, void* element);

/* Sends several elements, which lie one after the other. Returns how many were sent: all, or fewer
 * if the channel was closed meanwhile or the timed form gave up. If none was sent: -EPIPE,
 * -ETIMEDOUT or -ECANCELED. */
UMS_API int64_t ums_channel_send_all(ums_channel_t* channel, const void* elements, size_t count);
UMS_API int64_t ums_channel_send_all_until(ums_channel_t* channel, const void* elements,
                                           size_t count, int64_t deadline, ums_stop_t* stop);
/* Waits for one element, then takes what else is there, at most `most` in all. Returns how many
 * were received, or an error as above. */
UMS_API int64_t ums_channel_receive_some(ums_channel_t* channel, void* elements, size_t most);
UMS_API int64_t ums_channel_receive_some_until(ums_channel_t* channel, void* elements, size_t most,
                                               int64_t deadline, ums_stop_t* stop);

/* Refuses further sends and wakes all waiters. */
UMS_API void ums_channel_close(ums_channel_t* channel);
/* Returns whether the channel was closed. */
UMS_API bool ums_channel_is_closed(const ums_channel_t* channel);
/* Returns how many elements the channel holds at that moment. */
UMS_API size_t ums_channel_size(const ums_channel_t* channel);
/* Returns how many elements the channel has room for. */
UMS_API size_t ums_channel_capacity(const ums_channel_t* channel);

/* --- Queues (ums/queue.hpp) ------------------------------------------------------------------- */

/* A channel with a capacity, under the names of a queue. Elements and errors as a channel's. */
typedef struct ums_queue ums_queue_t;

/* As ums_channel_create(). -EINVAL: also a capacity of 0. */
UMS_API UMS_CHECK int ums_queue_create(ums_queue_t** made, size_t element_bytes, size_t capacity);
/* Requires: nobody uses the queue. Drops the elements that are left. */
UMS_API void ums_queue_destroy(ums_queue_t* queue);

/* Waits while the queue is full. -EPIPE: it is closed. An unbounded queue: -ENOMEM. */
UMS_API UMS_CHECK int ums_queue_push(ums_queue_t* queue, const void* element);
UMS_API UMS_CHECK int ums_queue_push_until(ums_queue_t* queue, const void* element,
                                           int64_t deadline, ums_stop_t* stop);
/* Pushes if the queue is not full. -EPIPE: it is closed. */
UMS_API UMS_CHECK int ums_queue_trypush(ums_queue_t* queue, const void* element); /* -EAGAIN */
/* Waits while the queue is empty. -EPIPE: it is closed, and everything has been popped. */
UMS_API UMS_CHECK int ums_queue_pop(ums_queue_t* queue, void* element);
UMS_API UMS_CHECK int ums_queue_pop_until(ums_queue_t* queue, void* element, int64_t deadline,
                                          ums_stop_t* stop);
/* Pops if the queue is not empty. -EPIPE: it is closed, and everything has been popped. */
UMS_API UMS_CHECK int ums_queue_trypop(ums_queue_t* queue, void* element); /* -EAGAIN */

/* Refuses further pushes. Elements that are there can still be popped. */
UMS_API void ums_queue_close(ums_queue_t* queue);
/* Returns whether the queue was closed. */
UMS_API bool ums_queue_is_closed(const ums_queue_t* queue);
/* Returns how many elements the queue holds at that moment. */
UMS_API size_t ums_queue_size(const ums_queue_t* queue);
/* Returns how many elements the queue has room for. */
UMS_API size_t ums_queue_capacity(const ums_queue_t* queue);
/* Returns the queue's channel, for a select. It lives as long as the queue. */
UMS_API ums_channel_t* ums_queue_channel(ums_queue_t* queue);

/* --- Futures (ums/future.hpp, ums/promise.hpp, ums/async.hpp) --------------------------------- */

/* The two sides of one outcome: `value_bytes` bytes, which are copied, or a negative error number.
 * Any number of waiters may share a future; reading the value leaves it there (a shared_future). */
typedef struct ums_promise ums_promise_t;
typedef struct ums_future ums_future_t;

/* Makes both sides. -ENOMEM. */
UMS_API UMS_CHECK int ums_promise_create(ums_promise_t** made, ums_future_t** future,
                                         size_t value_bytes);
/* If there is no outcome yet, the futures get -EPIPE. */
UMS_API void ums_promise_destroy(ums_promise_t* promise);
/* Copies the value. `value` may be NULL if value_bytes is 0. -EALREADY: there is an outcome. */
UMS_API int ums_promise_set(ums_promise_t* promise, const void* value);
/* Makes `error` the outcome. -EALREADY: there is an outcome. -EINVAL: `error` is not negative. */
UMS_API int ums_promise_fail(ums_promise_t* promise, int error);

/* Waits for the outcome. Copies the value, unless `value` is NULL, or returns the error number.
 * -EPIPE: the promise was destroyed without an outcome. */
UMS_API int ums_future_get(ums_future_t* future, void* value);
/* If the outcome itself is -ETIMEDOUT or -ECANCELED, ums_future_is_ready() tells it from a wait
 * that gave up. */
UMS_API UMS_CHECK int ums_future_get_until(ums_future_t* future, void* value, int64_t deadline,
                                           ums_stop_t* stop);
/* Returns whether there is an outcome. */
UMS_API bool ums_future_is_ready(const ums_future_t* future);
/* Makes another future of the same outcome. -ENOMEM. */
UMS_API UMS_CHECK int ums_future_copy(ums_future_t** made, const ums_future_t* future);
/* Never waits. Nobody may be waiting with this future. */
UMS_API void ums_future_destroy(ums_future_t* future);

/* Runs function(argument, value) on a new fiber. The outcome is what the function writes to *value,
 * which is all zero before, or the negative number that it returns. `options` may be NULL. Errors
 * as ums_fiber_create(), and -ENOMEM. */
UMS_API UMS_CHECK int ums_async(ums_future_t** made, const ums_fiber_options_t* options,
                                size_t value_bytes, int (*function)(void* argument, void* value),
                                void* argument);

/* --- Scopes (ums/scope.hpp) ------------------------------------------------------------------- */

/* Owns fibers that end before the scope does. */
typedef struct ums_scope ums_scope_t;

/* A stop of `parent`, unless that is NULL, also stops the children. -ENOMEM. */
UMS_API UMS_CHECK int ums_scope_create(ums_scope_t** made, ums_stop_t* parent);
/* Requests a stop if children are left, and waits for them. */
UMS_API void ums_scope_destroy(ums_scope_t* scope);

/* Runs function(argument, stop) on a new fiber; `stop` is the scope's. A result other than 0 is a
 * failure. The first failure requests a stop. `options` may be NULL. Errors as ums_fiber_create(),
 * and -ENOMEM. */
UMS_API UMS_CHECK int ums_scope_spawn(ums_scope_t* scope, const ums_fiber_options_t* options,
                                      int (*function)(void* argument, ums_stop_t* stop),
                                      void* argument);
/* Waits until no child is left. Returns the first failure since the last join, or 0. */
UMS_API int ums_scope_join(ums_scope_t* scope);
/* Returns the scope's stop, to request it or to wait with it. It lives as long as the scope: do not
 * destroy it. */
UMS_API ums_stop_t* ums_scope_stop(ums_scope_t* scope);

/* --- Select (ums/select.hpp) ------------------------------------------------------------------ */

enum ums_select_kind { UMS_SELECT_RECEIVE, UMS_SELECT_SEND };
typedef int ums_select_kind_t;

typedef struct ums_select_case {
    ums_channel_t* channel;
    ums_select_kind_t kind;
    void* element; /* Where to receive into, or what to send. */
} ums_select_case_t;

/* Waits until a case can happen. Exactly one happens; *index says which, also for -EPIPE: its
 * channel is closed. Without cases it waits for the deadline and the stop. Allocates: -ENOMEM.
 * -EINVAL: a kind. */
UMS_API UMS_CHECK int ums_select(const ums_select_case_t* cases, size_t count, size_t* index);
UMS_API UMS_CHECK int ums_select_until(const ums_select_case_t* cases, size_t count, size_t* index,
                                       int64_t deadline, ums_stop_t* stop);
/* Does not wait. -EAGAIN: no case can happen now. */
UMS_API UMS_CHECK int ums_tryselect(const ums_select_case_t* cases, size_t count, size_t* index);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* UMS_UMS_H */
