// SPDX-License-Identifier: MIT
#include "linux_ums/scheduler.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

namespace ums::linux_names {

namespace {

thread_local scheduler* own = nullptr;

void run_entry(void* of, void*) {
    auto& s = *static_cast<scheduler*>(of);
    while (s.entry(s.argument) >= 0) {
    }
    s.is_over = true;
    ums_stack_switch(s.stack, s.procedures, nullptr);  // For good.
}

// What the worker did that was executed. If it blocked it may be ready again, or run elsewhere: what
// collect() noted is newer.
void come_back(scheduler& s, bool has_yielded) {
    if (!has_yielded) return;
    body& b = *s.executes;
    const locked hold;
    if (b.has_returned) {
        end(*b.runs);
        bodies().add_idle(b);
    } else {
        make_ready(*b.runs, *s.serves);
    }
}

// The scheduler's procedure: its frames go with each execution; those of entry() stay on their stack.
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

// Ready, or an error. Requires: the lock.
int find_ready(ums_pid_t pid, worker*& found) {
    found = all().find_worker(pid);
    if (found == nullptr) return -EBADF;
    return found->is == worker::state::ready ? 0 : -EACCES;
}

// A thread for the worker, which is not ready any more. Requires: the lock, let go of meanwhile.
int begin(worker& w, locked& hold) {
    body* const b = bodies().may_take() ? bodies().take(hold) : nullptr;
    if (b == nullptr) {
        // To the end, so that those with a thread come first.
        make_ready(w, *w.from);
        return bodies().has_any() ? -EACCES : -EAGAIN;
    }
    w.in = b;
    b->runs = &w;
    return 0;
}

int execute(int number, ums_pid_t pid) {
    scheduler* const s = own;
    if (s == nullptr || s->of->number != number) return -EPERM;
    s->seen.leave_out(pid);
    {
        locked hold;
        worker* w = nullptr;
        if (const int failed = find_ready(pid, w); failed != 0) return failed;
        take(*w);
        if (w->in == nullptr)
            if (const int failed = begin(*w, hold); failed != 0) return failed;
        s->executes = w->in;
    }
    s->outcome = 0;
    ums_stack_switch(s->stack, s->procedures, nullptr);  // The procedure executes it.
    if (s->outcome == 0) return 0;
    // Somebody suspended or ended its thread by the native names.
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
            s.of->schedulers.push_back(&s);
            ++s.serves->schedulers;
        }
        s.tid = ::gettid();
        s.entry = entry;
        s.argument = argument;
        const int failed = run(s);
        const locked hold;
        std::erase(s.of->schedulers, &s);
        --s.serves->schedulers;
        s.serves->became_ready.notify_all();  // It may have been woken for a worker it left there.
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
            if (s->of->is_released) return true;
            return (found = s->seen.refresh(*s->serves)) != nullptr;
        };
        if (!look()) {
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
