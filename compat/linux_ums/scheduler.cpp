// SPDX-License-Identifier: MIT
#include "linux_ums/scheduler.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

#include "base/check.hpp"
#include "linux_ums/info_files.hpp"

namespace ums::linux_names {

namespace {

thread_local scheduler* own = nullptr;

// Notes the figures of a switch that is about to end. relaxed: a reader may get figures of slightly
// different moments.
void note_switch(scheduler& s, ums_pid_t pid, compat::nanoseconds called) {
    auto& f = s.figures;
    s.since = compat::now();
    const auto took = static_cast<std::uint64_t>(s.since - called);
    f.worker.store(pid, compat::relaxed);
    f.switches.fetch_add(1, compat::relaxed);
    f.last_ns.store(took, compat::relaxed);
    f.all_ns.fetch_add(took, compat::relaxed);
}

void run_entry(void* of, void*) {
    auto& s = *static_cast<scheduler*>(of);
    while (s.entry(s.argument) >= 0) {
    }
    s.is_over = true;
    ums_stack_switch(s.stack, s.procedures, nullptr);  // Does not return.
}

// Notes what the executed worker did. If it blocked, it may be ready again by now, or run
// elsewhere, or have ended: then what collect() noted is newer and stands.
void come_back(scheduler& s, bool has_yielded) {
    // relaxed: the thread's own figure.
    const ums_pid_t pid = s.figures.worker.exchange(0, compat::relaxed);
    const locked hold;
    worker* const w = all().find_worker(pid);
    if (w == nullptr) return;
    w->running_ns += static_cast<std::uint64_t>(compat::now() - s.since);
    UMS_DEBUG_CHECK(!has_yielded || (w->is == worker::state::running && w->in != nullptr),
                    "a worker yielded that does not run");
    if (!has_yielded) {
        if (w->is == worker::state::running && w->switches == s.turn)
            w->is = worker::state::blocked;
    } else if (w->in->has_returned) {
        body& b = *w->in;
        end(*w);
        bodies().add_idle(b);
    } else {
        make_ready(*w, *s.serves);
    }
}

// The scheduler's procedure. Its frames are discarded at each execution; those of entry() stay on
// their stack.
void procedure(ums_reason_t reason, std::uintptr_t, void* parameter) {
    if (reason == UMS_REASON_STARTUP) own = static_cast<scheduler*>(parameter);
    scheduler& s = *own;
    if (reason != UMS_REASON_STARTUP) come_back(s, reason == UMS_REASON_YIELD);
    for (;;) {
        ums_stack_switch(s.procedures, s.stack, nullptr);
        if (s.is_over) return;
        int failed = 0;
        do failed = ums_worker_execute(s.executes->context);
        while (failed == -EAGAIN);
        s.outcome = failed;
    }
}

int run(scheduler& s) {
    constexpr std::size_t stack_bytes = 1024 * 1024;
    int failed = ums_stack_adopt(&s.procedures);
    if (failed == 0) failed = ums_stack_create(&s.stack, stack_bytes, run_entry, &s);
    if (failed == 0) {
        ums_scheduler_options_t options = UMS_SCHEDULER_OPTIONS_INIT;
        options.list = s.serves->items;
        options.procedure = procedure;
        options.parameter = &s;
        scheduler* const outer = own;
        failed = ums_scheduler_enter(&options);
        own = outer;
    }
    ums_stack_destroy(s.stack);
    ums_stack_destroy(s.procedures);
    return failed;
}

// Finds a ready worker, or returns an error. Requires: the lock.
int find_ready(ums_pid_t pid, worker*& found) {
    found = all().find_worker(pid);
    if (found == nullptr) return -EBADF;
    return found->is == worker::state::ready ? 0 : -EACCES;
}

// Whether the thread gets NULL. release_ums() did not wait for the list of a thread that had not
// entered by then, so that thread serves its list until no worker is left. Requires: the lock.
bool is_dismissed(const scheduler& s) {
    return s.of->is_released && (!s.is_late || s.serves->left == 0);
}

// Gives a thread to the worker, which then is no longer ready. Requires: the lock, which this
// releases meanwhile.
int begin(worker& w, locked& hold) {
    body* const b = bodies().may_take() ? bodies().take(hold) : nullptr;
    if (b == nullptr) {
        // The worker goes to the end, so that workers that already have a thread come first.
        make_ready(w, *w.from);
        return bodies().has_any() ? -EACCES : -EAGAIN;
    }
    UMS_DEBUG_CHECK(w.in == nullptr && b->runs == nullptr, "a worker was given two bodies");
    w.in = b;
    b->runs = &w;
    return 0;
}

int execute(int number, ums_pid_t pid) {
    scheduler* const s = own;
    if (s == nullptr || s->of->number != number) return -EPERM;
    const compat::nanoseconds called = compat::now();
    info_files::write_if_old(called);
    s->seen.leave_out(pid);
    {
        locked hold;
        worker* w = nullptr;
        if (const int failed = find_ready(pid, w); failed != 0) return failed;
        take(*w);
        if (w->in == nullptr)
            if (const int failed = begin(*w, hold); failed != 0) return failed;
        s->executes = w->in;
        s->turn = ++w->switches;
        w->executed_by = s->tid;
    }
    s->outcome = 0;
    note_switch(*s, pid, called);
    ums_stack_switch(s->stack, s->procedures, nullptr);  // The procedure executes it.
    if (s->outcome == 0) return 0;
    s->figures.worker.store(0, compat::relaxed);  // relaxed: as above.
    // The program suspended or ended its thread by the native names.
    if (s->outcome != -EACCES) return -EBADF;
    const locked hold;
    if (s->executes->runs != nullptr) make_ready(*s->executes->runs, *s->serves);
    return -EACCES;
}

}  // namespace

}  // namespace ums::linux_names

using namespace ums::linux_names;

int enter_ums_scheduling_mode(int number, int (*entry)(void*), void* argument,
                              ums_pid_t list_number) {
    return guarded([&] {
        if (entry == nullptr) return -EINVAL;
        scheduler s;
        {
            const locked hold;
            s.of = all().find_handle(number);
            s.serves = all().find_list(list_number);
            if (s.of == nullptr || s.serves == nullptr) return -EBADF;
            s.tid = ::gettid();
            s.is_late = s.of->is_released;
            s.of->schedulers.push_back(&s);
            ++s.serves->schedulers;
        }
        s.entry = entry;
        s.argument = argument;
        const int failed = run(s);
        {
            const locked hold;
            [[maybe_unused]] const std::size_t left = std::erase(s.of->schedulers, &s);
            UMS_DEBUG_CHECK(left == 1 && s.serves->schedulers != 0,
                            "a scheduler thread left that had not entered");
            --s.serves->schedulers;
            // Another scheduler may have been woken for a worker that this one left there.
            s.serves->became_ready.notify_all();
        }
        info_files::forget(number, s.tid);
        return failed;
    });
}

completion_list_data* dequeue_ums_completion_list_items(int number) {
    scheduler* const s = own;
    completion_list_data* found = nullptr;
    guarded([&] {
        if (s == nullptr || s->of->number != number) return -EPERM;
        locked hold;
        const auto look = [&] {
            collect(*s->serves);
            bodies().collect_new();
            if (is_dismissed(*s)) return true;
            return (found = s->seen.refresh(*s->serves)) != nullptr;
        };
        if (!look()) {
            hold.unlock();
            info_files::write_if_old(ums::compat::now());
            hold.lock();
            event::waiter self{s->serves->became_ready};
            for (self.arm(); !look(); self.arm()) {
                hold.unlock();
                self.wait();
                hold.lock();
            }
        }
        const auto dead = bodies().take_excess();
        hold.unlock();
        for (const ums_worker_t one : dead) (void)ums_worker_join(one, nullptr);
        return found != nullptr ? 0 : -EBADF;
    });
    return found;
}

int execute_ums_thread(int number, ums_pid_t pid, completion_list_data*) {
    return guarded([&] { return execute(number, pid); });
}
int execute_ums_thread_by_id(int number, ums_pid_t pid, ums_pid_t) {
    return guarded([&] { return execute(number, pid); });
}
