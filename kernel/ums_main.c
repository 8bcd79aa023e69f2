// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * ums_main.c - the device, its sessions, and the threads that take part.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compat.h>
#include <linux/cred.h>
#include <linux/fdtable.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include <asm/syscall.h>

#include "ums.h"

static unsigned int max_per_user = 65536;
module_param(max_per_user, uint, 0644);
MODULE_PARM_DESC(max_per_user, "how many sessions, threads and lists a user may have");

struct workqueue_struct *ums_wq;

/* ---- users ---------------------------------------------------------------------------------- */

static DEFINE_MUTEX(ums_users_lock);
static LIST_HEAD(ums_users);

static struct ums_user *ums_user_get(kuid_t uid)
{
	struct ums_user *u;

	mutex_lock(&ums_users_lock);
	list_for_each_entry (u, &ums_users, node) {
		if (uid_eq(u->uid, uid))
			goto found;
	}
	u = kzalloc(sizeof(*u), GFP_KERNEL);
	if (!u)
		goto out;
	u->uid = uid;
	list_add(&u->node, &ums_users);
found:
	u->sessions++;
out:
	mutex_unlock(&ums_users_lock);
	return u;
}

static void ums_user_put(struct ums_user *u)
{
	mutex_lock(&ums_users_lock);
	if (--u->sessions == 0) {
		list_del(&u->node);
		kfree(u);
	}
	mutex_unlock(&ums_users_lock);
}

int ums_charge(struct ums_user *u)
{
	if (atomic_inc_return(&u->objects) <= READ_ONCE(max_per_user))
		return 0;
	atomic_dec(&u->objects);
	return -EDQUOT;
}

void ums_uncharge(struct ums_user *u)
{
	atomic_dec(&u->objects);
}

/* ---- threads -------------------------------------------------------------------------------- */

/*
 * All registered threads, by task: one registration a thread, so that no thread can make its
 * switches, and with them the run queue's lock, arbitrarily long. A thread finds itself without a
 * reference, because nobody else takes it off while it runs.
 */
static DEFINE_HASHTABLE(ums_tasks, 10);
static DEFINE_SPINLOCK(ums_tasks_lock);

static struct ums_thread *ums_registered(void)
{
	struct ums_thread *t, *found = NULL;

	rcu_read_lock();
	hash_for_each_possible_rcu (ums_tasks, t, by_task, (unsigned long)current) {
		if (t->task == current)
			found = t;
	}
	rcu_read_unlock();
	return found;
}

struct ums_thread *ums_self(struct ums_session *s, enum ums_role role)
{
	struct ums_thread *t = ums_registered();

	return t && t->session == s && t->role == role ? t : NULL;
}

/* With a reference, or NULL. */
struct ums_thread *ums_thread_find(struct ums_session *s, u32 id)
{
	struct ums_thread *t;

	rcu_read_lock();
	t = xa_load(&s->threads, id);
	if (t && !kref_get_unless_zero(&t->refs))
		t = NULL;
	rcu_read_unlock();
	return t;
}

static void ums_thread_release(struct kref *refs)
{
	struct ums_thread *t = container_of(refs, struct ums_thread, refs);

	irq_work_sync(&t->end);
	ums_worker_free(t);
	ums_watch_gone(t);
	put_task_struct(t->task);
	ums_uncharge(t->session->user);
	ums_session_put(t->session);
	kfree_rcu(t, rcu);
}

/* May sleep. */
void ums_thread_put(struct ums_thread *t)
{
	kref_put(&t->refs, ums_thread_release);
}

/* Nobody finds it any more, and its notifier does not run again. */
static void ums_thread_gone(struct ums_thread *t)
{
	spin_lock(&ums_tasks_lock);
	hash_del_rcu(&t->by_task);
	spin_unlock(&ums_tasks_lock);
	ums_part_gone(t);
	/* Before another thread can have its id. */
	ums_proc_remove(t);
	xa_erase(&t->session->threads, t->id);
	ums_thread_put(t);
}

static void ums_reap(struct work_struct *work)
{
	ums_thread_gone(container_of(work, struct ums_thread, reap));
}

static void ums_on_end(struct irq_work *work)
{
	queue_work(ums_wq, &container_of(work, struct ums_thread, end)->reap);
}

/*
 * From the notifier of a thread that leaves its processor for the last time. The irq_work runs on
 * this processor once interrupts are on again, and by then the dead thread's notifiers are through.
 */
void ums_thread_died(struct ums_thread *t)
{
	if (t->left)
		return;
	t->left = true;
	irq_work_queue(&t->end);
}

/* By the thread itself. */
void ums_thread_leave(struct ums_thread *t)
{
	preempt_disable();
	t->left = true;
	preempt_notifier_unregister(&t->notifier);
	preempt_enable();
	ums_thread_gone(t);
}

/* Whether the thread, which is the current one, has nothing to do with its session any more. */
bool ums_is_foreign(struct ums_thread *t)
{
	return READ_ONCE(t->session->over) || current->mm != t->session->mm;
}

/* On the way back to user mode, or in the thread's exit. */
static void ums_on_return(struct callback_head *work)
{
	struct ums_thread *t = container_of(work, struct ums_thread, on_return);

	t->return_pending = false;
	if (!t->left && !(current->flags & PF_EXITING)) {
		if (ums_is_foreign(t))
			ums_thread_leave(t);
		else if (t->role == UMS_WORKER)
			ums_worker_return(t);
		else
			ums_watch_return(t);
	}
	ums_thread_put(t);
}

/* By the thread itself: has ums_on_return() called before it runs in user mode. */
void ums_at_return(struct ums_thread *t)
{
	if (t->return_pending || t->left)
		return;
	kref_get(&t->refs);
	t->return_pending = true;
	if (task_work_add(current, &t->on_return, TWA_RESUME)) {
		/* It is exiting: ums_thread_died() has still to come, so this is not the last one. */
		t->return_pending = false;
		kref_put(&t->refs, ums_thread_release);
	}
}

/* In a notifier's sched_out: blocked, and not merely preempted. */
bool ums_has_blocked(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	return !task_is_runnable(current);
#else
	return !current->on_rq;
#endif
}

/* One that a thread can ask for. */
bool ums_is_signal(unsigned long signal)
{
	return signal && valid_signal(signal) && signal != SIGKILL && signal != SIGSTOP;
}

s64 ums_current_call(void)
{
	return (int)syscall_get_nr(current, task_pt_regs(current));
}

/* Its owner puts it, unless ums_thread_register() has succeeded. */
struct ums_thread *ums_thread_alloc(struct ums_session *s, enum ums_role role)
{
	struct ums_thread *t = ums_registered();

	if (t && !ums_is_foreign(t))
		return ERR_PTR(-EEXIST);
	if (t) /* Of a session that has just gone. */
		ums_thread_leave(t);
	if (ums_charge(s->user))
		return ERR_PTR(-EDQUOT);
	t = kzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	if (!t) {
		ums_uncharge(s->user);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&t->refs);
	kref_get(&s->refs);
	t->session = s;
	t->task = get_task_struct(current);
	t->id = task_pid_vnr(current);
	t->role = role;
	init_irq_work(&t->end, ums_on_end);
	INIT_WORK(&t->reap, ums_reap);
	init_task_work(&t->on_return, ums_on_return);
	ums_worker_init(t);
	return t;
}

/* Makes the current thread `t`, which from then on belongs to the registration. */
int ums_thread_register(struct ums_thread *t, struct preempt_ops *ops)
{
	struct ums_session *s = t->session;
	int error = xa_insert(&s->threads, t->id, t, GFP_KERNEL_ACCOUNT);

	if (error == -EBUSY) {
		/* A thread with this id has died just now. */
		flush_workqueue(ums_wq);
		error = xa_insert(&s->threads, t->id, t, GFP_KERNEL_ACCOUNT);
	}
	if (error)
		return error == -EBUSY ? -EEXIST : error;
	spin_lock(&ums_tasks_lock);
	hash_add_rcu(ums_tasks, &t->by_task, (unsigned long)current);
	spin_unlock(&ums_tasks_lock);
	preempt_notifier_init(&t->notifier, ops);
	preempt_disable();
	preempt_notifier_register(&t->notifier);
	preempt_enable();
	return 0;
}

/* ---- sessions ------------------------------------------------------------------------------- */

static void ums_session_free(struct work_struct *work)
{
	struct ums_session *s = container_of(work, struct ums_session, free);

	irq_work_sync(&s->wake_reader);
	xa_destroy(&s->threads);
	put_pid(s->process);
	mmdrop(s->mm);
	ums_uncharge(s->user);
	ums_user_put(s->user);
	kfree(s);
	module_put(THIS_MODULE);
}

static void ums_session_release(struct kref *refs)
{
	struct ums_session *s = container_of(refs, struct ums_session, refs);

	queue_work(ums_wq, &s->free);
}

void ums_session_put(struct ums_session *s)
{
	kref_put(&s->refs, ums_session_release);
}

static bool ums_is_owner(struct ums_session *s)
{
	return current->mm == s->mm && task_tgid(current) == s->process;
}

int ums_session_check(struct ums_session *s)
{
	if (!ums_is_owner(s))
		return -EPERM;
	if (READ_ONCE(s->over))
		return -ECANCELED;
	return READ_ONCE(s->attached) ? 0 : -EPROTO;
}

static int ums_open(struct inode *inode, struct file *file)
{
	struct ums_session *s;
	int error = -ENOMEM;

	/* A 32-bit program's structures and calls would have to be translated. */
	if (in_compat_syscall())
		return -EOPNOTSUPP;
	if (!current->mm)
		return -EINVAL;
	s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);
	if (!s)
		return -ENOMEM;
	s->user = ums_user_get(current_uid());
	if (!s->user)
		goto free;
	error = ums_charge(s->user);
	if (error)
		goto user;
	kref_init(&s->refs);
	INIT_WORK(&s->free, ums_session_free);
	raw_spin_lock_init(&s->lock);
	xa_init(&s->threads);
	mutex_init(&s->lists_lock);
	INIT_LIST_HEAD(&s->lists);
	mutex_init(&s->proc_lock);
	ums_watch_init(s);
	mmgrab(current->mm);
	s->mm = current->mm;
	s->process = get_pid(task_tgid(current));
	s->files = current->files;
	__module_get(THIS_MODULE);
	file->private_data = s;
	return stream_open(inode, file);

user:
	ums_user_put(s->user);
free:
	kfree(s);
	return error;
}

static void ums_session_end(struct ums_session *s)
{
	raw_spin_lock_irq(&s->lock);
	WRITE_ONCE(s->over, true);
	raw_spin_unlock_irq(&s->lock);
	wake_up_all(&s->reader);
	ums_workers_end(s);
	ums_proc_end(s);
}

static int ums_is_file(const void *file, struct file *other, unsigned int descriptor)
{
	return other == file;
}

/*
 * Each close(), and each descriptor of an exec() or exit. The session's end must not wait for
 * release(), which the calls under way put off: they may wait for what only others could do, and
 * those have no descriptor any more.
 */
static int ums_flush(struct file *file, fl_owner_t id)
{
	struct ums_session *s = file->private_data;

	if (id != s->files)
		return 0; /* of a fork()ed process */
	if (current->files == id && iterate_fd(current->files, 0, ums_is_file, file))
		return 0; /* it has another */
	ums_session_end(s);
	return 0;
}

static int ums_release(struct inode *inode, struct file *file)
{
	struct ums_session *s = file->private_data;

	ums_session_end(s);
	ums_session_put(s);
	return 0;
}

static long ums_attach(struct ums_session *s, struct ums_attach __user *user)
{
	struct ums_attach a;
	u32 version;

	if (!ums_is_owner(s))
		return -EPERM;
	if (copy_from_user(&a, user, sizeof(a)))
		return -EFAULT;
	if (a.pad)
		return -EINVAL;
	version = a.version;
	a.version = UMS_VERSION;
	if (copy_to_user(user, &a, sizeof(a)))
		return -EFAULT;
	if (version != UMS_VERSION) {
		pr_warn_ratelimited("%s[%d] speaks version %u of the interface, this module %u\n",
				    current->comm, task_tgid_nr(current), version, UMS_VERSION);
		return -EPROTONOSUPPORT;
	}
	WRITE_ONCE(s->attached, true);
	return 0;
}

static long ums_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct ums_session *s = file->private_data;
	int error;

	if (command == UMS_IOC_ATTACH)
		return ums_attach(s, (void __user *)arg);
	error = ums_session_check(s);
	if (error)
		return error;
	switch (command) {
	case UMS_IOC_WATCH:
		return ums_watch(s, arg);
	case UMS_IOC_UNWATCH:
		return ums_unwatch(s);
	case UMS_IOC_LIST_CREATE:
		return ums_list_create(s);
	case UMS_IOC_WORKER_ENTER:
		return ums_worker_enter(s, (void __user *)arg);
	case UMS_IOC_WORKER_YIELD:
		return ums_worker_yield(s, arg);
	case UMS_IOC_WORKER_LEAVE:
		return ums_worker_leave(s);
	case UMS_IOC_SCHEDULER_ENTER:
		return ums_scheduler_enter(s);
	case UMS_IOC_SCHEDULER_LEAVE:
		return ums_scheduler_leave(s);
	case UMS_IOC_EXECUTE:
		return ums_execute(s, (void __user *)arg);
	case UMS_IOC_INFO:
		return ums_info(s, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

/* No compat_ioctl: a 32-bit caller gets ENOTTY. */
static const struct file_operations ums_file = {
	.owner = THIS_MODULE,
	.open = ums_open,
	.flush = ums_flush,
	.release = ums_release,
	.read = ums_read,
	.poll = ums_poll,
	.mmap = ums_mmap,
	.unlocked_ioctl = ums_ioctl,
};

static struct miscdevice ums_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ums",
	.fops = &ums_file,
};

static int __init ums_init(void)
{
	int error;

	ums_wq = alloc_workqueue("ums", WQ_UNBOUND, 0);
	if (!ums_wq)
		return -ENOMEM;
	error = ums_proc_init();
	if (error)
		goto workqueue;
	preempt_notifier_inc();
	error = misc_register(&ums_device);
	if (error)
		goto notifier;
	return 0;

notifier:
	preempt_notifier_dec();
	ums_proc_exit();
workqueue:
	destroy_workqueue(ums_wq);
	return error;
}

static void __exit ums_exit(void)
{
	misc_deregister(&ums_device);
	destroy_workqueue(ums_wq);
	/* A thread may still be about to return from the ums_on_return() that made the module free. */
	synchronize_rcu_tasks();
	preempt_notifier_dec();
	ums_proc_exit();
}

module_init(ums_init);
module_exit(ums_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_AUTHOR("The libums developers");
MODULE_DESCRIPTION(
	"User-mode scheduling: tells of threads that block, and lets others execute them");
