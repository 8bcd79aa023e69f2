// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * ums_worker.c - threads that others execute: lists, workers, schedulers.
 *
 * A worker's life, by state; all changes are under session->lock:
 *
 *   queued     it waits on its list; a dequeue makes it owned
 *   owned      it waits; an execute makes it running
 *   running    a yield makes it owned, a block blocked; its scheduler waits, and is told of both
 *   blocked    in the kernel; returning once the kernel runs it again
 *   returning  from a block, in the kernel still; blocked if it blocks again in the same call
 *   loose      back from a block, in user mode, beside its scheduler; queued by its next yield
 *   ended      its thread is gone; on its list until that is dequeued
 *   free       its list or session is gone: it takes no part any more
 *
 * A worker that was entered with UMS_HOLD goes from returning to queued and waits where it is, on
 * its way back to user mode. Another goes on, with its signal.
 *
 * A worker that waits and gets a signal runs the handler, in its state. The interrupted call goes
 * on waiting if it is made again, by the kernel (SA_RESTART) or the program. A held one is not held
 * any more; after a stop without a handler it is.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "ums.h"

/* ---- lists ---------------------------------------------------------------------------------- */

struct ums_list {
	struct kref refs;
	struct ums_session *session;
	struct list_head all; /* in session->lists */
	wait_queue_head_t wait;
	/* Under session->lock: */
	struct list_head ready;
	bool closed;
};

static void ums_list_release(struct kref *refs)
{
	struct ums_list *l = container_of(refs, struct ums_list, refs);

	mutex_lock(&l->session->lists_lock);
	list_del(&l->all);
	mutex_unlock(&l->session->lists_lock);
	ums_uncharge(l->session->user);
	ums_session_put(l->session);
	kfree(l);
}

static void ums_list_put(struct ums_list *l)
{
	kref_put(&l->refs, ums_list_release);
}

/*
 * Under session->lock; the caller wakes the list afterwards. False: there is nobody to take it any
 * more, and the worker is free.
 */
static bool ums_queue(struct ums_thread *w, enum ums_state state)
{
	if (w->list->closed || w->session->over) {
		w->state = UMS_FREE;
		return false;
	}
	w->state = state;
	list_add_tail(&w->node, &w->list->ready);
	return true;
}

/*
 * Lets every worker go that is queued and that nobody can take any more, and drops those that have
 * ended.
 */
static void ums_list_empty(struct ums_list *l)
{
	struct ums_session *s = l->session;
	struct ums_thread *w;
	bool ended;

	for (;;) {
		raw_spin_lock_irq(&s->lock);
		w = list_first_entry_or_null(&l->ready, struct ums_thread, node);
		if (!w) {
			raw_spin_unlock_irq(&s->lock);
			return;
		}
		list_del_init(&w->node);
		ended = w->state == UMS_ENDED;
		if (!ended) {
			kref_get(&w->refs);
			w->state = UMS_FREE;
		}
		raw_spin_unlock_irq(&s->lock);
		if (!ended)
			wake_up(&w->wait);
		ums_thread_put(w);
	}
}

static int ums_list_close(struct inode *inode, struct file *file)
{
	struct ums_list *l = file->private_data;

	raw_spin_lock_irq(&l->session->lock);
	l->closed = true;
	raw_spin_unlock_irq(&l->session->lock);
	ums_list_empty(l);
	ums_list_put(l);
	return 0;
}

static bool ums_list_is_ready(struct ums_list *l)
{
	return !list_empty_careful(&l->ready) || READ_ONCE(l->session->over);
}

static __poll_t ums_list_poll(struct file *file, struct poll_table_struct *table)
{
	struct ums_list *l = file->private_data;

	poll_wait(file, &l->wait, table);
	if (READ_ONCE(l->session->over))
		return EPOLLERR | EPOLLHUP;
	return ums_list_is_ready(l) ? EPOLLIN | EPOLLRDNORM : 0;
}

#define UMS_AT_ONCE 32

static unsigned int ums_list_take(struct ums_list *l, struct ums_item *to, unsigned int room)
{
	struct ums_thread *ended[UMS_AT_ONCE];
	struct ums_thread *w;
	unsigned int n = 0, ends = 0;

	raw_spin_lock_irq(&l->session->lock);
	while (n < room && !list_empty(&l->ready)) {
		w = list_first_entry(&l->ready, struct ums_thread, node);
		list_del_init(&w->node);
		to[n++] = (struct ums_item){
			.context = w->context, .worker = w->id, .ended = w->state == UMS_ENDED};
		if (w->state == UMS_ENDED)
			ended[ends++] = w;
		else
			w->state = UMS_OWNED;
	}
	raw_spin_unlock_irq(&l->session->lock);
	while (ends)
		ums_thread_put(ended[--ends]);
	return n;
}

static long ums_dequeue(struct ums_list *l, struct ums_dequeue __user *user)
{
	struct ums_item items[UMS_AT_ONCE];
	struct ums_dequeue d;
	unsigned int n;
	long error = 0;

	if (copy_from_user(&d, user, sizeof(d)))
		return -EFAULT;
	if (d.pad || !d.room)
		return -EINVAL;
	d.room = min_t(u32, d.room, UMS_AT_ONCE);
	while (!(n = ums_list_take(l, items, d.room))) {
		if (!d.timeout)
			return -EAGAIN;
		if (d.timeout < 0)
			error = wait_event_interruptible(l->wait, ums_list_is_ready(l));
		else
			error = wait_event_interruptible_hrtimeout(l->wait, ums_list_is_ready(l),
								   ns_to_ktime(d.timeout));
		/* Made again, it would wait for the whole time again. */
		if (error == -ERESTARTSYS && d.timeout > 0)
			error = -EINTR;
		if (!error && READ_ONCE(l->session->over))
			error = -ECANCELED;
		if (error)
			return error;
	}
	if (copy_to_user(u64_to_user_ptr(d.items), items, n * sizeof(items[0])))
		return -EFAULT;
	return n;
}

static long ums_list_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct ums_list *l = file->private_data;
	int error = ums_session_check(l->session);

	if (error)
		return error;
	return command == UMS_IOC_DEQUEUE ? ums_dequeue(l, (void __user *)arg) : -ENOTTY;
}

static const struct file_operations ums_list_file = {
	.owner = THIS_MODULE,
	.release = ums_list_close,
	.poll = ums_list_poll,
	.unlocked_ioctl = ums_list_ioctl,
};

long ums_list_create(struct ums_session *s)
{
	struct ums_list *l;
	int descriptor;

	if (ums_charge(s->user))
		return -EDQUOT;
	l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	if (!l) {
		ums_uncharge(s->user);
		return -ENOMEM;
	}
	kref_init(&l->refs);
	kref_get(&s->refs);
	l->session = s;
	INIT_LIST_HEAD(&l->ready);
	init_waitqueue_head(&l->wait);
	mutex_lock(&s->lists_lock);
	list_add(&l->all, &s->lists);
	mutex_unlock(&s->lists_lock);
	descriptor = anon_inode_getfd("[ums list]", &ums_list_file, l, O_RDWR | O_CLOEXEC);
	if (descriptor < 0)
		ums_list_put(l);
	return descriptor;
}

/* With a reference, or NULL if the descriptor is not one of a list of the session. */
static struct ums_list *ums_list_get(struct ums_session *s, int descriptor)
{
	struct file *file = fget(descriptor);
	struct ums_list *l = NULL;

	if (!file)
		return NULL;
	if (file->f_op == &ums_list_file) {
		l = file->private_data;
		if (l->session == s)
			kref_get(&l->refs);
		else
			l = NULL;
	}
	fput(file);
	return l;
}

/* ---- what a scheduler is told --------------------------------------------------------------- */

/* Under session->lock. The worker and its scheduler let go of each other. */
static struct ums_thread *ums_part(struct ums_thread *w)
{
	struct ums_thread *s = w->scheduler;

	if (s) {
		w->scheduler = NULL;
		s->running = NULL;
	}
	return s;
}

/* Under session->lock. Returns the scheduler, which the caller wakes, or NULL. */
static struct ums_thread *ums_tell(struct ums_thread *w, u32 reason, s64 call, u64 param)
{
	struct ums_thread *s = ums_part(w);

	if (s) {
		s->event = (struct ums_execute){.worker = w->id,
						.reason = reason,
						.call = call,
						.param = param,
						.context = w->context,
						.when = ktime_get_ns()};
		smp_store_release(&s->has_event, true); /* pairs with ums_execute_is_over() */
	}
	return s;
}

/* Both sides of a switch are about to sleep: the woken thread may have this processor. */
static void ums_hand_over(struct ums_thread *t)
{
	__wake_up_sync(&t->wait, TASK_NORMAL);
}

static void ums_wake_thread(struct irq_work *work)
{
	wake_up(&container_of(work, struct ums_thread, wake)->wait);
}

/* ---- a worker's side ------------------------------------------------------------------------ */

static bool ums_may_run(struct ums_thread *w)
{
	enum ums_state state = READ_ONCE(w->state);

	return state == UMS_RUNNING || state == UMS_FREE;
}

/*
 * Waits to be executed; the caller has set w->parked before the state said so. Not a block: nobody
 * is told.
 */
static long ums_park(struct ums_thread *w)
{
	long error = wait_event_interruptible(w->wait, ums_may_run(w));
	struct ums_thread *s;
	u64 now = ktime_get_ns();

	w->parked = false;
	if (error)
		return error;
	if (READ_ONCE(w->state) == UMS_FREE) {
		ums_thread_leave(w);
		return -ECANCELED;
	}
	raw_spin_lock_irq(&w->session->lock);
	w->since = now;
	s = w->scheduler;
	if (s) {
		s->last_switch_ns = now - s->started;
		s->switch_ns += s->last_switch_ns;
		s->switches++;
	}
	raw_spin_unlock_irq(&w->session->lock);
	return 0;
}

/* The same in a call, which may be interrupted and then goes on when it is made again. */
static long ums_park_in_call(struct ums_thread *w)
{
	long error = ums_park(w);

	if (error != -ECANCELED)
		w->interrupted = error != 0;
	return error;
}

static void ums_worker_out(struct preempt_notifier *notifier, struct task_struct *next)
{
	struct ums_thread *w = container_of(notifier, struct ums_thread, notifier);
	struct ums_thread *s;
	unsigned int state = READ_ONCE(current->__state);
	unsigned long flags;
	u64 now;

	if (state == TASK_DEAD) {
		ums_thread_died(w);
		return;
	}
	if (w->left || w->parked)
		return;
	if (w->held && state & (__TASK_STOPPED | __TASK_TRACED | TASK_FROZEN))
		w->hold_again = true;
	if (!ums_has_blocked())
		return;
	raw_spin_lock_irqsave(&w->session->lock, flags);
	if (w->state == UMS_RETURNING) { /* its scheduler knows already */
		w->state = UMS_BLOCKED;
	} else if (w->state == UMS_RUNNING) {
		now = ktime_get_ns();
		w->running_ns += now - w->since;
		w->blocks++;
		w->state = UMS_BLOCKED;
		s = ums_tell(w, UMS_EVENT_BLOCKED, ums_current_call(), 0);
		if (s)
			irq_work_queue(&s->wake);
	}
	raw_spin_unlock_irqrestore(&w->session->lock, flags);
}

static void ums_worker_in(struct preempt_notifier *notifier, int cpu)
{
	struct ums_thread *w = container_of(notifier, struct ums_thread, notifier);
	unsigned long flags;

	if (w->left || w->parked)
		return;
	raw_spin_lock_irqsave(&w->session->lock, flags);
	if (w->state == UMS_BLOCKED)
		w->state = UMS_RETURNING;
	raw_spin_unlock_irqrestore(&w->session->lock, flags);
	if (w->state == UMS_RETURNING || w->hold_again || ums_is_foreign(w))
		ums_at_return(w);
}

static struct preempt_ops ums_worker_ops = {
	.sched_in = ums_worker_in,
	.sched_out = ums_worker_out,
};

/* On the way back to user mode. */
void ums_worker_return(struct ums_thread *w)
{
	struct ums_session *s = w->session;
	bool queued = false, loose = false;

	w->parked = w->hold;
	raw_spin_lock_irq(&s->lock);
	if (w->state == UMS_RETURNING) {
		if (w->hold) {
			queued = ums_queue(w, UMS_QUEUED);
		} else {
			w->state = UMS_LOOSE;
			loose = true;
		}
	}
	raw_spin_unlock_irq(&s->lock);
	if (queued)
		wake_up(&w->list->wait);
	if (w->hold) {
		w->hold_again = false;
		/* A signal: it is handled, or stops the thread, before the thread runs on. */
		w->held = ums_park(w) == -ERESTARTSYS;
	} else if (loose && w->signal) {
		send_sig(w->signal, current, 1);
	}
}

/* The scheduler's and the list's part of a worker's end. */
static void ums_worker_gone(struct ums_thread *w)
{
	struct ums_thread *s;
	bool queued = false;

	raw_spin_lock_irq(&w->session->lock);
	s = ums_tell(w, UMS_EVENT_ENDED, -1, 0);
	if (s)
		kref_get(&s->refs);
	list_del_init(&w->node);
	if (w->state != UMS_FREE && ums_queue(w, UMS_ENDED)) {
		kref_get(&w->refs);
		queued = true;
	}
	raw_spin_unlock_irq(&w->session->lock);
	if (queued)
		wake_up(&w->list->wait);
	if (s) {
		ums_hand_over(s);
		ums_thread_put(s);
	}
}

static long ums_worker_start(struct ums_session *s, struct ums_worker *asked)
{
	struct ums_list *l = ums_list_get(s, asked->list);
	struct ums_thread *w;
	bool queued;
	int error;

	if (!l)
		return -EBADF;
	w = ums_thread_alloc(s, UMS_WORKER);
	if (IS_ERR(w)) {
		ums_list_put(l);
		return PTR_ERR(w);
	}
	w->list = l;
	w->context = asked->context;
	w->signal = asked->signal;
	w->hold = asked->flags & UMS_HOLD;
	w->state = UMS_OWNED;
	w->parked = true;
	error = ums_thread_register(w, &ums_worker_ops);
	if (error) {
		ums_thread_put(w);
		return error;
	}
	raw_spin_lock_irq(&s->lock);
	queued = w->state == UMS_OWNED && ums_queue(w, UMS_QUEUED);
	raw_spin_unlock_irq(&s->lock);
	if (queued)
		wake_up(&l->wait);
	return ums_park_in_call(w);
}

long ums_worker_enter(struct ums_session *s, struct ums_worker __user *user)
{
	struct ums_thread *w = ums_self(s, UMS_WORKER);
	struct ums_worker asked;

	if (w && w->interrupted) {
		w->parked = true;
		return ums_park_in_call(w);
	}
	if (copy_from_user(&asked, user, sizeof(asked)))
		return -EFAULT;
	if (asked.flags & ~UMS_HOLD || asked.pad || (asked.signal && !ums_is_signal(asked.signal)))
		return -EINVAL;
	return ums_worker_start(s, &asked);
}

long ums_worker_yield(struct ums_session *session, u64 param)
{
	struct ums_thread *w = ums_self(session, UMS_WORKER);
	struct ums_thread *s = NULL;
	bool queued = false;

	if (!w)
		return -ESRCH;
	w->parked = true;
	w->held = false;
	raw_spin_lock_irq(&session->lock);
	if (w->interrupted) {
		/* It has yielded, and waits on. */
	} else if (w->state == UMS_RUNNING) {
		w->running_ns += ktime_get_ns() - w->since;
		w->yields++;
		s = ums_tell(w, UMS_EVENT_YIELDED, -1, param);
		if (s) {
			kref_get(&s->refs);
			w->state = UMS_OWNED;
		} else {
			queued = ums_queue(w, UMS_QUEUED);
		}
	} else if (w->state == UMS_LOOSE) {
		queued = ums_queue(w, UMS_QUEUED);
	}
	raw_spin_unlock_irq(&session->lock);
	if (s) {
		ums_hand_over(s);
		ums_thread_put(s);
	}
	if (queued)
		wake_up(&w->list->wait);
	return ums_park_in_call(w);
}

long ums_worker_leave(struct ums_session *s)
{
	struct ums_thread *w = ums_self(s, UMS_WORKER);

	if (!w)
		return -ESRCH;
	ums_thread_leave(w);
	return 0;
}

/* ---- a scheduler's side --------------------------------------------------------------------- */

static void ums_scheduler_out(struct preempt_notifier *notifier, struct task_struct *next)
{
	if (READ_ONCE(current->__state) == TASK_DEAD)
		ums_thread_died(container_of(notifier, struct ums_thread, notifier));
}

static void ums_scheduler_in(struct preempt_notifier *notifier, int cpu)
{
	struct ums_thread *s = container_of(notifier, struct ums_thread, notifier);

	if (!s->left && ums_is_foreign(s))
		ums_at_return(s);
}

static struct preempt_ops ums_scheduler_ops = {
	.sched_in = ums_scheduler_in,
	.sched_out = ums_scheduler_out,
};

long ums_scheduler_enter(struct ums_session *session)
{
	struct ums_thread *s = ums_thread_alloc(session, UMS_SCHEDULER);
	int error;

	if (IS_ERR(s))
		return PTR_ERR(s);
	error = ums_thread_register(s, &ums_scheduler_ops);
	if (error) {
		ums_thread_put(s);
		return error;
	}
	error = ums_proc_add(s);
	if (error)
		ums_thread_leave(s);
	return error;
}

long ums_scheduler_leave(struct ums_session *session)
{
	struct ums_thread *s = ums_self(session, UMS_SCHEDULER);

	if (!s)
		return -ESRCH;
	ums_thread_leave(s);
	return 0;
}

/* Its worker runs on without it; one that has yielded to it, unheard, is queued. */
static void ums_scheduler_gone(struct ums_thread *s)
{
	struct ums_session *session = s->session;
	struct ums_thread *w;
	bool queued = false;

	raw_spin_lock_irq(&session->lock);
	if (s->running)
		ums_part(s->running);
	raw_spin_unlock_irq(&session->lock);
	/* Nobody tells it of anything any more. */
	if (!s->has_event || s->event.reason != UMS_EVENT_YIELDED)
		return;
	w = ums_thread_find(session, s->event.worker);
	if (!w)
		return;
	if (w->role == UMS_WORKER) {
		raw_spin_lock_irq(&session->lock);
		if (w->state == UMS_OWNED)
			queued = ums_queue(w, UMS_QUEUED);
		raw_spin_unlock_irq(&session->lock);
		wake_up(queued ? &w->list->wait : &w->wait);
	}
	ums_thread_put(w);
}

static bool ums_execute_is_over(struct ums_thread *s)
{
	/* Acquire: with it the event is there, as ums_tell() has written it. */
	return smp_load_acquire(&s->has_event) || READ_ONCE(s->session->over);
}

/* Under session->lock. 1 if `w` is to be woken, 0 if its execution goes on, or an error. */
static int ums_execute_begin(struct ums_thread *s, struct ums_thread *w, u32 id, u64 started)
{
	if (s->has_event || s->running) /* The call was interrupted, and is made again. */
		return (s->has_event ? s->event.worker : s->running->id) == id ? 0 : -EBUSY;
	if (!w || w->role != UMS_WORKER || w->state == UMS_ENDED || w->state == UMS_FREE)
		return -ESRCH;
	if (w->state != UMS_OWNED && w->state != UMS_QUEUED)
		return -EBUSY;
	list_del_init(&w->node);
	w->state = UMS_RUNNING;
	w->switches++;
	w->last_scheduler = s->id;
	w->scheduler = s;
	w->since = started;
	s->running = w;
	s->started = started;
	return 1;
}

long ums_execute(struct ums_session *session, struct ums_execute __user *user)
{
	struct ums_thread *s = ums_self(session, UMS_SCHEDULER);
	struct ums_thread *w;
	struct ums_execute e;
	u64 started = ktime_get_ns();
	int what, error;

	if (!s)
		return -EPERM;
	if (copy_from_user(&e, user, sizeof(e)))
		return -EFAULT;
	w = ums_thread_find(session, e.worker);
	raw_spin_lock_irq(&session->lock);
	what = session->over ? -ECANCELED : ums_execute_begin(s, w, e.worker, started);
	raw_spin_unlock_irq(&session->lock);
	if (what == 1)
		ums_hand_over(w);
	if (w)
		ums_thread_put(w);
	if (what < 0)
		return what;
	error = wait_event_interruptible(s->wait, ums_execute_is_over(s));
	if (error)
		return error;
	if (!s->has_event)
		return -ECANCELED;
	e = s->event;
	s->has_event = false;
	return copy_to_user(user, &e, sizeof(e)) ? -EFAULT : 0;
}

/* ---- both ----------------------------------------------------------------------------------- */

void ums_worker_init(struct ums_thread *t)
{
	INIT_LIST_HEAD(&t->node);
	init_waitqueue_head(&t->wait);
	init_irq_work(&t->wake, ums_wake_thread);
}

/* The thread has left the session, or is dead. */
void ums_part_gone(struct ums_thread *t)
{
	if (t->role == UMS_WORKER)
		ums_worker_gone(t);
	else if (t->role == UMS_SCHEDULER)
		ums_scheduler_gone(t);
}

/* Nobody has a reference any more. */
void ums_worker_free(struct ums_thread *t)
{
	irq_work_sync(&t->wake);
	if (t->list)
		ums_list_put(t->list);
}

/* The session is over: lets every worker go, and ends the calls that wait. */
void ums_workers_end(struct ums_session *s)
{
	struct ums_thread *t;
	struct ums_list *l;
	unsigned long id;

	rcu_read_lock();
	xa_for_each (&s->threads, id, t) {
		raw_spin_lock_irq(&s->lock);
		/* One that has ended is its list's, which has a reference. */
		if (t->role == UMS_WORKER && t->state != UMS_ENDED) {
			list_del_init(&t->node);
			t->state = UMS_FREE;
		}
		raw_spin_unlock_irq(&s->lock);
		wake_up_all(&t->wait);
	}
	rcu_read_unlock();
	mutex_lock(&s->lists_lock);
	list_for_each_entry (l, &s->lists, all)
		wake_up_all(&l->wait);
	mutex_unlock(&s->lists_lock);
}

long ums_info(struct ums_session *s, struct ums_info __user *user)
{
	struct ums_info i;
	struct ums_thread *t;

	if (copy_from_user(&i, user, sizeof(i)))
		return -EFAULT;
	t = ums_thread_find(s, i.thread);
	if (!t)
		return -ESRCH;
	raw_spin_lock_irq(&s->lock);
	i = (struct ums_info){
		.thread = t->id,
		.role = t->role,
		.state = t->state,
		.other = t->role == UMS_SCHEDULER ? (t->running ? t->running->id : 0)
						  : t->last_scheduler,
		.context = t->context,
		.switches = t->switches,
		.yields = t->yields,
		.blocks = t->blocks,
		.running_ns = t->running_ns,
		.last_switch_ns = t->last_switch_ns,
		.mean_switch_ns = t->switches ? div64_u64(t->switch_ns, t->switches) : 0,
	};
	raw_spin_unlock_irq(&s->lock);
	ums_thread_put(t);
	return copy_to_user(user, &i, sizeof(i)) ? -EFAULT : 0;
}
