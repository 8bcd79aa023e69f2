// SPDX-License-Identifier: MIT

// semaphore: Boost.Fiber has none. This is the one that its users write: a count under its mutex
// with its condition variable.

#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/mutex.hpp>

#include <mutex>

#include "../common/on_boost.hpp"
#include "rally.hpp"

namespace {

class semaphore {
public:
    explicit semaphore(int permits) : permits_{permits} {}

    void acquire() {
        std::unique_lock held{lock_};
        has_permit_.wait(held, [this] { return permits_ > 0; });
        --permits_;
    }

    // Notifies with the lock held, because the fiber that acquires the permit may destroy the
    // semaphore.
    void release() {
        const std::lock_guard held{lock_};
        ++permits_;
        has_permit_.notify_one();
    }

private:
    boost::fibers::mutex lock_;
    boost::fibers::condition_variable has_permit_;
    int permits_;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_semaphore_peer<bench::on_boost, semaphore>(argc, argv);
}
