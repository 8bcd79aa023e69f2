/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * ums_uapi.h - what programs and the module say to each other through /dev/ums.
 *
 * An open file is a session. It belongs to the process that opened it, and ends when that process
 * has no descriptor of it left. UMS_IOC_ATTACH comes first; until it has succeeded every other call
 * fails with EPROTO. Afterwards another process's calls fail with EPERM, and those of a session
 * that has ended with ECANCELED. A thread has one part at a time, in one session: EEXIST. A call
 * for another part than the caller's fails with ESRCH, UMS_IOC_EXECUTE with EPERM.
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

/* ---- workers, and the schedulers that execute them ------------------------------------------ */

enum ums_role { UMS_WATCHED = 1, UMS_WORKER = 2, UMS_SCHEDULER = 3 };

enum ums_state {		 /* of a worker */
		 UMS_QUEUED = 1, /* on its list */
		 UMS_OWNED,	 /* taken from it; or it has yielded */
		 UMS_RUNNING,	 /* executed */
		 UMS_BLOCKED,	 /* in the kernel */
		 UMS_RETURNING,	 /* the same, and about to return */
		 UMS_LOOSE, /* it has returned, and runs beside its scheduler until it yields */
		 UMS_ENDED,
		 UMS_FREE, /* its list or session has gone */
};

/*
 * Returns the descriptor of a new list, for UMS_IOC_DEQUEUE and poll(). Its last close() deletes
 * the list: the workers that are queued on it, or come to be, get ECANCELED and are workers no
 * more; held ones just run on.
 */
#define UMS_IOC_LIST_CREATE _IO(UMS_IOC, 3)

/*
 * After a block a worker with UMS_HOLD waits in the kernel, on its way back to user mode, until it
 * is executed. DANGEROUS: it keeps whatever user-space locks it has, those of malloc() and stdio
 * among them. Without UMS_HOLD it goes on, with `signal`, and should yield when that is safe.
 */
#define UMS_HOLD 1

struct ums_worker {
	__u32 list; /* the list's descriptor: where it waits for the first time, and after blocks */
	__u32 flags; /* UMS_HOLD or 0 */
	__u32 signal; /* 0, or what it gets at its return to user mode after a block without UMS_HOLD */
	__u32 pad;     /* 0 */
	__u64 context; /* the caller's; told with all that is told of the worker */
};

/*
 * Makes the calling thread a worker. Returns once it is executed. EINTR, here and from a yield: a
 * handler has run; made again, the call goes on waiting.
 */
#define UMS_IOC_WORKER_ENTER _IOW(UMS_IOC, 4, struct ums_worker)
/* Ends its execution. arg: a number for the scheduler. A loose worker is queued. */
#define UMS_IOC_WORKER_YIELD _IO(UMS_IOC, 5)
/* The end of the worker; the thread goes on. So does a thread that ends. */
#define UMS_IOC_WORKER_LEAVE _IO(UMS_IOC, 6)

struct ums_item {
	__u64 context;
	__u32 worker; /* its thread's id */
	__u32 ended;  /* 1: there is nothing to execute any more */
};

/* Returns the number of items: the longest queued first. At most 32. */
struct ums_dequeue {
	__u64 items;   /* struct ums_item * */
	__s64 timeout; /* ns, then ETIME; 0: EAGAIN at once; negative: none */
	__u32 room;    /* in items, at least 1 */
	__u32 pad;     /* 0 */
};
#define UMS_IOC_DEQUEUE _IOW(UMS_IOC, 11, struct ums_dequeue) /* of a list's descriptor */

/* Makes the calling thread a scheduler, and ends that; its worker then runs on without it. */
#define UMS_IOC_SCHEDULER_ENTER _IO(UMS_IOC, 7)
#define UMS_IOC_SCHEDULER_LEAVE _IO(UMS_IOC, 8)

enum ums_event { UMS_EVENT_BLOCKED = 1, UMS_EVENT_YIELDED = 2, UMS_EVENT_ENDED = 3 };

struct ums_execute {
	__u32 worker; /* in */
	__u32 reason; /* enum ums_event */
	__s64 call;   /* of a block: the system call, or -1 */
	__u64 param;  /* of a yield */
	__u64 context;
	__u64 when; /* CLOCK_MONOTONIC, ns */
};
/*
 * Executes a worker that is queued or owned, and waits until it blocks, yields or ends. ESRCH:
 * there is none; EBUSY: it is in another state, or the caller executes another. EINTR: the worker
 * goes on; made again with the same worker, the call goes on waiting.
 */
#define UMS_IOC_EXECUTE _IOWR(UMS_IOC, 9, struct ums_execute)

struct ums_info {
	__u32 thread; /* in */
	__u32 role;   /* enum ums_role */
	__u32 state;  /* of a worker: enum ums_state */
	__u32 other; /* of a worker: the last that executed it; of a scheduler: what it executes; or 0 */
	__u64 context;
	__u64 switches; /* executions that began */
	__u64 yields;	/* of a worker, as the next two */
	__u64 blocks;
	__u64 running_ns;
	__u64 last_switch_ns; /* of a scheduler: from the call of an execution to the worker's running */
	__u64 mean_switch_ns; /* over all of its switches */
};
#define UMS_IOC_INFO _IOWR(UMS_IOC, 10, struct ums_info)

#endif
