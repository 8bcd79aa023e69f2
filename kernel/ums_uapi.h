/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * ums_uapi.h - what programs and the module say to each other through /dev/ums.
 *
 * An open file is a session. It belongs to the process that opened it, and ends when that process
 * has no descriptor of it left. UMS_IOC_ATTACH comes first; until it has succeeded every other call
 * fails with EPROTO. Afterwards another process's calls fail with EPERM, and those of a session
 * that has ended with ECANCELED. A thread has one part at a time, in one session: EEXIST.
 */
#ifndef UMS_UAPI_H
#define UMS_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Grows with every change that an older program or module would misunderstand. */
#define UMS_VERSION 1

/* EPROTONOSUPPORT where the two differ; the module's is filled in even so. */
struct ums_attach {
	__u32 version; /* in: the caller's; out: the module's */
	__u32 pad;     /* 0 */
};

/* ---- watched threads ------------------------------------------------------------------------ */

/*
 * Of a watched thread; mmap() with MAP_SHARED, at the offset thread id * page size. The thread's
 * process may write `interest` at any time, and nothing else of it.
 */
struct ums_page {
	__u32 interest; /* nonzero: give a notice of the next block, and the signal after it */
	__u32 pad;
	__u64 sequence; /* odd while the thread is blocked in the kernel; grows by one each way */
	__u64 since;	/* of the last block with interest: CLOCK_MONOTONIC, ns */
	__s64 call;	/* its system call, or -1: a page fault or another exception */
};

enum ums_notice_kind {
	UMS_NOTICE_BLOCKED = 1,
	UMS_NOTICE_ENDED = 2,
	UMS_NOTICE_LOST = 3, /* `call` notices had no room: look at the pages */
};

/* read() of a session gives whole notices, and waits for the first unless O_NONBLOCK is set. */
struct ums_notice {
	__u32 thread; /* its id, as gettid() gives it */
	__u32 kind;   /* enum ums_notice_kind */
	__s64 call;   /* as in struct ums_page */
	__u64 when;   /* CLOCK_MONOTONIC, ns */
};

#define UMS_IOC 0xB5
#define UMS_IOC_ATTACH _IOWR(UMS_IOC, 0, struct ums_attach)

/*
 * Watches the calling thread. arg: 0, or the signal that the thread gets at its return to user mode
 * after each block that was told of; no call fails with EINTR for it.
 */
#define UMS_IOC_WATCH _IO(UMS_IOC, 1)
#define UMS_IOC_UNWATCH _IO(UMS_IOC, 2)

#endif
