// SPDX-License-Identifier: MIT
#include "windows/thread.hpp"

#include <cerrno>
#include <climits>

#include "base/check.hpp"
#include "base/futex.hpp"
#include "windows/fiber.hpp"
#include "windows/mutex.hpp"
#include "windows/thread_ids.hpp"

namespace ums::windows {
namespace {

thread_local constinit thread* self = nullptr;
thread_local constinit int end_rounds = 0;
thread_local constinit thread* ending = nullptr;  // Dropped by itself.

pthread_key_t end_key() noexcept {
    static const pthread_key_t key = [] {
        pthread_key_t made;
        const int error = ::pthread_key_create(&made, [](void* record) {
            auto* const t = static_cast<thread*>(record);
            // Acts in the last round but one: other keys' destructors may still call these
            // functions until then, and in the last round sanitizers forget the thread.
            if (++end_rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
                ::pthread_setspecific(end_key(), record);
                return;
            }
            const uninterrupted section;
            {
                const guard hold{dispatcher};
                t->set_exit_code(0);
                t->end();
            }
            set_suspension(nullptr);
            self = nullptr;
            ending = t;
            forget_fiber(*t);
            t->wait.objects.clear();  // One of them may be the thread itself.
            drop(t);
        });
        compat::check(error == 0, "no pthread key for the Windows threads");
        return made;
    }();
    return key;
}

}  // namespace

thread& thread::current() noexcept {
    if (self == nullptr) [[unlikely]] {
        auto* const adopted = new thread{origin::adopted};
        adopted->handle = ::pthread_self();
        adopted->begin();
    }
    return *self;
}

void thread::begin() noexcept {
    if (self == this) return;
    UMS_DEBUG_CHECK(self == nullptr, "a thread was to become another one");
    self = this;
    end_rounds = 0;
    ::pthread_setspecific(end_key(), this);
    set_suspension(&stop);
    const auto own_id = static_cast<std::uint32_t>(ums_thread_id());
    note_thread(own_id, *this);
    // sync(windows.thread): the thread that made this one waits for its id.
    id.store(own_id, compat::release);
    compat::futex_wake(&id);
}

void thread::note_worker_end(DWORD code) noexcept {
    // Not an `uninterrupted` section: here the UMS API may not be called.
    compat::lock_word(dispatcher);
    set_exit_code(code);
    compat::unlock_word(dispatcher);
}

void thread::set_exit_code(DWORD code) noexcept {
    if (!std::exchange(has_exit_code, true)) exit_code = code;
}

void thread::end() noexcept {
    if (std::exchange(has_ended, true)) return;
    wait.unqueue();  // It may have been terminated while it waited.
    wait.places.clear();
    if (waited_on != nullptr) compat::futex_wake(waited_on);
    UMS_DEBUG_CHECK(has_exit_code, "a thread ended without a result");
    while (owned != nullptr) owned->abandon();
    // relaxed: under the lock; a thread that waits for this one to stop looks at the count again.
    stop.count.store(0, compat::relaxed);
    // sync(windows.suspend): a thread that terminates this one sees that it has ended by itself.
    stop.is_there.store(0, compat::release);
    let_go(stop);
    changed();
    // relaxed: written by this thread, or the caller joined it.
    forget_thread(id.load(compat::relaxed), *this);
}

void thread::exit(DWORD code) {
    exit_code_asked = code;
    leave_fiber(*this);
    if (from == origin::worker) {
        ums_worker_exit(static_cast<std::intptr_t>(code));
        compat::check(false, "a worker's exit returned");
    }
    exits_scheduling = true;
    ums_scheduler_exit();  // Does not return in a scheduler's procedure.
    exits_scheduling = false;
    {
        const guard hold{dispatcher};
        set_exit_code(code);
    }
    if (from == origin::made) std::longjmp(bottom, 1);
    ::pthread_exit(nullptr);
}

void thread::join() noexcept {
    if (from == origin::adopted || this == ending) return;
    const uninterrupted section;
    {
        const guard hold{dispatcher};
        if (std::exchange(is_joined, true)) return;
    }
    if (from == origin::worker)
        ums_worker_join(worker, nullptr);
    else
        ::pthread_join(handle, nullptr);
}

thread::~thread() {
    // relaxed: no other thread has a reference.
    UMS_DEBUG_CHECK(has_ended || id.load(compat::relaxed) == 0,
                    "the record of a thread that runs is destroyed");
    if (arrived != nullptr) CloseHandle(arrived);
    if (this == ending && !is_joined && from != origin::adopted)
        from == origin::worker ? ums_worker_detach(worker) : ::pthread_detach(handle);
    else
        join();
}

}  // namespace ums::windows
