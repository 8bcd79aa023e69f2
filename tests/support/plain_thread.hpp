// SPDX-License-Identifier: MIT
#pragma once

// support/plain_thread.hpp: a std::thread that a fiber may join.
//
// std::thread's own join() blocks the fiber's processor in the kernel, and with it the fibers that
// the thread may wait for. The join() here yields until the thread's function has returned.

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "ums/this_fiber.hpp"

class plain_thread {
public:
    template <class F, class... Args>
    explicit plain_thread(F&& f, Args&&... args) {
        thread_ = std::thread{[over = over_](auto call, auto... with) {
                                  call(std::move(with)...);
                                  *over = true;
                              },
                              std::forward<F>(f), std::forward<Args>(args)...};
    }

    void join() {
        if (ums::this_fiber::get_id() != ums::fiber_id{})
            while (!*over_) ums::this_fiber::yield();
        thread_.join();
    }

private:
    std::shared_ptr<std::atomic<bool>> over_ = std::make_shared<std::atomic<bool>>();
    std::thread thread_;
};
