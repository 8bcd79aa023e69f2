// SPDX-License-Identifier: MIT
#pragma once

// arch/sanitizer.hpp: tells AddressSanitizer, ThreadSanitizer and Valgrind what they must know.
//
// ASan keeps the bounds of the running stack and, for use-after-return, a fake stack: each switch
// announces the target's bounds and saves or frees the fake stack of the side that is left.
//
// TSan keeps a context (clock and shadow call stack) per fiber. The scheduler's own data belongs to
// a processor, not to the fiber that happens to run there, so each processor has a TSan context of
// its own, entered and left with the processor's ownership (carry/ownership.hpp). Entering always
// orders the fiber before the processor. Leaving orders the processor before the fiber only in
// `sync` mode; in `no_sync` mode (UMS_DEBUG=tsan=no_sync) two fibers that share a processor are not
// ordered by that alone, so a race between them is reported although they never ran in parallel.
//
// A processor's context runs on the stacks of its fibers, hence create_processor().
//
// A function that changes the TSan context must not have an instrumented frame entered in one
// context and left in another: such functions are always_inline or UMS_UNINSTRUMENTED.

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UMS_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define UMS_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define UMS_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define UMS_TSAN 1
#endif

#if defined(UMS_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if defined(UMS_TSAN)
#include <sanitizer/tsan_interface.h>
// The runtime exports these, but none of its headers declares them.
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#endif
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define UMS_VALGRIND 1
#endif

#if (defined(UMS_ASAN) || defined(UMS_TSAN)) && defined(__clang__)
#define UMS_UNINSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#else
#define UMS_UNINSTRUMENTED
#endif

#define UMS_ALWAYS_INLINE inline __attribute__((always_inline))

namespace ums::arch {

// The bounds and shadow state of one stack. Empty in ordinary builds.
struct stack_shadow {
#if defined(UMS_ASAN)
    void* fake_stack = nullptr;
    const void* bottom = nullptr;
    std::size_t size = 0;
#endif
};

#if defined(UMS_ASAN)
UMS_ALWAYS_INLINE void set_bounds(stack_shadow& s, const void* bottom, std::size_t size) noexcept {
    s.bottom = bottom;
    s.size = size;
}
UMS_ALWAYS_INLINE void start_switch(stack_shadow& from, const stack_shadow& to) noexcept {
    __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);
}
UMS_ALWAYS_INLINE void start_last_switch(const stack_shadow& to) noexcept {
    __sanitizer_start_switch_fiber(nullptr, to.bottom, to.size);
}
UMS_ALWAYS_INLINE void finish_switch(stack_shadow& self) noexcept {
    __sanitizer_finish_switch_fiber(self.fake_stack, nullptr, nullptr);
}
// Marks a free stack, so that any use is reported.
inline void poison(const void* bottom, std::size_t size) noexcept {
    __asan_poison_memory_region(bottom, size);
}
inline void unpoison(const void* bottom, std::size_t size) noexcept {
    __asan_unpoison_memory_region(bottom, size);
}
// The frames from the caller's up to the stack's top are about to be discarded.
UMS_ALWAYS_INLINE void forget_frames() noexcept { __asan_handle_no_return(); }
// Memory that a parked fiber's stack points to is not leaked.
inline void add_leak_root(const void* bottom, std::size_t size) noexcept {
    __lsan_register_root_region(bottom, size);
}
inline void remove_leak_root(const void* bottom, std::size_t size) noexcept {
    __lsan_unregister_root_region(bottom, size);
}
#else
UMS_ALWAYS_INLINE void set_bounds(stack_shadow&, const void*, std::size_t) noexcept {}
UMS_ALWAYS_INLINE void start_switch(stack_shadow&, const stack_shadow&) noexcept {}
UMS_ALWAYS_INLINE void start_last_switch(const stack_shadow&) noexcept {}
UMS_ALWAYS_INLINE void finish_switch(stack_shadow&) noexcept {}
inline void poison(const void*, std::size_t) noexcept {}
inline void unpoison(const void*, std::size_t) noexcept {}
UMS_ALWAYS_INLINE void forget_frames() noexcept {}
inline void add_leak_root(const void*, std::size_t) noexcept {}
inline void remove_leak_root(const void*, std::size_t) noexcept {}
#endif

// A TSan context: null in other builds.
#if defined(UMS_TSAN)
extern bool race_context_syncs;  // Set once before the first context is made.

class race_context {
public:
    void create(const char* name) noexcept {
        context_ = __tsan_create_fiber(0);
        __tsan_set_fiber_name(context_, name);
    }
    void destroy() noexcept {
        __tsan_destroy_fiber(context_);
        context_ = nullptr;
    }
    // Makes a processor's context. It runs on the stacks of the fibers that the processor
    // schedules. In no_sync mode it is not ordered with their later use of the same memory, so
    // there its plain accesses are not checked (in sync mode they are); its atomics still order.
    void create_processor() noexcept {
        create("processor");
        if (!race_context_syncs)
            within([] {
                AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
                AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
            });
    }
    void destroy_processor() noexcept {
        if (!race_context_syncs)
            within([] {
                AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
                AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
            });
        destroy();
    }
    void adopt_current() noexcept { context_ = __tsan_get_current_fiber(); }
    // From fiber to processor: always ordered.
    UMS_ALWAYS_INLINE void enter() const noexcept { __tsan_switch_to_fiber(context_, 0); }
    // From processor to fiber: ordered in sync mode only.
    UMS_ALWAYS_INLINE void resume() const noexcept {
        __tsan_switch_to_fiber(context_, race_context_syncs ? 0 : __tsan_switch_to_fiber_no_sync);
    }

private:
    template <class F>
    UMS_ALWAYS_INLINE void within(F f) noexcept {
        void* const self = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(context_, __tsan_switch_to_fiber_no_sync);
        f();
        __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
    }

    void* context_ = nullptr;
};
UMS_ALWAYS_INLINE void happens_before(void* tag) noexcept { __tsan_release(tag); }
UMS_ALWAYS_INLINE void happens_after(void* tag) noexcept { __tsan_acquire(tag); }
#else
class race_context {
public:
    void create(const char*) noexcept {}
    void destroy() noexcept {}
    void create_processor() noexcept {}
    void destroy_processor() noexcept {}
    void adopt_current() noexcept {}
    UMS_ALWAYS_INLINE void enter() const noexcept {}
    UMS_ALWAYS_INLINE void resume() const noexcept {}
};
UMS_ALWAYS_INLINE void happens_before(void*) noexcept {}
UMS_ALWAYS_INLINE void happens_after(void*) noexcept {}
#endif

// Whether the program runs under Valgrind, which does not know everything that the kernel and the
// CPU can do.
inline bool under_valgrind() noexcept {
#if defined(UMS_VALGRIND)
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}

// Valgrind must know each stack, or a switch looks to it like a huge stack change. Outside Valgrind
// this is a handful of instructions; call it when a stack is made, not when it is used.
inline unsigned register_stack([[maybe_unused]] const void* bottom,
                               [[maybe_unused]] const void* top) noexcept {
#if defined(UMS_VALGRIND)
    return VALGRIND_STACK_REGISTER(bottom, top);
#else
    return 0;
#endif
}
inline void deregister_stack([[maybe_unused]] unsigned id) noexcept {
#if defined(UMS_VALGRIND)
    VALGRIND_STACK_DEREGISTER(id);
#endif
}

}  // namespace ums::arch
