// SPDX-License-Identifier: MIT

// A fiber runs on at most one thread; is_running says so. The thread that switches to the fiber
// sets it. The code that runs next on the other stack clears it once the fiber's registers are
// saved, so any thread can continue a free fiber. A switch must not assume that it returns on the
// thread that called it.

#include "windows/fiber.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <new>

#include "base/atomic.hpp"
#include "base/check.hpp"
#include "ums/ums_stack.h"
#include "windows/last_error.hpp"
#include "windows/thread.hpp"

namespace ums::windows {

struct fiber {
    ums_stack_t* stack = nullptr;
    LPFIBER_START_ROUTINE start = nullptr;  // Null if it is a thread that became a fiber.
    void* parameter = nullptr;
    bool is_deleted = false;
    std::atomic<bool> is_running{false};
};

namespace {

constexpr std::size_t default_bytes = 1024 * 1024, least = 64 * 1024, most = std::size_t{1} << 30;

void destroy(fiber* f) noexcept {
    const uninterrupted section;
    ums_stack_destroy(f->stack);
    delete f;
}

// Runs on the stack that was switched to, on the thread `now`.
void arrive(void* now_) {
    auto& now = *static_cast<thread*>(now_);
    fiber* const left = now.left;
    UMS_DEBUG_CHECK(left->is_running.load(compat::relaxed), "a fiber was left that does not run");
    if (left->is_deleted)
        destroy(left);
    else
        // sync(windows.fiber): the registers are saved; the thread that takes the fiber sees them.
        left->is_running.store(false, compat::release);
    if (now.leaves_fiber) now.exit(now.exit_code_asked);
}

void switch_to(thread& t, fiber& to) {
    fiber& self = *t.running;
    t.running = &to;
    t.left = &self;
    arrive(ums_stack_switch(self.stack, to.stack, &t));
}

void run(void* self_, void* now) {
    auto& self = *static_cast<fiber*>(self_);
    arrive(now);
    self.start(self.parameter);
    thread::current().exit(0);
}

}  // namespace

void leave_fiber(thread& t) {
    t.leaves_fiber = false;
    if (t.running == t.own) return;
    // sync(windows.fiber): as in SwitchToFiber().
    const bool is_elsewhere = t.own == nullptr || t.own->is_running.exchange(true, compat::acquire);
    compat::check(!is_elsewhere,
                  "a thread ends on a fiber while its own stack runs on another thread");
    t.leaves_fiber = true;
    switch_to(t, *t.own);
}

void forget_fiber(thread& t) noexcept {
    if (t.own != nullptr) destroy(t.own);
    t.own = t.running = nullptr;
}

}  // namespace ums::windows

using namespace ums;
using namespace ums::windows;

LPVOID ConvertThreadToFiberEx(LPVOID parameter, DWORD) {
    thread& t = thread::current();
    if (t.running != nullptr) return fail(ERROR_ALREADY_FIBER);
    const uninterrupted section;
    auto* const f = new (std::nothrow) fiber;
    if (f == nullptr) return fail(ERROR_NOT_ENOUGH_MEMORY);
    if (ums_stack_adopt(&f->stack) != 0) {
        delete f;
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    }
    f->parameter = parameter;
    f->is_running.store(true, compat::relaxed);  // relaxed: nobody knows it yet.
    t.running = t.own = f;
    return f;
}

LPVOID ConvertThreadToFiber(LPVOID parameter) { return ConvertThreadToFiberEx(parameter, 0); }

BOOL ConvertFiberToThread() {
    thread& t = thread::current();
    if (t.running == nullptr) return fail(ERROR_ALREADY_THREAD);
    // A thread can stop being a fiber only on its own stack.
    if (t.running != t.own) return fail(ERROR_INVALID_PARAMETER);
    forget_fiber(t);
    return TRUE;
}

LPVOID CreateFiberEx(SIZE_T commit_bytes, SIZE_T reserve_bytes, DWORD, LPFIBER_START_ROUTINE start,
                     LPVOID parameter) {
    if (start == nullptr) return fail(ERROR_INVALID_PARAMETER);
    std::size_t bytes = reserve_bytes != 0 ? reserve_bytes : default_bytes;
    if (bytes < commit_bytes) bytes = commit_bytes;
    if (bytes > most) return fail(ERROR_NOT_ENOUGH_MEMORY);
    if (bytes < least) bytes = least;

    const uninterrupted section;
    auto* const f = new (std::nothrow) fiber;
    if (f == nullptr) return fail(ERROR_NOT_ENOUGH_MEMORY);
    if (ums_stack_create(&f->stack, bytes, run, f) != 0) {
        delete f;
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    }
    f->start = start;
    f->parameter = parameter;
    return f;
}

LPVOID CreateFiber(SIZE_T commit_bytes, LPFIBER_START_ROUTINE start, LPVOID parameter) {
    return CreateFiberEx(commit_bytes, 0, 0, start, parameter);
}

VOID SwitchToFiber(LPVOID to) {
    thread& t = thread::current();
    auto* const f = static_cast<fiber*>(to);
    compat::check(t.running != nullptr, "SwitchToFiber() by a thread that is no fiber");
    if (f == t.running) return;
    // sync(windows.fiber): sees the registers that were saved when it was left.
    const bool is_elsewhere = f->is_running.exchange(true, compat::acquire);
    compat::check(!is_elsewhere, "SwitchToFiber() to a fiber that runs on another thread");
    switch_to(t, *f);
}

VOID DeleteFiber(LPVOID of) {
    thread& t = thread::current();
    auto* const f = static_cast<fiber*>(of);
    if (f == t.running) {
        if (f != t.own) f->is_deleted = true;  // It is freed as soon as it is left.
        t.exit(1);
    }
    UMS_DEBUG_CHECK(!f->is_running.load(compat::relaxed),
                    "DeleteFiber() of a fiber that runs on another thread");
    if (f == t.own) t.own = nullptr;
    destroy(f);
}

BOOL IsThreadAFiber() { return thread::current().running != nullptr ? TRUE : FALSE; }
PVOID GetCurrentFiber() { return thread::current().running; }
PVOID GetFiberData() {
    const fiber* const f = thread::current().running;
    return f != nullptr ? f->parameter : nullptr;
}
