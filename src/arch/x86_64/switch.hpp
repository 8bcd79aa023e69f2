// SPDX-License-Identifier: MIT
#pragma once

// arch/x86_64/switch.hpp: the stack switch, inline.
//
// Saves the stack and frame pointers, the address to continue at and the floating-point control
// words in `save`, loads those of `load`, and jumps. The other callee-saved registers are clobbers:
// the compiler saves what the surrounding function needs, on the stack that is left.
//
// Why inline: there is no call, so there is no ret whose prediction a switch to another place
// breaks: the jump is predicted by its history. Measured beside the out-of-line routine with call
// and ret, 1.6 ns less for each switch, and about 15 ns less for a fiber's first and last one.
//
// A profiler's signal may come at every instruction, and unwind from there. Nothing is pushed, so
// the unwind tables of the surrounding function hold up to the one that loads the stack pointer,
// and again where the other side continues. In between, the tables say that the side that `load`
// holds is the caller, as in arch/x86_64/backtrace.S. The byte before label 1 belongs to the
// surrounding function again: an unwinder looks up return addresses one byte earlier.
//
// The control words are callee-saved state by the ABI. MXCSR is loaded without asking whether it
// differs: stmxcsr is slow (4 ns on Zen 4), and a comparison makes a branch wait for it, which
// costs 2.4 ns of a yield's 10, where ldmxcsr costs 0.3. fldcw is slow and fnstcw is not, so the
// x87 word is compared: all fibers agree almost always.

#include "arch/sanitizer.hpp"

namespace ums::arch {

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

// From here on the stack is the other side's, whose context is at rsi. DW_CFA_def_cfa_expression:
// *(rsi + 0), the stack pointer; DW_CFA_expression: rip is saved at rsi + 8, rbp at rsi + 16. The
// rest is on that side's stack.
#define UMS_UNWIND_OTHER_SIDE                \
    ".cfi_remember_state\n\t"                \
    ".cfi_escape 0x0f, 3, 0x74, 0, 0x06\n\t" \
    ".cfi_escape 0x10, 16, 2, 0x74, 8\n\t"   \
    ".cfi_escape 0x10, 6, 2, 0x74, 16\n\t"   \
    ".cfi_same_value %%rbx\n\t"              \
    ".cfi_same_value %%r12\n\t"              \
    ".cfi_same_value %%r13\n\t"              \
    ".cfi_same_value %%r14\n\t"              \
    ".cfi_same_value %%r15\n\t"
#define UMS_UNWIND_THIS_SIDE ".cfi_restore_state\n\t"
// Continues the context in %rsi. The control word, which is dear to load, only if it differs.
#define UMS_LOAD_OTHER_SIDE                         \
    "fnstcw 28(%%rdi)\n\t"                          \
    "movzwl 28(%%rdi), %%r8d\n\t"                   \
    "ldmxcsr 24(%%rsi)\n\t"                         \
    "cmpw 28(%%rsi), %%r8w\n\t"                     \
    "jne 3f\n"                                      \
    "2:\n\t"                                        \
    "movq (%%rsi), %%rsp\n\t" UMS_UNWIND_OTHER_SIDE \
    "movq 16(%%rsi), %%rbp\n\t"                     \
    "jmpq *8(%%rsi)\n\t" UMS_UNWIND_THIS_SIDE       \
    "3:\n\t"                                        \
    "fldcw 28(%%rsi)\n\t"                           \
    "jmp 2b\n\t"

UMS_ALWAYS_INLINE arrival switch_context(context& save, const context& load, void* carrier,
                                         void* after) noexcept {
    context* from = &save;
    const context* to = &load;
    asm volatile(
        "leaq 1f(%%rip), %%rax\n\t"
        "movq %%rsp, (%%rdi)\n\t"
        "movq %%rax, 8(%%rdi)\n\t"
        "movq %%rbp, 16(%%rdi)\n\t"
        "stmxcsr 24(%%rdi)\n\t" UMS_LOAD_OTHER_SIDE
        ".p2align 4\n"
        "1:\n\t" UMS_LANDING
        : "+D"(from), "+S"(to), "+d"(carrier), "+c"(after)
        :
        : "rax", "rbx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc",
          "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
          "xmm11", "xmm12", "xmm13", "xmm14", "xmm15" UMS_VECTOR_CLOBBERS);
    return {carrier, after};
}

// The last switch of a stack: of its context only the control words are saved.
[[noreturn]] UMS_ALWAYS_INLINE void switch_for_good(context& last, const context& load,
                                                    void* carrier, void* after) noexcept {
    asm volatile("stmxcsr 24(%%rdi)\n\t" UMS_LOAD_OTHER_SIDE
                 :
                 : "D"(&last), "S"(&load), "d"(carrier), "c"(after)
                 : "r8", "memory", "cc");
    __builtin_unreachable();
}

#undef UMS_LOAD_OTHER_SIDE
#undef UMS_LANDING
#undef UMS_VECTOR_CLOBBERS

// Prepares a context that will call entry(carrier, after, argument) on the stack below `top`. The
// control words are the caller's, as a new kernel thread inherits its creator's. Requires: `top` is
// 16-byte aligned.
inline void make_context(context& made, void* top, entry_function entry, void* argument) noexcept {
    auto* words = static_cast<void**>(top) - 2;
    words[0] = argument;
    words[1] = reinterpret_cast<void*>(entry);
    made.sp = words;
    made.ip = reinterpret_cast<void*>(&ums_fiber_entry);
    made.bp = nullptr;  // Ends frame-pointer walks.
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(made.controls.mxcsr), "=m"(made.controls.x87));
}

}  // namespace ums::arch
