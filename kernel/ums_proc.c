// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * ums_proc.c - /proc/ums/<process>/schedulers/<thread>/{info,workers}, for the user alone.
 *
 * A process with several sessions has <process>-2 and so on beside. The workers of a scheduler,
 * those that it was the last to execute, are lines of a file and not files: an execution would have
 * to move a file, and may have 20,000 of them to move.
 */
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "ums.h"

static struct proc_dir_entry *ums_root;
static DEFINE_MUTEX(ums_named_lock);
static LIST_HEAD(ums_named); /* the sessions that have a directory; under ums_named_lock */

static const char *const ums_states[] = {
	[UMS_QUEUED] = "queued",       [UMS_OWNED] = "owned", [UMS_RUNNING] = "running",
	[UMS_BLOCKED] = "blocked",     [UMS_LOOSE] = "loose", [UMS_ENDED] = "ended",
	[UMS_RETURNING] = "returning", [UMS_FREE] = "free",
};

static int ums_show_scheduler(struct seq_file *m, void *unused)
{
	struct ums_thread *s = m->private;
	u64 switches, last, mean;
	u32 worker;

	raw_spin_lock_irq(&s->session->lock);
	worker = s->running ? s->running->id : 0;
	switches = s->switches;
	last = s->last_switch_ns;
	mean = switches ? div64_u64(s->switch_ns, switches) : 0;
	raw_spin_unlock_irq(&s->session->lock);
	seq_printf(m, "thread: %u\nstate: %s\nworker: %u\nswitches: %llu\n", s->id,
		   worker ? "running" : "idle", worker, switches);
	seq_printf(m, "last switch ns: %llu\nmean switch ns: %llu\n", last, mean);
	return 0;
}

static int ums_show_workers(struct seq_file *m, void *unused)
{
	struct ums_thread *s = m->private, *w;
	unsigned long id;

	rcu_read_lock();
	xa_for_each (&s->session->threads, id, w) {
		if (w->role != UMS_WORKER || READ_ONCE(w->last_scheduler) != s->id)
			continue;
		/* No lock: the numbers of a worker need not be of one moment. */
		seq_printf(m, "%u %s switches %llu yields %llu blocks %llu running ns %llu\n",
			   w->id, ums_states[READ_ONCE(w->state)], READ_ONCE(w->switches),
			   READ_ONCE(w->yields), READ_ONCE(w->blocks), READ_ONCE(w->running_ns));
	}
	rcu_read_unlock();
	return 0;
}

static struct proc_dir_entry *ums_make(struct ums_session *s, const char *name,
				       struct proc_dir_entry *parent)
{
	struct proc_dir_entry *directory = proc_mkdir_mode(name, 0500, parent);

	if (directory)
		proc_set_user(directory, s->user->uid, GLOBAL_ROOT_GID);
	return directory;
}

/* The first name that no other session has. */
static void ums_name(struct ums_session *s, char *name, size_t size)
{
	struct ums_session *other;
	int length;

	s->number = 1;
	mutex_lock(&ums_named_lock);
again:
	list_for_each_entry (other, &ums_named, named) {
		if (pid_nr(other->process) == pid_nr(s->process) && other->number == s->number) {
			s->number++;
			goto again;
		}
	}
	list_add(&s->named, &ums_named);
	mutex_unlock(&ums_named_lock);
	length = snprintf(name, size, "%d", pid_nr(s->process));
	if (s->number > 1)
		snprintf(name + length, size - length, "-%u", s->number);
}

/* Its name is free again. */
static void ums_unname(struct ums_session *s)
{
	proc_remove(s->directory);
	s->directory = NULL;
	mutex_lock(&ums_named_lock);
	list_del(&s->named);
	mutex_unlock(&ums_named_lock);
}

/* Under session->proc_lock. */
static int ums_name_session(struct ums_session *s)
{
	char name[24];

	ums_name(s, name, sizeof(name));
	s->directory = ums_make(s, name, ums_root);
	s->schedulers = s->directory ? ums_make(s, "schedulers", s->directory) : NULL;
	if (s->schedulers)
		return 0;
	ums_unname(s);
	return -ENOMEM;
}

/* Under session->proc_lock. */
static int ums_name_scheduler(struct ums_thread *t)
{
	struct ums_session *s = t->session;
	struct proc_dir_entry *info, *workers;
	char name[12];

	snprintf(name, sizeof(name), "%u", t->id);
	t->directory = ums_make(s, name, s->schedulers);
	if (!t->directory)
		return -ENOMEM;
	info = proc_create_single_data("info", 0400, t->directory, ums_show_scheduler, t);
	workers = proc_create_single_data("workers", 0400, t->directory, ums_show_workers, t);
	if (!info || !workers) {
		proc_remove(t->directory);
		t->directory = NULL;
		return -ENOMEM;
	}
	proc_set_user(info, s->user->uid, GLOBAL_ROOT_GID);
	proc_set_user(workers, s->user->uid, GLOBAL_ROOT_GID);
	return 0;
}

/* By the scheduler itself. */
int ums_proc_add(struct ums_thread *t)
{
	struct ums_session *s = t->session;
	int error = 0;

	mutex_lock(&s->proc_lock);
	if (READ_ONCE(s->over))
		error = -ECANCELED;
	else if (!s->directory)
		error = ums_name_session(s);
	if (!error)
		error = ums_name_scheduler(t);
	mutex_unlock(&s->proc_lock);
	return error;
}

/* Waits for the readers. */
void ums_proc_remove(struct ums_thread *t)
{
	mutex_lock(&t->session->proc_lock);
	if (t->session->directory) /* Else it went with that. */
		proc_remove(t->directory);
	t->directory = NULL;
	mutex_unlock(&t->session->proc_lock);
}

/* The session is over. With its last descriptor its name goes, for another of the process. */
void ums_proc_end(struct ums_session *s)
{
	mutex_lock(&s->proc_lock);
	if (s->directory)
		ums_unname(s);
	mutex_unlock(&s->proc_lock);
}

int ums_proc_init(void)
{
	ums_root = proc_mkdir("ums", NULL);
	return ums_root ? 0 : -ENOMEM;
}

void ums_proc_exit(void)
{
	proc_remove(ums_root);
}
