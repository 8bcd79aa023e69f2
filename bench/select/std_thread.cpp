// SPDX-License-Identifier: MIT

// select: what programs without select use: several queues under one std::mutex, one condition
// variable for "any has an item", and one for "there is a place" in each. A queue without places is
// a queue of one place. The receiver looks through the queues in turn, so that none starves.

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "../common/on_threads.hpp"
#include "fan_in.hpp"

namespace {

template <std::size_t N>
class queues {
public:
    explicit queues(std::size_t places_each) : places_{places_each == 0 ? 1 : places_each} {}

    void send(std::size_t i, int item) {
        {
            std::unique_lock held{lock_};
            has_place_[i].wait(held, [&] { return items_[i].size() < places_; });
            items_[i].push_back(item);
        }
        has_item_.notify_one();
    }

    int receive() {
        int item = 0;
        {
            std::unique_lock held{lock_};
            has_item_.wait(held, [this] { return find(); });
            item = items_[next_].front();
            items_[next_].pop_front();
        }
        has_place_[next_].notify_one();
        return item;
    }

private:
    bool find() {
        for (std::size_t tried = 0; tried < N; ++tried) {
            next_ = (next_ + 1) % N;
            if (!items_[next_].empty()) return true;
        }
        return false;
    }

    const std::size_t places_;
    std::mutex lock_;
    std::condition_variable has_item_;
    std::array<std::condition_variable, N> has_place_;
    std::array<std::deque<int>, N> items_;
    std::size_t next_ = 0;  // Owned by the receiver.
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_select_peer<bench::on_threads, queues>(argc, argv);
}
