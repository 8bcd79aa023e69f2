// SPDX-License-Identifier: MIT

// The calls of user-mode scheduling, on ums/ums_scheduling.h: this file translates names, values
// and errors.
//
// Contexts and lists are numbers there and pointers here; both sides refuse what they did not give
// out. A call that takes a lock there runs in an uninterrupted section here.

#include <cerrno>
#include <map>
#include <new>

#include "ums/ums_scheduling.h"
#include "windows/event.hpp"
#include "windows/handle_table.hpp"
#include "windows/last_error.hpp"
#include "windows/thread.hpp"

using namespace ums;
using namespace ums::windows;

namespace {

static_assert(sizeof(PUMS_CONTEXT) == sizeof(ums_context_t));
static_assert(int{UmsSchedulerStartup} == int{UMS_REASON_STARTUP} &&
              int{UmsSchedulerThreadBlocked} == int{UMS_REASON_BLOCKED} &&
              int{UmsSchedulerThreadYield} == int{UMS_REASON_YIELD});
static_assert(int{UmsThreadUserContext} == int{UMS_INFORMATION_USER_CONTEXT} &&
              int{UmsThreadIsSuspended} == int{UMS_INFORMATION_SUSPENDED} &&
              int{UmsThreadIsTerminated} == int{UMS_INFORMATION_TERMINATED});

ums_context_t number(PUMS_CONTEXT context) noexcept {
    return reinterpret_cast<ums_context_t>(context);
}
PVOID pointer(std::uint64_t number) noexcept { return reinterpret_cast<PVOID>(number); }

DWORD error_of(int error) noexcept {
    switch (-error) {
        case EBADF:
            return ERROR_INVALID_HANDLE;
        case ENOMEM:
        case EAGAIN:
        case EMFILE:
        case ENFILE:
            return ERROR_NOT_ENOUGH_MEMORY;
        case EMSGSIZE:
            return ERROR_BAD_LENGTH;
        case EPERM:
        case EOPNOTSUPP:
            return ERROR_NOT_SUPPORTED;
        default:
            return ERROR_INVALID_PARAMETER;
    }
}
BOOL result(int error) noexcept { return error == 0 ? TRUE : BOOL{fail(error_of(error))}; }

// Held while a list gets or loses its event. It is taken before the list's own lock, and that one
// before the dispatcher's.
constinit std::uint32_t events_lock = 0;

// The events that GetUmsCompletionListEvent() made. Guarded by events_lock. Never destroyed.
using list_events = std::map<ums_completion_list_t, event*>;
list_events& events() {
    static auto* const all = new list_events;
    return *all;
}

// Called by whichever thread queues an item, on no thread in particular, so this is not an
// uninterrupted section.
void list_has_items(void* of) {
    compat::lock_word(dispatcher);
    static_cast<event*>(of)->set();
    compat::unlock_word(dispatcher);
}

void call_procedure(ums_reason_t reason, std::uintptr_t payload, void* parameter) {
    // Calls the scheduler's own procedure: its thread-locals are in place here.
    thread::current().procedure(static_cast<UMS_SCHEDULER_REASON>(reason), payload, parameter);
}

}  // namespace

// --- Completion lists ---

BOOL CreateUmsCompletionList(PUMS_COMPLETION_LIST* list) {
    if (list == nullptr) return fail(ERROR_INVALID_PARAMETER);
    ums_completion_list_t made = 0;
    const uninterrupted section;
    const int error = ums_completion_list_create(&made);
    *list = pointer(made);
    return result(error);
}

BOOL DeleteUmsCompletionList(PUMS_COMPLETION_LIST list) {
    const ums_completion_list_t of = number(list);
    const guard hold{events_lock};
    const auto found = events().find(of);
    if (found == events().end()) return result(ums_completion_list_destroy(of));
    // This comes first: a call in progress must not find the event gone.
    ums_completion_list_set_notify(of, nullptr, nullptr);
    const int error = ums_completion_list_destroy(of);
    if (error == 0) {
        drop(found->second);
        events().erase(found);
    } else {
        ums_completion_list_set_notify(of, list_has_items, found->second);
    }
    return result(error);
}

BOOL GetUmsCompletionListEvent(PUMS_COMPLETION_LIST list, PHANDLE handle) {
    if (handle == nullptr) return fail(ERROR_INVALID_PARAMETER);
    *handle = nullptr;
    const ums_completion_list_t of = number(list);
    const guard hold{events_lock};
    auto found = events().find(of);
    if (found == events().end()) {
        try {
            ref<event> made{new event{false, false}};
            found = events().emplace(of, made.get()).first;
            const int error = ums_completion_list_set_notify(of, list_has_items, made.get());
            if (error != 0) {
                events().erase(found);
                return result(error);
            }
            (void)made.release();
        } catch (const std::bad_alloc&) {
            return fail(ERROR_NOT_ENOUGH_MEMORY);
        }
    }
    *handle = open_handle(*found->second);
    return *handle != nullptr ? TRUE : FALSE;
}

BOOL DequeueUmsCompletionListItems(PUMS_COMPLETION_LIST list, DWORD milliseconds,
                                   PUMS_CONTEXT* first) {
    if (first == nullptr) return fail(ERROR_INVALID_PARAMETER);
    *first = nullptr;
    const std::int64_t limit = milliseconds == 0 ? 0 : deadline_of(milliseconds);
    ums_context_t found = 0;
    const int error = ums_completion_list_dequeue(number(list), limit, &found);
    if (error == -ETIMEDOUT) return fail(ERROR_TIMEOUT);
    *first = pointer(found);
    return result(error);
}

PUMS_CONTEXT GetNextUmsListItem(PUMS_CONTEXT context) {
    return pointer(ums_context_next(number(context)));
}

// --- Contexts ---

BOOL CreateUmsThreadContext(PUMS_CONTEXT* context) {
    if (context == nullptr) return fail(ERROR_INVALID_PARAMETER);
    ums_context_t made = 0;
    const uninterrupted section;
    const int error = ums_context_create(&made);
    *context = pointer(made);
    return result(error);
}

BOOL DeleteUmsThreadContext(PUMS_CONTEXT context) {
    const uninterrupted section;
    return result(ums_context_destroy(number(context)));
}

BOOL QueryUmsThreadInformation(PUMS_CONTEXT context, UMS_THREAD_INFO_CLASS what, PVOID into,
                               ULONG bytes, PULONG returned) {
    std::size_t length = 0;
    const int error = ums_context_query(number(context), what, into, bytes, &length);
    if (returned != nullptr && (error == 0 || error == -EMSGSIZE))
        *returned = static_cast<ULONG>(length);
    return result(error);
}

BOOL SetUmsThreadInformation(PUMS_CONTEXT context, UMS_THREAD_INFO_CLASS what, PVOID from,
                             ULONG bytes) {
    return result(ums_context_set(number(context), what, from, bytes));
}

PUMS_CONTEXT GetCurrentUmsThread() { return pointer(ums_context_current()); }

// --- Scheduling ---

BOOL EnterUmsSchedulingMode(PUMS_SCHEDULER_STARTUP_INFO info) {
    if (info == nullptr || info->UmsVersion != UMS_VERSION || info->SchedulerProc == nullptr ||
        info->CompletionList == nullptr)
        return fail(ERROR_INVALID_PARAMETER);
    thread& self = thread::current();
    ums_scheduler_options_t options = UMS_SCHEDULER_OPTIONS_INIT;
    options.list = number(info->CompletionList);
    options.procedure = call_procedure;
    options.parameter = info->SchedulerParam;
    // If a scheduler calls this in its procedure, the procedure must not change.
    if (ums_context_current() == 0) self.procedure = info->SchedulerProc;
    {
        const guard hold{dispatcher};
        self.is_scheduler = true;
    }
    const int error = ums_scheduler_enter(&options);
    if (ums_context_current() == 0) {
        const guard hold{dispatcher};
        self.is_scheduler = false;
    }
    if (std::exchange(self.exits_scheduling, false)) self.exit(self.exit_code_asked);
    if (error == -EBADF) return fail(ERROR_INVALID_PARAMETER);
    return result(error);
}

BOOL ExecuteUmsThread(PUMS_CONTEXT context) {
    switch (const int error = ums_worker_execute(number(context)); - error) {
        case EAGAIN:
            return fail(ERROR_RETRY);
        case EBUSY:
        case EACCES:
        case ESRCH:
            return fail(ERROR_GEN_FAILURE);  // It runs elsewhere, is suspended, or has ended.
        default:
            return result(error);
    }
}

BOOL UmsThreadYield(PVOID parameter) { return result(ums_worker_yield(parameter)); }

BOOL GetUmsSystemThreadInformation(HANDLE handle, PUMS_SYSTEM_THREAD_INFORMATION information) {
    if (information == nullptr || information->UmsVersion != UMS_VERSION)
        return fail(ERROR_INVALID_PARAMETER);
    const ref<thread> t = find<thread>(handle);
    if (!t) return FALSE;
    // sync(windows.thread): the id is set before any thread has a handle.
    const int tid = static_cast<int>(t->id.load(compat::acquire));
    const int kind = t->from == thread::origin::worker ? UMS_THREAD_WORKER : ums_thread_kind(tid);
    const ULONG flags = kind == UMS_THREAD_SCHEDULER ? 1 : kind == UMS_THREAD_WORKER ? 2 : 0;
    SetLastError(NO_ERROR);
    return information->ThreadUmsFlags == flags ? TRUE : FALSE;
}
