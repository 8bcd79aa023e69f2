// SPDX-License-Identifier: MIT
#include "ums/ums_stack.h"

#include <cerrno>
#include <limits>
#include <new>
#include <pthread.h>
#include <sys/mman.h>

#include "arch/context.hpp"
#include "arch/exception_state.hpp"
#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "os/memory.hpp"

using namespace ums;

struct ums_stack {
    arch::context context{};
    arch::stack_shadow shadow;
    arch::race_context race;
    arch::exception_state exceptions;
    ums_stack_function_t function = nullptr;
    void* argument = nullptr;
    char* mapping = nullptr;  // Null if the stack was adopted.
    std::size_t mapped_bytes = 0;
    unsigned valgrind_id = 0;
};

namespace {

constexpr std::size_t guard_bytes = 64 * 1024;

// Runs on the stack that was switched to. Returns the message.
void* arrive(const arch::arrival& a, ums_stack& self) noexcept {
    arch::finish_switch(self.shadow);
    arch::exception_state_of_thread()->put(self.exceptions);
    return a.carrier;
}

void run(void* message, void* after, void* of) {
    auto& self = *static_cast<ums_stack*>(of);
    self.function(self.argument, arrive({message, after}, self));
    base::fatal("a function of ums_stack_create() returned");
}

}  // namespace

int ums_stack_create(ums_stack_t** stack, size_t bytes, ums_stack_function_t function,
                     void* argument) {
    if (bytes == 0 || function == nullptr) return -EINVAL;
    if (bytes > std::numeric_limits<std::ptrdiff_t>::max() - guard_bytes) return -ENOMEM;
    const std::size_t mapped = os::round_up(bytes, os::page_bytes) + guard_bytes;
    auto* const made = new (std::nothrow) ums_stack;
    if (made == nullptr) return -ENOMEM;
    auto* const mapping = static_cast<char*>(os::map(mapped));
    if (mapping == nullptr || os::system.mprotect(mapping, guard_bytes, PROT_NONE) != 0) {
        if (mapping != nullptr) os::unmap(mapping, mapped);
        delete made;
        return -ENOMEM;
    }
    made->mapping = mapping;
    made->mapped_bytes = mapped;
    made->function = function;
    made->argument = argument;
    made->race.create("ums_stack");
    char *const bottom = mapping + guard_bytes, *const top = mapping + mapped;
    arch::set_bounds(made->shadow, bottom, mapped - guard_bytes);
    arch::add_leak_root(bottom, mapped - guard_bytes);
    made->valgrind_id = arch::register_stack(bottom, top);
    arch::make_context(made->context, top, run, made);
    *stack = made;
    return 0;
}

int ums_stack_adopt(ums_stack_t** stack) {
    auto* const made = new (std::nothrow) ums_stack;
    if (made == nullptr) return -ENOMEM;
#if defined(UMS_ASAN)
    pthread_attr_t attributes;
    void* bottom = nullptr;
    std::size_t bytes = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
        ::pthread_attr_getstack(&attributes, &bottom, &bytes);
        ::pthread_attr_destroy(&attributes);
    }
    arch::set_bounds(made->shadow, bottom, bytes);
#endif
    *stack = made;
    return 0;
}

void* ums_stack_switch(ums_stack_t* from, ums_stack_t* to, void* message) {
    UMS_DEBUG_ASSERT(from != to, "a stack was switched to while it runs");
    from->exceptions = arch::exception_state_of_thread()->take();
    from->race.adopt_current();  // An adopted stack's context may change between its switches.
    arch::start_switch(from->shadow, to->shadow);
    to->race.enter();
    const arch::arrival a = arch::switch_context(from->context, to->context, message, nullptr);
    return arrive(a, *from);
}

void ums_stack_destroy(ums_stack_t* stack) {
    if (stack == nullptr) return;
    if (stack->mapping != nullptr) {
        arch::deregister_stack(stack->valgrind_id);
        arch::remove_leak_root(stack->mapping + guard_bytes, stack->mapped_bytes - guard_bytes);
        arch::unpoison(stack->mapping, stack->mapped_bytes);
        stack->race.destroy();
        os::unmap(stack->mapping, stack->mapped_bytes);
    }
    delete stack;
}
