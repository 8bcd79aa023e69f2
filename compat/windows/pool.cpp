// SPDX-License-Identifier: MIT

// The thread pool, and timers, whose functions run on it. CreateThread() makes its threads. They
// share one schedule, and the idle ones wait for its earliest time.

#include <atomic>
#include <functional>
#include <map>
#include <new>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "base/futex.hpp"
#include "windows/guard.hpp"
#include "windows/last_error.hpp"
#include "windows/suspension.hpp"

using namespace ums;
using namespace ums::windows;
using compat::nanoseconds;

// Also used for a timer, and for a function that runs once. Guarded by the pool's lock.
struct _TP_WORK {
    std::function<void(_TP_WORK&)> function;
    nanoseconds period = 0;
    std::set<_TP_WORK*>* queue = nullptr;  // The queue of a timer; null: the process's own.
    bool is_closed = false;                // When it ends it is freed, and `told` is set.
    HANDLE told = nullptr;
    std::atomic<std::uint32_t> unfinished{0};  // How many times it is in the schedule or running.
};

namespace {

using job = _TP_WORK;
using queue = std::set<job*>;

constexpr unsigned most_threads = 500;
constexpr nanoseconds ms = 1'000'000;
constexpr nanoseconds patience = 1'000 * ms;

constinit std::uint32_t lock = 0;

// Guarded by the lock, except for the word that threads wait on. Never destroyed.
struct pool {
    std::multimap<nanoseconds, job*> schedule;
    unsigned threads = 0, idle = 0;
    std::atomic<std::uint32_t> changes{0};
};
pool& the_pool() {
    static auto* const made = new pool;
    return *made;
}

// The job has ended `n` times, or will never begin that often. Returns whether those were all, in
// which case the job is freed.
bool finish(job& j, std::size_t n, bool closes = false, HANDLE event = nullptr) {
    HANDLE told = nullptr;
    {
        const guard hold{lock};
        if (closes) j.is_closed = true, j.told = event;
        // sync(windows.pool): publishes what the function did.
        const auto times = static_cast<std::uint32_t>(n);
        const std::uint32_t were = j.unfinished.fetch_sub(times, compat::release);
        UMS_DEBUG_CHECK(were >= times, "a job ended more often than it was to run");
        if (were != times) return false;
        compat::futex_wake(&j.unfinished, 0x7FFFFFFF);
        if (!j.is_closed) return false;
        told = j.told;
        delete &j;
    }
    if (told != nullptr) SetEvent(told);
    return true;
}

// Takes the job's runs that have not begun out of the schedule. Returns how many; the caller
// finishes as many.
std::size_t forget(const job& j) {
    const guard hold{lock};
    return std::erase_if(the_pool().schedule, [&](const auto& at) { return at.second == &j; });
}

void wait_for(const job& j) {
    // sync(windows.pool): sees what the functions did.
    for (std::uint32_t seen; (seen = j.unfinished.load(compat::acquire)) != 0;) {
        const blocking wait;
        compat::futex_wait(&j.unfinished, seen);
        obey_late_signals();
    }
}

// The next job that is due, or null: then the thread ends. One idle thread stays while the schedule
// is not empty.
job* next() {
    pool& p = the_pool();
    const nanoseconds end = compat::now() + patience;
    for (;;) {
        std::uint32_t seen = 0;
        nanoseconds until = end;
        {
            const guard hold{lock};
            const nanoseconds now = compat::now();
            if (const auto first = p.schedule.begin(); first != p.schedule.end()) {
                if (first->first <= now) {
                    job& j = *first->second;
                    auto entry = p.schedule.extract(first);
                    if (j.period == 0) return &j;
                    entry.key() += j.period;
                    p.schedule.insert(std::move(entry));
                    j.unfinished.fetch_add(1, compat::relaxed);  // relaxed: under the lock.
                    return &j;
                }
                if (p.idle == 0 || first->first < end) until = first->first;
            }
            UMS_DEBUG_CHECK(p.idle < p.threads, "more threads of the pool are idle than there are");
            if (until <= now) return --p.threads, nullptr;
            ++p.idle;
            seen = p.changes.load(compat::relaxed);  // relaxed: changed under the lock.
        }
        compat::futex_wait(&p.changes, seen, until);
        const guard hold{lock};
        --p.idle;
    }
}

DWORD serve(void*);

// Makes an idle thread, or a new one, look at the schedule. False: there is no thread at all.
bool attend() {
    pool& p = the_pool();
    {
        const guard hold{lock};
        if (p.schedule.empty()) return true;
        p.changes.fetch_add(1, compat::relaxed);  // relaxed: under the lock.
        compat::futex_wake(&p.changes);
        if (p.idle != 0 || p.threads == most_threads) return true;
        ++p.threads;
    }
    if (const HANDLE made = CreateThread(nullptr, 0, serve, nullptr, 0, nullptr))
        return CloseHandle(made) != FALSE;
    const guard hold{lock};
    return --p.threads != 0;
}

DWORD serve(void*) {
    while (job* const j = next()) {
        attend();  // This thread is busy; another waits for the rest.
        j->function(*j);
        finish(*j, 1);
    }
    return 0;
}

BOOL run(job& j, nanoseconds at, nanoseconds period = 0) noexcept {
    try {
        const guard hold{lock};
        the_pool().schedule.emplace(at, &j);
        j.unfinished.fetch_add(1, compat::relaxed);  // relaxed: under the lock.
        j.period = period;
    } catch (const std::bad_alloc&) {
        finish(j, 0);
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    }
    if (attend()) return TRUE;
    const std::size_t n = forget(j);
    if (n == 0) return TRUE;  // A thread has come after all.
    finish(j, n);
    return fail(ERROR_NOT_ENOUGH_MEMORY);
}

template <class F>
job* make(F function) noexcept try {
    const uninterrupted section;
    return new job{std::move(function)};
} catch (const std::bad_alloc&) {
    return fail(ERROR_NOT_ENOUGH_MEMORY);
}

template <class F>
BOOL run_once(F function) noexcept {
    job* const j = make(function);
    if (j == nullptr) return FALSE;
    j->is_closed = true;
    return run(*j, 0);
}

}  // namespace

BOOL QueueUserWorkItem(UMS_WIN_WORK_ITEM function, PVOID context, ULONG) {
    if (function == nullptr) return fail(ERROR_INVALID_PARAMETER);
    return run_once([=](job&) { function(context); });
}

BOOL TrySubmitThreadpoolCallback(PTP_SIMPLE_CALLBACK function, PVOID context,
                                 PTP_CALLBACK_ENVIRON) {
    if (function == nullptr) return fail(ERROR_INVALID_PARAMETER);
    return run_once([=](job&) { function(nullptr, context); });
}

PTP_WORK CreateThreadpoolWork(PTP_WORK_CALLBACK function, PVOID context, PTP_CALLBACK_ENVIRON) {
    if (function == nullptr) return fail(ERROR_INVALID_PARAMETER);
    return make([=](job& work) { function(nullptr, context, &work); });
}

// On Windows this cannot fail: what it needs is made with the work. Here a program that runs out of
// memory ends.
VOID SubmitThreadpoolWork(PTP_WORK work) {
    compat::check(run(*work, 0) != FALSE, "SubmitThreadpoolWork(): no memory");
}

VOID WaitForThreadpoolWorkCallbacks(PTP_WORK work, BOOL cancel) {
    if (cancel != FALSE) finish(*work, forget(*work));
    wait_for(*work);
}

VOID CloseThreadpoolWork(PTP_WORK work) { finish(*work, 0, true); }

HANDLE CreateTimerQueue() {
    const uninterrupted section;
    auto* const made = new (std::nothrow) queue;
    return made != nullptr ? made : fail(ERROR_NOT_ENOUGH_MEMORY);
}

BOOL CreateTimerQueueTimer(PHANDLE timer, HANDLE in, WAITORTIMERCALLBACK function, PVOID context,
                           DWORD due, DWORD period, ULONG flags) {
    if (timer == nullptr || function == nullptr ||
        ((flags & WT_EXECUTEONLYONCE) != 0 && period != 0))
        return fail(ERROR_INVALID_PARAMETER);
    job* const made = make([=](job&) { function(context, TRUE); });
    if (made == nullptr) return FALSE;
    made->queue = static_cast<queue*>(in);
    *timer = made;  // Stored first: its function may read it.
    try {
        const guard hold{lock};
        if (in != nullptr) made->queue->insert(made);
    } catch (const std::bad_alloc&) {
        finish(*made, 0, true);
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    }
    if (run(*made, compat::now() + due * ms, period * ms) != FALSE) return TRUE;
    DeleteTimerQueueTimer(in, made, nullptr);
    return fail(ERROR_NOT_ENOUGH_MEMORY);
}

BOOL ChangeTimerQueueTimer(HANDLE, HANDLE timer, ULONG due, ULONG period) {
    if (timer == nullptr) return fail(ERROR_INVALID_PARAMETER);
    job& t = *static_cast<job*>(timer);
    const std::size_t n = forget(t);
    if (n == 0) return TRUE;  // It had to run once, and has: as on Windows.
    const BOOL is_set = run(t, compat::now() + due * ms, period * ms);
    finish(t, n);
    return is_set;
}

BOOL DeleteTimerQueueTimer(HANDLE, HANDLE timer, HANDLE event) {
    if (timer == nullptr) return fail(ERROR_INVALID_PARAMETER);
    job& t = *static_cast<job*>(timer);
    {
        const guard hold{lock};
        if (t.queue != nullptr) t.queue->erase(&t);
    }
    const std::size_t n = forget(t);
    const bool waits = event == INVALID_HANDLE_VALUE;
    if (waits) {
        finish(t, n);
        wait_for(t);
    }
    const bool is_done = finish(t, waits ? 0 : n, true, waits ? nullptr : event);
    return is_done ? TRUE : fail(ERROR_IO_PENDING);
}

BOOL DeleteTimerQueueEx(HANDLE deleted, HANDLE event) {
    if (deleted == nullptr || (event != nullptr && event != INVALID_HANDLE_VALUE))
        return fail(ERROR_INVALID_PARAMETER);
    auto* const q = static_cast<queue*>(deleted);
    BOOL is_done = TRUE;
    while (!q->empty())  // No lock: only its owner changes it.
        if (DeleteTimerQueueTimer(q, *q->begin(), event) == FALSE) is_done = FALSE;
    const uninterrupted section;
    delete q;
    return is_done != FALSE ? TRUE : fail(ERROR_IO_PENDING);
}

BOOL DeleteTimerQueue(HANDLE deleted) { return DeleteTimerQueueEx(deleted, nullptr); }
