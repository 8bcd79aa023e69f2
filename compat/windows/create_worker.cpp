// SPDX-License-Identifier: MIT
#include "windows/create_worker.hpp"

#include <cerrno>
#include <new>

#include "windows/handle_table.hpp"
#include "windows/last_error.hpp"
#include "windows/thread.hpp"
#include "windows/thread_ids.hpp"

namespace ums::windows {
namespace {

// Opaque to programs.
struct attribute {
    DWORD_PTR what;
    void* value;
};
constexpr ULONG_PTR initialised = 0x756D732D61747472;

std::intptr_t run(void* record) {
    auto& t = *static_cast<thread*>(record);
    t.begin();
    const DWORD code = t.start(t.argument);
    // The worker ends by itself, as on Windows: a fiber that it became does not outlive it.
    return static_cast<std::intptr_t>(code);
}

// Runs on the worker's own thread, which may never have begun.
void ended(void* record, std::intptr_t code) {
    auto& t = *static_cast<thread*>(record);
    t.begin();
    t.note_worker_end(static_cast<DWORD>(code));
}

}  // namespace
}  // namespace ums::windows

struct _PROC_THREAD_ATTRIBUTE_LIST {
    ULONG_PTR state;
    DWORD room;
    DWORD count;
    ums::windows::attribute* attributes() {
        return reinterpret_cast<ums::windows::attribute*>(this + 1);
    }
};

using namespace ums::windows;

namespace ums::windows {

bool is_initialised(const _PROC_THREAD_ATTRIBUTE_LIST& list) noexcept {
    return list.state == initialised;
}

const UMS_CREATE_THREAD_ATTRIBUTES* worker_attributes(_PROC_THREAD_ATTRIBUTE_LIST& list) noexcept {
    for (DWORD i = 0; i < list.count; ++i)
        if (list.attributes()[i].what == PROC_THREAD_ATTRIBUTE_UMS_THREAD)
            return static_cast<const UMS_CREATE_THREAD_ATTRIBUTES*>(list.attributes()[i].value);
    return nullptr;
}

HANDLE create_worker(const UMS_CREATE_THREAD_ATTRIBUTES& as, SIZE_T stack_bytes,
                     LPTHREAD_START_ROUTINE start, LPVOID argument, DWORD flags,
                     LPDWORD id) noexcept {
    if (as.UmsVersion != UMS_VERSION || as.UmsContext == nullptr || as.UmsCompletionList == nullptr)
        return fail(ERROR_INVALID_PARAMETER);
    const uninterrupted section;
    ref<thread> made{new (std::nothrow) thread{thread::origin::worker}};
    if (!made) return fail(ERROR_NOT_ENOUGH_MEMORY);
    made->start = start;
    made->argument = argument;
    made->is_joined = true;  // Until it has a thread to join.
    const HANDLE handle = open_handle(*made);
    if (handle == nullptr) return nullptr;
    {
        const guard hold{dispatcher};
        made->share();  // The thread's own reference.
    }

    ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
    options.list = reinterpret_cast<ums_completion_list_t>(as.UmsCompletionList);
    options.context = reinterpret_cast<ums_context_t>(as.UmsContext);
    options.stack_bytes = stack_bytes != 0 ? stack_to_reserve(stack_bytes, flags) : 0;
    // Queued below, once everything is known that the worker's end needs.
    options.suspended = true;
    options.ended = ended;
    options.ended_argument = made.get();
    ums_worker_t worker = 0;
    if (const int error = ums_worker_create(&worker, &options, run, made.get()); error != 0) {
        drop(made.get());
        CloseHandle(handle);
        if (error == -EOPNOTSUPP) return fail(ERROR_NOT_SUPPORTED);
        return fail(error == -ENOMEM || error == -EAGAIN ? ERROR_NOT_ENOUGH_MEMORY
                                                         : ERROR_INVALID_PARAMETER);
    }
    made->worker = worker;
    made->is_joined = false;
    const auto tid = static_cast<std::uint32_t>(ums_worker_tid(worker));
    note_thread(tid, *made);
    // sync(windows.thread): a thread that finds it by a handle sees the id.
    made->id.store(tid, compat::release);
    if (id != nullptr) *id = tid;
    if ((flags & CREATE_SUSPENDED) == 0) ums_worker_resume(worker, nullptr);
    return handle;
}

}  // namespace ums::windows

BOOL InitializeProcThreadAttributeList(LPPROC_THREAD_ATTRIBUTE_LIST list, DWORD count, DWORD flags,
                                       PSIZE_T bytes) {
    constexpr DWORD most = 64;
    if (bytes == nullptr || flags != 0 || count > most) return fail(ERROR_INVALID_PARAMETER);
    const SIZE_T needed = sizeof(_PROC_THREAD_ATTRIBUTE_LIST) + count * sizeof(attribute);
    const SIZE_T given = *bytes;
    *bytes = needed;
    if (list == nullptr || given < needed) return fail(ERROR_INSUFFICIENT_BUFFER);
    *list = {initialised, count, 0};
    return TRUE;
}

BOOL UpdateProcThreadAttribute(LPPROC_THREAD_ATTRIBUTE_LIST list, DWORD flags, DWORD_PTR what,
                               PVOID value, SIZE_T bytes, PVOID previous, PSIZE_T returned) {
    if (list == nullptr || !is_initialised(*list) || flags != 0 || previous != nullptr ||
        returned != nullptr || value == nullptr)
        return fail(ERROR_INVALID_PARAMETER);
    if (what != PROC_THREAD_ATTRIBUTE_UMS_THREAD) return fail(ERROR_NOT_SUPPORTED);
    if (bytes != sizeof(UMS_CREATE_THREAD_ATTRIBUTES)) return fail(ERROR_BAD_LENGTH);
    if (list->count == list->room) return fail(ERROR_GEN_FAILURE);
    list->attributes()[list->count++] = {what, value};
    return TRUE;
}

VOID DeleteProcThreadAttributeList(LPPROC_THREAD_ATTRIBUTE_LIST list) {
    if (list != nullptr) list->state = 0;
}
