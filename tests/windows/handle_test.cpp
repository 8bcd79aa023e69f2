// SPDX-License-Identifier: MIT
// Handles, waits, events, semaphores and mutexes by their Windows names.
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "support/conservation.hpp"
#include "support/seed.hpp"

#include "windows/holders.hpp"

namespace {

class handles : public conserving_test {};

HANDLE make_event(BOOL manual, BOOL set) {
    const HANDLE made = CreateEvent(nullptr, manual, set, nullptr);
    EXPECT_NE(made, nullptr);
    return made;
}

TEST_F(handles, what_is_no_handle_is_refused_by_every_call) {
    const HANDLE closed = make_event(TRUE, TRUE);
    ASSERT_TRUE(CloseHandle(closed));
    for (const HANDLE bad :
         {HANDLE{nullptr}, closed, reinterpret_cast<HANDLE>(std::uintptr_t{0x123454}),
          reinterpret_cast<HANDLE>(~std::uintptr_t{0} / 3)}) {
        const auto refused = [](auto result, auto failure) {
            EXPECT_EQ(result, failure);
            EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
            SetLastError(0);
        };
        refused(SetEvent(bad), FALSE);
        refused(ResetEvent(bad), FALSE);
        refused(PulseEvent(bad), FALSE);
        refused(CloseHandle(bad), FALSE);
        refused(ReleaseMutex(bad), FALSE);
        refused(ReleaseSemaphore(bad, 1, nullptr), FALSE);
        refused(WaitForSingleObject(bad, 0), DWORD{WAIT_FAILED});
        refused(WaitForMultipleObjects(1, &bad, TRUE, 0), DWORD{WAIT_FAILED});
        refused(SuspendThread(bad), ~DWORD{0});
        refused(ResumeThread(bad), ~DWORD{0});
        refused(TerminateThread(bad, 0), FALSE);
        DWORD code = 0;
        refused(GetExitCodeThread(bad, &code), FALSE);
        refused(GetThreadId(bad), DWORD{0});
        HANDLE copy = nullptr;
        refused(DuplicateHandle(GetCurrentProcess(), bad, GetCurrentProcess(), &copy, 0, FALSE,
                                DUPLICATE_SAME_ACCESS),
                FALSE);
    }
}

TEST_F(handles, another_kind_of_handle_is_refused) {
    const holder semaphore{CreateSemaphore(nullptr, 1, 1, nullptr)};
    EXPECT_FALSE(SetEvent(semaphore));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
    EXPECT_FALSE(ReleaseMutex(semaphore));
    EXPECT_EQ(ResumeThread(semaphore), ~DWORD{0});
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
}

TEST_F(handles, a_closed_handle_stays_closed_when_its_place_is_used_again) {
    std::vector<HANDLE> old;
    for (int i = 0; i < 300; ++i) {
        old.push_back(make_event(TRUE, TRUE));
        ASSERT_TRUE(CloseHandle(old.back()));
    }
    const holder one{make_event(FALSE, FALSE)};
    for (const HANDLE h : old) EXPECT_FALSE(SetEvent(h));
    EXPECT_EQ(WaitForSingleObject(one, 0), DWORD{WAIT_TIMEOUT});
}

TEST_F(handles, a_duplicate_stands_for_the_same_object) {
    const HANDLE one = make_event(FALSE, FALSE);
    HANDLE two = nullptr;
    ASSERT_TRUE(DuplicateHandle(GetCurrentProcess(), one, GetCurrentProcess(), &two, 0, FALSE,
                                DUPLICATE_SAME_ACCESS));
    EXPECT_NE(one, two);
    EXPECT_TRUE(SetEvent(one));
    EXPECT_TRUE(CloseHandle(one));
    EXPECT_EQ(WaitForSingleObject(two, 0), WAIT_OBJECT_0);
    HANDLE three = nullptr;
    ASSERT_TRUE(DuplicateHandle(GetCurrentProcess(), two, GetCurrentProcess(), &three, 0, FALSE,
                                DUPLICATE_CLOSE_SOURCE));
    EXPECT_FALSE(CloseHandle(two));
    EXPECT_TRUE(CloseHandle(three));
    EXPECT_FALSE(DuplicateHandle(nullptr, three, GetCurrentProcess(), &two, 0, FALSE, 0));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
}

TEST_F(handles, an_auto_reset_event_lets_one_wait_through_and_a_manual_one_all) {
    const holder automatic{make_event(FALSE, TRUE)}, manual{make_event(TRUE, TRUE)};
    EXPECT_EQ(WaitForSingleObject(automatic, 0), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForSingleObject(automatic, 0), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(WaitForSingleObject(manual, 0), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForSingleObjectEx(manual, 0, TRUE), WAIT_OBJECT_0);
    EXPECT_TRUE(ResetEvent(manual));
    EXPECT_EQ(WaitForSingleObject(manual, 0), DWORD{WAIT_TIMEOUT});
}

TEST_F(handles, a_wait_ends_when_its_time_is_over_and_not_before) {
    const holder event{make_event(TRUE, FALSE)};
    const ULONGLONG before = GetTickCount64();
    EXPECT_EQ(WaitForSingleObject(event, 50), DWORD{WAIT_TIMEOUT});
    EXPECT_GE(GetTickCount64() - before, 49u);
    const HANDLE both[] = {event, event};
    EXPECT_EQ(WaitForMultipleObjects(2, both, FALSE, 1), DWORD{WAIT_TIMEOUT});
}

TEST_F(handles, a_wait_for_any_takes_the_first_that_is_ready_and_leaves_the_others) {
    const holder a{make_event(FALSE, FALSE)}, b{make_event(FALSE, TRUE)},
        c{make_event(FALSE, TRUE)};
    const HANDLE all[] = {a, b, c};
    EXPECT_EQ(WaitForMultipleObjects(3, all, FALSE, INFINITE), WAIT_OBJECT_0 + 1);
    EXPECT_EQ(WaitForMultipleObjectsEx(3, all, FALSE, INFINITE, FALSE), WAIT_OBJECT_0 + 2);
    EXPECT_EQ(WaitForMultipleObjects(3, all, FALSE, 0), DWORD{WAIT_TIMEOUT});
}

TEST_F(handles, a_wait_for_all_takes_all_or_nothing) {
    const holder a{make_event(FALSE, TRUE)}, b{make_event(FALSE, FALSE)};
    const HANDLE all[] = {a, b};
    EXPECT_EQ(WaitForMultipleObjects(2, all, TRUE, 0), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(WaitForMultipleObjects(2, all, TRUE, 5), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(WaitForSingleObject(a, 0), WAIT_OBJECT_0);  // It was left unowned.
    other_thread later{[&] { return SetEvent(a), SetEvent(b), 0; }};
    EXPECT_EQ(WaitForMultipleObjects(2, all, TRUE, INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForSingleObject(a, 0), DWORD{WAIT_TIMEOUT});
}

TEST_F(handles, bad_arguments_of_a_wait_are_refused) {
    const holder a{make_event(TRUE, TRUE)};
    std::vector<HANDLE> many(MAXIMUM_WAIT_OBJECTS + 1, a);
    const auto refused = [](DWORD result) {
        EXPECT_EQ(result, DWORD{WAIT_FAILED});
        EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    };
    refused(WaitForMultipleObjects(0, many.data(), FALSE, 0));
    refused(WaitForMultipleObjects(MAXIMUM_WAIT_OBJECTS + 1, many.data(), FALSE, 0));
    refused(WaitForMultipleObjects(1, nullptr, FALSE, 0));
    refused(WaitForMultipleObjects(2, many.data(), TRUE, 0));  // The same object is there twice.
    EXPECT_EQ(WaitForMultipleObjects(MAXIMUM_WAIT_OBJECTS, many.data(), FALSE, 0), WAIT_OBJECT_0);
    EXPECT_EQ(MsgWaitForMultipleObjects(1, many.data(), FALSE, 0, QS_ALLINPUT), WAIT_OBJECT_0);
}

TEST_F(handles, a_pulse_releases_those_who_wait_and_leaves_the_event_reset) {
    const holder event{make_event(TRUE, FALSE)};
    std::atomic<int> through{0};
    {
        const auto wait = [&] {
            const DWORD result = WaitForSingleObject(event, INFINITE);
            return ++through, result;
        };
        other_thread first{wait}, second{wait};
        while (through < 2) {
            EXPECT_TRUE(PulseEvent(event));  // The threads may not wait yet.
            SwitchToThread();
        }
    }
    EXPECT_EQ(WaitForSingleObject(event, 0), DWORD{WAIT_TIMEOUT});
}

TEST_F(handles, names_find_the_same_object) {
    const HANDLE one = CreateEventA(nullptr, FALSE, FALSE, "Local\\a name");
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(GetLastError(), DWORD{NO_ERROR});
    const HANDLE two = CreateEventW(nullptr, TRUE, TRUE, L"a name");
    ASSERT_NE(two, nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_ALREADY_EXISTS});
    const HANDLE three = OpenEventA(EVENT_ALL_ACCESS, FALSE, "Global\\a name");
    const HANDLE four = OpenEventW(EVENT_MODIFY_STATE | SYNCHRONIZE, FALSE, L"a name");
    EXPECT_TRUE(SetEvent(four));
    EXPECT_EQ(WaitForSingleObject(three, 0), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForSingleObject(one, 0), DWORD{WAIT_TIMEOUT});  // It is still of the first kind.

    EXPECT_EQ(OpenEventA(EVENT_ALL_ACCESS, FALSE, "A name"), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_FILE_NOT_FOUND});
    EXPECT_EQ(OpenEventA(EVENT_ALL_ACCESS, FALSE, nullptr), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    EXPECT_EQ(CreateMutexA(nullptr, FALSE, "a name"), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
    EXPECT_EQ(OpenSemaphoreW(SEMAPHORE_ALL_ACCESS, FALSE, L"a name"), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
    for (const HANDLE h : {one, two, three, four}) EXPECT_TRUE(CloseHandle(h));
    EXPECT_EQ(OpenEventA(EVENT_ALL_ACCESS, FALSE, "a name"),
              nullptr);  // It disappeared with its last handle.

    const holder semaphore{CreateSemaphoreW(nullptr, 0, 2, L"s\u00e9maphore")};
    const holder again{OpenSemaphoreA(SEMAPHORE_ALL_ACCESS, FALSE, "s\u00e9maphore")};
    EXPECT_TRUE(ReleaseSemaphore(again, 1, nullptr));
    EXPECT_EQ(WaitForSingleObject(semaphore, 0), WAIT_OBJECT_0);
    const holder mutex{CreateMutexW(nullptr, TRUE, L"m")};
    const holder same{OpenMutexA(MUTEX_ALL_ACCESS, FALSE, "m")},
        third{OpenMutexW(MUTEX_ALL_ACCESS, FALSE, L"m")};
    EXPECT_TRUE(ReleaseMutex(same));
    const holder ninth{CreateSemaphoreA(nullptr, 0, 1, "ninth")};
}

TEST_F(handles, a_semaphore_counts_and_never_exceeds_its_maximum) {
    const holder s{CreateSemaphore(nullptr, 2, 3, nullptr)};
    LONG previous = -1;
    EXPECT_TRUE(ReleaseSemaphore(s, 1, &previous));
    EXPECT_EQ(previous, 2);
    EXPECT_FALSE(ReleaseSemaphore(s, 1, &previous));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_TOO_MANY_POSTS});
    EXPECT_FALSE(ReleaseSemaphore(s, 0, nullptr));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(WaitForSingleObject(s, 0), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForSingleObject(s, 0), DWORD{WAIT_TIMEOUT});
    for (const auto& [initial, maximum] : {std::pair<LONG, LONG>{-1, 1}, {0, 0}, {2, 1}, {0, -1}}) {
        EXPECT_EQ(CreateSemaphore(nullptr, initial, maximum, nullptr), nullptr);
        EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    }
}

TEST_F(handles, a_mutex_is_recursive_and_tells_when_its_owner_ended) {
    const holder m{CreateMutex(nullptr, TRUE, nullptr)};
    EXPECT_EQ(WaitForSingleObject(m, 0), WAIT_OBJECT_0);
    DWORD elsewhere = 0, error = 0;
    {
        other_thread t{[&] {
            elsewhere = WaitForSingleObject(m, 0);
            EXPECT_FALSE(ReleaseMutex(m));
            return error = GetLastError();
        }};
    }
    EXPECT_EQ(elsewhere, DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(error, DWORD{ERROR_NOT_OWNER});
    EXPECT_TRUE(ReleaseMutex(m));
    EXPECT_TRUE(ReleaseMutex(m));
    EXPECT_FALSE(ReleaseMutex(m));
    {
        other_thread t{[&] { return WaitForSingleObject(m, INFINITE); }};
    }
    EXPECT_EQ(WaitForSingleObject(m, INFINITE), DWORD{WAIT_ABANDONED});
    EXPECT_TRUE(ReleaseMutex(m));
    EXPECT_EQ(WaitForSingleObject(m, INFINITE), WAIT_OBJECT_0);
    EXPECT_TRUE(ReleaseMutex(m));
    // It is closed while it is owned.
    EXPECT_TRUE(CloseHandle(CreateMutex(nullptr, TRUE, nullptr)));
}

TEST_F(handles, signalling_and_waiting_in_one_call) {
    const holder ping{make_event(FALSE, FALSE)}, pong{CreateSemaphore(nullptr, 0, 1, nullptr)};
    {
        other_thread t{[&] {
            EXPECT_EQ(WaitForSingleObject(ping, INFINITE), WAIT_OBJECT_0);
            return ReleaseSemaphore(pong, 1, nullptr), 0;
        }};
        EXPECT_EQ(SignalObjectAndWait(ping, pong, INFINITE, FALSE), WAIT_OBJECT_0);
    }
    EXPECT_EQ(SignalObjectAndWait(pong, pong, 0, FALSE), WAIT_OBJECT_0);
    EXPECT_EQ(SignalObjectAndWait(GetCurrentThread(), pong, 0, FALSE), DWORD{WAIT_FAILED});
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
}

// Waits for any and for all of several semaphores take tokens: none is lost, none is made.
TEST_F(handles, random_waits_conserve_what_they_wait_for) {
    constexpr int objects = 4, threads = 4;
    const int rounds = scaled(20'000, 1'000);
    HANDLE all[objects];
    for (HANDLE& h : all) h = CreateSemaphore(nullptr, 2, 1000, nullptr);
    const std::uint64_t seed = test_seed();
    std::atomic<int> errors{0};
    {
        const auto work = [&](std::uint64_t number) -> DWORD {
            std::mt19937_64 random{seed + number};
            for (int i = 0; i < rounds; ++i) {
                const auto first = random() % objects, count = 1 + random() % (objects - first);
                const bool is_all = random() % 2 != 0;
                const DWORD ms = random() % 4 == 0 ? random() % 2 : INFINITE;
                const DWORD got =
                    WaitForMultipleObjects(static_cast<DWORD>(count), all + first, is_all, ms);
                if (got == WAIT_TIMEOUT) continue;
                if (got >= count) ++errors;
                for (std::size_t k = 0; k < count; ++k)
                    if (is_all || k == got)
                        if (!ReleaseSemaphore(all[first + k], 1, nullptr)) ++errors;
            }
            return 0;
        };
        other_thread a{[&] { return work(1); }};
        other_thread b{[&] { return work(2); }};
        other_thread c{[&] { return work(3); }};
        work(threads);
    }
    EXPECT_EQ(errors, 0);
    for (const HANDLE h : all) {
        EXPECT_EQ(WaitForSingleObject(h, 0), WAIT_OBJECT_0);
        EXPECT_EQ(WaitForSingleObject(h, 0), WAIT_OBJECT_0);
        EXPECT_EQ(WaitForSingleObject(h, 0), DWORD{WAIT_TIMEOUT});
        EXPECT_TRUE(CloseHandle(h));
    }
}

TEST_F(handles, ten_thousand_events_are_made_and_closed) {
    std::vector<HANDLE> all;
    for (int i = 0; i < 10'000; ++i) all.push_back(make_event(TRUE, i % 2));
    for (int i = 0; i < 10'000; ++i)
        ASSERT_EQ(WaitForSingleObject(all[static_cast<std::size_t>(i)], 0),
                  i % 2 ? WAIT_OBJECT_0 : WAIT_TIMEOUT);
    for (const HANDLE h : all) ASSERT_TRUE(CloseHandle(h));
}

}  // namespace
