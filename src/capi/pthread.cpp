// SPDX-License-Identifier: MIT

// POSIX names for what the other files here do. Only threads need more:
//
// A record stands for each thread. The thread itself holds it (as a value of its own, destroyed
// after all values that its function made) and, until the thread is joined or detached, so does its
// joinable state. The thread's handle is in the record before the thread runs, because it may
// detach itself.

#include "ums/ums_pthread.h"

#include <cstdlib>
#include <memory>
#include <pthread.h>
#include <unistd.h>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "capi/call.hpp"
#include "capi/clock.hpp"
#include "capi/posix_errno.hpp"
#include "capi/started.hpp"
#include "os/memory.hpp"
#include "runtime/runtime.hpp"
#include "sched/fiber/exit_hooks.hpp"
#include "sched/fiber/exit_request.hpp"
#include "ums/fiber.hpp"
#include "ums/fiber_local.hpp"
#include "ums/this_fiber.hpp"

using namespace ums;
using namespace ums::capi;

struct ums_pthread {
    void* (*function)(void*) = nullptr;
    void* argument = nullptr;
    void* result = nullptr;
    base::atomic<sched::fiber*> joinable{nullptr};  // The caller that takes it joins or detaches.
    base::atomic<unsigned> holders{1};
    // Set before the thread runs; null if it was not made here. Lives as long as this record.
    sched::fiber* fiber = nullptr;
};

namespace {

void let_go(ums_pthread_t thread) noexcept {
    // sync(c-pthread): the last holder sees what the other wrote.
    const unsigned were = thread->holders.fetch_sub(1, base::acq_rel);
    UMS_DEBUG_ASSERT(were == 1 || were == 2, "a thread's record was let go too often");
    if (were == 1) delete thread;
}

struct let_go_at_end {
    void operator()(ums_pthread_t thread) const noexcept { let_go(thread); }
};
using held_record = std::unique_ptr<ums_pthread, let_go_at_end>;

// Never destroyed: plain threads may end after everything else.
const fiber_local<held_record>& self_record() {
    static const auto* const local = new fiber_local<held_record>;
    return *local;
}

void run_thread(void* record) {
    const auto self = static_cast<ums_pthread_t>(record);
    UMS_DEBUG_ASSERT(self_record().get() == nullptr, "a new thread already is another one");
    self_record()->reset(self);
    try {
        self->result = self->function(self->argument);
    } catch (const sched::exit_request& request) {
        self->result = request.result;
    }
}

// As many as for the C library's threads, including the zero.
constexpr std::size_t name_bytes = 16;

// The process continues until the last thread has ended, but the carriers never end. So the first
// thread to end, the main thread, waits for the fibers. The C library would not run what its
// thread_local objects do last.
[[noreturn]] void leave_thread(void* result) {
    if (::getpid() == ::gettid()) {
        sched::run_hooks(sched::this_belongings());
        if (drain_started()) std::exit(0);
    }
    ::pthread_exit(result);
}

bool is_on_thread() noexcept { return this_fiber::get_id() == fiber_id{}; }

// What concerns other processes, or priorities, is not supported.
int only(int supported, int last, int value) noexcept {
    if (value == supported) return 0;
    return is_kind(value, last) ? ENOTSUP : EINVAL;
}
int only_private(int shared) noexcept {
    return only(UMS_PTHREAD_PROCESS_PRIVATE, UMS_PTHREAD_PROCESS_SHARED, shared);
}

}  // namespace

// --- Threads ---

int ums_pthread_attr_init(ums_pthread_attr_t* attr) {
    *attr = {0, os::page_bytes, UMS_PTHREAD_CREATE_JOINABLE};
    return 0;
}
int ums_pthread_attr_destroy(ums_pthread_attr_t*) { return 0; }
int ums_pthread_attr_setdetachstate(ums_pthread_attr_t* attr, int state) {
    if (state != UMS_PTHREAD_CREATE_JOINABLE && state != UMS_PTHREAD_CREATE_DETACHED) return EINVAL;
    attr->detach_state = state;
    return 0;
}
int ums_pthread_attr_getdetachstate(const ums_pthread_attr_t* attr, int* state) {
    *state = attr->detach_state;
    return 0;
}
int ums_pthread_attr_setstacksize(ums_pthread_attr_t* attr, size_t bytes) {
    constexpr std::size_t least = 16 * 1024, most = std::size_t{1} << 30;
    if (bytes < least || bytes > most) return EINVAL;
    attr->stack_bytes = bytes;
    return 0;
}
int ums_pthread_attr_getstacksize(const ums_pthread_attr_t* attr, size_t* bytes) {
    const rt::running_runtime* r = rt::current();
    *bytes = attr->stack_bytes != 0 ? attr->stack_bytes
             : r != nullptr         ? r->set.chosen.stack_bytes
                                    : options{}.stack_bytes;
    return 0;
}
int ums_pthread_attr_setguardsize(ums_pthread_attr_t* attr, size_t bytes) {
    attr->guard_bytes = bytes;
    return 0;
}
int ums_pthread_attr_getguardsize(const ums_pthread_attr_t* attr, size_t* bytes) {
    *bytes = attr->guard_bytes;
    return 0;
}

int ums_pthread_create(ums_pthread_t* thread, const ums_pthread_attr_t* attr,
                       void* (*function)(void*), void* argument) {
    const int error = call([&] {
        auto record = std::make_unique<ums_pthread>();
        record->function = function;
        record->argument = argument;
        static constexpr char room[name_bytes] = {};  // Room for a name that it may be given.
        const fiber_options options{.name = {room, name_bytes - 1},
                                    .stack_bytes = attr != nullptr ? attr->stack_bytes : 0};
        (void)self_record();  // What can fail fails here.
        const impl::new_fiber made = impl::spawn_begin(&options, 0, 1);
        record->fiber = made.fiber;
        const bool detached = attr != nullptr && attr->detach_state == UMS_PTHREAD_CREATE_DETACHED;
        if (!detached) {
            record->holders.store(2, base::relaxed);  // relaxed: published by the commit.
            record->joinable.store(made.fiber, base::relaxed);
        }
        *thread = record.release();
        const ums_pthread_t committed = *thread;
        impl::spawn_commit(made.fiber, &run_thread, committed, launch::post);
        // The thread's handle is still this call's alone; the record may be gone.
        if (detached) impl::detach(made.fiber);
    });
    return error == -ENOMEM ? EAGAIN : -error;
}

int ums_pthread_join(ums_pthread_t thread, void** result) {
    if (thread == ums_pthread_self()) return EDEADLK;
    // sync(c-pthread): from here on the handle is the caller's.
    sched::fiber* const fiber = thread->joinable.exchange(nullptr, base::acq_rel);
    if (fiber == nullptr) return EINVAL;
    const int error = call([&] { impl::join(fiber); });
    if (result != nullptr) *result = thread->result;
    let_go(thread);
    return -error;
}

int ums_pthread_detach(ums_pthread_t thread) {
    // sync(c-pthread): as above.
    sched::fiber* const fiber = thread->joinable.exchange(nullptr, base::acq_rel);
    if (fiber == nullptr) return EINVAL;
    impl::detach(fiber);
    let_go(thread);
    return 0;
}

ums_pthread_t ums_pthread_self() {
    ums_pthread_t self = nullptr;
    (void)call([&] {
        held_record& record = self_record().get();
        if (record == nullptr) record.reset(new ums_pthread);
        self = record.get();
    });
    UMS_ASSERT(self != nullptr, "no memory for ums_pthread_self()");
    return self;
}

int ums_pthread_equal(ums_pthread_t a, ums_pthread_t b) { return a == b ? 1 : 0; }

int ums_pthread_setname_np(ums_pthread_t thread, const char* name) {
    const std::size_t bytes = std::strlen(name) + 1;
    if (bytes > name_bytes) return ERANGE;
    if (thread->fiber != nullptr) {
        // sync(c-pthread.name): a thread that sees the name sees what was done before it was given,
        // including the use of the name before. One that reads the name meanwhile may see some of
        // both.
        char* const at = const_cast<char*>(thread->fiber->name);
        for (std::size_t i = 0; i < bytes; ++i)
            base::atomic_ref<char>{at[i]}.store(name[i], base::release);
        return 0;
    }
    if (thread != ums_pthread_self() || !is_on_thread()) return EINVAL;
    return ::pthread_setname_np(::pthread_self(), name);
}

int ums_pthread_getname_np(ums_pthread_t thread, char* name, size_t bytes) {
    if (thread->fiber == nullptr) {
        if (thread != ums_pthread_self()) return EINVAL;
        if (is_on_thread()) return ::pthread_getname_np(::pthread_self(), name, bytes);
        return copy_text(ums_this_fiber_name(), name, bytes) < bytes ? 0 : ERANGE;
    }
    char* const at = const_cast<char*>(thread->fiber->name);
    for (std::size_t i = 0; i < bytes; ++i) {
        name[i] = base::atomic_ref<char>{at[i]}.load(base::acquire);  // sync(c-pthread.name)
        if (name[i] == 0) return 0;
    }
    return ERANGE;
}

void ums_pthread_exit(void* result) {
    if (is_on_thread()) leave_thread(result);
    throw sched::exit_request{result};
}

int ums_sched_yield() {
    this_fiber::yield();
    return 0;
}

// --- Mutexes ---

int ums_pthread_mutexattr_init(ums_pthread_mutexattr_t* attr) {
    attr->type = UMS_PTHREAD_MUTEX_DEFAULT;
    return 0;
}
int ums_pthread_mutexattr_destroy(ums_pthread_mutexattr_t*) { return 0; }
int ums_pthread_mutexattr_settype(ums_pthread_mutexattr_t* attr, int type) {
    if (type < UMS_PTHREAD_MUTEX_NORMAL || type > UMS_PTHREAD_MUTEX_ERRORCHECK) return EINVAL;
    attr->type = type;
    return 0;
}
int ums_pthread_mutexattr_gettype(const ums_pthread_mutexattr_t* attr, int* type) {
    *type = attr->type;
    return 0;
}
int ums_pthread_mutexattr_setpshared(ums_pthread_mutexattr_t*, int shared) {
    return only_private(shared);
}
int ums_pthread_mutexattr_getpshared(const ums_pthread_mutexattr_t*, int* shared) {
    *shared = UMS_PTHREAD_PROCESS_PRIVATE;
    return 0;
}
int ums_pthread_mutexattr_setprotocol(ums_pthread_mutexattr_t*, int protocol) {
    return only(UMS_PTHREAD_PRIO_NONE, UMS_PTHREAD_PRIO_PROTECT, protocol);
}
int ums_pthread_mutexattr_getprotocol(const ums_pthread_mutexattr_t*, int* protocol) {
    *protocol = UMS_PTHREAD_PRIO_NONE;
    return 0;
}
int ums_pthread_mutexattr_setrobust(ums_pthread_mutexattr_t*, int robust) {
    return only(UMS_PTHREAD_MUTEX_STALLED, UMS_PTHREAD_MUTEX_ROBUST, robust);
}
int ums_pthread_mutexattr_getrobust(const ums_pthread_mutexattr_t*, int* robust) {
    *robust = UMS_PTHREAD_MUTEX_STALLED;
    return 0;
}

int ums_pthread_mutex_init(ums_pthread_mutex_t* m, const ums_pthread_mutexattr_t* attr) {
    const bool recursive = attr != nullptr && attr->type == UMS_PTHREAD_MUTEX_RECURSIVE;
    return -ums_mutex_init(m, recursive ? UMS_MUTEX_RECURSIVE : UMS_MUTEX_NORMAL);
}
int ums_pthread_mutex_destroy(ums_pthread_mutex_t* m) { return -ums_mutex_destroy(m); }
int ums_pthread_mutex_lock(ums_pthread_mutex_t* m) { return -ums_mutex_lock(m); }
int ums_pthread_mutex_trylock(ums_pthread_mutex_t* m) { return -ums_mutex_trylock(m); }
int ums_pthread_mutex_unlock(ums_pthread_mutex_t* m) { return -ums_mutex_unlock(m); }

int ums_pthread_mutex_clocklock(ums_pthread_mutex_t* m, clockid_t clock, const timespec* limit) {
    // POSIX: the time is not looked at unless the caller must wait.
    if (ums_mutex_trylock(m) == 0) return 0;
    return -wait_by(clock, limit, [m](std::int64_t deadline) {
        return ums_mutex_lock_until(m, deadline, nullptr);
    });
}
int ums_pthread_mutex_timedlock(ums_pthread_mutex_t* m, const timespec* limit) {
    return ums_pthread_mutex_clocklock(m, CLOCK_REALTIME, limit);
}

// --- Condition variables ---

int ums_pthread_condattr_init(ums_pthread_condattr_t* attr) {
    attr->clock = CLOCK_REALTIME;
    return 0;
}
int ums_pthread_condattr_destroy(ums_pthread_condattr_t*) { return 0; }
int ums_pthread_condattr_setclock(ums_pthread_condattr_t* attr, clockid_t clock) {
    if (!is_clock(clock)) return EINVAL;
    attr->clock = clock;
    return 0;
}
int ums_pthread_condattr_getclock(const ums_pthread_condattr_t* attr, clockid_t* clock) {
    *clock = attr->clock;
    return 0;
}
int ums_pthread_condattr_setpshared(ums_pthread_condattr_t*, int shared) {
    return only_private(shared);
}
int ums_pthread_condattr_getpshared(const ums_pthread_condattr_t*, int* shared) {
    *shared = UMS_PTHREAD_PROCESS_PRIVATE;
    return 0;
}

static_assert(CLOCK_REALTIME == 0, "what UMS_PTHREAD_COND_INITIALIZER has");

int ums_pthread_cond_init(ums_pthread_cond_t* c, const ums_pthread_condattr_t* attr) {
    *c = UMS_PTHREAD_COND_INITIALIZER;
    if (attr != nullptr) c->clock = attr->clock;
    return 0;
}
int ums_pthread_cond_destroy(ums_pthread_cond_t*) { return 0; }
int ums_pthread_cond_wait(ums_pthread_cond_t* c, ums_pthread_mutex_t* m) {
    return -ums_cond_wait(&c->cond, m);
}

int ums_pthread_cond_clockwait(ums_pthread_cond_t* c, ums_pthread_mutex_t* m, clockid_t clock,
                               const timespec* limit) {
    if (!is_clock(clock) || !is_time(limit)) return EINVAL;
    const int result = ums_cond_wait_until(&c->cond, m, deadline_of(clock, *limit), nullptr);
    // It is early because the clock was set back: return as if woken. A second wait might miss a
    // signal.
    return result == -ETIMEDOUT && !has_passed(clock, *limit) ? 0 : -result;
}
int ums_pthread_cond_timedwait(ums_pthread_cond_t* c, ums_pthread_mutex_t* m,
                               const timespec* limit) {
    return ums_pthread_cond_clockwait(c, m, c->clock, limit);
}
int ums_pthread_cond_signal(ums_pthread_cond_t* c) {
    ums_cond_notify_one(&c->cond);
    return 0;
}
int ums_pthread_cond_broadcast(ums_pthread_cond_t* c) {
    ums_cond_notify_all(&c->cond);
    return 0;
}

// --- Reader-writer locks ---

int ums_pthread_rwlockattr_init(ums_pthread_rwlockattr_t* attr) {
    *attr = {0};
    return 0;
}
int ums_pthread_rwlockattr_destroy(ums_pthread_rwlockattr_t*) { return 0; }
int ums_pthread_rwlockattr_setpshared(ums_pthread_rwlockattr_t*, int shared) {
    return only_private(shared);
}
int ums_pthread_rwlockattr_getpshared(const ums_pthread_rwlockattr_t*, int* shared) {
    *shared = UMS_PTHREAD_PROCESS_PRIVATE;
    return 0;
}

int ums_pthread_rwlock_init(ums_pthread_rwlock_t* l, const ums_pthread_rwlockattr_t*) {
    *l = UMS_RWLOCK_INIT;
    return 0;
}
int ums_pthread_rwlock_destroy(ums_pthread_rwlock_t* l) {
    if (ums_rwlock_trylock(l) != 0) return EBUSY;
    return -ums_rwlock_unlock(l);
}
int ums_pthread_rwlock_rdlock(ums_pthread_rwlock_t* l) { return -ums_rwlock_lock_shared(l); }
int ums_pthread_rwlock_wrlock(ums_pthread_rwlock_t* l) { return -ums_rwlock_lock(l); }
int ums_pthread_rwlock_tryrdlock(ums_pthread_rwlock_t* l) { return -ums_rwlock_trylock_shared(l); }
int ums_pthread_rwlock_trywrlock(ums_pthread_rwlock_t* l) { return -ums_rwlock_trylock(l); }

int ums_pthread_rwlock_clockrdlock(ums_pthread_rwlock_t* l, clockid_t clock,
                                   const timespec* limit) {
    if (ums_rwlock_trylock_shared(l) == 0) return 0;
    return -wait_by(clock, limit, [l](std::int64_t deadline) {
        return ums_rwlock_lock_shared_until(l, deadline, nullptr);
    });
}
int ums_pthread_rwlock_clockwrlock(ums_pthread_rwlock_t* l, clockid_t clock,
                                   const timespec* limit) {
    if (ums_rwlock_trylock(l) == 0) return 0;
    return -wait_by(clock, limit, [l](std::int64_t deadline) {
        return ums_rwlock_lock_until(l, deadline, nullptr);
    });
}
int ums_pthread_rwlock_timedrdlock(ums_pthread_rwlock_t* l, const timespec* limit) {
    return ums_pthread_rwlock_clockrdlock(l, CLOCK_REALTIME, limit);
}
int ums_pthread_rwlock_timedwrlock(ums_pthread_rwlock_t* l, const timespec* limit) {
    return ums_pthread_rwlock_clockwrlock(l, CLOCK_REALTIME, limit);
}
int ums_pthread_rwlock_unlock(ums_pthread_rwlock_t* l) {
    return ums_rwlock_unlock(l) == 0 ? 0 : -ums_rwlock_unlock_shared(l);
}

// --- Keys and once ---

int ums_pthread_key_create(ums_pthread_key_t* key, void (*destructor)(void*)) {
    return -ums_key_create(key, destructor);
}
int ums_pthread_key_delete(ums_pthread_key_t key) {
    ums_key_delete(key);
    return 0;
}
int ums_pthread_setspecific(ums_pthread_key_t key, const void* value) {
    return -ums_key_set(key, value);
}
void* ums_pthread_getspecific(ums_pthread_key_t key) { return ums_key_get(key); }

int ums_pthread_once(ums_pthread_once_t* once, void (*function)()) {
    ums_once_call(
        once, [](void* f) { reinterpret_cast<void (*)()>(f)(); },
        reinterpret_cast<void*>(function));
    return 0;
}

// --- Barriers ---

int ums_pthread_barrierattr_init(ums_pthread_barrierattr_t* attr) {
    *attr = {0};
    return 0;
}
int ums_pthread_barrierattr_destroy(ums_pthread_barrierattr_t*) { return 0; }
int ums_pthread_barrierattr_setpshared(ums_pthread_barrierattr_t*, int shared) {
    return only_private(shared);
}
int ums_pthread_barrierattr_getpshared(const ums_pthread_barrierattr_t*, int* shared) {
    *shared = UMS_PTHREAD_PROCESS_PRIVATE;
    return 0;
}

int ums_pthread_barrier_init(ums_pthread_barrier_t* b, const ums_pthread_barrierattr_t*,
                             unsigned count) {
    if (count == 0) return EINVAL;
    return -ums_barrier_init(b, static_cast<ptrdiff_t>(count), nullptr, nullptr);
}
int ums_pthread_barrier_destroy(ums_pthread_barrier_t*) { return 0; }
int ums_pthread_barrier_wait(ums_pthread_barrier_t* b) {
    bool was_last = false;
    ums_barrier_arrive_and_wait(b, &was_last);
    return was_last ? UMS_PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

// --- Semaphores ---

int ums_sem_init(ums_sem_t* s, int shared, unsigned permits) {
    return in_errno(shared != 0 ? -ENOSYS : ums_semaphore_init(s, permits));
}
int ums_sem_destroy(ums_sem_t*) { return 0; }
int ums_sem_wait(ums_sem_t* s) {
    ums_semaphore_acquire(s);
    return 0;
}
int ums_sem_trywait(ums_sem_t* s) { return in_errno(ums_semaphore_tryacquire(s)); }
int ums_sem_clockwait(ums_sem_t* s, clockid_t clock, const timespec* limit) {
    if (ums_semaphore_tryacquire(s) == 0) return 0;
    return in_errno(wait_by(clock, limit, [s](std::int64_t deadline) {
        return ums_semaphore_acquire_until(s, deadline, nullptr);
    }));
}
int ums_sem_timedwait(ums_sem_t* s, const timespec* limit) {
    return ums_sem_clockwait(s, CLOCK_REALTIME, limit);
}
int ums_sem_post(ums_sem_t* s) { return in_errno(ums_semaphore_release(s, 1)); }
int ums_sem_getvalue(ums_sem_t* s, int* value) {
    *value = static_cast<int>(ums_semaphore_value(s));
    return 0;
}
