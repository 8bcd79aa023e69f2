// SPDX-License-Identifier: MIT
//
// ums_call_above(context, f, argument): calls f(argument). To an unwinder its caller is the side
// whose registers the context (arch/context.hpp) holds; to the processor it is its caller.

#if defined(__x86_64__)

        .text
        .p2align 4
        .globl  ums_call_above
        .hidden ums_call_above
        .type   ums_call_above, @function
ums_call_above:
        .cfi_startproc
        endbr64
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        movq    %rdi, %rbx
        movq    %rdx, %rdi
        .cfi_remember_state
        // DW_CFA_def_cfa_expression: *(rbx + 0), the stack pointer.
        .cfi_escape 0x0f, 3, 0x73, 0, 0x06
        // DW_CFA_expression: rip is saved at rbx + 8, rbp at rbx + 16.
        .cfi_escape 0x10, 16, 2, 0x73, 8
        .cfi_escape 0x10, 6, 2, 0x73, 16
        .cfi_same_value %rbx
        callq   *%rsi
        .cfi_restore_state
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        retq
        .cfi_endproc
        .size   ums_call_above, . - ums_call_above

#include "arch/x86_64/notes.inc"

#endif  // __x86_64__
