// SPDX-License-Identifier: MIT
#include "carry/detect/sentinel.hpp"

#include <new>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include "base/assert.hpp"
#include "os/futex.hpp"
#include "os/lock.hpp"
#include "os/stay_loaded.hpp"
#include "os/thread/at_rest.hpp"
#include "os/thread/slice.hpp"

namespace ums::carry {

namespace {

// The shortest slice that the kernel allows. The class keeps it, and it decides how long a thread
// of the class waits for its share.
constexpr os::nanoseconds slice = 100'000;

// The sentinels that had not ended when they were stopped.
os::lock lock;
sentinel* left = nullptr;  // Guarded by it.

}  // namespace

sentinel* sentinel::start() noexcept {
    collect();
    auto* made = new (std::nothrow) sentinel;
    if (made == nullptr) return nullptr;
    const int error = made->thread_.start(
        [](void* of) -> void* {
            auto& self = *static_cast<sentinel*>(of);
            self.run();
            self.end();
            return nullptr;
        },
        made);
    if (error == 0) return made;
    delete made;
    return nullptr;
}

void sentinel::stop() noexcept {
    duty_.store(ends, base::relaxed);  // relaxed: nothing is published.
    os::futex_wake(duty_.address());
    // In its class the thread may not get the CPU for seconds. A thread that was raised on its way
    // into the class is raised once more.
    bool is_ordinary = false, has_ended = false;
    do {
        is_ordinary = raise();
        has_ended = thread_.join_within(patience);
    } while (!has_ended && is_ordinary);
    UMS_ASSERT(next_left_ == nullptr, "a sentinel is stopped twice");
    if (has_ended) {
        delete this;
    } else {
        os::stay_loaded();
        const os::lock_guard guard{lock};
        next_left_ = std::exchange(left, this);
    }
    collect();
}

bool sentinel::raise() noexcept {
    std::uint32_t id = tid_.load(base::acquire);  // sync(block.sentinel)
    if (id == not_yet) return true;               // Not in the class yet.
    // relaxed, both: the word alone counts.
    if (id == gone || !tid_.compare_exchange(id, in_use, base::relaxed, base::relaxed))
        return false;
    const auto tid = static_cast<pid_t>(id);
    cpu_set_t any;
    CPU_ZERO(&any);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &any);
    (void)sched_setaffinity(tid, sizeof any, &any);
    const sched_param none{};
    const bool is_raised = sched_setscheduler(tid, SCHED_OTHER | SCHED_RESET_ON_FORK, &none) == 0;
    tid_.store(id, base::relaxed);  // relaxed: as above.
    os::futex_wake(tid_.address());
    return is_raised;
}

void sentinel::end() noexcept {
    std::uint32_t id = tid_.load(base::relaxed);  // relaxed: as in raise().
    while (id == in_use || !tid_.compare_exchange(id, gone, base::relaxed, base::relaxed)) {
        if (id == in_use) os::futex_wait(tid_, in_use);
        id = tid_.load(base::relaxed);  // relaxed: as above.
    }
}

bool sentinel::collect() noexcept {
    lock.acquire();
    sentinel* all = std::exchange(left, nullptr);
    lock.release();
    while (sentinel* one = all) {
        all = one->next_left_;
        if (one->thread_.join_within(0)) {
            delete one;
            continue;
        }
        const os::lock_guard guard{lock};
        one->next_left_ = std::exchange(left, one);
    }
    const os::lock_guard guard{lock};
    return left == nullptr;
}

void sentinel::arm() noexcept {
    std::uint32_t was = rests;
    // sync(block.sentinel): publishes what the waiter wrote, above all its word.
    if (duty_.compare_exchange(was, watches, base::release, base::relaxed))
        os::futex_wake(duty_.address());
}

// Everything but the end runs in the class, where it may be preempted anywhere, perhaps for
// seconds.
void sentinel::run() noexcept {
    pthread_setname_np(pthread_self(), "ums sentinel");
    const os::at_rest counted;
    (void)os::ask_for_slice(slice);
    // sync(block.sentinel): it began.
    tid_.store(static_cast<std::uint32_t>(gettid()), base::release);
    const sched_param none{};
    // raise() sets the same flag, which only a privileged process may take back.
    if (sched_setscheduler(0, SCHED_IDLE | SCHED_RESET_ON_FORK, &none) != 0 &&
        setpriority(PRIO_PROCESS, 0, 19) != 0)
        return;
    for (;;) {
        std::uint32_t duty = duty_.load(base::acquire);  // sync(block.sentinel)
        if (duty == ends) return;
        if (duty == rests) {
            os::futex_wait(duty_, rests);
            continue;
        }
        UMS_ASSERT(duty == watches, "a sentinel's duty is none that there is");
        // It runs, so no other thread wants the CPU. relaxed: the thread that is woken looks for
        // itself.
        if (!duty_.compare_exchange(duty, rests, base::relaxed, base::relaxed)) continue;
        std::uint32_t was = watching;
        // sync(block.sentinel): it rests, and can be armed again.
        if (word.compare_exchange(was, called, base::release, base::relaxed))
            os::futex_wake(word.address());
    }
}

}  // namespace ums::carry
