// SPDX-License-Identifier: MIT
#include "linux_ums/body.hpp"

#include <cerrno>
#include <utility>

#include "base/check.hpp"

namespace ums::linux_names {

namespace {

// With this many idle bodies, one more ends. So this many ended threads may wait to be joined.
constexpr std::size_t most_idle = 64;

thread_local body* own = nullptr;

// The function of a body's thread: it runs one worker after the other.
std::intptr_t live(void* argument) {
    auto& b = *static_cast<body*>(argument);
    own = &b;
    for (;;) {
        if (_setjmp(b.start) == 0) (void)b.runs->shown.work(b.runs->shown.args);
        b.has_returned = true;
        // The yield fails in a marked or a critical region, where a worker cannot yield: the thread
        // ends.
        if (ums_worker_yield(nullptr) != 0) return 0;
    }
}

}  // namespace

body_pool& bodies() {
    static auto* const made = new body_pool;  // As all().
    return *made;
}

bool leave_function() {
    if (own == nullptr) return false;
    _longjmp(own->start, 1);
}

bool body_pool::has_list() {
    if (born_.items != 0) return true;
    if (ums_completion_list_create(&born_.items) != 0) return false;
    watch(born_);
    return true;
}

int body_pool::make(ums_completion_list_t born) {
    auto made = std::make_unique<body>();
    if (const int failed = ums_context_create(&made->context); failed != 0) return failed;
    void* const data = made.get();
    (void)ums_context_set(made->context, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data);
    ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
    options.list = born;
    options.context = made->context;
    options.ended = [](void*, std::intptr_t) { all().ending.fetch_add(1); };
    const int failed = ums_worker_create(&made->thread, &options, live, data);
    if (failed != 0)
        ums_context_destroy(made->context);
    else
        (void)made.release();
    return failed;
}

body* body_pool::take(locked& hold) {
    if (idle_.empty() && has_list()) {
        ++wanted_;
        event::waiter self{born_.became_ready};
        for (;;) {
            self.arm();
            collect_new();
            if (!idle_.empty()) break;
            // Another caller may have taken the thread that was made for this call.
            if (unborn_ < wanted_ && !try_make(hold)) break;
            if (unborn_ < wanted_) continue;
            hold.unlock();
            self.wait();
            hold.lock();
        }
        --wanted_;
    }
    if (idle_.empty()) return nullptr;
    body* const taken = idle_.back();
    idle_.pop_back();
    UMS_DEBUG_CHECK(taken->runs == nullptr && !taken->is_new, "an idle body runs a worker");
    return taken;
}

bool body_pool::try_make(locked& hold) {
    ++alive_;
    ++unborn_;
    hold.unlock();
    const int failed = make(born_.items);
    hold.lock();
    if (failed == 0) return true;
    --alive_;
    --unborn_;
    is_starved_ = idle_.empty();
    born_.became_ready.notify_all();  // end_all() waits for it, too.
    return false;
}

void body_pool::collect_new() {
    if (born_.items != 0) collect(born_);
}

void body_pool::add_idle(body& b) {
    b.runs = nullptr;
    b.has_returned = false;
    UMS_DEBUG_CHECK(!b.is_new || unborn_ != 0, "more bodies were born than were made");
    if (std::exchange(b.is_new, false)) --unborn_;
    is_starved_ = false;
    born_.became_ready.notify_all();  // A thread that waits for one of its own making takes this.
    if (idle_.size() >= most_idle) return end_one(b);
    idle_.push_back(&b);
}

void body_pool::end_one(body& b) {
    UMS_DEBUG_CHECK(b.runs == nullptr, "a body was told to end that runs a worker");
    [[maybe_unused]] const bool is_first = dying_.insert(&b).second;
    UMS_DEBUG_CHECK(is_first, "a body was told to end twice");
    const int failed = ums_worker_terminate(b.thread, 0);
    // -ESRCH: the program ended the thread by the native names.
    compat::check(failed == 0 || failed == -ESRCH,
                  "an idle thread that runs workers has no handle");
}

void body_pool::end_all(locked& hold) {
    event::waiter self{born_.became_ready};
    for (;;) {
        self.arm();
        collect_new();
        for (body* const one : std::exchange(idle_, {})) end_one(*one);
        if (unborn_ == 0) return;
        hold.unlock();
        self.wait();
        hold.lock();
    }
}

void body_pool::bury(body& b) {
    UMS_DEBUG_CHECK(alive_ != 0, "more bodies have ended than were made");
    ums_context_destroy(b.context);
    if (!b.is_joined) dead_.push_back(b.thread);
    dying_.erase(&b);
    --alive_;
    is_starved_ = false;
    delete &b;
}

std::vector<ums_worker_t> body_pool::take_excess() {
    if (dead_.size() <= most_idle) return {};
    return std::exchange(dead_, {});
}

std::vector<ums_worker_t> body_pool::take_dead() {
    for (body* const one : dying_) {
        if (std::exchange(one->is_joined, true)) continue;
        dead_.push_back(one->thread);
    }
    return std::exchange(dead_, {});
}

}  // namespace ums::linux_names
