// SPDX-License-Identifier: MIT
//
// The first frame of every fiber, x86-64. arch/x86_64/switch.hpp jumps here with the carrier in rdx
// and the action after the switch in rcx; on the stack lie the argument and the function to call
// with (carrier, after, argument). It never returns. The undefined return address ends every
// unwind.

#if defined(__x86_64__)

        .text
        .p2align 4
        .globl  ums_fiber_entry
        .hidden ums_fiber_entry
        .type   ums_fiber_entry, @function
ums_fiber_entry:
        .cfi_startproc
        .cfi_undefined %rip
        endbr64
        movq    %rdx, %rdi
        movq    %rcx, %rsi
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rax
        .cfi_adjust_cfa_offset -8
        callq   *%rax
        ud2
        .cfi_endproc
        .size   ums_fiber_entry, . - ums_fiber_entry

#include "arch/x86_64/notes.inc"

#endif  // __x86_64__
