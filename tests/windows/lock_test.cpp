// SPDX-License-Identifier: MIT
// Critical sections, SRW locks, condition variables, one-time initialisation, interlocked
// operations, by their Windows names.
#include <atomic>
#include <memory>
#include <vector>

#include "support/conservation.hpp"
#include "windows/holders.hpp"

#include <intrin.h>

namespace {

class windows_locks : public conserving_test {};

template <class F>
void on_threads(int n, F f) {
    std::vector<std::unique_ptr<other_thread<F>>> all;
    for (int i = 0; i < n; ++i) all.push_back(std::make_unique<other_thread<F>>(f));
}

TEST_F(windows_locks, a_critical_section_is_recursive_and_exclusive) {
    CRITICAL_SECTION section;
    ASSERT_TRUE(InitializeCriticalSectionAndSpinCount(&section, 100));
    EXPECT_EQ(SetCriticalSectionSpinCount(&section, 50), 100u);
    EnterCriticalSection(&section);
    EXPECT_TRUE(TryEnterCriticalSection(&section));
    {
        other_thread t{[&]() -> DWORD {
            EXPECT_FALSE(TryEnterCriticalSection(&section));
            return 0;
        }};
    }
    LeaveCriticalSection(&section);
    {
        other_thread t{[&]() -> DWORD {
            EXPECT_FALSE(TryEnterCriticalSection(&section));
            return 0;
        }};
    }
    LeaveCriticalSection(&section);
    DeleteCriticalSection(&section);

    ASSERT_TRUE(InitializeCriticalSectionEx(&section, 0, 0));
    long sum = 0;
    const int n = scaled(20'000, 2'000);
    on_threads(4, [&]() -> DWORD {
        for (int i = 0; i < n; ++i) {
            EnterCriticalSection(&section);
            ++sum;
            LeaveCriticalSection(&section);
        }
        return 0;
    });
    EXPECT_EQ(sum, 4L * n);
    DeleteCriticalSection(&section);
}

TEST_F(windows_locks, an_srw_lock_has_many_readers_or_one_writer) {
    SRWLOCK lock;
    InitializeSRWLock(&lock);
    AcquireSRWLockShared(&lock);
    {
        other_thread t{[&]() -> DWORD {
            EXPECT_TRUE(TryAcquireSRWLockShared(&lock));
            EXPECT_FALSE(TryAcquireSRWLockExclusive(&lock));
            ReleaseSRWLockShared(&lock);
            return 0;
        }};
    }
    ReleaseSRWLockShared(&lock);
    EXPECT_TRUE(TryAcquireSRWLockExclusive(&lock));
    {
        other_thread t{[&]() -> DWORD {
            EXPECT_FALSE(TryAcquireSRWLockShared(&lock));
            EXPECT_FALSE(TryAcquireSRWLockExclusive(&lock));
            return 0;
        }};
    }
    ReleaseSRWLockExclusive(&lock);
    long both[2] = {0, 0};
    std::atomic<int> wrong{0};
    const int n = scaled(20'000, 2'000);
    on_threads(4, [&]() -> DWORD {
        for (int i = 0; i < n; ++i)
            if (i % 8 == 0) {
                AcquireSRWLockExclusive(&lock);
                ++both[0];
                ++both[1];
                ReleaseSRWLockExclusive(&lock);
            } else {
                AcquireSRWLockShared(&lock);
                if (both[0] != both[1]) ++wrong;
                ReleaseSRWLockShared(&lock);
            }
        return 0;
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(both[0], 4L * ((n + 7) / 8));
}

TEST_F(windows_locks, a_condition_variable_wakes_who_sleeps) {
    SRWLOCK lock = SRWLOCK_INIT;
    CONDITION_VARIABLE changed;
    InitializeConditionVariable(&changed);
    CRITICAL_SECTION section;
    InitializeCriticalSection(&section);
    AcquireSRWLockExclusive(&lock);
    EXPECT_FALSE(SleepConditionVariableSRW(&changed, &lock, 1, 0));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_TIMEOUT});
    ReleaseSRWLockExclusive(&lock);
    AcquireSRWLockShared(&lock);
    EXPECT_FALSE(SleepConditionVariableSRW(&changed, &lock, 1, CONDITION_VARIABLE_LOCKMODE_SHARED));
    EXPECT_TRUE(TryAcquireSRWLockShared(&lock));
    ReleaseSRWLockShared(&lock);
    ReleaseSRWLockShared(&lock);
    EnterCriticalSection(&section);
    EXPECT_FALSE(SleepConditionVariableCS(&changed, &section, 0));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_TIMEOUT});
    LeaveCriticalSection(&section);

    // A queue with one place.
    const int n = scaled(5'000, 500);
    int place = 0;
    long sum = 0;
    {
        other_thread consumer{[&]() -> DWORD {
            for (int i = 0; i < n; ++i) {
                EnterCriticalSection(&section);
                while (place == 0) SleepConditionVariableCS(&changed, &section, INFINITE);
                sum += place;
                place = 0;
                LeaveCriticalSection(&section);
                WakeAllConditionVariable(&changed);
            }
            return 0;
        }};
        for (int i = 1; i <= n; ++i) {
            EnterCriticalSection(&section);
            while (place != 0) SleepConditionVariableCS(&changed, &section, INFINITE);
            place = i;
            LeaveCriticalSection(&section);
            WakeConditionVariable(&changed);
        }
    }
    EXPECT_EQ(sum, static_cast<long>(n) * (n + 1) / 2);
    DeleteCriticalSection(&section);
}

BOOL CALLBACK count_call(PINIT_ONCE, PVOID parameter, PVOID* context) {
    auto& calls = *static_cast<std::atomic<int>*>(parameter);
    *context = &calls;
    return ++calls != 1;  // The first attempt fails.
}

TEST_F(windows_locks, what_is_initialised_once_is_tried_until_it_succeeds) {
    static INIT_ONCE once = INIT_ONCE_STATIC_INIT;
    InitOnceInitialize(&once);
    std::atomic<int> calls{0}, failures{0};
    on_threads(4, [&]() -> DWORD {
        LPVOID context = nullptr;
        while (!InitOnceExecuteOnce(&once, count_call, &calls, &context)) ++failures;
        EXPECT_EQ(context, &calls);
        return 0;
    });
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(failures, 1);
}

TEST_F(windows_locks, interlocked_operations_return_what_windows_returns) {
    LONG volatile a = 5;
    EXPECT_EQ(InterlockedIncrement(&a), 6);
    EXPECT_EQ(InterlockedDecrement(&a), 5);
    EXPECT_EQ(InterlockedExchange(&a, 9), 5);
    EXPECT_EQ(InterlockedExchangeAdd(&a, 2), 9);
    int evaluated = 0;
    EXPECT_EQ(InterlockedAdd(&a, ++evaluated + 1), 13);
    EXPECT_EQ(evaluated, 1);
    EXPECT_EQ(InterlockedCompareExchange(&a, 1, 7), 13);
    EXPECT_EQ(InterlockedCompareExchange(&a, 6, 13), 13);
    EXPECT_EQ(InterlockedOr(&a, 1), 6);
    EXPECT_EQ(InterlockedAnd(&a, 3), 7);
    EXPECT_EQ(InterlockedXor(&a, 1), 3);
    EXPECT_EQ(InterlockedBitTestAndSet(&a, 4), 0);
    EXPECT_EQ(InterlockedBitTestAndReset(&a, 4), 1);
    EXPECT_EQ(_InterlockedIncrement(&a), 3);

    LONG64 volatile b = 1LL << 40;
    EXPECT_EQ(InterlockedIncrement64(&b), (1LL << 40) + 1);
    EXPECT_EQ(InterlockedDecrement64(&b), 1LL << 40);
    EXPECT_EQ(InterlockedExchange64(&b, 3), 1LL << 40);
    EXPECT_EQ(InterlockedExchangeAdd64(&b, 3), 3);
    EXPECT_EQ(InterlockedAdd64(&b, 1), 7);
    EXPECT_EQ(InterlockedOr64(&b, 8), 7);
    EXPECT_EQ(InterlockedAnd64(&b, 12), 15);
    EXPECT_EQ(InterlockedXor64(&b, 4), 12);
    EXPECT_EQ(InterlockedCompareExchange64(&b, 1, 8), 8);

    SHORT volatile c = 1;
    EXPECT_EQ(InterlockedIncrement16(&c), 2);
    EXPECT_EQ(InterlockedDecrement16(&c), 1);
    EXPECT_EQ(InterlockedExchange16(&c, 6), 1);
    EXPECT_EQ(InterlockedOr16(&c, 1), 6);
    EXPECT_EQ(InterlockedAnd16(&c, 3), 7);
    EXPECT_EQ(InterlockedXor16(&c, 2), 3);
    EXPECT_EQ(InterlockedCompareExchange16(&c, 0, 1), 1);
    EXPECT_EQ(InterlockedExchangeAdd16(&c, 3), 0);
    EXPECT_EQ(InterlockedAdd16(&c, 3), 6);

    long volatile d = 1L << 40;  // In C++; on Windows this would be a LONG.
    EXPECT_EQ(InterlockedIncrement(&d), (1L << 40) + 1);
    EXPECT_EQ(InterlockedCompareExchange(&d, 5, (1L << 40) + 1), (1L << 40) + 1);
    EXPECT_EQ(InterlockedExchangeAdd64(&d, 1), 5);

    PVOID volatile p = nullptr;
    int x = 0;
    EXPECT_EQ(InterlockedExchangePointer(&p, &x), nullptr);
    EXPECT_EQ(InterlockedCompareExchangePointer(&p, nullptr, &x), &x);
    EXPECT_EQ(p, nullptr);
    MemoryBarrier();
    _ReadWriteBarrier();
    YieldProcessor();
}

TEST_F(windows_locks, interlocked_lists_lose_nothing) {
    struct item {
        SLIST_ENTRY entry;
        int number;
    };
    SLIST_HEADER head;
    InitializeSListHead(&head);
    EXPECT_EQ(InterlockedPopEntrySList(&head), nullptr);
    constexpr int each = 100;
    std::vector<item> items(4 * each);
    std::atomic<int> next{0};
    on_threads(4, [&]() -> DWORD {
        for (int i = 0; i < each; ++i) {
            item& one = items[static_cast<std::size_t>(next++)];
            one.number = 1;
            InterlockedPushEntrySList(&head, &one.entry);
            if (PSLIST_ENTRY const popped = InterlockedPopEntrySList(&head)) {
                CONTAINING_RECORD(popped, item, entry)->number++;
                InterlockedPushEntrySList(&head, popped);
            }
        }
        return 0;
    });
    EXPECT_EQ(QueryDepthSList(&head), 4 * each);
    int n = 0;
    for (PSLIST_ENTRY one = InterlockedFlushSList(&head); one != nullptr; one = one->Next) ++n;
    EXPECT_EQ(n, 4 * each);
    EXPECT_EQ(QueryDepthSList(&head), 0);
}

}  // namespace
