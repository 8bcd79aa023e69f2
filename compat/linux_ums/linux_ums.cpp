// SPDX-License-Identifier: MIT

// The modules' names on ums/ums_scheduling.h.
//
// A list is a completion list and the workers that came from it and could run. Whoever asks first moves what is on the
// completion list over; a yield puts the worker back. A list's epoch moves on when a worker is added to either
// and when a handle is released; who finds no worker waits for it to move from what it was before the
// look. So nobody sleeps beside a worker that could run.
//
// One lock guards everything. It is never held while a worker runs, nor while the UMS API is called that may
// call us back, and a worker takes it in critical regions only.
//
// A worker that ends is counted, then queued for the last time, on the list of whichever scheduler executed it last. So
// ums_close() joins the handle's workers first; after that each is on a list or was on one, it collects all lists, and the
// contexts are free. One close at a time: the lists stay where they are meanwhile.

#include "ums/compat/linux_ums.h"

#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/atomic.hpp"
#include "base/futex.hpp"
#include "base/lock.hpp"
#include "ums/ums_scheduling.h"
#include "ums/ums_stack.h"

using namespace ums;

namespace {

struct handle;

struct list {
    completion_list_data shown{};
    ums_completion_list_t items = 0;
    std::atomic<std::uint32_t> epoch{0};
    bool is_marked = false;
    int newcomers = 0;  // Workers that are being made for it.
    handle* owner = nullptr;

    void move_on() noexcept {
        epoch.fetch_add(1,
                        compat::release);  // sync(linux-ums): what came can be seen by who wakes up.
        compat::futex_wake(&epoch, 0x7FFFFFFF);
    }
};

struct worker {
    enum class state { new_or_blocked, ready, running, ended };
    ums_worker_thread_data shown{};
    ums_worker_t thread = 0;
    ums_context_t context = 0;
    state is = state::new_or_blocked;
    list* from = nullptr;
    handle* adder = nullptr;
};

struct handle {
    int number = 0;
    int left = 0;  // Workers that have not ended.
    bool is_released = false;
    bool is_closing = false;  // Nobody finds it any more, nor its lists.
    std::atomic<std::uint32_t> ends{0};
    bool has_scheduler = false;
    list* of = nullptr;
    // What dequeue gave out last.
    std::vector<ums_worker_thread_data> listed;
    completion_list_data shown{};
    // The scheduler's own:
    int (*entry)(void*) = nullptr;
    void* argument = nullptr;
    // entry() runs on `stack`, by turns with the procedure, whose frames are discarded at each execution.
    ums_stack_t* stack = nullptr;
    ums_stack_t* procedures = nullptr;
    worker* asked_for = nullptr;
    int outcome = 0;
    bool is_over = false;
};

class everything {
public:
    std::map<int, std::unique_ptr<handle>> handles;
    std::map<int, std::unique_ptr<list>> lists;
    std::map<int, worker*> by_pid;
    std::map<ums_context_t, std::unique_ptr<worker>> by_context;
    int next_handle = 1, next_list = 1;

    handle* find_handle(int number) {
        const auto at = handles.find(number);
        return at != handles.end() && !at->second->is_closing ? at->second.get() : nullptr;
    }
    list* find_list(int number) {
        const auto at = lists.find(number);
        return at != lists.end() && !at->second->owner->is_closing ? at->second.get() : nullptr;
    }
};
everything& all() {
    static auto* const made = new everything;
    return *made;
}

std::uint32_t lock = 0;

class locked {
public:
    locked() noexcept {
        ums_critical_enter();
        compat::lock_word(lock);
    }
    ~locked() {
        compat::unlock_word(lock);
        ums_critical_leave();
    }
    locked(const locked&) = delete;
    locked& operator=(const locked&) = delete;
};

thread_local handle* scheduler_of_thread = nullptr;

// By whoever queues; takes no lock.
void list_has_items(void* of) { static_cast<list*>(of)->move_on(); }

// By the worker's thread: the UMS API may not be called.
void worker_ended(void* of, std::intptr_t) {
    auto* const adder = static_cast<handle*>(of);
    // sync(linux-ums): release_ums() sees what the workers did.
    adder->ends.fetch_add(1, compat::release);
    compat::futex_wake(&adder->ends, 0x7FFFFFFF);
}

// Moves what is on the completion list to the workers that could run. Under the lock, to the end: who has taken a
// worker off its list has noted it before another looks.
void collect(list& l) {
    ums_context_t next = 0;
    if (ums_completion_list_dequeue(l.items, 0, &next) != 0) return;
    bool is_new = false;
    for (ums_context_t one = next; one != 0; one = next) {
        next = ums_context_next(one);
        const auto found = all().by_context.find(one);
        if (found == all().by_context.end()) continue;
        unsigned char has_ended = 0;
        ums_context_query(one, UMS_INFORMATION_TERMINATED, &has_ended, 1, nullptr);
        worker& w = *found->second;
        w.is = has_ended != 0 ? worker::state::ended : worker::state::ready;
        w.from = &l;
        w.shown.completion_list_id = l.shown.id;
        is_new = is_new || has_ended == 0;
    }
    if (is_new) l.move_on();
}

void run_entry(void* of, void*) {
    auto& h = *static_cast<handle*>(of);
    while (h.entry(h.argument) >= 0) {
    }
    h.is_over = true;
    ums_stack_switch(h.stack, h.procedures, nullptr);  // For good.
}

// The scheduler's procedure: its frames go with each execution; those of entry() stay on their stack.
void procedure(ums_reason_t reason, std::uintptr_t payload, void* parameter) {
    if (reason == UMS_REASON_STARTUP) scheduler_of_thread = static_cast<handle*>(parameter);
    handle& h = *scheduler_of_thread;
    if (reason == UMS_REASON_YIELD) {
        const locked hold;
        if (const auto found = all().by_context.find(payload); found != all().by_context.end()) {
            found->second->is = worker::state::ready;
            found->second->from = h.of;
            h.of->move_on();
        }
    }
    // One that blocked may already be ready again, or run elsewhere: what collect() noted is newer.
    h.asked_for = nullptr;
    for (;;) {
        ums_stack_switch(h.procedures, h.stack, nullptr);
        if (h.is_over) return;
        int failed = 0;
        do failed = ums_worker_execute(h.asked_for->context);
        while (failed == -EAGAIN);
        h.outcome = failed == -EBADF || failed == -ESRCH ? -EBADF : -EACCES;
        h.asked_for = nullptr;
    }
}

// A copy of the workers of a list that could run. Under the lock.
void list_ready(handle& h) {
    h.listed.clear();
    for (const auto& [context, w] : all().by_context)
        if (w->from == h.of && w->is == worker::state::ready) h.listed.push_back(w->shown);
    for (std::size_t i = 0; i < h.listed.size(); ++i)
        h.listed[i].next = i + 1 < h.listed.size() ? &h.listed[i + 1] : nullptr;
    h.shown = {h.of->shown.id, h.listed.empty() ? nullptr : h.listed.data()};
}

template <class F>
int call(F f) noexcept {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        return -ENOMEM;
    }
}

}  // namespace

int ums_init() {
    return call([] {
        const locked hold;
        auto made = std::make_unique<handle>();
        made->number = all().next_handle++;
        const int number = made->number;
        all().handles[number] = std::move(made);
        return number;
    });
}

completion_list_data* create_completion_list(int number) {
    completion_list_data* shown = nullptr;
    (void)call([&] {
        auto made = std::make_unique<list>();
        if (ums_completion_list_create(&made->items) != 0) return -ENOMEM;
        ums_completion_list_set_notify(made->items, list_has_items, made.get());
        {
            const locked hold;
            if ((made->owner = all().find_handle(number)) != nullptr) {
                made->shown.id = all().next_list++;
                shown = &made->shown;
                all().lists[made->shown.id] = std::move(made);
                return 0;
            }
        }
        ums_completion_list_set_notify(made->items, nullptr, nullptr);
        ums_completion_list_destroy(made->items);
        return -EBADF;
    });
    return shown;
}

int add_worker_thread(int number, int (*work)(void*), void* args, int list_number) {
    if (work == nullptr) return -EINVAL;
    return call([&] {
        auto made = std::make_unique<worker>();
        worker* const w = made.get();
        ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
        {
            const locked hold;
            handle* const h = all().find_handle(number);
            list* const l = all().find_list(list_number);
            if (h == nullptr || l == nullptr || h->is_released) return -EBADF;
            if (l->is_marked) return -EACCES;
            ++h->left;
            ++l->newcomers;
            w->adder = h;
            w->from = l;
            options.list = l->items;
        }
        w->shown = {0, list_number, work, args, nullptr};
        options.suspended = true;  // Until it can be found.
        options.ended = worker_ended;
        options.ended_argument = w->adder;
        const int failed = ums_worker_create(
            &w->thread, &options,
            [](void* self) -> std::intptr_t {
                const auto& shown = static_cast<worker*>(self)->shown;
                return shown.work(shown.args);
            },
            w);
        const locked hold;
        --w->from->newcomers;
        if (failed != 0) {
            worker_ended(w->adder, 0);  // As if it had been, for who waits.
            return failed;
        }
        w->context = ums_worker_context(w->thread);
        w->shown.pid = ums_worker_tid(w->thread);
        all().by_pid[w->shown.pid] = w;
        all().by_context[w->context] = std::move(made);
        const int pid = w->shown.pid;
        ums_worker_resume(w->thread, nullptr);
        return pid;
    });
}

int enter_ums_scheduling_mode(int number, int (*entry)(void*), void* argument, int list_number) {
    if (entry == nullptr) return -EINVAL;
    handle* h = nullptr;
    list* l = nullptr;
    {
        const locked hold;
        h = all().find_handle(number);
        l = all().find_list(list_number);
        if (h == nullptr || l == nullptr) return -EBADF;
        if (h->has_scheduler) return -EBUSY;
        h->has_scheduler = true;
        h->of = l;
    }
    constexpr std::size_t stack_bytes = 1024 * 1024;
    int failed = ums_stack_adopt(&h->procedures);
    if (failed == 0) failed = ums_stack_create(&h->stack, stack_bytes, run_entry, h);
    if (failed == 0) {
        h->entry = entry;
        h->argument = argument;
        h->is_over = false;
        ums_scheduler_options_t options = UMS_SCHEDULER_OPTIONS_INIT;
        options.list = l->items;
        options.procedure = procedure;
        options.parameter = h;
        handle* const outer = scheduler_of_thread;
        failed = ums_scheduler_enter(&options);
        scheduler_of_thread = outer;
    }
    ums_stack_destroy(std::exchange(h->stack, nullptr));
    ums_stack_destroy(std::exchange(h->procedures, nullptr));
    const locked hold;
    h->has_scheduler = false;
    return failed;
}

completion_list_data* dequeue_ums_completion_list_items(int number) {
    handle* const h = scheduler_of_thread;
    if (h == nullptr || h->number != number) return nullptr;
    for (;;) {
        // sync(linux-ums): sees the workers that came before the epoch moved.
        const std::uint32_t epoch = h->of->epoch.load(compat::acquire);
        completion_list_data* found = nullptr;
        const int failed = call([&] {
            const locked hold;
            collect(*h->of);
            if (h->is_released) return -EBADF;
            list_ready(*h);
            if (h->shown.head != nullptr) found = &h->shown;
            return 0;
        });
        if (failed != 0) return nullptr;
        if (found != nullptr) return found;
        compat::futex_wait(&h->of->epoch, epoch);
    }
}

int execute_ums_thread(int number, int pid, int list_number) {
    handle* const h = scheduler_of_thread;
    if (h == nullptr || h->number != number) return -EPERM;
    {
        const locked hold;
        if (all().find_list(list_number) == nullptr) return -EBADF;
        const auto found = all().by_pid.find(pid);
        if (found == all().by_pid.end() || found->second->is == worker::state::ended) return -EBADF;
        worker& w = *found->second;
        if (w.is != worker::state::ready) return -EACCES;
        w.is = worker::state::running;
        h->asked_for = &w;
    }
    h->outcome = 0;
    ums_stack_switch(h->stack, h->procedures, nullptr);  // The procedure executes it.
    return h->outcome;
}

int ums_thread_yield(int) { return ums_worker_yield(nullptr); }
int exit_worker_thread(int) { return ums_worker_exit(0); }

int destroy_comp_list(int number, int list_number) {
    const locked hold;
    list* const l = all().find_list(list_number);
    if (all().find_handle(number) == nullptr || l == nullptr) return -EBADF;
    l->is_marked = true;
    return 0;
}

int release_ums(int number) {
    if (ums_context_current() != 0) return -EPERM;
    handle* h = nullptr;
    {
        const locked hold;
        h = all().find_handle(number);
        if (h == nullptr) return -EBADF;
    }
    for (;;) {
        // sync(linux-ums): sees what the workers did that have ended.
        const std::uint32_t ends = h->ends.load(compat::acquire);
        {
            const locked hold;
            if (static_cast<int>(ends) >= h->left) {
                h->is_released = true;
                for (const auto& [id, l] : all().lists) l->move_on();
                return 0;
            }
        }
        compat::futex_wait(&h->ends, ends);
    }
}

namespace {

// Held by a worker at home only, where it is not stopped.
class closing {
public:
    closing() {
        ums_worker_blocking_enter();
        one_at_a_time.lock();
    }
    ~closing() {
        one_at_a_time.unlock();
        ums_worker_blocking_leave();
    }
    closing(const closing&) = delete;
    closing& operator=(const closing&) = delete;

private:
    static inline constinit std::mutex one_at_a_time;
};

// Whether another's scheduler, or another's workers, use a list of this one. Under the lock.
bool has_users(const handle& h) {
    for (const auto& [id, l] : all().lists) {
        if (l->owner != &h) continue;
        if (l->newcomers != 0) return true;
        for (const auto& [number, other] : all().handles)
            if (other->has_scheduler && other->of == l.get()) return true;
        for (const auto& [context, w] : all().by_context)
            if (w->from == l.get() && w->adder != &h && w->is != worker::state::ended) return true;
    }
    return false;
}

}  // namespace

int ums_close(int number) {
    const closing region;
    handle* h = nullptr;
    std::vector<ums_worker_t> threads;
    std::vector<std::unique_ptr<list>> lists;
    {
        const locked hold;
        h = all().find_handle(number);
        if (h == nullptr) return -EBADF;
        if (!h->is_released || h->has_scheduler || has_users(*h)) return -EBUSY;
        for (const auto& [context, w] : all().by_context)
            if (w->adder == h) threads.push_back(w->thread);
        h->is_closing = true;
    }
    for (const ums_worker_t thread : threads) ums_worker_join(thread, nullptr);
    {
        const locked hold;
        for (const auto& [id, l] : all().lists) collect(*l);
        std::erase_if(all().by_context, [h](const auto& one) {
            const worker& w = *one.second;
            if (w.adder != h) return false;
            // The kernel may have given its id to another since.
            const auto found = all().by_pid.find(w.shown.pid);
            if (found != all().by_pid.end() && found->second == &w) all().by_pid.erase(found);
            ums_context_destroy(w.context);
            return true;
        });
        for (auto at = all().lists.begin(); at != all().lists.end();) {
            if (at->second->owner == h) {
                lists.push_back(std::move(at->second));
                at = all().lists.erase(at);
            } else {
                ++at;
            }
        }
        all().handles.erase(number);
    }
    for (const auto& l : lists) {
        ums_completion_list_set_notify(l->items, nullptr, nullptr);
        ums_completion_list_destroy(l->items);
    }
    return 0;
}
