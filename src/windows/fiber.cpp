// SPDX-License-Identifier: MIT

// A fiber runs on at most one thread; is_running says so. It is set by who switches to the fiber and cleared
// on the stack that is switched to, once the fiber's registers are saved: a fiber that is free can be
// continued by any thread. What a switch must not assume is that it returns on the thread it was called on.

#include "windows/fiber.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <pthread.h>
#include <sys/mman.h>

#include "arch/context.hpp"
#include "arch/exception_state.hpp"
#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/memory.hpp"
#include "windows/last_error.hpp"
#include "windows/thread.hpp"

namespace ums::windows {

struct fiber {
    arch::context context{};
    arch::stack_shadow shadow;
    arch::race_context race;
    arch::exception_state exceptions;
    LPFIBER_START_ROUTINE start = nullptr;  // Null: a thread that became a fiber.
    void* parameter = nullptr;
    char* mapping = nullptr;
    std::size_t mapped_bytes = 0;
    unsigned valgrind_id = 0;
    bool is_deleted = false;
    base::atomic<bool> is_running{false};
};

namespace {

constexpr std::size_t guard_bytes = 64 * 1024, default_bytes = 1024 * 1024, least = 64 * 1024,
                      most = std::size_t{1} << 30;

void destroy(fiber* f) noexcept {
    const uninterrupted section;
    if (f->mapping != nullptr) {
        arch::deregister_stack(f->valgrind_id);
        arch::remove_leak_root(f->mapping + guard_bytes, f->mapped_bytes - guard_bytes);
        arch::unpoison(f->mapping, f->mapped_bytes);
        f->race.destroy();
        os::unmap(f->mapping, f->mapped_bytes);
    }
    delete f;
}

// On the stack that was switched to, whose fiber is `self`.
void arrive(arch::arrival a, fiber& self) {
    arch::after_switch(self.shadow);
    arch::exception_state_of_thread()->put(self.exceptions);
    auto& now = *static_cast<thread*>(a.carrier);
    auto* const left = static_cast<fiber*>(a.handover);
    if (left->is_deleted)
        destroy(left);
    else
        // sync(windows.fiber): the registers are saved; who takes the fiber sees them.
        left->is_running.store(false, base::release);
    if (now.leaves_fiber) now.exit(now.exit_code_asked);
}

[[gnu::noinline]] void switch_to(thread& t, fiber& to) {
    fiber& self = *t.running;
    self.exceptions = arch::exception_state_of_thread()->take();
    t.running = &to;
    arch::before_switch(self.shadow, to.shadow);
    to.race.enter();
    const arch::arrival a = arch::switch_context(self.context, to.context, &t, &self);
    arrive(a, self);
}

void run(void* carrier, void* left, void* argument) {
    auto& self = *static_cast<fiber*>(argument);
    arrive({carrier, left}, self);
    self.start(self.parameter);
    thread::current().exit(0);
}

void note_own_bounds([[maybe_unused]] fiber& f) noexcept {
#if defined(UMS_ASAN)
    pthread_attr_t attributes;
    void* bottom = nullptr;
    std::size_t bytes = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
        ::pthread_attr_getstack(&attributes, &bottom, &bytes);
        ::pthread_attr_destroy(&attributes);
    }
    arch::set_bounds(f.shadow, bottom, bytes);
#endif
}

}  // namespace

void leave_fiber(thread& t) {
    t.leaves_fiber = false;
    if (t.running == t.own) return;
    // sync(windows.fiber): as in SwitchToFiber().
    const bool is_elsewhere = t.own == nullptr || t.own->is_running.exchange(true, base::acquire);
    UMS_ASSERT(!is_elsewhere,
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
    f->parameter = parameter;
    f->race.adopt_current();
    note_own_bounds(*f);
    f->is_running.store(true, base::relaxed);  // relaxed: nobody knows it yet.
    t.running = t.own = f;
    return f;
}

LPVOID ConvertThreadToFiber(LPVOID parameter) { return ConvertThreadToFiberEx(parameter, 0); }

BOOL ConvertFiberToThread() {
    thread& t = thread::current();
    if (t.running == nullptr) return fail(ERROR_ALREADY_THREAD);
    // Only on its own stack can a thread be without fibers.
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
    bytes = os::round_up(bytes < least ? least : bytes, os::page_bytes);

    const uninterrupted section;
    auto* const f = new (std::nothrow) fiber;
    if (f == nullptr) return fail(ERROR_NOT_ENOUGH_MEMORY);
    auto* const mapping = static_cast<char*>(os::map(bytes + guard_bytes));
    if (mapping == nullptr || os::system.mprotect(mapping, guard_bytes, PROT_NONE) != 0) {
        if (mapping != nullptr) os::unmap(mapping, bytes + guard_bytes);
        delete f;
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    }
    f->mapping = mapping;
    f->mapped_bytes = bytes + guard_bytes;
    f->start = start;
    f->parameter = parameter;
    f->race.create("Windows fiber");
    arch::set_bounds(f->shadow, mapping + guard_bytes, bytes);
    arch::add_leak_root(mapping + guard_bytes, bytes);
    f->valgrind_id = arch::register_stack(mapping + guard_bytes, mapping + f->mapped_bytes);
    arch::make_context(f->context, mapping + f->mapped_bytes, run, f);
    return f;
}

LPVOID CreateFiber(SIZE_T commit_bytes, LPFIBER_START_ROUTINE start, LPVOID parameter) {
    return CreateFiberEx(commit_bytes, 0, 0, start, parameter);
}

VOID SwitchToFiber(LPVOID to) {
    thread& t = thread::current();
    auto* const f = static_cast<fiber*>(to);
    UMS_ASSERT(t.running != nullptr, "SwitchToFiber() by a thread that is no fiber");
    if (f == t.running) return;
    // sync(windows.fiber): sees the registers that were saved when it was left.
    const bool is_elsewhere = f->is_running.exchange(true, base::acquire);
    UMS_ASSERT(!is_elsewhere, "SwitchToFiber() to a fiber that runs on another thread");
    switch_to(t, *f);
}

VOID DeleteFiber(LPVOID of) {
    thread& t = thread::current();
    auto* const f = static_cast<fiber*>(of);
    if (f == t.running) {
        if (f != t.own) f->is_deleted = true;  // As soon as it is left.
        t.exit(1);
    }
    if (f == t.own) t.own = nullptr;
    destroy(f);
}

BOOL IsThreadAFiber() { return thread::current().running != nullptr ? TRUE : FALSE; }
PVOID GetCurrentFiber() { return thread::current().running; }
PVOID GetFiberData() {
    const fiber* const f = thread::current().running;
    return f != nullptr ? f->parameter : nullptr;
}
