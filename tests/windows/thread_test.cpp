// SPDX-License-Identifier: MIT
// Threads, their thread-locals, suspension and ends, by their Windows names.
#include <atomic>
#include <cerrno>
#include <pthread.h>
#include <thread>
#include <vector>

#include "support/conservation.hpp"
#include "windows/holders.hpp"

#include <process.h>

namespace {

class threads : public conserving_test {};

DWORD exit_code(HANDLE thread) {
    DWORD code = 0;
    EXPECT_TRUE(GetExitCodeThread(thread, &code));
    return code;
}

void join(HANDLE thread) { ASSERT_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0); }

// Threads whose handles were closed while they ran are detached; the kernel lists them until they
// are gone.
void until_all_are_gone() {
    while (conservation::threads().size() > (under_tsan ? 2u : 1u)) SwitchToThread();
}

DWORD WINAPI its_argument(LPVOID argument) {
    return static_cast<DWORD>(reinterpret_cast<ULONG_PTR>(argument));
}

TEST_F(threads, a_thread_runs_and_its_result_is_its_exit_code) {
    DWORD id = 0;
    const holder thread{
        CreateThread(nullptr, 0, its_argument, reinterpret_cast<LPVOID>(ULONG_PTR{77}), 0, &id)};
    EXPECT_NE(id, 0u);
    EXPECT_EQ(GetThreadId(thread), id);
    join(thread);
    EXPECT_EQ(exit_code(thread), 77u);
    EXPECT_EQ(WaitForSingleObject(thread, 0), WAIT_OBJECT_0);  // It stays signalled.
    EXPECT_EQ(CreateThread(nullptr, 0, nullptr, nullptr, 0, nullptr), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    EXPECT_FALSE(GetExitCodeThread(thread, nullptr));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
}

TEST_F(threads, a_thread_that_runs_is_still_active) {
    const holder go{CreateEvent(nullptr, TRUE, FALSE, nullptr)};
    const auto wait = [](LPVOID event) -> DWORD {
        return WaitForSingleObject(*static_cast<HANDLE*>(event), INFINITE);
    };
    HANDLE event = go;
    const holder thread{CreateThread(nullptr, 256 * 1024, wait, &event,
                                     STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr)};
    EXPECT_EQ(exit_code(thread), STILL_ACTIVE);
    EXPECT_EQ(WaitForSingleObject(thread, 0), DWORD{WAIT_TIMEOUT});
    const holder found{OpenThread(THREAD_ALL_ACCESS, FALSE, GetThreadId(thread))};
    EXPECT_EQ(GetThreadId(found), GetThreadId(thread));
    EXPECT_TRUE(SetEvent(go));
    join(found);
    EXPECT_EQ(exit_code(thread), 0u);
    EXPECT_EQ(OpenThread(THREAD_ALL_ACCESS, FALSE, GetThreadId(thread)), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
}

TEST_F(threads, a_closed_handle_does_not_stop_the_thread) {
    const holder ended{CreateEvent(nullptr, TRUE, FALSE, nullptr)};
    HANDLE event = ended;
    const auto signal = [](LPVOID e) -> DWORD { return SetEvent(*static_cast<HANDLE*>(e)), 0; };
    DWORD id = 0;
    ASSERT_TRUE(CloseHandle(CreateThread(nullptr, 0, signal, &event, 0, &id)));
    EXPECT_EQ(WaitForSingleObject(ended, INFINITE), WAIT_OBJECT_0);
    if (const HANDLE thread = OpenThread(THREAD_ALL_ACCESS, FALSE, id)) {
        join(thread);
        CloseHandle(thread);
    }
    until_all_are_gone();
}

struct set_at_end {
    std::atomic<bool>* at = nullptr;
    ~set_at_end() {
        if (at != nullptr) *at = true;
    }
};

TEST_F(threads, thread_locals_are_destroyed_before_the_end_and_frames_are_not_unwound_by_exit) {
    static std::atomic<bool> local_gone, frame_gone;
    local_gone = frame_gone = false;
    const auto leave = [](LPVOID) -> DWORD {
        static thread_local set_at_end local;
        local.at = &local_gone;
        set_at_end frame{&frame_gone};
        ExitThread(5);
    };
    const holder thread{CreateThread(nullptr, 0, leave, nullptr, 0, nullptr)};
    join(thread);
    EXPECT_EQ(exit_code(thread), 5u);
    EXPECT_TRUE(local_gone);
    EXPECT_FALSE(frame_gone);
}

// Waits in the thread's last steps.
struct waits_at_end {
    HANDLE reached = nullptr, go = nullptr;
    ~waits_at_end() {
        if (reached != nullptr) SignalObjectAndWait(reached, go, INFINITE, FALSE);
    }
};

TEST_F(threads, a_thread_is_active_while_its_thread_locals_are_destroyed) {
    const holder reached{CreateEvent(nullptr, FALSE, FALSE, nullptr)};
    const holder go{CreateEvent(nullptr, FALSE, FALSE, nullptr)};
    static HANDLE handles[2];
    handles[0] = reached, handles[1] = go;
    const auto leave = [](LPVOID) -> DWORD {
        static thread_local waits_at_end local;
        local.reached = handles[0], local.go = handles[1];
        return 7;
    };
    const holder thread{CreateThread(nullptr, 0, leave, nullptr, 0, nullptr)};
    EXPECT_EQ(WaitForSingleObject(reached, INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(exit_code(thread), STILL_ACTIVE);
    EXPECT_EQ(WaitForSingleObject(thread, 0), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(SetEvent(go));
    join(thread);
    EXPECT_EQ(exit_code(thread), 7u);
}

TEST_F(threads, the_c_librarys_way_to_start_and_end_a_thread) {
    unsigned id = 0;
    const auto leave = [](void*) -> unsigned { _endthreadex(9); };
    const holder thread{
        reinterpret_cast<HANDLE>(_beginthreadex(nullptr, 0, leave, nullptr, 0, &id))};
    EXPECT_EQ(GetThreadId(thread), id);
    join(thread);
    EXPECT_EQ(exit_code(thread), 9u);
}

TEST_F(threads, a_small_stack_is_what_is_committed_at_first_unless_it_is_a_reservation) {
    const auto begun = [](void*) -> unsigned { return use_stack(nullptr); };
    const holder all[] = {
        {CreateThread(nullptr, 4096, use_stack, nullptr, 0, nullptr)},
        {CreateRemoteThreadEx(GetCurrentProcess(), nullptr, 4096, use_stack, nullptr, 0, nullptr,
                              nullptr)},
        {reinterpret_cast<HANDLE>(_beginthreadex(nullptr, 4096, begun, nullptr, 0, nullptr))}};
    for (const holder& thread : all) {
        join(thread);
        EXPECT_EQ(exit_code(thread), 1u);
    }
    const auto stack_kib = [](LPVOID) -> DWORD {
        pthread_attr_t attributes;
        size_t bytes = 0;
        EXPECT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
        EXPECT_EQ(pthread_attr_getstacksize(&attributes, &bytes), 0);
        pthread_attr_destroy(&attributes);
        return static_cast<DWORD>(bytes / 1024);
    };
    const holder reserved{CreateThread(nullptr, 256 * 1024, stack_kib, nullptr,
                                       STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr)};
    join(reserved);
    EXPECT_EQ(exit_code(reserved), 256u);
}

TEST_F(threads, a_suspended_thread_does_not_start_until_it_is_resumed) {
    std::atomic<bool> ran{false};
    const auto run = [](LPVOID at) -> DWORD {
        static_cast<std::atomic<bool>*>(at)->store(true);
        return 1;
    };
    const holder thread{CreateRemoteThreadEx(GetCurrentProcess(), nullptr, 0, run, &ran,
                                             CREATE_SUSPENDED, nullptr, nullptr)};
    EXPECT_EQ(SuspendThread(thread), 1u);
    EXPECT_EQ(WaitForSingleObject(thread, 20), DWORD{WAIT_TIMEOUT});
    EXPECT_FALSE(ran);
    EXPECT_EQ(ResumeThread(thread), 2u);
    EXPECT_FALSE(ran);
    EXPECT_EQ(ResumeThread(thread), 1u);
    join(thread);
    EXPECT_TRUE(ran);
    EXPECT_EQ(ResumeThread(thread), 0u);
    EXPECT_EQ(SuspendThread(thread), ~DWORD{0});
    EXPECT_EQ(GetLastError(), DWORD{ERROR_ACCESS_DENIED});
    EXPECT_EQ(CreateRemoteThreadEx(nullptr, nullptr, 0, run, &ran, 0, nullptr, nullptr), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_HANDLE});
}

struct counting {
    std::atomic<unsigned long> count{0};
    std::atomic<bool> stop{false};
    static DWORD WINAPI run(LPVOID self) {
        auto& c = *static_cast<counting*>(self);
        while (!c.stop) {
            ++c.count;
            SetLastError(GetCurrentThreadId());
            (void)HeapFree(GetProcessHeap(), 0, HeapAlloc(GetProcessHeap(), 0, 100));
        }
        return 0;
    }
};

TEST_F(threads, a_running_thread_stands_still_while_it_is_suspended) {
    counting c;
    const holder thread{CreateThread(nullptr, 0, counting::run, &c, 0, nullptr)};
    for (int i = 0; i < scaled(200, 30); ++i) {
        const unsigned long start = c.count;
        while (c.count == start) SwitchToThread();
        ASSERT_EQ(SuspendThread(thread), 0u);
        const unsigned long before = c.count;
        // A thread is not stopped in the middle of what the heap's lock protects.
        (void)HeapFree(GetProcessHeap(), 0, HeapAlloc(GetProcessHeap(), 0, 100));
        SwitchToThread();
        ASSERT_EQ(c.count, before);
        ASSERT_EQ(ResumeThread(thread), 1u);
    }
    c.stop = true;
    join(thread);
}

TEST_F(threads, a_thread_whose_first_call_it_is_suspends_another) {
    counting c;
    const holder thread{CreateThread(nullptr, 0, counting::run, &c, 0, nullptr)};
    std::thread{[&] {
        EXPECT_EQ(SuspendThread(thread), 0u);
        EXPECT_EQ(ResumeThread(thread), 1u);
    }}.join();
    c.stop = true;
    join(thread);
}

TEST_F(threads, a_thread_that_waits_is_suspended_and_goes_on_waiting) {
    const holder event{CreateEvent(nullptr, FALSE, FALSE, nullptr)};
    HANDLE shared = event;
    const auto wait = [](LPVOID e) -> DWORD {
        return WaitForSingleObject(*static_cast<HANDLE*>(e), INFINITE) + 3;
    };
    const holder thread{CreateThread(nullptr, 0, wait, &shared, 0, nullptr)};
    EXPECT_EQ(SuspendThread(thread), 0u);
    EXPECT_EQ(SuspendThread(thread), 1u);
    EXPECT_TRUE(SetEvent(event));
    EXPECT_EQ(WaitForSingleObject(thread, 20), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(ResumeThread(thread), 2u);
    EXPECT_EQ(WaitForSingleObject(thread, 5), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(ResumeThread(thread), 1u);
    join(thread);
    EXPECT_EQ(exit_code(thread), 3u);
}

TEST_F(threads, a_thread_suspends_itself) {
    const auto suspend = [](LPVOID) -> DWORD { return SuspendThread(GetCurrentThread()) + 1; };
    const holder thread{CreateThread(nullptr, 0, suspend, nullptr, 0, nullptr)};
    while (ResumeThread(thread) == 0)
        if (WaitForSingleObject(thread, 0) == WAIT_OBJECT_0) break;
    join(thread);
    EXPECT_EQ(exit_code(thread), 1u);
}

// ThreadSanitizer keeps a signal back until the thread calls a function that it knows.
TEST_F(threads, a_terminated_thread_is_gone_and_its_mutexes_are_abandoned) {
    if (under_tsan) GTEST_SKIP() << "ThreadSanitizer keeps the signal back";
    static std::atomic<bool> is_there;
    is_there = false;
    const holder mutex{CreateMutex(nullptr, FALSE, nullptr)};
    HANDLE shared = mutex;
    const auto hang = [](LPVOID m) -> DWORD {
        WaitForSingleObject(*static_cast<HANDLE*>(m), INFINITE);
        is_there = true;
        for (volatile int i = 0;;) (void)i;
    };
    const holder thread{CreateThread(nullptr, 0, hang, &shared, 0, nullptr)};
    while (!is_there) SwitchToThread();
    EXPECT_TRUE(TerminateThread(thread, 44));
    EXPECT_EQ(WaitForSingleObject(thread, 0), WAIT_OBJECT_0);
    EXPECT_EQ(exit_code(thread), 44u);
    EXPECT_EQ(WaitForSingleObject(mutex, 0), DWORD{WAIT_ABANDONED});
    EXPECT_TRUE(TerminateThread(thread, 45));
    EXPECT_EQ(exit_code(thread), 44u);
    std::thread{[] {
        SetLastError(GetCurrentThreadId());
    }}.join();  // It must not be on what is left of the other.

    const holder never{CreateEvent(nullptr, FALSE, FALSE, nullptr)};
    HANDLE event = never;
    const auto wait = [](LPVOID e) -> DWORD {
        return WaitForSingleObject(*static_cast<HANDLE*>(e), INFINITE);
    };
    const holder waits{CreateThread(nullptr, 0, wait, &event, 0, nullptr)};
    EXPECT_TRUE(TerminateThread(waits, 47)) << GetLastError();
    EXPECT_TRUE(SetEvent(never));
    EXPECT_EQ(WaitForSingleObject(never, 0), WAIT_OBJECT_0);

    const auto self = [](LPVOID) -> DWORD { return TerminateThread(GetCurrentThread(), 46), 0; };
    const holder second{CreateThread(nullptr, 0, self, nullptr, 0, nullptr)};
    join(second);
    EXPECT_EQ(exit_code(second), 46u);
}

TEST_F(threads, a_terminated_thread_lets_go_of_what_it_waited_for) {
    if (under_tsan) GTEST_SKIP() << "ThreadSanitizer keeps the signal back";
    const holder reached{CreateEvent(nullptr, FALSE, FALSE, nullptr)};
    HANDLE handles[] = {reached, CreateEvent(nullptr, FALSE, FALSE, TEXT("waited for"))};
    const auto wait = [](LPVOID both) -> DWORD {
        auto* const h = static_cast<HANDLE*>(both);
        return SignalObjectAndWait(h[0], h[1], INFINITE, FALSE);
    };
    const holder thread{CreateThread(nullptr, 0, wait, handles, 0, nullptr)};
    EXPECT_EQ(WaitForSingleObject(reached, INFINITE), WAIT_OBJECT_0);
    EXPECT_TRUE(TerminateThread(thread, 1));
    EXPECT_TRUE(CloseHandle(handles[1]));
    EXPECT_EQ(OpenEvent(EVENT_ALL_ACCESS, FALSE, TEXT("waited for")), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_FILE_NOT_FOUND});
}

TEST_F(threads, the_last_error_and_the_id_are_each_threads_own) {
    SetLastError(12);
    errno = 13;
    const DWORD own = GetCurrentThreadId();
    {
        other_thread t{[&] {
            EXPECT_EQ(GetLastError(), 0u);
            EXPECT_NE(GetCurrentThreadId(), own);
            EXPECT_EQ(GetThreadId(GetCurrentThread()), GetCurrentThreadId());
            return SetLastError(99), 0;
        }};
    }
    EXPECT_EQ(GetCurrentThreadId(), own);
    SetLastError(12);
    EXPECT_EQ(GetLastError(), 12u);
    EXPECT_NE(GetCurrentProcessId(), 0u);
}

TEST_F(threads, a_thread_that_windows_names_did_not_make_has_handles_too) {
    HANDLE thread = nullptr;
    std::thread plain{[&] {
        ASSERT_TRUE(DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(),
                                    &thread, 0, FALSE, DUPLICATE_SAME_ACCESS));
        EXPECT_EQ(WaitForSingleObject(thread, 0), DWORD{WAIT_TIMEOUT});
    }};
    plain.join();
    EXPECT_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(exit_code(thread), 0u);
    EXPECT_TRUE(CloseHandle(thread));
    std::thread leaving{[] { ExitThread(3); }};
    leaving.join();
    EXPECT_EQ(exit_code(GetCurrentThread()), STILL_ACTIVE);
}

TEST_F(threads, priorities_are_kept_and_affinities_reach_the_kernel) {
    counting c;
    const holder thread{CreateThread(nullptr, 0, counting::run, &c, 0, nullptr)};
    EXPECT_EQ(GetThreadPriority(thread), THREAD_PRIORITY_NORMAL);
    EXPECT_TRUE(SetThreadPriority(thread, THREAD_PRIORITY_HIGHEST));
    EXPECT_EQ(GetThreadPriority(thread), THREAD_PRIORITY_HIGHEST);
    EXPECT_FALSE(SetThreadPriority(thread, 7));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    const DWORD_PTR one = info.dwActiveProcessorMask & -info.dwActiveProcessorMask;
    EXPECT_NE(SetThreadAffinityMask(thread, one), 0u);
    EXPECT_EQ(SetThreadAffinityMask(thread, info.dwActiveProcessorMask), one);
    EXPECT_EQ(SetThreadAffinityMask(thread, 0), 0u);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    EXPECT_EQ(SetThreadIdealProcessor(thread, 0), 0u);
    EXPECT_EQ(SetThreadIdealProcessor(thread, 65), ~DWORD{0});
    c.stop = true;
    join(thread);
}

TEST_F(threads, a_slot_is_zero_in_every_thread_each_time_it_is_allocated) {
    const DWORD slot = TlsAlloc();
    ASSERT_NE(slot, TLS_OUT_OF_INDEXES);
    int value = 0;
    EXPECT_TRUE(TlsSetValue(slot, &value));
    {
        other_thread t{[&] {
            EXPECT_EQ(TlsGetValue(slot), nullptr);
            EXPECT_EQ(GetLastError(), DWORD{NO_ERROR});
            return TlsSetValue(slot, &value) ? 0 : 1;
        }};
    }
    EXPECT_EQ(TlsGetValue(slot), &value);
    EXPECT_TRUE(TlsFree(slot));
    EXPECT_FALSE(TlsFree(slot));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    EXPECT_FALSE(TlsSetValue(slot, &value));
    SetLastError(0);
    EXPECT_EQ(TlsGetValue(slot), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    EXPECT_FALSE(TlsSetValue(TLS_OUT_OF_INDEXES, &value));
    EXPECT_EQ(TlsAlloc(), slot);
    EXPECT_EQ(TlsGetValue(slot), nullptr);
    std::vector<DWORD> all{slot};
    while ((all.push_back(TlsAlloc()), all.back() != TLS_OUT_OF_INDEXES)) {
    }
    EXPECT_EQ(GetLastError(), DWORD{ERROR_NO_MORE_ITEMS});
    all.pop_back();
    EXPECT_GE(all.size(), std::size_t{TLS_MINIMUM_AVAILABLE});
    for (const DWORD one : all) EXPECT_TRUE(TlsFree(one));
}

TEST_F(threads, a_thousand_threads_come_and_go) {
    std::atomic<int> ran{0};
    const auto run = [](LPVOID at) -> DWORD { return ++*static_cast<std::atomic<int>*>(at), 0; };
    const int n = scaled(1000, 200);
    for (int i = 0; i < n; ++i) {
        const HANDLE thread = CreateThread(nullptr, 128 * 1024, run, &ran, 0, nullptr);
        ASSERT_NE(thread, nullptr);
        if (i % 2 == 0) join(thread);
        ASSERT_TRUE(CloseHandle(thread));
    }
    while (ran < n) SwitchToThread();
    until_all_are_gone();
}

thread_local int declared_elsewhere = 0;
__declspec(thread) static int declared = 7;

TEST_F(threads, what_is_declared_as_a_threads_own_is) {
    declared = 8;
    declared_elsewhere = 1;
    other_thread t{[] {
        EXPECT_EQ(declared, 7);
        return declared_elsewhere;
    }};
}

}  // namespace
