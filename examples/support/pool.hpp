// SPDX-License-Identifier: MIT
#pragma once

// pool: things that a fiber needs while it works, not while it waits. The one given back last is taken first: its
// memory is in the cache, and a thousand idle connections hold none.
//
// T::clear() makes one fit for the next.

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

    explicit pool(std::size_t most_kept = 256) { free_.reserve(most_kept); }

    [[nodiscard]] loan take() {
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
        const std::lock_guard held{lock_};
        if (free_.size() < free_.capacity()) free_.push_back(std::move(given));
    }

    ums::mutex lock_;
    std::vector<std::unique_ptr<T>> free_;  // Guarded by lock_.
};
