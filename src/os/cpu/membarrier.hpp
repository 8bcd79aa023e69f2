// SPDX-License-Identifier: MIT
#pragma once

// os/cpu/membarrier.hpp: an asymmetric fence. The frequent side pays nothing, the rare side pays
// everything.
//
// The CPU may reorder a store followed by a load of another variable; a pair of threads that do
// this (Dekker) needs a full fence on both sides. heavy_fence() runs a full barrier on every CPU
// that runs a thread of this process, so the frequent side needs only a compiler_fence().
//
// The argument, used wherever the two are paired. Light side: store A; compiler_fence; load B.
// Heavy side: store B; heavy_fence; load A. The barrier runs on the light side's CPU at some point
// t. If t comes before its store to A is performed, then its load of B comes after t too, and sees
// the heavy side's store, which was performed before the barrier was sent. If t comes after, the
// store to A is visible before heavy_fence() returns, so the heavy side's load sees it. Either way
// at least one side sees the other's store. A thread that is not running has passed a full barrier
// when it was switched out.
//
// Where membarrier(2) is refused from the start, asymmetric() is false and light sides must use
// full_fence(). Where it is refused later, after light sides have been made that rely on it (a
// seccomp filter of the program's, no memory), heavy_fence() visits every CPU instead: the calling
// thread moves to one after the other. A light side that runs on a CPU is switched out when the
// caller gets there, which is a full barrier; a light side that moves to another CPU meanwhile is
// switched out, too. That takes some 10 us for each CPU, or the kernel's slice where another thread
// computes.
//
// Rejected as the second way: changing a page's protection, because AMD's broadcast of TLB flushes
// interrupts no CPU; a signal to each thread, because it ends system calls; waiting for some
// milliseconds, because no CPU promises when it empties its store buffer.

namespace ums::os {

// Registers the process, for light sides that are made from now on. `allowed` false makes them use
// full fences; those that were made before may still rely on heavy_fence(). Idempotent.
bool enable_asymmetric_fence(bool allowed) noexcept;

// Whether a light side that is made now may go without a fence.
bool asymmetric() noexcept;

// Orders the caller's stores before its loads, and those of all light sides. May sleep: recent
// kernels serve one such call at a time, of all processes. So no other thread should have to wait
// for a caller.
void heavy_fence() noexcept;

}  // namespace ums::os
