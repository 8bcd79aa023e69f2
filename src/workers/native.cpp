// SPDX-License-Identifier: MIT
//
// The C functions of ums/ums_scheduling.h.

#include "ums/ums_scheduling.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <unistd.h>

#include "base/assert.hpp"
#include "base/sized.hpp"
#include "workers/left/crossing.hpp"
#include "workers/left/stop_point.hpp"
#include "workers/left/watch.hpp"
#include "workers/scheduler/scheduler_thread.hpp"
#include "workers/scheduler/seat.hpp"
#include "workers/scheduler/stats_files.hpp"
#include "workers/worker/availability.hpp"
#include "workers/worker/completion_list.hpp"
#include "workers/worker/context.hpp"
#include "workers/worker/totals.hpp"
#include "workers/worker/worker_thread.hpp"

using namespace ums::scheduling;

namespace {

template <class T>
int copy_sized(T& known, const T* given) noexcept {
    return given == nullptr ? -EINVAL : ums::base::copy_sized(known, *given, sizeof known);
}
template <class T>
int give_sized(T* to, const T& known) noexcept {
    return to == nullptr ? -EINVAL : ums::base::give_sized(*to, known, sizeof known);
}

// Each of a worker's executions that have ended was ended by a yield, or is counted elsewhere.
std::uint64_t yields_of(const context& c) noexcept {
    if (is_scheduler(&c)) return c.count.yields.get();
    // relaxed: a hint.
    const bool runs = c.state.look_for_state() == running;
    const std::uint64_t others = c.count.syscalls.get() + c.count.faults.get() + (runs ? 1 : 0);
    const std::uint64_t all = c.switches.get();
    return all > others ? all - others : 0;
}

// Returns the calling worker if it may leave its scheduler.
context* free_worker() noexcept {
    context* c = current;
    return is_worker(c) ? c : nullptr;
}

}  // namespace

// --- Completion lists ---

int ums_completion_list_create(ums_completion_list_t* made) { return create_list(*made); }
int ums_completion_list_destroy(ums_completion_list_t list) { return destroy_list(list); }

int ums_completion_list_dequeue(ums_completion_list_t list, int64_t deadline,
                                ums_context_t* first) {
    context* found = nullptr;
    int failed = dequeue(list, 0, found);
    if (failed == 0 && found == nullptr && deadline != 0) {
        if (is_scheduler(current)) stats_files::write_if_old();
        ums_worker_blocking_enter();
        failed = dequeue(list, deadline, found);
        ums_worker_blocking_leave();
    }
    // relaxed: the worker is the caller's now.
    *first = found != nullptr ? found->self.load(ums::base::relaxed) : 0;
    return failed;
}

ums_context_t ums_context_next(ums_context_t h) {
    const context* c = contexts.find(h);
    const context* next = c != nullptr ? c->next_in_batch.get() : nullptr;
    return next != nullptr ? next->self.load(ums::base::relaxed) : 0;  // relaxed: the caller's.
}

int ums_completion_list_set_notify(ums_completion_list_t list, void (*notify)(void*),
                                   void* argument) {
    return set_notify(list, notify, argument);
}
int ums_completion_list_event(ums_completion_list_t list, int* fd) { return make_event(list, *fd); }

// --- Contexts ---

int ums_context_create(ums_context_t* made) {
    context* c = nullptr;
    const int failed = create_context(c);
    if (failed == 0) *made = c->self.load(ums::base::relaxed);  // relaxed: just made here.
    return failed;
}
int ums_context_destroy(ums_context_t c) { return destroy_context(c); }
ums_context_t ums_context_current(void) {
    return current != nullptr ? current->self.load(ums::base::relaxed) : 0;  // relaxed: its own.
}
int ums_context_query(ums_context_t c, ums_information_t what, void* buffer, size_t bytes,
                      size_t* length) {
    return query_context(c, what, buffer, bytes, length);
}
int ums_context_set(ums_context_t c, ums_information_t what, const void* buffer, size_t bytes) {
    return set_context(c, what, buffer, bytes);
}

// --- Workers ---

int ums_worker_create(ums_worker_t* made, const ums_worker_options_t* options,
                      ums_worker_function_t function, void* argument) {
    ums_worker_options_t known = UMS_WORKER_OPTIONS_INIT;
    if (const int failed = copy_sized(known, options); failed != 0) return failed;
    return create_worker(*made, known, function, argument);
}
int ums_worker_join(ums_worker_t w, intptr_t* exit_code) { return join_worker(w, exit_code); }
int ums_worker_detach(ums_worker_t w) { return detach_worker(w); }
int ums_worker_exit_code(ums_worker_t w, intptr_t* exit_code) { return exit_code_of(w, exit_code); }
ums_context_t ums_worker_context(ums_worker_t w) {
    const worker_thread* t = workers.find(w);
    if (t == nullptr) return 0;
    const ums_context_t c = t->scheduled_handle;
    return workers.still_has(*t, w) ? c : 0;
}
int ums_worker_tid(ums_worker_t w) { return tid_of(w); }
ums_worker_t ums_worker_current(void) {
    if (!is_worker(current)) return 0;
    return current->thread.get()->self.load(ums::base::relaxed);  // relaxed: its own.
}
int ums_worker_suspend(ums_worker_t w, unsigned* previous) { return suspend_worker(w, previous); }
int ums_worker_resume(ums_worker_t w, unsigned* previous) { return resume_worker(w, previous); }
int ums_worker_terminate(ums_worker_t w, intptr_t code) { return terminate_worker(w, code); }

int ums_worker_exit(intptr_t code) {
    context* c = free_worker();
    if (c == nullptr) return -EPERM;
    c->thread.get()->exit_code.set(code);
    if (!c->at_home) go_home(*c);
    end_here(*c);
}

UMS_CROSSING UMS_RETURNS_BY_JUMP int ums_worker_yield(void* argument) {
    context* c = current;
    if (!is_worker(c) || c->critical != 0 || c->at_home) [[unlikely]]
        return -EPERM;
    yield(*c, argument);
    return 0;
}

void ums_worker_blocking_enter(void) {
    context* c = free_worker();
    if (c == nullptr || c->blocking++ != 0 || c->critical != 0) return;
    go_home(*c);
}

void ums_worker_blocking_leave(void) {
    context* c = free_worker();
    if (c == nullptr) return;
    UMS_ASSERT(c->blocking != 0, "ums_worker_blocking_leave() without enter()");
    if (--c->blocking == 0 && c->at_home) come_back(*c);
}

UMS_CROSSING void ums_critical_enter(void) {
    context* c = free_worker();
    if (c == nullptr) return;
    // Inside, no detector sees the worker block, and no signal stops it.
    if (c->critical == 0 && !c->at_home) come_in(*c);
    ++c->critical;
}

UMS_CROSSING void ums_critical_leave(void) {
    context* c = free_worker();
    if (c == nullptr) return;
    UMS_ASSERT(c->critical != 0, "ums_critical_leave() without enter()");
    if (--c->critical == 0 && !c->at_home) come_out(*c);
}

// --- Schedulers ---

int ums_scheduler_enter(const ums_scheduler_options_t* options) {
    ums_scheduler_options_t known = UMS_SCHEDULER_OPTIONS_INIT;
    if (const int failed = copy_sized(known, options); failed != 0) return failed;
    if (known.procedure == nullptr) return -EINVAL;
    return enter(known);
}
int ums_worker_execute(ums_context_t c) { return execute(c); }
int ums_scheduler_exit(void) { return leave_procedure(); }

int ums_thread_id(void) { return current != nullptr ? current->tid.get() : ::gettid(); }

int ums_thread_kind(int tid) {
    const auto kind_of = [](const context* c) {
        return is_worker(c)      ? UMS_THREAD_WORKER
               : is_scheduler(c) ? UMS_THREAD_SCHEDULER
                                 : UMS_THREAD_PLAIN;
    };
    if (tid == 0) return kind_of(current);
    int kind = UMS_THREAD_PLAIN;
    contexts.for_each([&](handle, const context& c) {
        if (c.tid.get() == tid && kind_of(&c) != UMS_THREAD_PLAIN) kind = kind_of(&c);
    });
    return kind;
}

// --- The mode and the statistics ---

const char* ums_scheduling_mode(void) { return describe_switching(); }
const char* ums_scheduling_detector(void) {
    static thread_local std::string kept;
    return (kept = describe_watch()).c_str();
}

int ums_scheduling_get_stats(ums_scheduling_stats_t* stats) {
    ums_scheduling_stats_t now = UMS_SCHEDULING_STATS_INIT;
    totals.read(now);
    return give_sized(stats, now);
}

int ums_context_get_stats(ums_context_t h, ums_context_stats_t* stats) {
    const context* c = contexts.find(h);
    if (c == nullptr) return -EBADF;
    ums_context_stats_t now = UMS_CONTEXT_STATS_INIT;
    now.pid = ::getpid();
    now.tid = c->tid.get();
    now.is_scheduler = is_scheduler(c);
    now.list = c->list.get();
    now.partner = c->partner.get();
    const std::uint32_t state = c->state.look_for_state();
    if (now.is_scheduler) {
        const context* worker = contexts.find(now.partner);
        now.is_running = worker != nullptr && worker->partner.get() == h &&
                         // relaxed: a hint.
                         worker->state.look_for_state() == running;
        if (!now.is_running) now.partner = 0;
    } else {
        constexpr int names[] = {UMS_WORKER_NONE,       UMS_WORKER_BLOCKED, UMS_WORKER_QUEUED,
                                 UMS_WORKER_OWNED,      UMS_WORKER_RUNNING, UMS_WORKER_BLOCKED,
                                 UMS_WORKER_TERMINATED, UMS_WORKER_NONE};
        now.state = state == held && c->partner.get() == 0 ? UMS_WORKER_CREATED : names[state];
        now.is_running = state == running;
    }
    now.switches = c->switches.get();
    now.yields = yields_of(*c);
    now.blocked_in_syscall = c->count.syscalls.get();
    now.blocked_in_fault = c->count.faults.get();
    now.running_ns = c->count.running_ns.get();
    now.last_switch_at_ns = c->count.executed_at.get();
    now.switch_ns = c->count.switch_ns.get();
    now.measured_switches = c->count.measured.get();
    if (!contexts.still_has(*c, h)) return -EBADF;
    return give_sized(stats, now);
}

size_t ums_context_list(ums_context_t* all, size_t room) {
    std::size_t n = 0;
    const auto add = [&](handle h) {
        if (n < room) all[n] = h;
        ++n;
    };
    contexts.for_each([&](handle h, const context& c) {
        if (is_scheduler(&c)) add(h);
    });
    contexts.for_each([&](handle h, const context& c) {
        // relaxed: a hint.
        if (!is_scheduler(&c) && c.state.look_for_state() != none) add(h);
    });
    return n;
}

bool ums_scheduling_write_stats(void) { return stats_files::write(); }
const char* ums_scheduling_stats_directory(void) { return stats_files::directory(); }

void ums_scheduling_measure(bool on) { measure(on); }
