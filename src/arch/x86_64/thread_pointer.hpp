// SPDX-License-Identifier: MIT
#pragma once

// arch/x86_64/thread_pointer.hpp: the thread register (the base of FS), which names a thread's TLS
// block, and a switch that changes it together with the stack.
//
// Between the two halves of such a switch nothing may use thread-local memory, so the register is
// written inside the asm statement. Around it nothing changes: a thread's code always runs with its
// own TLS block, whichever kernel thread runs it, so addresses of thread-local variables that a
// compiler keeps stay right, and a stack protector finds its own canary. See arch/x86_64/switch.hpp
// for the rest.

#include "arch/context.hpp"

namespace ums::arch {

// Whether the CPU has the instructions and the kernel lets user mode use them (since 5.9), from
// AT_HWCAP2.
constexpr bool can_write_thread_pointer(unsigned long hwcap2) noexcept {
    constexpr unsigned long fsgsbase = 2;  // HWCAP2_FSGSBASE
    return (hwcap2 & fsgsbase) != 0;
}

// Requires: can_write_thread_pointer().
inline void* thread_pointer() noexcept {
    void* value;
    asm volatile("rdfsbase %0" : "=r"(value));
    return value;
}

#if defined(__CET__)
#define UMS_LANDING "endbr64\n\t"
#else
#define UMS_LANDING ""
#endif

#if defined(__AVX512F__)
#define UMS_VECTOR_CLOBBERS                                                                       \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", \
        "k7"
#else
#define UMS_VECTOR_CLOBBERS
#endif

// Marks a function that switches inside and that programs call often. The other side's calls have
// filled the return predictor meanwhile, so a `ret` would be predicted wrong each time (6 ns). A
// jump is predicted by where it went before. See arch/x86_64/return.S.
#define UMS_RETURNS_BY_JUMP __attribute__((function_return("thunk-extern")))

// The second half of a switch: continues the context at rsi with r9 as its thread pointer. r8w
// holds the present x87 control word. WRFSBASE waits for everything before it and lets nothing
// after it begin (12 ns on Zen 4), so it comes last, when all loads are there.
#define UMS_CONTINUE_IDENTITY                       \
    "ldmxcsr 24(%%rsi)\n\t"                         \
    "movq 8(%%rsi), %%r10\n\t"                      \
    "cmpw 28(%%rsi), %%r8w\n\t"                     \
    "jne 3f\n"                                      \
    "2:\n\t"                                        \
    "movq (%%rsi), %%rsp\n\t" UMS_UNWIND_OTHER_SIDE \
    "movq 16(%%rsi), %%rbp\n\t"                     \
    "wrfsbase %%r9\n\t"                             \
    "jmpq *%%r10\n\t" UMS_UNWIND_THIS_SIDE          \
    "3:\n\t"                                        \
    "fldcw 28(%%rsi)\n\t"                           \
    "jmp 2b\n\t"

// Like switch_context(), but the side that continues finds its own thread pointer. Requires:
// can_write_thread_pointer().
UMS_ALWAYS_INLINE arrival switch_identity(context& save, const context& load, void* pointer,
                                          void* carrier) noexcept {
    context* from = &save;
    const context* to = &load;
    void* after = nullptr;
    register void* fs asm("r9") = pointer;
    asm volatile(
        "leaq 1f(%%rip), %%rax\n\t"
        "movq %%rsp, (%%rdi)\n\t"
        "movq %%rax, 8(%%rdi)\n\t"
        "movq %%rbp, 16(%%rdi)\n\t"
        "stmxcsr 24(%%rdi)\n\t"
        "fnstcw 28(%%rdi)\n\t"
        "movzwl 28(%%rdi), %%r8d\n\t" UMS_CONTINUE_IDENTITY
        ".p2align 4\n"
        "1:\n\t" UMS_LANDING
        : "+D"(from), "+S"(to), "+d"(carrier), "+c"(after), "+r"(fs)
        :
        : "rax", "rbx", "r8", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0",
          "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
          "xmm12", "xmm13", "xmm14", "xmm15" UMS_VECTOR_CLOBBERS);
    return {carrier, after};
}

// The same for a side that is never continued where it is now: nothing is saved.
[[noreturn]] UMS_ALWAYS_INLINE void continue_identity(const context& load, void* pointer,
                                                      void* carrier) noexcept {
    register void* fs asm("r9") = pointer;
    asm volatile(
        "fnstcw -8(%%rsp)\n\t"
        "movzwl -8(%%rsp), %%r8d\n\t" UMS_CONTINUE_IDENTITY
        :
        : "S"(&load), "d"(carrier), "c"(nullptr), "r"(fs)
        : "r8", "r10", "memory", "cc");
    __builtin_unreachable();
}

#undef UMS_LANDING
#undef UMS_CONTINUE_IDENTITY
#undef UMS_VECTOR_CLOBBERS

}  // namespace ums::arch
