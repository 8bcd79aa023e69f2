// SPDX-License-Identifier: MIT

// parking: an event made from park() and unpark(). Fibers and plain threads wait for it alike.
//
// Output:
//   nobody has passed
//   4 have passed

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <vector>

#include <ums/ums.hpp>

namespace {

class event {
public:
    void set() {
        // unpark() never blocks, so it may be called under the mutex. It must be called there: a
        // waiter needs the mutex to see that the event is set, so no waiter can return, and end,
        // while its reference is in use.
        const std::lock_guard guard{mutex_};
        is_set_ = true;
        for (const ums::fiber_ref waiter : waiters_) waiter.unpark();
        waiters_.clear();
    }

    void wait() {
        std::unique_lock lock{mutex_};
        if (!is_set_) waiters_.push_back(ums::this_fiber::ref());
        // An older unpark(), meant for something else, may end a park, hence the loop.
        while (!is_set_) {
            lock.unlock();  // Never park with a std::mutex held: it belongs to the kernel thread.
            ums::this_fiber::park();
            lock.lock();
        }
    }

private:
    std::mutex mutex_;
    bool is_set_ = false;
    std::vector<ums::fiber_ref> waiters_;
};

}  // namespace

int main() {
    const ums::runtime running;  // Until the end of main(), which stays a plain kernel thread.
    event start;
    std::atomic<int> passed = 0;
    const auto wait_and_count = [&] {
        start.wait();
        ++passed;
    };
    ums::fiber first{wait_and_count}, second{wait_and_count}, third{wait_and_count};
    ums::fiber setter{[&] {
        ums::this_fiber::sleep_for(std::chrono::milliseconds{10});
        std::puts(passed == 0 ? "nobody has passed" : "somebody has passed");
        start.set();
    }};
    wait_and_count();  // This thread parks by the same call.
    for (ums::fiber* f : {&first, &second, &third, &setter}) f->join();
    std::printf("%d have passed\n", passed.load());
}
