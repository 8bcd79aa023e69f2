// SPDX-License-Identifier: MIT
// variants: monitor clang
// User-mode scheduling by its Windows names: one worker or a few.
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <memory>
#include <pthread.h>
#include <set>
#include <string>
#include <string_view>

#include "support/conservation.hpp"
#include "support/no_detection.hpp"
#include "support/scale.hpp"
#include "windows/queueing.hpp"

namespace {

class windows_ums : public conserving_test {
protected:
    // Runs what is on the list until `n` workers have ended.
    round_robin& run(int n) {
        ends_ = n;
        EXPECT_TRUE(scheduler.enter());
        return scheduler;
    }
    template <class T>
    static void expect_failure(T result, DWORD error, const char* what) {
        const DWORD last = GetLastError();
        EXPECT_FALSE(result) << what;
        EXPECT_EQ(last, error) << what;
        SetLastError(0);
    }
    completion_list list;
    std::atomic<int> ends_{0};
    round_robin scheduler{list, ends_};
};
#define EXPECT_FAILS(error, call) expect_failure(call, error, #call)

PUMS_CONTEXT dequeue(PUMS_COMPLETION_LIST list, DWORD ms = 0) {
    PUMS_CONTEXT first = reinterpret_cast<PUMS_CONTEXT>(1);
    must(DequeueUmsCompletionListItems(list, ms, &first));
    return first;
}

TEST_F(windows_ums, a_new_worker_is_queued_and_never_runs_by_itself) {
    std::atomic<bool> ran{false};
    worker w{list, [&] { return ran = true, 3; }};
    const HANDLE thread = w.thread();
    EXPECT_EQ(WaitForSingleObject(thread, 20), DWORD{WAIT_TIMEOUT});
    EXPECT_FALSE(ran);
    EXPECT_EQ(w.exit_code(), STILL_ACTIVE);
    run(1);
    EXPECT_TRUE(ran);
    EXPECT_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(w.exit_code(), 3u);
    EXPECT_EQ(scheduler.startups, 1);
    EXPECT_EQ(scheduler.in_syscall, 1);  // The end of the worker.
    EXPECT_EQ(scheduler.in_fault, 0);
    EXPECT_EQ(scheduler.yields, 0);
}

TEST_F(windows_ums, a_yield_brings_its_context_and_its_argument) {
    int given = 0;
    worker w{list, [&] { return UmsThreadYield(&given) ? 0 : 1; }};
    struct seen {
        PUMS_CONTEXT executed, yielded;
        PVOID argument, param_at_block;
    } s{w.context(), nullptr, nullptr, &given};
    scheduler.hook_data = &s;
    scheduler.hook = [](round_robin& r, UMS_SCHEDULER_REASON reason, ULONG_PTR payload,
                        PVOID parameter) {
        auto& in = *static_cast<seen*>(r.hook_data);
        if (reason == UmsSchedulerThreadYield) {
            in.yielded = reinterpret_cast<PUMS_CONTEXT>(payload);
            in.argument = parameter;
        } else if (reason == UmsSchedulerThreadBlocked) {
            in.param_at_block = parameter;
        } else {
            EXPECT_EQ(payload, 0u);
            EXPECT_EQ(parameter, &r);
        }
        return false;
    };
    run(1);
    EXPECT_EQ(s.yielded, w.context());
    EXPECT_EQ(s.argument, &given);
    EXPECT_EQ(s.param_at_block, nullptr);
    EXPECT_EQ(scheduler.yields, 1);
}

TEST_F(windows_ums, the_scheduler_is_called_at_the_same_depth_of_its_stack) {
    static std::uintptr_t lowest, highest;
    lowest = ~std::uintptr_t{0};
    highest = 0;
    // ThreadSanitizer takes discarded frames for a deep stack.
    const int n = scaled(1'000'000, 1'500);
    worker w{list, [&] {
                 for (int i = 0; i < n; ++i) UmsThreadYield(nullptr);
                 return 0;
             }};
    scheduler.hook = [](round_robin&, UMS_SCHEDULER_REASON reason, ULONG_PTR, PVOID) {
        const auto at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        if (reason != UmsSchedulerStartup) {
            lowest = at < lowest ? at : lowest;
            highest = at > highest ? at : highest;
        }
        return false;
    };
    run(1);
    EXPECT_EQ(scheduler.yields, n);
    EXPECT_EQ(lowest, highest);
}

thread_local int value_of_thread = 1;
__declspec(thread) static int declared_too = 2;

TEST_F(windows_ums, what_is_a_threads_own_is_the_workers_and_moves_with_it) {
    const DWORD slot = TlsAlloc();
    const int n = scaled(2000, 200);
    std::set<DWORD> ids{GetCurrentThreadId()};
    std::set<pthread_t> selves{pthread_self()};
    const auto body = [&](int k) {
        const DWORD id = GetCurrentThreadId();
        const pthread_t self = pthread_self();
        value_of_thread = declared_too = k;
        must(TlsSetValue(slot, &value_of_thread));
        int wrong = 0;
        for (int i = 0; i < n; ++i) {
            SetLastError(static_cast<DWORD>(1000 + k));
            errno = k;
            if (i % 8 == 0 && i < 80)
                Sleep(1);
            else
                UmsThreadYield(nullptr);
            wrong += GetLastError() != static_cast<DWORD>(1000 + k);
            wrong += errno != k;
            wrong += value_of_thread != k || declared_too != k || GetCurrentThreadId() != id ||
                     pthread_self() != self;
            wrong += TlsGetValue(slot) != &value_of_thread;
        }
        return static_cast<DWORD>(wrong);
    };
    std::deque<worker> workers;
    for (int k = 0; k < 6; ++k) workers.emplace_back(list, [&body, k] { return body(10 + k); });
    ends_ = 6;
    round_robin second{list, ends_};
    {
        scheduler_thread other{second};
        EXPECT_TRUE(scheduler.enter());
    }
    for (const worker& w : workers) {
        WaitForSingleObject(w.thread(), INFINITE);
        EXPECT_EQ(w.exit_code(), 0u);
        EXPECT_EQ(GetThreadId(w.thread()), w.id());
        EXPECT_TRUE(ids.insert(w.id()).second);
    }
    EXPECT_EQ(value_of_thread, 1);
    EXPECT_EQ(declared_too, 2);
    EXPECT_TRUE(TlsFree(slot));
}

TEST_F(windows_ums, every_way_to_wait_is_reported_and_what_need_not_wait_is_not) {
    const holder set{CreateEvent(nullptr, TRUE, TRUE, nullptr)},
        reset{CreateEvent(nullptr, TRUE, FALSE, nullptr)};
    CRITICAL_SECTION section;
    InitializeCriticalSection(&section);
    SRWLOCK lock = SRWLOCK_INIT;
    CONDITION_VARIABLE variable = CONDITION_VARIABLE_INIT;
    std::vector<std::pair<const char*, int>> reported;
    std::vector<const char*> names;
    static std::atomic<int> blocked;
    blocked = 0;
    std::vector<int> counts;
    counts.reserve(32);
    worker w{
        list, [&] {
            const auto measure = [&](auto call) {
                const int before = blocked;
                call();
                counts.push_back(blocked - before);
            };
            measure([&] { WaitForSingleObject(set, INFINITE); });
            measure([&] { WaitForSingleObject(reset, 0); });
            measure([&] { EnterCriticalSection(&section), LeaveCriticalSection(&section); });
            measure([&] { AcquireSRWLockExclusive(&lock), ReleaseSRWLockExclusive(&lock); });
            measure([&] { HeapFree(GetProcessHeap(), 0, HeapAlloc(GetProcessHeap(), 0, 10)); });
            measure([&] { SetEvent(set); });
            measure([&] { Sleep(0); });
            counts.push_back(-1);
            measure([&] { Sleep(1); });
            measure([&] { SleepEx(1, TRUE); });
            measure([&] { WaitForSingleObject(reset, 1); });
            const HANDLE both[] = {reset, set};
            measure([&] { WaitForMultipleObjects(2, both, TRUE, 1); });
            AcquireSRWLockExclusive(&lock);
            measure([&] { SleepConditionVariableSRW(&variable, &lock, 1, 0); });
            ReleaseSRWLockExclusive(&lock);
            EnterCriticalSection(&section);
            measure([&] { SleepConditionVariableCS(&variable, &section, 1); });
            LeaveCriticalSection(&section);
            return 0;
        }};
    scheduler.hook = [](round_robin&, UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID) {
        if (reason == UmsSchedulerThreadBlocked) {
            EXPECT_EQ(payload, 1u);
            ++blocked;
        }
        return false;
    };
    run(1);
    EXPECT_EQ(counts, (std::vector{0, 0, 0, 0, 0, 0, 0, -1, 1, 1, 1, 1, 1, 1}));
    DeleteCriticalSection(&section);
}

TEST_F(windows_ums, workers_that_wait_for_each_other_do) {
    CRITICAL_SECTION section;
    InitializeCriticalSection(&section);
    SRWLOCK lock = SRWLOCK_INIT;
    CONDITION_VARIABLE changed = CONDITION_VARIABLE_INIT;
    int inside = 0, turn = 0;
    const int n = scaled(300, 50);
    std::deque<worker> workers;
    for (int k = 0; k < 3; ++k)
        workers.emplace_back(list, [&, k]() -> DWORD {
            for (int i = 0; i < n; ++i) {
                EnterCriticalSection(&section);
                if (++inside != 1) return 1;
                UmsThreadYield(nullptr);  // The others block.
                --inside;
                LeaveCriticalSection(&section);
                AcquireSRWLockExclusive(&lock);
                while (turn != k) SleepConditionVariableSRW(&changed, &lock, INFINITE, 0);
                turn = (k + 1) % 3;
                ReleaseSRWLockExclusive(&lock);
                WakeAllConditionVariable(&changed);
            }
            return 0;
        });
    run(3);
    for (const worker& w : workers)
        EXPECT_EQ(WaitForSingleObject(w.thread(), INFINITE) + w.exit_code(), 0u);
    DeleteCriticalSection(&section);
}

TEST_F(windows_ums, the_end_of_a_worker) {
    const auto leave = [] { return ExitThread(21), 0; };
    worker returns{list, [] { return 20; }}, exits{list, leave},
        ends_itself{list, [] { return TerminateThread(GetCurrentThread(), 22), 0; }};
    EXPECT_FALSE(is_terminated(returns.context()));
    run(3);
    DWORD code = 20;
    for (const worker* w : {&returns, &exits, &ends_itself}) {
        EXPECT_EQ(WaitForSingleObject(w->thread(), INFINITE), WAIT_OBJECT_0);
        EXPECT_EQ(w->exit_code(), code++);
        EXPECT_TRUE(is_terminated(w->context()));
    }
    EXPECT_EQ(scheduler.in_syscall, 3);
}

TEST_F(windows_ums, dequeueing_waits_as_long_as_it_is_told) {
    PUMS_CONTEXT first = reinterpret_cast<PUMS_CONTEXT>(1);
    EXPECT_TRUE(DequeueUmsCompletionListItems(list, 0, &first));
    EXPECT_EQ(first, nullptr);
    first = reinterpret_cast<PUMS_CONTEXT>(1);
    const ULONGLONG before = GetTickCount64();
    EXPECT_FAILS(ERROR_TIMEOUT, DequeueUmsCompletionListItems(list, 50, &first));
    EXPECT_EQ(first, nullptr);
    EXPECT_GE(GetTickCount64() - before, 49u);
    std::unique_ptr<worker> w;
    {
        other_thread later{[&] { return w = std::make_unique<worker>(list, [] { return 0; }), 0; }};
        PUMS_CONTEXT found = nullptr;
        while (found == nullptr) found = dequeue(list, INFINITE);
        scheduler.push(found);
    }
    EXPECT_EQ(scheduler.running, nullptr);
    run(1);
    w.reset();
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, DequeueUmsCompletionListItems(list, 0, nullptr));
    EXPECT_FAILS(ERROR_INVALID_HANDLE, DequeueUmsCompletionListItems(&first, 0, &first));
}

TEST_F(windows_ums, a_batch_is_a_chain) {
    std::deque<worker> workers;
    for (int i = 0; i < 5; ++i) workers.emplace_back(list, [] { return 0; });
    std::set<PUMS_CONTEXT> found;
    for (PUMS_CONTEXT one = dequeue(list); one != nullptr; one = GetNextUmsListItem(one))
        found.insert(one);
    EXPECT_EQ(found.size(), 5u);
    EXPECT_EQ(dequeue(list), nullptr);
    for (const worker& w : workers) {
        EXPECT_TRUE(found.contains(w.context()));
        scheduler.push(w.context());
    }
    run(5);
    EXPECT_EQ(GetNextUmsListItem(nullptr), nullptr);
}

TEST_F(windows_ums, the_event_of_a_list_is_signalled_when_it_is_no_longer_empty) {
    HANDLE event = nullptr, again = nullptr;
    ASSERT_TRUE(GetUmsCompletionListEvent(list, &event));
    ASSERT_TRUE(GetUmsCompletionListEvent(list, &again));
    EXPECT_EQ(WaitForSingleObject(event, 0), DWORD{WAIT_TIMEOUT});
    {
        const holder never{CreateEvent(nullptr, TRUE, FALSE, nullptr)};
        const HANDLE both[] = {never, event};
        worker w{list, [] { return 0; }};
        EXPECT_EQ(WaitForMultipleObjects(2, both, FALSE, INFINITE), WAIT_OBJECT_0 + 1);
        EXPECT_EQ(WaitForSingleObject(again, 0),
                  DWORD{WAIT_TIMEOUT});  // One event, which resets itself.
        run(1);
    }
    EXPECT_TRUE(CloseHandle(event));
    {
        completion_list gone;
        ASSERT_TRUE(GetUmsCompletionListEvent(gone, &event));
    }
    EXPECT_EQ(WaitForSingleObject(event, 0), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(CloseHandle(event));  // After its list.
    EXPECT_TRUE(CloseHandle(again));
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, GetUmsCompletionListEvent(list, nullptr));
    EXPECT_FAILS(ERROR_INVALID_HANDLE, GetUmsCompletionListEvent(&event, &again));
    EXPECT_FAILS(ERROR_INVALID_HANDLE, GetUmsCompletionListEvent(nullptr, &again));
}

TEST_F(windows_ums, what_is_no_list_gets_no_event_also_when_several_ask_at_once) {
    const auto ask = [] {
        for (int i = 0; i < scaled(20'000, 2'000); ++i) {
            HANDLE event = nullptr;
            EXPECT_FALSE(GetUmsCompletionListEvent(
                reinterpret_cast<PUMS_COMPLETION_LIST>(ULONG_PTR{0x123456789}), &event));
            EXPECT_EQ(event, nullptr);
        }
        return 0;
    };
    const other_thread first{ask}, second{ask};
}

// A thread that is stopped holds no lock that the others need.
TEST_F(windows_ums, a_thread_that_is_suspended_in_a_call_keeps_nobody_from_calling) {
    std::atomic<bool> stop{false};
    std::atomic<long> rounds{0};
    const auto make_and_delete = [&] {
        PUMS_CONTEXT contexts[8];
        for (PUMS_CONTEXT& c : contexts) must(CreateUmsThreadContext(&c));
        for (const PUMS_CONTEXT c : contexts) must(DeleteUmsThreadContext(c));
        PUMS_COMPLETION_LIST made = nullptr;
        must(CreateUmsCompletionList(&made));
        HANDLE event = nullptr;
        must(GetUmsCompletionListEvent(made, &event));
        must(CloseHandle(event));
        must(DeleteUmsCompletionList(made));
        ++rounds;
    };
    std::function<DWORD()> run = [&]() -> DWORD {
        while (!stop) make_and_delete();
        return 0;
    };
    const holder thread{CreateThread(
        nullptr, 0, [](LPVOID f) { return (*static_cast<std::function<DWORD()>*>(f))(); }, &run, 0,
        nullptr)};
    for (int i = 0; i < scaled(3'000, 200); ++i) {
        ASSERT_EQ(SuspendThread(thread), 0u);
        make_and_delete();
        ASSERT_EQ(ResumeThread(thread), 1u);
        for (const long before = rounds; i % 8 == 0 && rounds == before;) SwitchToThread();
    }
    stop = true;
    EXPECT_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
}

TEST_F(windows_ums, executing_what_cannot_run_fails) {
    EXPECT_FAILS(ERROR_NOT_SUPPORTED, ExecuteUmsThread(dequeue(list)));
    worker ended{list, [] { return 0; }}, sleeper{list, [&] {
                                                      // The worker's own end comes later, and with
                                                      // it a decision.
                                                      while (!is_terminated(ended.context()))
                                                          Sleep(1);
                                                      return 0;
                                                  }};
    static PUMS_CONTEXT itself;
    static std::vector<DWORD> errors;
    errors.clear();
    errors.reserve(64);
    worker runs{list, [&] { return ExecuteUmsThread(itself) ? 0 : GetLastError(); }};
    itself = runs.context();
    struct all {
        PUMS_CONTEXT ended;
    } a{ended.context()};
    scheduler.hook_data = &a;
    scheduler.hook = [](round_robin& r, UMS_SCHEDULER_REASON, ULONG_PTR, PVOID) {
        const auto try_it = [](PUMS_CONTEXT context) {
            const BOOL done = ExecuteUmsThread(context);
            errors.push_back(done ? 0 : GetLastError());
        };
        if (errors.empty()) {
            try_it(nullptr);
            try_it(&r);
            try_it(reinterpret_cast<PUMS_CONTEXT>(~ULONG_PTR{0}));
        }
        if (is_terminated(static_cast<all*>(r.hook_data)->ended) && errors.size() == 3)
            try_it(static_cast<all*>(r.hook_data)->ended);
        return false;
    };
    run(3);
    EXPECT_EQ(errors, (std::vector<DWORD>{ERROR_INVALID_HANDLE, ERROR_INVALID_HANDLE,
                                          ERROR_INVALID_HANDLE, ERROR_GEN_FAILURE}));
    WaitForSingleObject(runs.thread(), INFINITE);
    EXPECT_EQ(runs.exit_code(), DWORD{ERROR_NOT_SUPPORTED});  // A worker is not a scheduler.
    errors = {};
}

TEST_F(windows_ums, a_worker_that_is_created_suspended_is_queued_when_it_is_resumed) {
    worker w{list, [] { return 5; }, CREATE_SUSPENDED};
    EXPECT_EQ(dequeue(list), nullptr);
    EXPECT_TRUE(is_suspended(w.context()));
    EXPECT_EQ(SuspendThread(w.thread()), 1u);
    EXPECT_EQ(ResumeThread(w.thread()), 2u);
    EXPECT_EQ(dequeue(list), nullptr);
    EXPECT_EQ(ResumeThread(w.thread()), 1u);
    EXPECT_FALSE(is_suspended(w.context()));
    EXPECT_EQ(ResumeThread(w.thread()), 0u);
    run(1);
    WaitForSingleObject(w.thread(), INFINITE);
    EXPECT_EQ(SuspendThread(w.thread()), ~DWORD{0});
}

TEST_F(windows_ums, a_worker_that_is_suspended_while_it_is_owned_does_not_run) {
    worker w{list, [] { return 5; }};
    const PUMS_CONTEXT one = dequeue(list);
    ASSERT_EQ(one, w.context());
    EXPECT_EQ(SuspendThread(w.thread()), 0u);
    EXPECT_TRUE(is_suspended(one));
    static DWORD error;
    error = 0;
    static HANDLE thread;
    thread = w.thread();
    scheduler.hook_data = one;
    scheduler.hook = [](round_robin& r, UMS_SCHEDULER_REASON reason, ULONG_PTR, PVOID) {
        if (reason != UmsSchedulerStartup) return false;
        error = ExecuteUmsThread(r.hook_data) ? 0 : GetLastError();
        ResumeThread(thread);
        r.push(r.hook_data);  // It did not come back by itself: its scheduler looks for it.
        return false;
    };
    run(1);
    EXPECT_EQ(error, DWORD{ERROR_GEN_FAILURE});
    EXPECT_EQ(dequeue(list), nullptr);
}

TEST_F(windows_ums, a_worker_that_suspends_itself_blocks_until_it_is_resumed) {
    const HANDLE mine = nullptr;
    std::atomic<HANDLE> thread{mine};
    worker w{list, [&] { return SuspendThread(GetCurrentThread()) + 7; }};
    thread = w.thread();
    {
        ends_ = 1;
        scheduler_thread s{scheduler};
        while (ResumeThread(thread) == 0) SwitchToThread();
    }
    WaitForSingleObject(w.thread(), INFINITE);
    EXPECT_EQ(w.exit_code(), 7u);
    EXPECT_EQ(scheduler.in_syscall, 2);
}

TEST_F(windows_ums, a_terminated_worker_ends_without_running) {
    std::atomic<bool> ran{false};
    worker w{list, [&] { return ran = true, 0; }};
    EXPECT_TRUE(TerminateThread(w.thread(), 31));
    run(1);
    EXPECT_EQ(WaitForSingleObject(w.thread(), INFINITE), WAIT_OBJECT_0);
    // The worker is queued once more if it ended between being dequeued and being looked at.
    PUMS_CONTEXT again = nullptr;
    EXPECT_TRUE(DequeueUmsCompletionListItems(list, 0, &again));
    if (again != nullptr) {
        EXPECT_EQ(again, w.context());
    }
    EXPECT_FALSE(ran);
    EXPECT_EQ(w.exit_code(), 31u);
    EXPECT_TRUE(TerminateThread(w.thread(), 32));
    EXPECT_EQ(w.exit_code(), 31u);
}

TEST_F(windows_ums, a_worker_that_is_terminated_while_it_waits_leaves_nothing_behind) {
    const holder event{CreateEvent(nullptr, FALSE, FALSE, nullptr)};
    std::atomic<HANDLE> thread{nullptr};
    worker w{list, [&] { return WaitForSingleObject(event, INFINITE); }};
    thread = w.thread();
    ends_ = 1;
    {
        scheduler_thread s{scheduler};
        while (scheduler.blocked == 0) SwitchToThread();
        EXPECT_TRUE(TerminateThread(thread, 33));
    }
    EXPECT_EQ(WaitForSingleObject(w.thread(), INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(w.exit_code(), 33u);
    EXPECT_TRUE(SetEvent(event));
    EXPECT_EQ(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
}

TEST_F(windows_ums, a_worker_that_is_terminated_while_it_runs_ends_in_its_next_wait) {
    const holder first{CreateEvent(nullptr, FALSE, FALSE, nullptr)};
    const holder never{CreateEvent(nullptr, FALSE, FALSE, nullptr)};
    std::atomic<int> step{0};
    worker w{list, [&] {
                 const HANDLE both[] = {never, first};
                 EXPECT_EQ(WaitForMultipleObjects(2, both, FALSE, INFINITE), WAIT_OBJECT_0 + 1);
                 for (step = 1; step == 1;) YieldProcessor();
                 return WaitForSingleObject(never, INFINITE);
             }};
    ends_ = 1;
    {
        scheduler_thread s{scheduler};
        while (scheduler.blocked == 0) SwitchToThread();
        EXPECT_TRUE(SetEvent(first));
        while (step == 0) SwitchToThread();
        EXPECT_TRUE(TerminateThread(w.thread(), 34));
        step = 2;
    }
    EXPECT_EQ(WaitForSingleObject(w.thread(), INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(w.exit_code(), 34u);
}

void wait_until_asleep(DWORD id) {
    for (char state = 0; state != 'S'; SwitchToThread()) {
        std::ifstream file{"/proc/self/task/" + std::to_string(id) + "/stat"};
        std::string number, name;
        ASSERT_TRUE(file >> number >> name >> state);
    }
}

// The end of one worker must not take away the wake-up that the other waits for.
TEST_F(windows_ums,
       a_worker_that_is_terminated_while_it_waits_for_a_section_leaves_it_to_the_next) {
    CRITICAL_SECTION section;
    InitializeCriticalSection(&section);
    for (int i = 0; i < 5; ++i) {
        EnterCriticalSection(&section);
        const auto pass = [&]() -> DWORD {
            EnterCriticalSection(&section);
            LeaveCriticalSection(&section);
            return 0;
        };
        worker w{list, pass};
        scheduler.blocked = 0;
        ends_ = 1;
        scheduler_thread s{scheduler};
        while (scheduler.blocked == 0) SwitchToThread();
        wait_until_asleep(w.id());
        std::atomic<DWORD> next_id{0};
        const other_thread next{[&] {
            next_id = GetCurrentThreadId();
            return pass();
        }};
        while (next_id == 0) SwitchToThread();
        wait_until_asleep(next_id);
        EXPECT_TRUE(TerminateThread(w.thread(), 7));
        LeaveCriticalSection(&section);
    }
    DeleteCriticalSection(&section);
}

TEST_F(windows_ums, entering_again_and_again) {
    for (int i = 0; i < 10; ++i) {
        worker w{list, [] { return UmsThreadYield(nullptr), 0; }};
        run(1);
    }
    EXPECT_EQ(scheduler.startups, 10);
    EXPECT_EQ(GetCurrentUmsThread(), nullptr);
}

VOID NTAPI leave_at_once(UMS_SCHEDULER_REASON, ULONG_PTR, PVOID) {}

TEST_F(windows_ums, entering_with_wrong_arguments_is_refused) {
    UMS_SCHEDULER_STARTUP_INFO info{UMS_VERSION, list, leave_at_once, nullptr};
    EXPECT_TRUE(EnterUmsSchedulingMode(&info));
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, EnterUmsSchedulingMode(nullptr));
    info.UmsVersion = 0x0200;
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, EnterUmsSchedulingMode(&info));
    info = {UMS_VERSION, nullptr, leave_at_once, nullptr};
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, EnterUmsSchedulingMode(&info));
    info = {UMS_VERSION, &info, leave_at_once, nullptr};
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, EnterUmsSchedulingMode(&info));
    info = {UMS_VERSION, list, nullptr, nullptr};
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, EnterUmsSchedulingMode(&info));
    EXPECT_FAILS(ERROR_NOT_SUPPORTED, UmsThreadYield(nullptr));
    // Called by a worker, and by a scheduler.
    worker w{list, [&] {
                 UMS_SCHEDULER_STARTUP_INFO mine{UMS_VERSION, list, leave_at_once, nullptr};
                 return EnterUmsSchedulingMode(&mine) ? 0 : GetLastError();
             }};
    scheduler.hook_data = list;
    scheduler.hook = [](round_robin& r, UMS_SCHEDULER_REASON reason, ULONG_PTR, PVOID) {
        if (reason == UmsSchedulerStartup) {
            UMS_SCHEDULER_STARTUP_INFO mine{UMS_VERSION, r.hook_data, leave_at_once, nullptr};
            EXPECT_FALSE(EnterUmsSchedulingMode(&mine));
            EXPECT_EQ(GetLastError(), DWORD{ERROR_NOT_SUPPORTED});
            EXPECT_FALSE(UmsThreadYield(nullptr));
            EXPECT_EQ(GetLastError(), DWORD{ERROR_NOT_SUPPORTED});
        }
        return false;
    };
    run(1);
    WaitForSingleObject(w.thread(), INFINITE);
    EXPECT_EQ(w.exit_code(), DWORD{ERROR_NOT_SUPPORTED});
}

TEST_F(windows_ums, a_scheduler_thread_that_exits_in_its_procedure_ends) {
    for (const bool by_termination : {false, true}) {
        ends_ = 1;
        worker w{list, [] { return UmsThreadYield(nullptr), 0; }};
        scheduler.hook_data = by_termination ? this : nullptr;
        scheduler.hook = [](round_robin& r, UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID) {
            if (reason != UmsSchedulerThreadYield) return false;
            r.push(reinterpret_cast<PUMS_CONTEXT>(payload));
            if (r.hook_data != nullptr) TerminateThread(GetCurrentThread(), 61);
            return ExitThread(60), true;
        };
        const holder thread{CreateThread(
            nullptr, 0,
            [](LPVOID r) -> DWORD { return static_cast<round_robin*>(r)->enter() ? 1 : 2; },
            &scheduler, 0, nullptr)};
        EXPECT_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
        DWORD code = 0;
        EXPECT_TRUE(GetExitCodeThread(thread, &code));
        EXPECT_EQ(code, by_termination ? 61u : 60u);
        scheduler.hook = nullptr;
        run(1);  // Another one takes over.
    }
}

TEST_F(windows_ums, user_data_of_workers_and_schedulers) {
    PVOID data = &list;
    ULONG length = 0;
    worker w{list, [&] {
                 PVOID mine = nullptr;
                 EXPECT_TRUE(QueryUmsThreadInformation(GetCurrentUmsThread(), UmsThreadUserContext,
                                                       &mine, sizeof mine, nullptr));
                 return mine == this ? 0u : 1u;
             }};
    EXPECT_TRUE(
        QueryUmsThreadInformation(w.context(), UmsThreadUserContext, &data, sizeof data, &length));
    EXPECT_EQ(data, nullptr);
    EXPECT_EQ(length, sizeof data);
    data = this;
    EXPECT_TRUE(SetUmsThreadInformation(w.context(), UmsThreadUserContext, &data, sizeof data));

    BOOLEAN flag = 7;
    const PUMS_CONTEXT c = w.context();
    EXPECT_FAILS(ERROR_BAD_LENGTH,
                 QueryUmsThreadInformation(c, UmsThreadUserContext, &data, 4, &length));
    EXPECT_FAILS(ERROR_BAD_LENGTH,
                 QueryUmsThreadInformation(c, UmsThreadIsSuspended, &data, sizeof data, &length));
    EXPECT_FAILS(ERROR_BAD_LENGTH, SetUmsThreadInformation(c, UmsThreadUserContext, &data, 1));
    EXPECT_FAILS(ERROR_INVALID_PARAMETER,
                 SetUmsThreadInformation(c, UmsThreadIsTerminated, &flag, 1));
    for (const UMS_THREAD_INFO_CLASS none :
         {UmsThreadInvalidInfoClass, UmsThreadPriority, UmsThreadAffinity, UmsThreadMaxInfoClass}) {
        EXPECT_FAILS(ERROR_INVALID_PARAMETER,
                     QueryUmsThreadInformation(c, none, &data, sizeof data, nullptr));
        EXPECT_FAILS(ERROR_INVALID_PARAMETER, SetUmsThreadInformation(c, none, &data, sizeof data));
    }
    EXPECT_FAILS(ERROR_INVALID_HANDLE, QueryUmsThreadInformation(&flag, UmsThreadUserContext, &data,
                                                                 sizeof data, nullptr));
    EXPECT_FAILS(ERROR_INVALID_HANDLE,
                 SetUmsThreadInformation(nullptr, UmsThreadUserContext, &data, sizeof data));

    scheduler.hook = [](round_robin& r, UMS_SCHEDULER_REASON reason, ULONG_PTR, PVOID) {
        const PUMS_CONTEXT own = GetCurrentUmsThread();
        EXPECT_NE(own, nullptr);
        PVOID mine = nullptr;
        if (reason == UmsSchedulerStartup) {
            PVOID value = &r;
            EXPECT_TRUE(SetUmsThreadInformation(own, UmsThreadUserContext, &value, sizeof value));
        } else {
            EXPECT_TRUE(
                QueryUmsThreadInformation(own, UmsThreadUserContext, &mine, sizeof mine, nullptr));
            EXPECT_EQ(mine, &r);
        }
        return false;
    };
    run(1);
    WaitForSingleObject(w.thread(), INFINITE);
    EXPECT_EQ(w.exit_code(), 0u);
}

TEST_F(windows_ums, an_unblocked_worker_goes_to_the_list_of_who_executed_it_last) {
    completion_list first;
    worker w{first, [] { return Sleep(5), 0; }};
    scheduler.push(dequeue(first));
    run(1);  // It dequeues from `list` only.
    EXPECT_EQ(dequeue(first), nullptr);
    EXPECT_EQ(scheduler.in_syscall, 2);
}

TEST_F(windows_ums, what_kind_of_thread_it_is) {
    static HANDLE scheduler_handle, worker_handle;
    const auto is = [](HANDLE thread, ULONG flags) {
        UMS_SYSTEM_THREAD_INFORMATION information{UMS_VERSION, {}};
        information.ThreadUmsFlags = flags;
        SetLastError(0);
        const BOOL yes = GetUmsSystemThreadInformation(thread, &information);
        EXPECT_EQ(GetLastError(), 0u);
        return yes != FALSE;
    };
    static const auto kind = is;
    const auto expect = [](HANDLE thread, ULONG right) {
        for (ULONG flags = 0; flags < 4; ++flags)
            EXPECT_EQ(kind(thread, flags), flags == right) << flags;
    };
    static const auto check = expect;
    must(DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(),
                         &scheduler_handle, 0, FALSE, 2));
    check(GetCurrentThread(), 0);
    worker w{list, [&] {
                 check(GetCurrentThread(), 2);
                 check(scheduler_handle, 1);
                 return 0;
             }};
    worker_handle = w.thread();
    check(worker_handle, 2);
    scheduler.hook = [](round_robin&, UMS_SCHEDULER_REASON, ULONG_PTR, PVOID) {
        check(GetCurrentThread(), 1);
        check(worker_handle, 2);
        return false;
    };
    run(1);
    check(scheduler_handle, 0);
    UMS_SYSTEM_THREAD_INFORMATION information{0x0200, {}};
    EXPECT_FAILS(ERROR_INVALID_PARAMETER,
                 GetUmsSystemThreadInformation(scheduler_handle, &information));
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, GetUmsSystemThreadInformation(scheduler_handle, nullptr));
    information.UmsVersion = UMS_VERSION;
    EXPECT_FAILS(ERROR_INVALID_HANDLE, GetUmsSystemThreadInformation(nullptr, &information));
    EXPECT_TRUE(CloseHandle(scheduler_handle));
}

TEST_F(windows_ums, errors_of_attribute_lists) {
    SIZE_T bytes = 0;
    EXPECT_FAILS(ERROR_INSUFFICIENT_BUFFER,
                 InitializeProcThreadAttributeList(nullptr, 1, 0, &bytes));
    EXPECT_GT(bytes, 0u);
    std::vector<char> memory(bytes);
    const auto attributes = reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory.data());
    UMS_CREATE_THREAD_ATTRIBUTES as{UMS_VERSION, nullptr, list};
    const auto update = [&](DWORD flags, DWORD_PTR what, PVOID value, SIZE_T size) {
        return UpdateProcThreadAttribute(attributes, flags, what, value, size, nullptr, nullptr);
    };
    const DWORD_PTR ums = PROC_THREAD_ATTRIBUTE_UMS_THREAD;
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, update(0, ums, &as, sizeof as));  // Not initialised yet.
    SIZE_T less = bytes - 1;
    EXPECT_FAILS(ERROR_INSUFFICIENT_BUFFER,
                 InitializeProcThreadAttributeList(attributes, 1, 0, &less));
    EXPECT_FAILS(ERROR_INVALID_PARAMETER,
                 InitializeProcThreadAttributeList(attributes, 1, 1, &bytes));
    EXPECT_FAILS(ERROR_INVALID_PARAMETER,
                 InitializeProcThreadAttributeList(attributes, 1, 0, nullptr));
    EXPECT_TRUE(InitializeProcThreadAttributeList(attributes, 1, 0, &bytes));
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, update(1, ums, &as, sizeof as));
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, update(0, ums, nullptr, sizeof as));
    EXPECT_FAILS(ERROR_NOT_SUPPORTED, update(0, ums + 1, &as, sizeof as));
    EXPECT_FAILS(ERROR_BAD_LENGTH, update(0, ums, &as, sizeof as - 1));
    EXPECT_TRUE(update(0, ums, &as, sizeof as));
    EXPECT_FAILS(ERROR_GEN_FAILURE, update(0, ums, &as, sizeof as));  // Full.

    const auto create = [&] {
        return CreateRemoteThreadEx(
            GetCurrentProcess(), nullptr, 0, [](LPVOID) -> DWORD { return 0; }, nullptr, 0,
            attributes, nullptr);
    };
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, create());  // No context.
    PUMS_CONTEXT context = nullptr;
    must(CreateUmsThreadContext(&context));
    as.UmsContext = context;
    as.UmsVersion = 1;
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, create());
    as = {UMS_VERSION, context, nullptr};
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, create());
    as = {UMS_VERSION, context, &as};
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, create());
    as = {UMS_VERSION, &as, list};
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, create());
    DeleteProcThreadAttributeList(attributes);
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, create());
    EXPECT_TRUE(DeleteUmsThreadContext(context));
    EXPECT_FAILS(ERROR_INVALID_HANDLE, DeleteUmsThreadContext(context));
    EXPECT_FAILS(ERROR_INVALID_HANDLE, DeleteUmsThreadContext(&context));
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, CreateUmsThreadContext(nullptr));
    EXPECT_FAILS(ERROR_INVALID_PARAMETER, CreateUmsCompletionList(nullptr));
}

TEST_F(windows_ums, a_small_stack_of_a_worker_is_what_is_committed_at_first) {
    PUMS_CONTEXT context = nullptr;
    must(CreateUmsThreadContext(&context));
    const holder thread{worker_attributes{list, context}.create_sized(4096, use_stack, nullptr)};
    run(1);
    EXPECT_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    EXPECT_TRUE(DeleteUmsThreadContext(context));
}

TEST_F(windows_ums, a_context_has_one_live_thread_and_lives_as_long_as_it) {
    {
        worker w{list, [] { return UmsThreadYield(nullptr), 0; }};
        worker_attributes again{list, w.context()};
        EXPECT_FAILS(ERROR_INVALID_PARAMETER,
                     again.create([](LPVOID) -> DWORD { return 0; }, nullptr));
        EXPECT_FAILS(ERROR_INVALID_PARAMETER, DeleteUmsThreadContext(w.context()));
        EXPECT_FAILS(ERROR_INVALID_PARAMETER, DeleteUmsCompletionList(list));  // It is not empty.
        run(1);
    }
    EXPECT_FAILS(ERROR_INVALID_HANDLE, DeleteUmsCompletionList(&ends_));
    EXPECT_FAILS(ERROR_INVALID_HANDLE, DeleteUmsCompletionList(nullptr));
}

TEST_F(windows_ums, a_worker_may_use_fibers) {
    worker w{list, []() -> DWORD {
                 const LPVOID self = ConvertThreadToFiber(nullptr);
                 const LPVOID other = CreateFiber(
                     0,
                     [](LPVOID back) {
                         for (;;) {
                             UmsThreadYield(nullptr);
                             Sleep(1);
                             SwitchToFiber(back);
                         }
                     },
                     self);
                 for (int i = 0; i < 3; ++i) SwitchToFiber(other);
                 DeleteFiber(other);
                 return ConvertFiberToThread() ? 0 : 1;
             }};
    run(1);
    WaitForSingleObject(w.thread(), INFINITE);
    EXPECT_EQ(w.exit_code(), 0u);
    EXPECT_EQ(scheduler.yields, 3);
    EXPECT_EQ(scheduler.in_syscall, 4);
}

TEST_F(windows_ums, a_scheduler_and_its_workers_allocate_at_the_same_time) {
    const int n = scaled(3000, 300);
    std::deque<worker> workers;
    for (int k = 0; k < 8; ++k)
        workers.emplace_back(list, [&] {
            for (int i = 0; i < n; ++i) {
                const LPVOID at = HeapAlloc(GetProcessHeap(), 0, static_cast<SIZE_T>(1 + i % 5000));
                std::string text(static_cast<std::size_t>(i % 3000), 'x');
                if (i % 64 == 0) UmsThreadYield(&text);
                if (i % 512 == 0) Sleep(1);
                HeapFree(GetProcessHeap(), 0, at);
            }
            return 0;
        });
    scheduler.hook = [](round_robin&, UMS_SCHEDULER_REASON, ULONG_PTR, PVOID) {
        for (SIZE_T i = 1; i < 20; ++i)
            HeapFree(GetProcessHeap(), 0, HeapAlloc(GetProcessHeap(), 0, i * 1000));
        return false;
    };
    run(8);
}

}  // namespace
