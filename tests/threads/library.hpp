// SPDX-License-Identifier: MIT
#pragma once

// threads/library.hpp: the standard's names of threads and of what they wait for, twice: std's own
// on kernel threads, and libums's on fibers.
//
// The cases (threads/*_cases.hpp) are written once, against a namespace `lib`, and compiled with
// each. A case is a program like those in the tests of a standard library: it may wait for another
// thread in a loop that calls nothing. On kernel threads a case shows that it is right itself.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <ostream>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <barrier>
#include <gtest/gtest.h>

#include "ums/async.hpp"
#include "ums/barrier.hpp"
#include "ums/condition_variable.hpp"
#include "ums/fiber.hpp"
#include "ums/future.hpp"
#include "ums/jfiber.hpp"
#include "ums/latch.hpp"
#include "ums/mutex.hpp"
#include "ums/once.hpp"
#include "ums/packaged_task.hpp"
#include "ums/promise.hpp"
#include "ums/semaphore.hpp"
#include "ums/shared_mutex.hpp"
#include "ums/this_fiber.hpp"

struct thread_case {
    const char* name;
    void (*run)();
    friend std::ostream& operator<<(std::ostream& out, const thread_case& one) {
        return out << one.name;
    }
};

// Adds the case to its library's list.
struct listed_case {
    listed_case(std::vector<thread_case>& list, const char* name, void (*run)()) {
        list.push_back({name, run});
    }
};

// Used in a namespace that has `lib` and cases().
#define THREAD_CASE(name)                                   \
    void name();                                            \
    const listed_case listed_##name{cases(), #name, &name}; \
    void name()

using namespace std::chrono_literals;

// Waits as a naive program does: calls nothing that could let another thread run.
template <class Condition>
void spin_until(Condition is_true) {
    while (!is_true()) {
    }
}
inline void spin_until(const std::atomic<bool>& flag) {
    while (!flag.load()) {
    }
}

namespace std_library {
using std::async;
using std::barrier;
using std::binary_semaphore;
using std::call_once;
using std::condition_variable;
using std::condition_variable_any;
using std::counting_semaphore;
using std::future;
using std::jthread;
using std::latch;
using std::mutex;
using std::notify_all_at_thread_exit;
using std::once_flag;
using std::packaged_task;
using std::promise;
using std::recursive_mutex;
using std::recursive_timed_mutex;
using std::shared_future;
using std::shared_mutex;
using std::shared_timed_mutex;
using std::thread;
using std::timed_mutex;
namespace this_thread = std::this_thread;
}  // namespace std_library

namespace ums_library {
using jthread = ums::jfiber;
using thread = ums::fiber;
using ums::async;
using ums::barrier;
using ums::binary_semaphore;
using ums::call_once;
using ums::condition_variable;
using ums::condition_variable_any;
using ums::counting_semaphore;
using ums::future;
using ums::latch;
using ums::mutex;
using ums::notify_all_at_thread_exit;
using ums::once_flag;
using ums::packaged_task;
using ums::promise;
using ums::recursive_mutex;
using ums::recursive_timed_mutex;
using ums::shared_future;
using ums::shared_mutex;
using ums::shared_timed_mutex;
using ums::timed_mutex;
namespace this_thread = ums::this_fiber;
}  // namespace ums_library
