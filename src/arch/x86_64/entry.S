// SPDX-License-Identifier: MIT
//
// The first frame of every fiber, x86-64. arch/x86_64/switch.hpp jumps here with the carrier in rdx
// and the action after the switch in rcx; on the stack lie the argument and the function to call
// with (carrier, after, argument). It never returns. The undefined return address ends every
// unwind, also one that begins in the switch and takes the first instruction for a return address:
// unwinders look those up one byte earlier, so the tables begin there.

#if defined(__x86_64__)

        .text
        .globl  ums_fiber_entry
        .hidden ums_fiber_entry
        .type   ums_fiber_entry, @function
        .cfi_startproc
        .cfi_undefined %rip
        nop
        .p2align 4
ums_fiber_entry:
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
