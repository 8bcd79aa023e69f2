// SPDX-License-Identifier: MIT
#pragma once

// internal/subject.hpp: for tests: kernel threads that block for a detector to find.

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "carry/detect/detector.hpp"
#include "carry/load.hpp"
#include "os/clock.hpp"
#include "os/thread/thread_cpu.hpp"

namespace ums::carry {

inline int current_tid() noexcept { return static_cast<int>(::syscall(SYS_gettid)); }

// A thread that creates others.
class thread_maker {
public:
    thread_maker() : thread_{[this] { run(); }} { tid_.wait(0); }
    ~thread_maker() {
        if (thread_.joinable()) end();
    }
    thread_maker(const thread_maker&) = delete;
    thread_maker& operator=(const thread_maker&) = delete;

    [[nodiscard]] int tid() const noexcept { return tid_; }

    [[nodiscard]] std::thread make(std::function<void()> body) {
        std::thread made;
        ask([&] { made = std::thread{std::move(body)}; });
        return made;
    }
    void end() {
        ask([this] { ends_ = true; });
        thread_.join();
    }

private:
    void ask(std::function<void()> task) {
        task_ = std::move(task);
        turn_ = 1;
        turn_.notify_all();
        turn_.wait(1);
    }
    void run() {
        tid_ = current_tid();
        tid_.notify_all();
        while (!ends_) {
            turn_.wait(0);
            task_();
            turn_ = 0;
            turn_.notify_all();
        }
    }

    std::atomic<int> tid_{0};
    std::atomic<int> turn_{0};
    std::function<void()> task_;
    bool ends_ = false;
    std::thread thread_;
};

// A load that stays on one thread. It runs `body`, passing it the subject; the body calls block()
// and busy().
class subject final : public load {
public:
    using reaction = std::function<void(const notice&)>;

    // It is of interest while it is inside block() or busy(). `react` runs on the detector's
    // threads, on one at a time.
    explicit subject(int tid, reaction react = {}) : react_{std::move(react)}, tid_{tid} {}

    [[nodiscard]] int tid() const noexcept override { return tid_; }
    [[nodiscard]] bool is_of_interest() const noexcept override { return interesting_; }
    [[nodiscard]] std::uint64_t activity() const noexcept override { return activity_; }
    bool on_block(const notice& what) noexcept override {
        const std::lock_guard one_at_a_time{on_block_};
        if (told_ == 0) first_ = what;  // A later notice must not write where wait_told() reads.
        if (react_) react_(what);
        ++told_;
        told_.notify_all();
        return true;
    }
    [[nodiscard]] int cpu() const noexcept override { return cpu_.get(); }

    // Called on its thread, around what it does.
    void begin() noexcept { cpu_.begin(); }
    void end() noexcept { cpu_.end(); }

    // Runs f as one activity, which is of interest.
    template <class F>
    void busy(detector& by, F f) {
        static_cast<void>(begin_busy(by));
        f();
        end_busy();
    }
    // Its two halves. The first one returns what the detector does.
    [[nodiscard]] std::uint64_t begin_busy(detector& by) {
        ++activity_;
        interesting_ = true;
        return by.nudge();
    }
    void end_busy() noexcept {
        interesting_ = false;
        ++activity_;
    }

    // It has been dealt with, so it is no longer of interest.
    void deal() noexcept { interesting_ = false; }

    [[nodiscard]] std::uint64_t told() const noexcept { return told_; }
    // Waits until a detector has reported it, and returns the first notice.
    notice wait_told() const {
        told_.wait(0);
        return first_;
    }

private:
    std::mutex on_block_;  // A sentinel and the monitor may report at the same time.
    const reaction react_;
    const int tid_;
    mutable os::thread_cpu cpu_;
    std::atomic<bool> interesting_{false};
    std::atomic<std::uint64_t> activity_{1};
    std::atomic<std::uint32_t> told_{0};
    notice first_{};
};

// A subject with its thread, which the maker makes and the detector watches. The destructor joins
// the thread.
class watched_thread {
public:
    template <class F>
    watched_thread(thread_maker& by, detector& watcher, F body, subject::reaction react = {})
        : watcher_{watcher} {
        std::promise<int> tid;
        thread_ = by.make([this, &tid, body] {
            tid.set_value(current_tid());
            ready_.wait(false);
            subject_->begin();
            body(*subject_);
            subject_->end();
        });
        subject_ = std::make_unique<subject>(tid.get_future().get(), std::move(react));
        watcher_.add(*subject_);
        ready_ = true;
        ready_.notify_all();
    }
    ~watched_thread() {
        thread_.join();
        watcher_.remove(*subject_);
    }
    watched_thread(const watched_thread&) = delete;
    watched_thread& operator=(const watched_thread&) = delete;

    subject* operator->() const noexcept { return subject_.get(); }
    subject& operator*() const noexcept { return *subject_; }

private:
    detector& watcher_;
    std::unique_ptr<subject> subject_;
    std::atomic<bool> ready_{false};
    std::thread thread_;
};

}  // namespace ums::carry
