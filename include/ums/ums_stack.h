/* SPDX-License-Identifier: MIT */
#ifndef UMS_UMS_STACK_H
#define UMS_UMS_STACK_H

/* ums/ums_stack.h: stacks that a kernel thread switches between by itself.
 *
 * A ums_stack_t is a fiber without a scheduler: a function on a stack of its own that continues
 * where it left off each time somebody switches to it. It serves layers that bring their own
 * scheduler, and generators. No runtime is needed.
 *
 * What moves:  the registers, the floating-point control words and the C++ exceptions in flight
 *              belong to the stack. errno, thread_local variables and the signal mask belong to the
 *              thread.
 * Blocking:    no function blocks.
 * Threads:     a stack runs on one thread at a time. A thread may switch to a stack that another
 *              thread left, once the switch away from it has arrived on the other stack; the
 *              program must order the two. Code must not keep the address of a thread_local
 *              variable across a switch. Do not use these functions on fibers of the runtime, whose
 *              stacks move between kernel threads by themselves.
 * Errors:      0 or a negative error number; errno is never set.
 * Debugging:   AddressSanitizer, ThreadSanitizer and Valgrind learn of each stack and each switch.
 * Cost:        a switch takes a few nanoseconds and no system call. Making or destroying a stack
 *              takes a system call or two.
 */

#include "ums/ums.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ums_stack ums_stack_t;

/* Runs from the first switch to the stack on; `message` is that switch's. Must not return: that
 * ends the program with a message. */
typedef void (*ums_stack_function_t)(void* argument, void* message);

/* Makes a stack of `bytes`, rounded up to whole pages, above a guard: an overflow is a fault. The
 * function runs once somebody switches to the stack. -ENOMEM; -EINVAL: no function, or 0 bytes. */
UMS_API int ums_stack_create(ums_stack_t** stack, size_t bytes, ums_stack_function_t function,
                             void* argument);

/* Makes a record of the caller's own stack, so that it can switch away from it and back.
 * -ENOMEM. */
UMS_API int ums_stack_adopt(ums_stack_t** stack);

/* Continues on `to`: there the switch that left it returns `message`, or its function begins.
 * Returns the message of the switch that comes back. `from` must be the stack that the caller runs
 * on. */
UMS_API void* ums_stack_switch(ums_stack_t* from, ums_stack_t* to, void* message);

/* Frees a stack that nobody runs on; destroys no object that lies on it. Frees the record of an
 * adopted stack at any time. NULL is allowed. */
UMS_API void ums_stack_destroy(ums_stack_t* stack);

#ifdef __cplusplus
}
#endif

#endif
