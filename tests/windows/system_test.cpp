// SPDX-License-Identifier: MIT
// Heaps, time, text and the rest, by their Windows names.
#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "windows/queueing.hpp"

#include <SDKDDKVer.h>

namespace {

class windows_system : public conserving_test {};

#define EXPECT_ERROR(error) EXPECT_EQ(GetLastError(), DWORD{error})

TEST_F(windows_system, a_heap_gives_and_frees_blocks) {
    const HANDLE own = HeapCreate(0, 0, 0);
    for (const HANDLE heap : {GetProcessHeap(), own}) {
        auto* const at = static_cast<char*>(HeapAlloc(heap, HEAP_ZERO_MEMORY, 100));
        ASSERT_NE(at, nullptr);
        EXPECT_EQ(reinterpret_cast<ULONG_PTR>(at) % 16, 0u);
        EXPECT_EQ(at[99], 0);
        EXPECT_EQ(HeapAlloc(heap, 0, ~SIZE_T{0}), nullptr);
        EXPECT_TRUE(HeapFree(heap, 0, at));
        EXPECT_TRUE(HeapFree(heap, 0, nullptr));
    }
    EXPECT_NE(HeapAlloc(own, 0, 1), nullptr);
    int here = 0;
    EXPECT_FALSE(HeapFree(own, 0, &here));  // The block is not from this heap.
    EXPECT_ERROR(ERROR_INVALID_PARAMETER);
    EXPECT_TRUE(HeapDestroy(own));  // The heap still has blocks.
    EXPECT_FALSE(HeapDestroy(GetProcessHeap()));
    EXPECT_ERROR(ERROR_INVALID_HANDLE);
    const HLOCAL local = LocalAlloc(LPTR, 10);
    EXPECT_EQ(static_cast<char*>(local)[9], 0);
    EXPECT_EQ(LocalFree(local), nullptr);
}

TEST_F(windows_system, clocks_go_forward) {
    LARGE_INTEGER before, after, per_second;
    EXPECT_TRUE(QueryPerformanceCounter(&before));
    EXPECT_TRUE(QueryPerformanceFrequency(&per_second));
    const DWORD ticks = GetTickCount();
    const ULONGLONG ticks64 = GetTickCount64();
    Sleep(20);
    EXPECT_EQ(SleepEx(0, TRUE), 0u);
    EXPECT_TRUE(QueryPerformanceCounter(&after));
    EXPECT_GE((after.QuadPart - before.QuadPart) * 1000 / per_second.QuadPart, 20);
    EXPECT_GE(GetTickCount() - ticks, 19u);
    EXPECT_GE(GetTickCount64() - ticks64, 19u);
    FILETIME now;
    GetSystemTimeAsFileTime(&now);
    const ULONGLONG of_2020 = 132'223'104'000'000'000;
    EXPECT_GT(static_cast<ULONGLONG>(now.dwHighDateTime) << 32 | now.dwLowDateTime, of_2020);
}

TEST_F(windows_system, the_machine) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    EXPECT_EQ(info.dwNumberOfProcessors, ums::fiber::hardware_concurrency());
    EXPECT_EQ(info.dwPageSize, 4096u);
    EXPECT_EQ(info.dwAllocationGranularity, 65536u);
    EXPECT_LT(GetCurrentProcessorNumber(), 4096u);
    EXPECT_EQ(GetCurrentProcessId(), static_cast<DWORD>(getpid()));
    (void)IsDebuggerPresent();
}

TEST_F(windows_system, messages_of_errors) {
    char text[128] = "";
    constexpr DWORD from_system = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
    const DWORD language = MAKELANGID(LANG_NEUTRAL, SUBLANG_DEFAULT);
    const DWORD length =
        FormatMessageA(from_system, nullptr, ERROR_TIMEOUT, language, text, sizeof text, nullptr);
    EXPECT_EQ(length, std::strlen(text));
    EXPECT_STREQ(text, "The time is over.\r\n");
    char* made = nullptr;
    EXPECT_NE(
        FormatMessageA(from_system | FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_MAX_WIDTH_MASK,
                       nullptr, ERROR_RETRY, language, reinterpret_cast<LPSTR>(&made), 0, nullptr),
        0u);
    EXPECT_STREQ(made, "Try again.");
    EXPECT_EQ(LocalFree(made), nullptr);
    wchar_t wide[64];
    EXPECT_EQ(FormatMessageW(from_system, nullptr, ERROR_RETRY, 0, wide, 64, nullptr), 12u);
    EXPECT_STREQ(wide, L"Try again.\r\n");
    EXPECT_EQ(FormatMessageA(from_system, nullptr, ERROR_TIMEOUT, language, text, 3, nullptr), 0u);
    EXPECT_ERROR(ERROR_INSUFFICIENT_BUFFER);
    EXPECT_EQ(FormatMessageA(from_system, nullptr, 0xFFFF, language, text, sizeof text, nullptr),
              0u);
    EXPECT_ERROR(ERROR_MR_MID_NOT_FOUND);
    EXPECT_EQ(FormatMessageA(from_system, nullptr, 0, 0, nullptr, 0, nullptr), 0u);
    EXPECT_ERROR(ERROR_INVALID_PARAMETER);
}

int print_into(char (&to)[8], const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int written = vsprintf_s(to, sizeof to, format, arguments);
    va_end(arguments);
    return written;
}

const child_program console{
    "console", [](const child_arguments&) {
        DWORD written = 0;
        const HANDLE to = GetStdHandle(STD_ERROR_HANDLE);
        const bool all = WriteConsoleA(to, "narrow ", 7, &written, nullptr) && written == 7 &&
                         WriteConsoleW(to, L"w\u00efde\n", 5, &written, nullptr) && written == 5;
        return all ? 0 : 1;
    }};
const child_program too_long{"too_long", [](const child_arguments&) {
                                 char small[4];
                                 return sprintf_s(small, "%d", 12345);
                             }};
const child_program too_long_a_copy{"too_long_a_copy", [](const child_arguments&) {
                                        char small[4];
                                        return strcpy_s(small, "12345");
                                    }};

TEST_F(windows_system, the_console_is_the_standard_streams) {
    const child_end end = run_child("console");
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err, "narrow w\u00efde\n");
    EXPECT_EQ(GetStdHandle(7), INVALID_HANDLE_VALUE);
    EXPECT_ERROR(ERROR_INVALID_PARAMETER);
    EXPECT_FALSE(WriteConsoleA(nullptr, "x", 1, nullptr, nullptr));
    EXPECT_ERROR(ERROR_INVALID_HANDLE);
    EXPECT_FALSE(WriteConsoleA(GetStdHandle(STD_OUTPUT_HANDLE), nullptr, 1, nullptr, nullptr));
    EXPECT_ERROR(ERROR_INVALID_PARAMETER);
}

TEST_F(windows_system, functions_that_know_the_size_of_their_target) {
    char text[8];
    EXPECT_EQ(sprintf_s(text, "%d%s", 12, "345"), 5);
    EXPECT_STREQ(text, "12345");
    EXPECT_EQ(sprintf_s(text, sizeof text, "%s", "1234567"), 7);
    EXPECT_EQ(print_into(text, "%d", 7), 1);
    EXPECT_STREQ(text, "7");
    EXPECT_EQ(strcpy_s(text, "abc"), 0);
    EXPECT_EQ(strcat_s(text, "defg"), 0);
    EXPECT_STREQ(text, "abcdefg");
    EXPECT_EQ(strncpy_s(text, "abcdefghijk", 3), 0);
    EXPECT_STREQ(text, "abc");
    EXPECT_NE(strncpy_s(text, "abcdefghijk", _TRUNCATE), 0);
    EXPECT_STREQ(text, "abcdefg");
    EXPECT_EQ(memcpy_s(text, sizeof text, "xy", 3), 0);
    EXPECT_STREQ(text, "xy");
    EXPECT_EQ(SecureZeroMemory(text, sizeof text), static_cast<void*>(text));
    EXPECT_EQ(text[0] | text[1], 0);
    EXPECT_EQ(run_child("too_long").signal, SIGABRT);
    EXPECT_EQ(run_child("too_long_a_copy").signal, SIGABRT);
}

TEST_F(windows_system, functions_are_found_by_name) {
    const HMODULE kernel = GetModuleHandleA("KERNEL32.dll");
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(GetModuleHandleW(L"kernel32"), kernel);
    EXPECT_EQ(LoadLibraryA("ntdll.dll"), kernel);
    EXPECT_EQ(LoadLibraryW(L"KernelBase.dll"), kernel);
    EXPECT_TRUE(FreeLibrary(kernel));
    EXPECT_FALSE(FreeLibrary(nullptr));
    EXPECT_ERROR(ERROR_INVALID_HANDLE);
    EXPECT_EQ(GetModuleHandle(TEXT("user32.dll")), nullptr);
    EXPECT_ERROR(ERROR_MOD_NOT_FOUND);
    EXPECT_EQ(GetProcAddress(kernel, "NoSuchFunction"), nullptr);
    EXPECT_ERROR(ERROR_PROC_NOT_FOUND);
    EXPECT_EQ(GetProcAddress(nullptr, "Sleep"), nullptr);
    EXPECT_ERROR(ERROR_INVALID_HANDLE);
    // Null where the library is linked statically.
    if (const FARPROC found = GetProcAddress(kernel, "GetTickCount64")) {
        EXPECT_EQ(reinterpret_cast<void*>(found), reinterpret_cast<void*>(&GetTickCount64));
    }
}

const child_program debug_output{"debug_output", [](const child_arguments&) {
                                     OutputDebugStringA("narrow ");
                                     OutputDebugStringW(L"w\u00efde\n");
                                     OutputDebugString(nullptr);
                                     return 0;
                                 }};
const child_program exit_process{
    "exit_process", [](const child_arguments&) {
        const holder thread{CreateThread(
            nullptr, 0, [](LPVOID) -> DWORD { ExitProcess(17); }, nullptr, 0, nullptr)};
        return static_cast<int>(WaitForSingleObject(thread, INFINITE));
    }};
const child_program exit_process_by_a_worker{
    "exit_process_by_a_worker", [](const child_arguments&) {
        const completion_list list;
        std::atomic<int> ends{1};
        const worker leaves{list, []() -> DWORD { ExitProcess(18); }};
        return round_robin{list, ends}.enter() ? 0 : 1;
    }};

TEST_F(windows_system, debug_output_goes_to_standard_error_if_asked_for) {
    EXPECT_EQ(run_child("debug_output", {}, {{"UMS_DEBUG_OUTPUT", "1"}}).err, "narrow w\u00efde\n");
    EXPECT_EQ(run_child("debug_output").err, "");
}

TEST_F(windows_system, the_process_exits_with_its_code_also_while_a_scheduler_is_entered) {
    EXPECT_EQ(run_child("exit_process").code, 17);
    const child_end by_worker = run_child("exit_process_by_a_worker");
    EXPECT_EQ(by_worker.code, 18) << by_worker;
}

TEST_F(windows_system, messages_are_waited_for_and_quitting_is_told_once) {
    MSG message{};
    EXPECT_FALSE(PeekMessageA(&message, nullptr, 0, 0, PM_REMOVE));
    EXPECT_FALSE(PeekMessageW(&message, nullptr, 0, 0, PM_NOREMOVE));
    const DWORD own = GetCurrentThreadId();
    const holder other{CreateThread(
        nullptr, 0,
        [](LPVOID id) -> DWORD {
            Sleep(5);
            const DWORD to = static_cast<DWORD>(reinterpret_cast<ULONG_PTR>(id));
            return PostThreadMessageA(to, WM_USER, 1, 2) &&
                   PostThreadMessageW(to, WM_USER + 1, 3, 4);
        },
        reinterpret_cast<LPVOID>(ULONG_PTR{own}), 0, nullptr)};
    EXPECT_EQ(GetMessageA(&message, nullptr, WM_USER + 1, WM_USER + 1), TRUE);
    EXPECT_EQ(message.wParam, 3u);
    EXPECT_EQ(MsgWaitForMultipleObjects(0, nullptr, FALSE, INFINITE, QS_ALLINPUT), WAIT_OBJECT_0);
    EXPECT_TRUE(PeekMessageA(&message, nullptr, 0, 0, PM_NOREMOVE));
    EXPECT_EQ(GetMessageW(&message, nullptr, 0, 0), TRUE);
    EXPECT_EQ(message.lParam, 2);
    EXPECT_FALSE(TranslateMessage(&message));
    EXPECT_EQ(DispatchMessageA(&message), 0);
    EXPECT_EQ(DispatchMessageW(&message), 0);
    PostQuitMessage(3);
    EXPECT_EQ(GetMessageA(&message, nullptr, 0, 0), FALSE);
    EXPECT_EQ(message.wParam, 3u);
    EXPECT_FALSE(PeekMessageA(&message, nullptr, 0, 0, PM_REMOVE));
    const DWORD ticks = GetTickCount();
    EXPECT_EQ(MsgWaitForMultipleObjects(0, nullptr, FALSE, 20, QS_ALLINPUT), DWORD{WAIT_TIMEOUT});
    EXPECT_GE(GetTickCount() - ticks, 19u);
    EXPECT_EQ(WaitForSingleObject(other, INFINITE), WAIT_OBJECT_0);
    EXPECT_FALSE(PostThreadMessageA(0, WM_USER, 0, 0));
    EXPECT_ERROR(ERROR_INVALID_THREAD_ID);
}

TEST_F(windows_system, bits_are_found_and_affinities_told) {
    ULONG lowest = 7;
    EXPECT_FALSE(_BitScanForward(&lowest, 0));
    EXPECT_TRUE(_BitScanForward(&lowest, 0x50));
    EXPECT_EQ(lowest, 4u);
    unsigned long highest = 0;
    EXPECT_TRUE(_BitScanReverse(&highest, 0x50));
    EXPECT_EQ(highest, 6u);
    EXPECT_TRUE(_BitScanForward64(&highest, 1ull << 40));
    EXPECT_EQ(highest, 40u);
    EXPECT_TRUE(_BitScanReverse64(&highest, 3ull << 40));
    EXPECT_EQ(highest, 41u);
    DWORD_PTR process = 0, system = 0;
    EXPECT_TRUE(GetProcessAffinityMask(GetCurrentProcess(), &process, &system));
    EXPECT_NE(process, 0u);
    EXPECT_EQ(process & ~system, 0u);
    EXPECT_EQ(GetThreadAffinityMask(GetCurrentThread()), process);
    EXPECT_FALSE(SetProcessAffinityMask(GetCurrentProcess(), 0));
    EXPECT_ERROR(ERROR_INVALID_PARAMETER);
    const DWORD_PTR one = process & -process;
    EXPECT_TRUE(SetProcessAffinityMask(GetCurrentProcess(), one));
    EXPECT_EQ(GetThreadAffinityMask(GetCurrentThread()), one);
    EXPECT_TRUE(SetProcessAffinityMask(GetCurrentProcess(), process));
}

TEST(windows_system_death, a_debug_break_traps) {
    EXPECT_EXIT(__debugbreak(), testing::KilledBySignal(SIGTRAP), "");
}

TEST_F(windows_system, small_macros) {
    EXPECT_EQ(MAKELONG(0x5678, 0x1234), 0x12345678);
    EXPECT_EQ(LOWORD(0x12345678), 0x5678);
    EXPECT_EQ(HIWORD(0x12345678), 0x1234);
    EXPECT_EQ(MAKEWORD(0x34, 0x12), 0x1234);
    int array[3];
    ZeroMemory(array, sizeof array);
    FillMemory(array, 4, 1);
    EXPECT_EQ(array[0], 0x01010101);
    EXPECT_EQ(ARRAYSIZE(array) + _countof(array), 6u);
    static_assert(sizeof(DWORD) == 4 && sizeof(LONG) == 4 && sizeof(LONGLONG) == 8 &&
                  sizeof(HANDLE) == 8);
    static_assert(sizeof(CRITICAL_SECTION) == 40 && sizeof(SRWLOCK) == 8 &&
                  sizeof(CONDITION_VARIABLE) == 8);
    struct has_inline {
        FORCEINLINE int get() const { return 3; }
    };
    EXPECT_EQ(has_inline{}.get(), 3);
    static_assert(_WIN32_WINNT >= _WIN32_WINNT_WIN7);
}

}  // namespace
