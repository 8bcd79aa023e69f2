// SPDX-License-Identifier: MIT
#pragma once

// pool: things that a fiber needs while it works, not while it waits. The thing given back last is
// taken first, because its memory is in the cache; and a thousand idle connections hold none.
//
// T::clear() prepares a thing for its next user.

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <ums/mutex.hpp>

template <class T>
class pool {
    struct giver {
        pool* to = nullptr;
        void operator()(T* thing) const noexcept { to->give(thing); }
    };

public:
    using loan = std::unique_ptr<T, giver>;

    explicit pool(std::size_t most_kept = 64) { free_.reserve(most_kept); }
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;
    ~pool() { delete last_.load(std::memory_order_relaxed); }  // relaxed: no other user is left.

    [[nodiscard]] loan take() {
        // sync(pool): sees what the previous user did to it.
        if (T* last = last_.exchange(nullptr, std::memory_order_acquire))
            return loan{last, giver{this}};
        {
            const std::lock_guard held{lock_};
            if (!free_.empty()) {
                loan last{free_.back().release(), giver{this}};
                free_.pop_back();
                return last;
            }
        }
        return loan{new T, giver{this}};
    }

private:
    void give(T* thing) noexcept {
        std::unique_ptr<T> given{thing};
        given->clear();
        T* none = nullptr;
        // sync(pool). relaxed if there is one already, which stays.
        if (last_.compare_exchange_strong(none, thing, std::memory_order_release,
                                          std::memory_order_relaxed)) {
            (void)given.release();
            return;
        }
        const std::lock_guard held{lock_};
        if (free_.size() < free_.capacity()) free_.push_back(std::move(given));
    }

    // Without a lock: enough for things that are used one at a time.
    std::atomic<T*> last_ = nullptr;
    ums::mutex lock_;
    std::vector<std::unique_ptr<T>> free_;  // Guarded by lock_.
};
