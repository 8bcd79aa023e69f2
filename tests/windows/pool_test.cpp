// SPDX-License-Identifier: MIT
// The thread pool and timer queues, by their Windows names.
#include "windows/holders.hpp"

#include <functional>

namespace {

using function = std::function<void()>;

DWORD WINAPI call(LPVOID f) { return (*static_cast<function*>(f))(), 0; }
VOID CALLBACK call_on_time(PVOID f, BOOLEAN is_timer) {
    EXPECT_TRUE(is_timer);
    (*static_cast<function*>(f))();
}
VOID CALLBACK call_work(PTP_CALLBACK_INSTANCE, PVOID f, PTP_WORK) {
    (*static_cast<function*>(f))();
}

struct event : holder {
    event() : holder{CreateEvent(nullptr, TRUE, FALSE, nullptr)} {}
    void set() const { EXPECT_TRUE(SetEvent(of)); }
    void wait() const { EXPECT_EQ(WaitForSingleObject(of, INFINITE), WAIT_OBJECT_0); }
    bool is_set() const { return WaitForSingleObject(of, 0) == WAIT_OBJECT_0; }
};

// Each function waits for the last.
TEST(windows_pool, functions_that_wait_do_not_hold_up_others) {
    constexpr LONG items = 40;
    LONG volatile came = 0;
    event all;
    LONG volatile left = items;
    event gone;
    function item = [&] {
        if (InterlockedIncrement(&came) == items) all.set();
        all.wait();
        if (InterlockedDecrement(&left) == 0) gone.set();
    };
    for (LONG i = 0; i < items; ++i) ASSERT_TRUE(QueueUserWorkItem(call, &item, 0));
    gone.wait();
}

TEST(windows_pool, a_timer_is_not_held_up_by_the_function_of_another) {
    event second, first;
    function waits = [&] { second.wait(), first.set(); }, wakes = [&] { second.set(); };
    const HANDLE queue = CreateTimerQueue();
    HANDLE one = nullptr, other = nullptr;
    ASSERT_TRUE(CreateTimerQueueTimer(&one, queue, call_on_time, &waits, 0, 0, 0));
    ASSERT_TRUE(CreateTimerQueueTimer(&other, queue, call_on_time, &wakes, 20, 0, 0));
    first.wait();
    EXPECT_TRUE(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
}

TEST(windows_pool, a_timer_comes_again_each_period_until_it_is_deleted) {
    LONG volatile times = 0;
    event enough;
    function count = [&] {
        if (InterlockedIncrement(&times) == 5) enough.set();
    };
    HANDLE timer = nullptr;
    const ULONGLONG begin = GetTickCount64();
    ASSERT_TRUE(CreateTimerQueueTimer(&timer, nullptr, call_on_time, &count, 1, 2, 0));
    enough.wait();
    EXPECT_GE(GetTickCount64() - begin, 8u);  // 1 + 4 * 2, less one tick.
    EXPECT_TRUE(DeleteTimerQueueTimer(nullptr, timer, INVALID_HANDLE_VALUE));
    const LONG then = times;
    Sleep(10);
    EXPECT_EQ(times, then);
}

TEST(windows_pool, a_timer_that_has_run_once_does_not_run_again) {
    LONG volatile times = 0;
    event ran;
    function count = [&] { InterlockedIncrement(&times), ran.set(); };
    HANDLE timer = nullptr;
    EXPECT_FALSE(
        CreateTimerQueueTimer(&timer, nullptr, call_on_time, &count, 0, 1, WT_EXECUTEONLYONCE));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    ASSERT_TRUE(CreateTimerQueueTimer(&timer, nullptr, call_on_time, &count, 60'000, 0,
                                      WT_EXECUTEONLYONCE));
    EXPECT_TRUE(ChangeTimerQueueTimer(nullptr, timer, 0, 0));
    ran.wait();
    EXPECT_TRUE(ChangeTimerQueueTimer(nullptr, timer, 0, 0));
    EXPECT_TRUE(DeleteTimerQueueTimer(nullptr, timer, INVALID_HANDLE_VALUE));
    EXPECT_EQ(times, 1);
}

TEST(windows_pool, deleting_a_timer_that_runs_tells_when_it_has_ended) {
    event runs, goes_on, told;
    function waits = [&] { runs.set(), goes_on.wait(); };
    HANDLE timer = nullptr;
    ASSERT_TRUE(CreateTimerQueueTimer(&timer, nullptr, call_on_time, &waits, 0, 0, 0));
    runs.wait();
    EXPECT_FALSE(DeleteTimerQueueTimer(nullptr, timer, told.of));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_IO_PENDING});
    EXPECT_FALSE(told.is_set());
    goes_on.set();
    told.wait();

    event at_once;
    ASSERT_TRUE(CreateTimerQueueTimer(&timer, nullptr, call_on_time, &waits, 60'000, 0, 0));
    EXPECT_TRUE(DeleteTimerQueueTimer(nullptr, timer, at_once.of));
    EXPECT_TRUE(at_once.is_set());
}

TEST(windows_pool, a_function_deletes_the_timer_that_runs_it) {
    event ended, is_made;
    HANDLE timer = nullptr;
    function ends = [&] {
        is_made.wait();
        EXPECT_FALSE(DeleteTimerQueueTimer(nullptr, timer, ended.of));
        EXPECT_EQ(GetLastError(), DWORD{ERROR_IO_PENDING});
    };
    ASSERT_TRUE(CreateTimerQueueTimer(&timer, nullptr, call_on_time, &ends, 0, 0, 0));
    is_made.set();
    ended.wait();
}

TEST(windows_pool, work_is_waited_for_and_freed_when_the_last_has_ended) {
    LONG volatile times = 0;
    event go;
    function count = [&] { go.wait(), InterlockedIncrement(&times); };
    const PTP_WORK work = CreateThreadpoolWork(call_work, &count, nullptr);
    for (int i = 0; i < 3; ++i) SubmitThreadpoolWork(work);
    go.set();
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    EXPECT_EQ(times, 3);
    event last;
    function closes = [&] { last.set(); };
    const PTP_WORK other = CreateThreadpoolWork(call_work, &closes, nullptr);
    SubmitThreadpoolWork(other);
    CloseThreadpoolWork(other);
    last.wait();
    WaitForThreadpoolWorkCallbacks(work, TRUE);
    CloseThreadpoolWork(work);
}

}  // namespace
