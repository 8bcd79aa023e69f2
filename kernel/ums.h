/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * ums.h - what the files of the module share.
 *
 * Lifetimes. A session is counted by its file, its threads and its lists; a thread by its
 * registration, by a callback that is on its way, and by whoever looked it up. What a preempt
 * notifier reaches is freed only after the notifier can no longer run: the thread itself has taken
 * it off, or is dead and has left its last processor. The last reference to a session is dropped in
 * ums_wq, which the module's exit waits for, because code that is about to return must not drop the
 * last reference to its own module.
 *
 * Locks. A preempt notifier runs under the lock of a run queue and may take session->lock. So
 * nothing may be woken, allocated, freed or copied under session->lock. Notifiers wake through
 * irq_work.
 */
#ifndef UMS_H
#define UMS_H

#include <linux/irq_work.h>
#include <linux/kfifo.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "ums_uapi.h"

#ifndef CONFIG_PREEMPT_NOTIFIERS
#error "ums needs a kernel with CONFIG_PREEMPT_NOTIFIERS (KVM selects it)"
#endif

struct file;
struct proc_dir_entry;
struct poll_table_struct;
struct vm_area_struct;

/* What a user has of sessions, threads and lists in all of his processes. */
struct ums_user {
	struct list_head node; /* in the list of users; these two under ums_users_lock */
	unsigned int sessions;
	kuid_t uid;
	atomic_t objects;
};

/* An open file. */
struct ums_session {
	struct kref refs;
	struct work_struct free;

	/* Set once: */
	struct ums_user *user;
	struct mm_struct *mm; /* mmgrab()bed, so that no other can have its address */
	struct pid *process;
	fl_owner_t files; /* only compared */

	bool attached;	       /* by UMS_IOC_ATTACH, for good */
	struct xarray threads; /* by id; readers hold rcu_read_lock() or a reference */
	wait_queue_head_t reader;
	struct irq_work wake_reader;

	struct mutex lists_lock;
	struct list_head lists; /* under lists_lock */

	/* Of ums_proc.c; held while readers of /proc are waited for, and so never for another session: */
	struct mutex proc_lock;
	struct list_head named;
	struct proc_dir_entry *directory, *schedulers;
	unsigned int number;

	raw_spinlock_t lock;
	/* Under it: */
	bool over; /* for good; read without it, too */
	DECLARE_KFIFO(notices, struct ums_notice, 256);
	u64 lost;
};

struct ums_thread {
	struct kref refs;
	struct rcu_head rcu;

	/* Set once: */
	struct ums_session *session;
	struct task_struct *task; /* counted, so that no other can have its address */
	u32 id;			  /* as the process sees it */
	enum ums_role role;

	struct hlist_node by_task;
	struct preempt_notifier notifier;
	struct irq_work end;
	struct work_struct reap;
	struct callback_head on_return;

	/* The thread's own: */
	bool left;	     /* the notifier has nothing to do any more */
	bool return_pending; /* on_return is queued, and holds a reference */

	/* Of a watched one, its own as well: */
	struct page *page;
	bool signal_due; /* a block was told of since it was last in user mode */
	u64 sequence;

	/* Of a worker; set once: */
	struct ums_list *list;
	u64 context;
	bool hold;
	/* Of a watched one, too: */
	int signal;
	/* The worker's own: */
	bool parked;	  /* it waits in the module, which is not a block */
	bool interrupted; /* so was its call; made again, it goes on waiting */
	bool held;	  /* a signal has ended its last wait on the way to user mode */
	bool hold_again;  /* that signal was a stop */

	/* Of workers and schedulers: */
	wait_queue_head_t wait;
	struct irq_work wake; /* wakes `wait`, for notifiers */
	/* Under session->lock: */
	enum ums_state state;	      /* of a worker */
	struct list_head node;	      /* of a worker: in list->ready, if it is queued or ended */
	struct ums_thread *scheduler; /* w->scheduler == s and s->running == w, or neither */
	struct ums_thread *running;
	bool has_event; /* of a scheduler: for its call of UMS_IOC_EXECUTE */
	struct ums_execute event;
	u32 last_scheduler;
	u64 since, started; /* when a worker began to run, and a scheduler to switch */
	u64 switches, yields, blocks, running_ns, switch_ns, last_switch_ns;

	struct proc_dir_entry *directory; /* of a scheduler */
};

/* ums_main.c */
extern struct workqueue_struct *ums_wq;
int ums_session_check(struct ums_session *s);
void ums_session_put(struct ums_session *s);
struct ums_thread *ums_thread_alloc(struct ums_session *s, enum ums_role role);
int ums_thread_register(struct ums_thread *t, struct preempt_ops *ops);
struct ums_thread *ums_self(struct ums_session *s, enum ums_role role);
struct ums_thread *ums_thread_find(struct ums_session *s, u32 id);
void ums_thread_put(struct ums_thread *t);
void ums_thread_leave(struct ums_thread *t);
bool ums_has_blocked(void);
s64 ums_current_call(void);
bool ums_is_foreign(struct ums_thread *t);
void ums_at_return(struct ums_thread *t);
void ums_thread_died(struct ums_thread *t);

int ums_charge(struct ums_user *u);
void ums_uncharge(struct ums_user *u);
bool ums_is_signal(unsigned long signal);

/* ums_worker.c */
long ums_list_create(struct ums_session *s);
long ums_worker_enter(struct ums_session *s, struct ums_worker __user *user);
long ums_worker_yield(struct ums_session *s, u64 param);
long ums_worker_leave(struct ums_session *s);
long ums_scheduler_enter(struct ums_session *s);
long ums_scheduler_leave(struct ums_session *s);
long ums_execute(struct ums_session *s, struct ums_execute __user *user);
long ums_info(struct ums_session *s, struct ums_info __user *user);
void ums_worker_init(struct ums_thread *t);
void ums_worker_return(struct ums_thread *t);
void ums_part_gone(struct ums_thread *t);
void ums_worker_free(struct ums_thread *t);
void ums_workers_end(struct ums_session *s);

/* ums_proc.c */
int ums_proc_init(void);
void ums_proc_exit(void);
int ums_proc_add(struct ums_thread *s);
void ums_proc_remove(struct ums_thread *s);
void ums_proc_end(struct ums_session *s);

/* ums_watch.c */
long ums_watch(struct ums_session *s, unsigned long signal);
long ums_unwatch(struct ums_session *s);
void ums_watch_return(struct ums_thread *t);
void ums_watch_gone(struct ums_thread *t);
void ums_watch_init(struct ums_session *s);
ssize_t ums_read(struct file *file, char __user *to, size_t size, loff_t *unused);
__poll_t ums_poll(struct file *file, struct poll_table_struct *table);
int ums_mmap(struct file *file, struct vm_area_struct *vma);

#endif
