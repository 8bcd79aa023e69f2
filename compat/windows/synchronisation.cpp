// SPDX-License-Identifier: MIT

// Events, semaphores and mutexes: making, opening and signalling them.

#include <new>

#include "windows/event.hpp"
#include "windows/handle_table.hpp"
#include "windows/last_error.hpp"
#include "windows/mutex.hpp"
#include "windows/names.hpp"
#include "windows/semaphore.hpp"
#include "windows/thread.hpp"

using namespace ums;
using namespace ums::windows;

namespace {

// Returns a reference to the object of that kind and name. If there is none, the error is
// FILE_NOT_FOUND, or INVALID_HANDLE if an object of another kind has the name. Under the lock.
template <class T>
object* find_named(const std::string& name) noexcept {
    object* const found = name.empty() ? nullptr : find_name(name);
    if (found == nullptr) return SetLastError(ERROR_FILE_NOT_FOUND), nullptr;
    if (found->what != T::own_kind) return SetLastError(ERROR_INVALID_HANDLE), nullptr;
    found->share();
    return found;
}

// Returns a handle of the object with the name, which make() makes if there is none.
template <class T, class Text, class Make>
HANDLE create(const Text* given, Make make) noexcept {
    const uninterrupted section;
    try {
        const std::string name = plain_name(given);
        const ref<object> made{make()};
        ref<object> other;
        DWORD outcome = NO_ERROR;
        if (!name.empty()) {
            const guard hold{dispatcher};
            if (object* const found = find_named<T>(name)) {
                outcome = ERROR_ALREADY_EXISTS;
                other = ref<object>{found};
            } else if (GetLastError() == ERROR_INVALID_HANDLE) {
                outcome = ERROR_INVALID_HANDLE;
            } else {
                give_name(name, *made);
            }
        }
        if (outcome == ERROR_INVALID_HANDLE) return fail(outcome);
        const HANDLE handle = open_handle(other ? *other : *made);
        if (handle != nullptr) SetLastError(outcome);
        return handle;
    } catch (const std::bad_alloc&) {
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    }
}

template <class T, class Text>
HANDLE open(const Text* given) noexcept {
    const uninterrupted section;
    try {
        const std::string name = plain_name(given);
        if (name.empty()) return fail(ERROR_INVALID_PARAMETER);
        object* found = nullptr;
        {
            const guard hold{dispatcher};
            found = find_named<T>(name);
        }
        const ref<object> held{found};
        return held ? open_handle(*held) : nullptr;
    } catch (const std::bad_alloc&) {
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    }
}

template <class Text>
HANDLE create_event(BOOL manual, BOOL set, const Text* name) noexcept {
    return create<event>(name, [&] { return new event{manual != FALSE, set != FALSE}; });
}

template <class Text>
HANDLE create_semaphore(LONG initial, LONG maximum, const Text* name) noexcept {
    if (maximum <= 0 || initial < 0 || initial > maximum) return fail(ERROR_INVALID_PARAMETER);
    return create<semaphore>(name, [&] { return new semaphore{initial, maximum}; });
}

template <class Text>
HANDLE create_mutex(BOOL is_owned, const Text* name) noexcept {
    thread& self = thread::current();
    return create<mutex>(name, [&] {
        auto* const made = new mutex;
        if (is_owned != FALSE) {
            const guard hold{dispatcher};
            made->take(self);
        }
        return made;
    });
}

// Calls f() under the lock with the object of a handle.
template <class T, class F>
BOOL with(HANDLE handle, F f) noexcept {
    // A thread that is terminated has given its reference back by then.
    const uninterrupted section;
    const ref<T> found = find<T>(handle);
    if (!found) return FALSE;
    const guard hold{dispatcher};
    return f(*found);
}

}  // namespace

HANDLE CreateEventA(LPSECURITY_ATTRIBUTES, BOOL manual, BOOL set, LPCSTR name) {
    return create_event(manual, set, name);
}
HANDLE CreateEventW(LPSECURITY_ATTRIBUTES, BOOL manual, BOOL set, LPCWSTR name) {
    return create_event(manual, set, name);
}
HANDLE OpenEventA(DWORD, BOOL, LPCSTR name) { return open<event>(name); }
HANDLE OpenEventW(DWORD, BOOL, LPCWSTR name) { return open<event>(name); }

BOOL SetEvent(HANDLE handle) {
    return with<event>(handle, [](event& e) { return e.set(), TRUE; });
}
BOOL ResetEvent(HANDLE handle) {
    return with<event>(handle, [](event& e) { return e.reset(), TRUE; });
}
BOOL PulseEvent(HANDLE handle) {
    return with<event>(handle, [](event& e) { return e.set(), e.reset(), TRUE; });
}

HANDLE CreateSemaphoreA(LPSECURITY_ATTRIBUTES, LONG initial, LONG maximum, LPCSTR name) {
    return create_semaphore(initial, maximum, name);
}
HANDLE CreateSemaphoreW(LPSECURITY_ATTRIBUTES, LONG initial, LONG maximum, LPCWSTR name) {
    return create_semaphore(initial, maximum, name);
}
HANDLE OpenSemaphoreA(DWORD, BOOL, LPCSTR name) { return open<semaphore>(name); }
HANDLE OpenSemaphoreW(DWORD, BOOL, LPCWSTR name) { return open<semaphore>(name); }

BOOL ReleaseSemaphore(HANDLE handle, LONG count, LPLONG previous) {
    if (count <= 0) return fail(ERROR_INVALID_PARAMETER);
    return with<semaphore>(handle, [&](semaphore& s) {
        return s.release(count, previous) ? TRUE : BOOL{fail(ERROR_TOO_MANY_POSTS)};
    });
}

HANDLE CreateMutexA(LPSECURITY_ATTRIBUTES, BOOL is_owned, LPCSTR name) {
    return create_mutex(is_owned, name);
}
HANDLE CreateMutexW(LPSECURITY_ATTRIBUTES, BOOL is_owned, LPCWSTR name) {
    return create_mutex(is_owned, name);
}
HANDLE OpenMutexA(DWORD, BOOL, LPCSTR name) { return open<mutex>(name); }
HANDLE OpenMutexW(DWORD, BOOL, LPCWSTR name) { return open<mutex>(name); }

BOOL ReleaseMutex(HANDLE handle) {
    const thread& self = thread::current();
    return with<mutex>(
        handle, [&](mutex& m) { return m.release(self) ? TRUE : BOOL{fail(ERROR_NOT_OWNER)}; });
}
