// SPDX-License-Identifier: MIT
#include "linux_ums/side_stack.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include "os/memory.hpp"

namespace ums::linux_ums {
namespace {

constexpr std::size_t guard_bytes = 64 * 1024, usable_bytes = 1024 * 1024;

}  // namespace

bool side_stack::make(void (*function)(void*), void* argument) noexcept {
    auto* const mapping = static_cast<char*>(os::map(guard_bytes + usable_bytes));
    if (mapping == nullptr) return false;
    if (os::system.mprotect(mapping, guard_bytes, PROT_NONE) != 0) {
        os::unmap(mapping, guard_bytes + usable_bytes);
        return false;
    }
    mapping_ = mapping;
    function_ = function;
    argument_ = argument;
    char* const top = mapping + guard_bytes + usable_bytes;
    arch::set_bounds(inside_shadow_, mapping + guard_bytes, usable_bytes);
    arch::add_leak_root(mapping + guard_bytes, usable_bytes);
    inside_race_.create("UMS entry");
    valgrind_id_ = arch::register_stack(mapping + guard_bytes, top);
    arch::make_context(inside_, top, run, this);
#if defined(UMS_ASAN)
    pthread_attr_t attributes;
    void* bottom = nullptr;
    std::size_t bytes = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
        ::pthread_attr_getstack(&attributes, &bottom, &bytes);
        ::pthread_attr_destroy(&attributes);
    }
    arch::set_bounds(outside_shadow_, bottom, bytes);
#endif
    return true;
}

side_stack::~side_stack() {
    if (mapping_ == nullptr) return;
    arch::deregister_stack(valgrind_id_);
    arch::remove_leak_root(mapping_ + guard_bytes, usable_bytes);
    arch::unpoison(mapping_, guard_bytes + usable_bytes);
    inside_race_.destroy();
    os::unmap(mapping_, guard_bytes + usable_bytes);
}

[[gnu::noinline]] void side_stack::go_on() noexcept {
    outside_race_.adopt_current();
    arch::before_switch(outside_shadow_, inside_shadow_);
    inside_race_.enter();
    (void)arch::switch_context(outside_, inside_, this, nullptr);
    arch::after_switch(outside_shadow_);
}

[[gnu::noinline]] void side_stack::give_back() noexcept {
    arch::before_switch(inside_shadow_, outside_shadow_);
    outside_race_.enter();
    (void)arch::switch_context(inside_, outside_, this, nullptr);
    arch::after_switch(inside_shadow_);
}

void side_stack::run(void*, void*, void* of) noexcept {
    auto& self = *static_cast<side_stack*>(of);
    arch::after_switch(self.inside_shadow_);
    self.function_(self.argument_);
    for (;;) self.give_back();
}

}  // namespace ums::linux_ums
