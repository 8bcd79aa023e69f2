// SPDX-License-Identifier: MIT

// channel: what programs without channels use: a queue under a std::mutex with two condition
// variables. The one without places is a queue of one place. What it passes on was sent but not yet
// received, so it does a little less than the others.

#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>

#include "../common/on_threads.hpp"
#include "traffic.hpp"

namespace {

template <std::size_t Places>
class queue {
public:
    void send(int item) {
        {
            std::unique_lock held{lock_};
            has_place_.wait(held, [&] { return items_.size() < Places; });
            items_.push_back(item);
        }
        has_item_.notify_one();
    }

    bool receive(int& item) {
        {
            std::unique_lock held{lock_};
            has_item_.wait(held, [&] { return !items_.empty() || is_closed_; });
            if (items_.empty()) return false;
            item = items_.front();
            items_.pop_front();
        }
        has_place_.notify_one();
        return true;
    }

    void close() {
        {
            const std::lock_guard held{lock_};
            is_closed_ = true;
        }
        has_item_.notify_all();
    }

private:
    std::mutex lock_;
    std::condition_variable has_item_;
    std::condition_variable has_place_;
    std::deque<int> items_;
    bool is_closed_ = false;
};

using unbounded = queue<std::numeric_limits<std::size_t>::max()>;

}  // namespace

int main(int argc, char** argv) {
    return bench::run_channel_peer<bench::on_threads, queue<1>, queue<bench::places>, unbounded>(
        argc, argv);
}
