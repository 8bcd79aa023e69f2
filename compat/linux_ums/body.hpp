// SPDX-License-Identifier: MIT
#pragma once

// linux_ums/body.hpp: the threads that run the workers.
//
// With the modules a worker is a function and its argument, and no thread is made for it. Here a
// thread of the UMS API, its body, runs the worker once it is first executed. A worker that ends
// leaves its body to one that has not begun; a worker that yields or blocks keeps its body. So
// 20,000 workers that only compute need as many bodies as there are scheduler threads.

#include <csetjmp>
#include <unordered_set>
#include <vector>

#include "linux_ums/registry.hpp"

namespace ums::linux_names {

struct body {
    ums_worker_t thread = 0;
    ums_context_t context = 0;
    // Guarded by the lock, but the thread reads it without the lock when executed.
    worker* runs = nullptr;
    bool has_returned = false;  // Set by the thread, read by its scheduler after the yield.
    bool is_new = true;         // It was never idle.
    bool is_joined = false;     // A caller is already joining its thread.
    std::jmp_buf start;
};

class body_pool {
public:
    // Requires: the lock, which take() releases while it makes a thread. Null if the kernel has
    // none.
    body* take(locked& hold);

    // All of these require the lock.
    // The body's worker has ended, or the body is new.
    void add_idle(body& b);
    // The body's thread has ended and its context came for the last time.
    void bury(body& b);
    // Whether it makes sense to try to begin a worker.
    [[nodiscard]] bool may_take() const noexcept {
        return !is_starved_ || !idle_.empty() || alive_ == 0;
    }
    [[nodiscard]] bool has_any() const noexcept { return alive_ != 0; }
    // Tells all bodies to end that run nothing. Waits for those that are being made, and releases
    // the lock meanwhile: their makers may have found others, and be gone.
    void end_all(locked& hold);
    // Returns threads for the caller to join: those whose contexts have come for the last time, if
    // there are many; or all that have ended or soon will.
    std::vector<ums_worker_t> take_excess();
    std::vector<ums_worker_t> take_dead();
    // Takes over new bodies, and those whose list is gone.
    void collect_new();

private:
    bool has_list();
    bool try_make(locked& hold);
    static int make(ums_completion_list_t born);
    void end_one(body& b);

    list born_;  // Where new bodies arrive; made with the first one.
    std::vector<body*> idle_;
    std::unordered_set<body*> dying_;  // They were told to end.
    std::vector<ums_worker_t> dead_;
    std::size_t alive_ = 0, unborn_ = 0, wanted_ = 0;
    bool is_starved_ = false;  // The kernel refused a thread, and no body has become idle since.
};

body_pool& bodies();

// Leaves the function of the calling worker. False: the caller is no worker.
bool leave_function();

}  // namespace ums::linux_names
