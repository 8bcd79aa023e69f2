// SPDX-License-Identifier: MIT
#pragma once

// ums/scheduling.hpp: the UMS API in C++. A thin layer over ums/ums_scheduling.h, which holds the
// contracts.
//
//   ums::completion_list list;
//   ums::worker hello{list, [] { std::puts("hello"); ums::yield_worker(); }};
//   ums::schedule(list, [&](const ums::scheduler_event& e) {
//       if (e.why == ums::scheduler_event::yield) e.who.execute();
//       for (const ums::worker_ref w : list.dequeue()) {
//           if (w.is_terminated()) return;
//           w.execute();
//       }
//   });
//
// Blocking: dequeue(), join() and schedule() block the calling thread, as their C functions do.
// Errors:   constructors, and functions that can fail for lack of something, throw
//           std::system_error. execute() returns an error code, because it returns only on failure.

#include <cerrno>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ums/impl/exceptions.hpp"
#include "ums/impl/other_than.hpp"
#include "ums/ums_scheduling.h"

namespace ums {

namespace impl {
inline void check(int failed, const char* what) {
    if (failed != 0) UMS_THROW(std::system_error{-failed, std::generic_category(), what});
}
}  // namespace impl

// Names the context of a worker, or none.
class worker_ref {
public:
    constexpr worker_ref() noexcept = default;
    constexpr explicit worker_ref(ums_context_t context) noexcept : context_{context} {}

    // Runs the worker and discards the caller's frames. Returns only on failure; see
    // ums_worker_execute().
    std::error_code execute() const noexcept {
        return {-ums_worker_execute(context_), std::generic_category()};
    }
    [[nodiscard]] bool is_terminated() const noexcept { return flag(UMS_INFORMATION_TERMINATED); }
    [[nodiscard]] bool is_suspended() const noexcept { return flag(UMS_INFORMATION_SUSPENDED); }

    // A pointer of the program's own. Null if none was set, or the context is gone.
    [[nodiscard]] void* user_data() const noexcept {
        void* data = nullptr;
        ums_context_query(context_, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data, nullptr);
        return data;
    }
    void set_user_data(void* data) const {
        impl::check(ums_context_set(context_, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data),
                    "ums::worker_ref::set_user_data");
    }

    [[nodiscard]] constexpr ums_context_t native() const noexcept { return context_; }
    constexpr explicit operator bool() const noexcept { return context_ != 0; }
    friend constexpr bool operator==(worker_ref, worker_ref) noexcept = default;

private:
    bool flag(ums_information_t what) const noexcept {
        unsigned char is = 0;
        return ums_context_query(context_, what, &is, 1, nullptr) == 0 && is != 0;
    }

    ums_context_t context_ = 0;
};

// The contexts that were on a list. The loop looks each successor up before its body runs, so the
// body may execute the context. The rest of the batch is then lost unless the body kept it
// elsewhere.
class worker_batch {
public:
    // `first`: what ums_completion_list_dequeue() gave; 0: empty.
    explicit worker_batch(ums_context_t first) noexcept : first_{first} {}

    class iterator {
    public:
        explicit iterator(ums_context_t at) noexcept : at_{at}, next_{ums_context_next(at)} {}
        worker_ref operator*() const noexcept { return worker_ref{at_}; }
        iterator& operator++() noexcept {
            *this = iterator{next_};
            return *this;
        }
        bool operator!=(const iterator& other) const noexcept { return at_ != other.at_; }

    private:
        ums_context_t at_, next_;
    };
    [[nodiscard]] iterator begin() const noexcept { return iterator{first_}; }
    [[nodiscard]] iterator end() const noexcept { return iterator{0}; }
    [[nodiscard]] bool empty() const noexcept { return first_ == 0; }

private:
    ums_context_t first_;
};

// A completion list. Requires of the destructor: the list is empty and not in use.
class completion_list {
public:
    completion_list() { impl::check(ums_completion_list_create(&list_), "ums::completion_list"); }
    ~completion_list() { ums_completion_list_destroy(list_); }
    completion_list(const completion_list&) = delete;
    completion_list& operator=(const completion_list&) = delete;

    // Waits until the list has something. Empty: another consumer took it.
    [[nodiscard]] worker_batch dequeue() { return wait(UMS_NEVER); }
    // Does not wait. Empty: the list had nothing.
    [[nodiscard]] worker_batch try_dequeue() { return wait(0); }
    // Also empty once the deadline has passed (nanoseconds of CLOCK_MONOTONIC, see
    // ums_deadline_after()).
    [[nodiscard]] worker_batch dequeue_until(std::int64_t until) { return wait(until); }

    [[nodiscard]] ums_completion_list_t native() const noexcept { return list_; }

private:
    worker_batch wait(std::int64_t until) {
        ums_context_t first = 0;
        const int failed = ums_completion_list_dequeue(list_, until, &first);
        if (failed != -ETIMEDOUT) impl::check(failed, "ums::completion_list::dequeue");
        return worker_batch{first};
    }

    ums_completion_list_t list_ = 0;
};

// A thread that runs when a scheduler executes it. Otherwise as std::thread: join or detach it
// before its destruction. The destructor destroys the context too if the context is off its list by
// then. If it is not, because nobody has dequeued the worker's end, or if the worker is detached,
// the program must do so: keep ref() and call ums_context_destroy().
class worker {
public:
    worker() noexcept = default;
    template <impl::other_than<worker> F, class... Args>
    explicit worker(completion_list& list, F&& f, Args&&... args) {
        using call_of = call<std::decay_t<F>, std::decay_t<Args>...>;
        auto made = std::unique_ptr<call_of>{
            new call_of{{std::forward<F>(f), std::forward<Args>(args)...}}};
        ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
        options.list = list.native();
        impl::check(ums_worker_create(&worker_, &options, &call_of::run, made.get()),
                    "ums::worker");
        made.release();
        ref_ = worker_ref{ums_worker_context(worker_)};
    }
    worker(worker&& from) noexcept
        : worker_{std::exchange(from.worker_, 0)}, ref_{std::exchange(from.ref_, worker_ref{})} {}
    worker& operator=(worker&& from) noexcept {
        if (joinable()) std::terminate();
        release();
        worker_ = std::exchange(from.worker_, 0);
        ref_ = std::exchange(from.ref_, worker_ref{});
        return *this;
    }
    ~worker() {
        if (joinable()) std::terminate();
        release();
    }

    // As those of std::thread. join() blocks until the thread is gone; a worker that has not ended
    // needs a scheduler that executes it.
    [[nodiscard]] bool joinable() const noexcept { return worker_ != 0; }
    void join() {
        impl::check(ums_worker_join(worker_, nullptr), "ums::worker::join");
        worker_ = 0;
    }
    void detach() {
        impl::check(ums_worker_detach(worker_), "ums::worker::detach");
        worker_ = 0;
        ref_ = worker_ref{};
    }
    [[nodiscard]] worker_ref ref() const noexcept { return ref_; }
    [[nodiscard]] ums_worker_t native() const noexcept { return worker_; }

private:
    // The function and its arguments; the thread owns them.
    template <class... Parts>
    struct call {
        std::tuple<Parts...> parts;

        static std::intptr_t run(void* self) {
            const std::unique_ptr<call> mine{static_cast<call*>(self)};
            std::apply([](Parts&... parts) { std::invoke(std::move(parts)...); }, mine->parts);
            return 0;
        }
    };
    void release() noexcept {
        if (ref_) ums_context_destroy(ref_.native());
    }

    ums_worker_t worker_ = 0;
    worker_ref ref_;
};

// The reason why a scheduler is asked what to run.
struct scheduler_event {
    enum reason {
        startup = UMS_REASON_STARTUP,
        blocked = UMS_REASON_BLOCKED,
        yield = UMS_REASON_YIELD
    };

    reason why;
    worker_ref who;   // For yield: the worker that yielded.
    void* argument;   // For yield: the argument of yield_worker().
    bool in_syscall;  // For blocked: in a system call, or it has ended; false: in a page fault.
};

// Makes the calling thread a scheduler that asks decide(event) what to run. Returns when decide()
// returns. Executing a worker discards what decide() has on its stack: keep objects that must be
// destroyed outside.
template <class Decide>
void schedule(completion_list& list, Decide decide) {
    static thread_local Decide* deciding = nullptr;
    Decide* const before = std::exchange(deciding, &decide);
    ums_scheduler_options_t options = UMS_SCHEDULER_OPTIONS_INIT;
    options.list = list.native();
    options.procedure = [](ums_reason_t reason, std::uintptr_t payload, void* argument) {
        const bool is_yield = reason == UMS_REASON_YIELD;
        (*deciding)(scheduler_event{static_cast<scheduler_event::reason>(reason),
                                    is_yield ? worker_ref{payload} : worker_ref{},
                                    is_yield ? argument : nullptr,
                                    reason == UMS_REASON_BLOCKED && payload == 1});
    };
    const int failed = ums_scheduler_enter(&options);
    deciding = before;
    impl::check(failed, "ums::schedule");
}

// Returns a worker to its scheduler, until the worker is executed again. False: the caller is no
// worker.
inline bool yield_worker(void* argument = nullptr) noexcept {
    return ums_worker_yield(argument) == 0;
}

// Put it around a worker's call that may block: the scheduler continues meanwhile. See
// ums_worker_blocking_enter().
class worker_blocking {
public:
    worker_blocking() noexcept { ums_worker_blocking_enter(); }
    ~worker_blocking() { ums_worker_blocking_leave(); }
    worker_blocking(const worker_blocking&) = delete;
    worker_blocking& operator=(const worker_blocking&) = delete;
};

}  // namespace ums
