// SPDX-License-Identifier: MIT
#pragma once

// linux_ums/body.hpp: the threads that run the workers.
//
// With the modules a worker is a function and its argument, and no thread is made for it. Here a thread
// of the UMS API, its body, runs it once it is first executed. A worker that ends leaves its body to one
// that has not begun; one that yields or blocks keeps it. So 20,000 workers that only compute need as
// many bodies as there are scheduler threads.

#include <csetjmp>
#include <unordered_set>
#include <vector>

#include "linux_ums/registry.hpp"

namespace ums::linux_names {

struct body {
    ums_worker_t thread = 0;
    ums_context_t context = 0;
    worker* runs = nullptr;     // Guarded by the lock, except that the thread reads it when executed.
    bool has_returned = false;  // Set by the thread, read by its scheduler after the yield.
    bool is_new = true;         // It was never idle.
    bool is_joined = false;     // Somebody joins its thread already.
    std::jmp_buf start;
};

class body_pool {
public:
    // Requires: the lock, which is let go of while a thread is made. Null: the kernel has none.
    body* take(locked& hold);

    // Requires, all: the lock.
    // Its worker has ended, or it is new.
    void add_idle(body& b);
    // Its thread has ended and its context came for the last time.
    void bury(body& b);
    // Whether there is a point in trying to begin a worker.
    [[nodiscard]] bool may_take() const noexcept {
        return !is_starved_ || !idle_.empty() || alive_ == 0;
    }
    [[nodiscard]] bool has_any() const noexcept { return alive_ != 0; }
    // Sends all to their end that run nothing. Waits for those that are being made, and lets go of the lock
    // meanwhile: their makers may have found others, and be gone.
    void end_all(locked& hold);
    // For the caller to join: threads whose contexts have come for the last time, if there are many;
    // or all that have ended or soon will.
    std::vector<ums_worker_t> take_excess();
    std::vector<ums_worker_t> take_dead();
    // Takes over new ones, and others whose list is gone.
    void collect_new();

private:
    bool has_list();
    bool try_make(locked& hold);
    static int make(ums_completion_list_t born);
    void end_one(body& b);

    list born_;  // Where new ones come; made with the first.
    std::vector<body*> idle_;
    std::unordered_set<body*> dying_;  // Told to end.
    std::vector<ums_worker_t> dead_;
    std::size_t alive_ = 0, unborn_ = 0, wanted_ = 0;
    bool is_starved_ = false;  // The kernel refused a thread, and none has become idle since.
};

body_pool& bodies();

// By a worker: leaves its function. False: the caller is none.
bool leave_function();

}  // namespace ums::linux_names
