// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * ums_watch.c - threads whose blocks are told of, and the notices of a session.
 */
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "ums.h"

/* ---- the thread's side ---------------------------------------------------------------------- */

/* In a notifier. */
static void ums_notice(struct ums_thread *t, u32 kind, s64 call, u64 when)
{
	struct ums_session *s = t->session;
	struct ums_notice n = {.thread = t->id, .kind = kind, .call = call, .when = when};
	unsigned long flags;

	raw_spin_lock_irqsave(&s->lock, flags);
	if (!kfifo_put(&s->notices, n))
		s->lost++;
	raw_spin_unlock_irqrestore(&s->lock, flags);
	irq_work_queue(&s->wake_reader);
}

static void ums_watched_out(struct preempt_notifier *notifier, struct task_struct *next)
{
	struct ums_thread *t = container_of(notifier, struct ums_thread, notifier);
	struct ums_page *page = page_address(t->page);

	if (READ_ONCE(current->__state) == TASK_DEAD) {
		if (!t->left)
			ums_notice(t, UMS_NOTICE_ENDED, -1, ktime_get_ns());
		ums_thread_died(t);
		return;
	}
	if (t->left || !ums_has_blocked())
		return;
	/* The process may write what it likes there, so nothing but `interest` is read back. */
	WRITE_ONCE(page->sequence, ++t->sequence);
	if (READ_ONCE(page->interest)) {
		u64 now = ktime_get_ns();
		s64 call = ums_current_call();

		/* Stays until the signal is sent, whatever `interest` is at later blocks of the call. */
		t->signal_due = t->signal != 0;
		WRITE_ONCE(page->since, now);
		WRITE_ONCE(page->call, call);
		ums_notice(t, UMS_NOTICE_BLOCKED, call, now);
	}
}

static void ums_watched_in(struct preempt_notifier *notifier, int cpu)
{
	struct ums_thread *t = container_of(notifier, struct ums_thread, notifier);
	struct ums_page *page = page_address(t->page);

	if (t->left)
		return;
	if (t->sequence & 1)
		WRITE_ONCE(page->sequence, ++t->sequence);
	if (t->signal_due || ums_is_foreign(t))
		ums_at_return(t);
}

static struct preempt_ops ums_watched_ops = {
	.sched_in = ums_watched_in,
	.sched_out = ums_watched_out,
};

/* At the return to user mode: the call is over, and cannot fail with EINTR any more. */
void ums_watch_return(struct ums_thread *t)
{
	if (!t->signal_due)
		return;
	t->signal_due = false;
	send_sig(t->signal, current, 1);
}

long ums_watch(struct ums_session *s, unsigned long signal)
{
	struct ums_thread *t;
	int error = -ENOMEM;

	if (signal && !ums_is_signal(signal))
		return -EINVAL;
	t = ums_thread_alloc(s, UMS_WATCHED);
	if (IS_ERR(t))
		return PTR_ERR(t);
	t->signal = signal;
	t->page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (t->page)
		error = ums_thread_register(t, &ums_watched_ops);
	if (error)
		ums_thread_put(t);
	return error;
}

long ums_unwatch(struct ums_session *s)
{
	struct ums_thread *t = ums_self(s, UMS_WATCHED);

	if (!t)
		return -ESRCH;
	ums_thread_leave(t);
	return 0;
}

/* Mappings keep the page by themselves. */
void ums_watch_gone(struct ums_thread *t)
{
	if (t->page)
		put_page(t->page);
}

/* ---- the reader's side ---------------------------------------------------------------------- */

static void ums_wake_reader(struct irq_work *work)
{
	wake_up_interruptible(&container_of(work, struct ums_session, wake_reader)->reader);
}

void ums_watch_init(struct ums_session *s)
{
	INIT_KFIFO(s->notices);
	init_waitqueue_head(&s->reader);
	init_irq_work(&s->wake_reader, ums_wake_reader);
}

static bool ums_has_notice(struct ums_session *s)
{
	return !kfifo_is_empty(&s->notices) || READ_ONCE(s->lost);
}

/* Up to `room` notices, those that were lost first. Returns how many. */
static unsigned int ums_take(struct ums_session *s, struct ums_notice *to, unsigned int room)
{
	unsigned int n = 0;

	raw_spin_lock_irq(&s->lock);
	if (s->lost) {
		to[n++] = (struct ums_notice){.kind = UMS_NOTICE_LOST, .call = s->lost};
		s->lost = 0;
	}
	n += kfifo_out(&s->notices, to + n, room - n);
	raw_spin_unlock_irq(&s->lock);
	return n;
}

ssize_t ums_read(struct file *file, char __user *to, size_t size, loff_t *unused)
{
	struct ums_session *s = file->private_data;
	struct ums_notice notices[16];
	unsigned int n, room = min(size / sizeof(notices[0]), ARRAY_SIZE(notices));
	int error = ums_session_check(s);

	if (error)
		return error;
	if (!room)
		return -EINVAL;
	while (!(n = ums_take(s, notices, room))) {
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		error = wait_event_interruptible(s->reader,
						 ums_has_notice(s) || READ_ONCE(s->over));
		if (error)
			return error;
		if (READ_ONCE(s->over))
			return -ECANCELED;
	}
	if (copy_to_user(to, notices, n * sizeof(notices[0]))) {
		raw_spin_lock_irq(&s->lock);
		s->lost += n;
		raw_spin_unlock_irq(&s->lock);
		return -EFAULT;
	}
	return n * sizeof(notices[0]);
}

__poll_t ums_poll(struct file *file, struct poll_table_struct *table)
{
	struct ums_session *s = file->private_data;

	poll_wait(file, &s->reader, table);
	if (READ_ONCE(s->over))
		return EPOLLERR | EPOLLHUP;
	return ums_has_notice(s) ? EPOLLIN | EPOLLRDNORM : 0;
}

/* The page of the thread whose id is the offset in pages. */
int ums_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ums_session *s = file->private_data;
	struct ums_thread *t;
	int error = ums_session_check(s);

	if (error)
		return error;
	if (vma->vm_end - vma->vm_start != PAGE_SIZE || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_pgoff > U32_MAX)
		return -ENXIO;
	t = ums_thread_find(s, vma->vm_pgoff);
	if (!t)
		return -ENXIO;
	error = -ENXIO;
	if (t->page) {
		/* Not in a fork()ed process: it would write there for its parent. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
		vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
#else
		vma->vm_flags |= VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP;
#endif
		error = vm_insert_page(vma, vma->vm_start, t->page);
	}
	ums_thread_put(t);
	return error;
}
