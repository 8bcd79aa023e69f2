// SPDX-License-Identifier: MIT
//
// A return that does not ask the return predictor, x86-64: functions marked UMS_RETURNS_BY_JUMP go
// here instead of executing `ret` (arch/x86_64/thread_pointer.hpp). The compilers chose the name.

#if defined(__x86_64__)

        .text
        .p2align 4
        .weak   __x86_return_thunk
        .hidden __x86_return_thunk
        .type   __x86_return_thunk, @function
__x86_return_thunk:
        .cfi_startproc
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register %rip, %rcx
        notrack jmpq *%rcx
        .cfi_endproc
        .size   __x86_return_thunk, . - __x86_return_thunk

#include "arch/x86_64/notes.inc"

#endif  // __x86_64__
