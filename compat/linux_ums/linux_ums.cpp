// SPDX-License-Identifier: MIT
//
// The modules' names on ums/ums_scheduling.h: handles, lists, adding workers, release and close.
// What a scheduler thread does is in scheduler.cpp.

#include "ums/compat/linux_ums.h"

#include <mutex>
#include <utility>

#include "base/check.hpp"
#include "linux_ums/info_files.hpp"
#include "linux_ums/scheduler.hpp"

using namespace ums::linux_names;

int ums_init() {
    return guarded([] {
        const locked hold;
        auto made = std::make_unique<handle>();
        const int number = made->number = all().next_handle++;
        all().handles[number] = std::move(made);
        return number;
    });
}

completion_list_data* create_completion_list(int number) {
    completion_list_data* shown = nullptr;
    guarded([&] {
        auto made = std::make_unique<list>();
        if (const int failed = ums_completion_list_create(&made->items); failed != 0) return failed;
        watch(*made);
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

int add_worker_thread(int number, int (*work)(void*), void* args, ums_pid_t list_number) {
    return guarded([&] {
        if (work == nullptr) return -EINVAL;
        const locked hold;
        handle* const h = all().find_handle(number);
        list* const l = all().find_list(list_number);
        if (h == nullptr || l == nullptr || h->is_released) return -EBADF;
        if (l->is_marked) return -EACCES;
        const ums_pid_t pid = all().next_worker++;
        worker& made = all().workers[pid];
        made.shown = {pid, 0, work, args, nullptr};
        made.adder = h;
        ++h->left;
        make_ready(made, *l);
        return 0;
    });
}

int ums_thread_yield(int) {
    return guarded([] { return ums_worker_yield(nullptr); });
}
int exit_worker_thread(int) {
    (void)leave_function();
    return guarded([] { return -EPERM; });
}

int destroy_comp_list(int number, ums_pid_t list_number) {
    return guarded([&] {
        const locked hold;
        list* const l = all().find_list(list_number);
        if (all().find_handle(number) == nullptr || l == nullptr) return -EBADF;
        l->is_marked = true;
        return 0;
    });
}

namespace {

// Whether its workers have ended, and those that its scheduler threads look after.
bool is_done(const handle& h) {
    for (const auto& [number, l] : all().lists) collect(*l);
    bodies().collect_new();
    if (h.left != 0) return false;
    for (const scheduler* const s : h.schedulers)
        if (s->serves->left != 0) return false;
    return true;
}

}  // namespace

int release_ums(int number) {
    return guarded([&] {
        if (ums_context_current() != 0) return -EPERM;
        locked hold;
        event::waiter self{all().ended};
        handle* h = nullptr;
        for (;;) {
            self.arm();
            h = all().find_handle(number);
            if (h == nullptr) return -EBADF;
            if (is_done(*h)) break;
            hold.unlock();
            self.wait();
            hold.lock();
        }
        h->is_released = true;
        for (const auto& [id, l] : all().lists) l->became_ready.notify_all();
        return 0;
    });
}

namespace {

// A worker holds this only in a marked region, where no scheduler stops it.
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

// Whether scheduler threads or workers of another handle use a list of this one. Requires: the
// lock.
bool has_users(const handle& h) {
    for (const auto& [id, l] : all().lists)
        if (l->owner == &h && (l->left != 0 || l->schedulers != 0)) return true;
    return false;
}

std::vector<std::unique_ptr<list>> take_lists(const handle& h) {
    std::vector<std::unique_ptr<list>> taken;
    for (auto at = all().lists.begin(); at != all().lists.end();) {
        if (at->second->owner == &h) {
            taken.push_back(std::move(at->second));
            at = all().lists.erase(at);
        } else {
            ++at;
        }
    }
    return taken;
}

}  // namespace

// A thread that ends comes to the list of the scheduler that executed it last. So the threads that
// do end are joined first; after that they are on the lists. Only one close runs at a time, so the
// lists stay meanwhile.
int ums_close(int number) {
    return guarded([&] {
        const closing region;
        std::vector<ums_worker_t> dead;
        handle* h = nullptr;
        {
            locked hold;
            h = all().find_handle(number);
            if (h == nullptr) return -EBADF;
            if (!h->is_released || !h->schedulers.empty() || has_users(*h)) return -EBUSY;
            h->is_closing = true;
            if (all().handles.size() == 1) bodies().end_all(hold);
            dead = bodies().take_dead();
        }
        for (const ums_worker_t one : dead) (void)ums_worker_join(one, nullptr);
        info_files::forget(number);
        std::vector<std::unique_ptr<list>> lists;
        {
            const locked hold;
            for (const auto& [id, l] : all().lists) collect(*l);
            bodies().collect_new();
            lists = take_lists(*h);
            all().handles.erase(number);
        }
        for (const auto& l : lists) {
            UMS_DEBUG_CHECK(l->left == 0 && l->schedulers == 0 && l->first == nullptr,
                            "a list was closed that has workers or scheduler threads");
            ums_completion_list_set_notify(l->items, nullptr, nullptr);
            ums_completion_list_destroy(l->items);
        }
        return 0;
    });
}
