// SPDX-License-Identifier: MIT
// Heaps, pages, time, text and the rest, by their Windows names.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "windows/queueing.hpp"

#include <SDKDDKVer.h>
#include <tchar.h>

namespace {

class windows_system : public conserving_test {};

#define EXPECT_ERROR(error) EXPECT_EQ(GetLastError(), DWORD{error})

TEST_F(windows_system, a_heap_gives_moves_and_frees_blocks) {
    const HANDLE own = HeapCreate(0, 0, 0);
    for (const HANDLE heap : {GetProcessHeap(), own}) {
        auto* at = static_cast<char*>(HeapAlloc(heap, HEAP_ZERO_MEMORY, 100));
        ASSERT_NE(at, nullptr);
        EXPECT_EQ(reinterpret_cast<ULONG_PTR>(at) % 16, 0u);
        EXPECT_EQ(at[99], 0);
        EXPECT_EQ(HeapSize(heap, 0, at), 100u);
        std::memset(at, 7, 100);
        at = static_cast<char*>(HeapReAlloc(heap, HEAP_ZERO_MEMORY, at, 5000));
        EXPECT_EQ(at[99], 7);
        EXPECT_EQ(at[100], 0);
        EXPECT_EQ(HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, at, 1 << 20), nullptr);
        EXPECT_EQ(HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, at, 50), at);
        EXPECT_EQ(HeapAlloc(heap, 0, ~SIZE_T{0}), nullptr);
        EXPECT_TRUE(HeapFree(heap, 0, at));
        EXPECT_TRUE(HeapFree(heap, 0, nullptr));
    }
    void* const here = HeapAlloc(own, 0, 1);
    EXPECT_FALSE(HeapFree(GetProcessHeap(), 0, here));  // Another's.
    EXPECT_ERROR(ERROR_INVALID_PARAMETER);
    EXPECT_EQ(HeapSize(GetProcessHeap(), 0, here), ~SIZE_T{0});
    EXPECT_TRUE(HeapDestroy(own));  // With what is in it.
    EXPECT_FALSE(HeapDestroy(own));
    EXPECT_ERROR(ERROR_INVALID_HANDLE);
    EXPECT_FALSE(HeapDestroy(GetProcessHeap()));
    EXPECT_EQ(HeapAlloc(own, 0, 1), nullptr);
    EXPECT_ERROR(ERROR_INVALID_HANDLE);
    const HLOCAL local = LocalAlloc(LPTR, 10);
    EXPECT_EQ(static_cast<char*>(local)[9], 0);
    EXPECT_EQ(LocalFree(local), nullptr);
    EXPECT_EQ(GlobalFree(GlobalAlloc(GPTR, 10)), nullptr);
}

TEST_F(windows_system, pages_are_reserved_committed_protected_and_given_back) {
    auto* const at = static_cast<char*>(VirtualAlloc(nullptr, 300'000, MEM_RESERVE, PAGE_NOACCESS));
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(reinterpret_cast<ULONG_PTR>(at) % 65536, 0u);
    DWORD old = 0;
    EXPECT_FALSE(VirtualProtect(at, 4096, PAGE_READONLY, &old));  // Not committed.
    EXPECT_ERROR(ERROR_INVALID_ADDRESS);
    EXPECT_EQ(VirtualAlloc(at + 8192, 4097, MEM_COMMIT, PAGE_READWRITE), at + 8192);
    at[8192] = at[8192 + 8191] = 5;
    EXPECT_TRUE(VirtualProtect(at + 8192, 1, PAGE_READONLY, &old));
    EXPECT_EQ(old, DWORD{PAGE_READWRITE});
    EXPECT_EQ(at[8192], 5);
    EXPECT_TRUE(VirtualFree(at + 8192, 8192, MEM_DECOMMIT));
    EXPECT_EQ(VirtualAlloc(at + 8192, 1, MEM_COMMIT, PAGE_READWRITE), at + 8192);
    EXPECT_EQ(at[8192], 0);
    EXPECT_FALSE(VirtualFree(at, 4096, MEM_RELEASE));
    EXPECT_ERROR(ERROR_INVALID_PARAMETER);
    EXPECT_EQ(VirtualAlloc(at, 400'000, MEM_COMMIT, PAGE_READWRITE), nullptr);
    EXPECT_ERROR(ERROR_INVALID_ADDRESS);
    EXPECT_TRUE(VirtualFree(at, 0, MEM_DECOMMIT));
    EXPECT_TRUE(VirtualFree(at, 0, MEM_RELEASE));
    EXPECT_FALSE(VirtualFree(at, 0, MEM_RELEASE));
    EXPECT_ERROR(ERROR_INVALID_ADDRESS);
    EXPECT_EQ(VirtualAlloc(nullptr, 0, MEM_COMMIT, PAGE_READWRITE), nullptr);
    EXPECT_ERROR(ERROR_INVALID_PARAMETER);
    EXPECT_EQ(VirtualAlloc(nullptr, 1, MEM_COMMIT, 0x1234), nullptr);
    EXPECT_ERROR(ERROR_INVALID_PARAMETER);
    void* const both = VirtualAlloc(nullptr, 1, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    EXPECT_FALSE(VirtualProtect(both, 1, PAGE_READWRITE, nullptr));
    EXPECT_ERROR(ERROR_NOACCESS);
    EXPECT_TRUE(VirtualFree(both, 0, MEM_RELEASE));
}

TEST_F(windows_system, the_protection_of_each_page_is_kept) {
    constexpr SIZE_T page = 4096;
    constexpr int pages = 32;
    auto* const at =
        static_cast<char*>(VirtualAlloc(nullptr, pages * page, MEM_RESERVE, PAGE_NOACCESS));
    std::vector<DWORD> wanted(pages, 0);
    std::mt19937 random{test_seed()};
    for (int i = 0; i < scaled(5'000, 500); ++i) {
        const SIZE_T first = random() % pages, n = 1 + random() % (pages - first);
        const DWORD kind = random() % 2 != 0 ? PAGE_READONLY : PAGE_READWRITE;
        const auto begin = wanted.begin() + static_cast<std::ptrdiff_t>(first);
        const auto end = begin + static_cast<std::ptrdiff_t>(n);
        char* const from = at + first * page;
        DWORD old = 0;
        switch (random() % 3) {
            case 0:
                ASSERT_EQ(VirtualAlloc(from, n * page, MEM_COMMIT, kind), from);
                std::fill(begin, end, kind);
                break;
            case 1:
                ASSERT_TRUE(VirtualFree(from, n * page, MEM_DECOMMIT));
                std::fill(begin, end, 0);
                break;
            default:
                const bool is_committed = std::find(begin, end, DWORD{0}) == end;
                ASSERT_EQ(VirtualProtect(from, n * page, kind, &old), is_committed ? TRUE : FALSE);
                if (!is_committed) break;
                ASSERT_EQ(old, *begin);
                std::fill(begin, end, kind);
        }
    }
    for (SIZE_T i = 0; i < pages; ++i) {
        DWORD old = 0;
        EXPECT_EQ(VirtualProtect(at + i * page, page, PAGE_READONLY, &old), wanted[i] != 0);
        EXPECT_EQ(old, wanted[i]);
    }
    EXPECT_TRUE(VirtualFree(at, 0, MEM_RELEASE));
}

// Much of it, of which nothing is used.
TEST_F(windows_system, a_reservation_takes_no_memory) {
    const auto resident_pages = [] {
        long all = 0, resident = 0;
        std::ifstream{"/proc/self/statm"} >> all >> resident;
        return resident;
    };
    const long before = resident_pages();
    void* const at = VirtualAlloc(nullptr, SIZE_T{64} << 30, MEM_RESERVE, PAGE_NOACCESS);
    ASSERT_NE(at, nullptr);
    EXPECT_LT(resident_pages() - before, 4096);  // 16 MiB.
    EXPECT_TRUE(VirtualFree(at, 0, MEM_RELEASE));
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
    EXPECT_EQ(FormatMessageW(FORMAT_MESSAGE_FROM_STRING, L"\u00e9", 0, 0, wide, 64, nullptr), 1u);
    EXPECT_STREQ(wide, L"\u00e9");
    EXPECT_EQ(FormatMessageA(from_system, nullptr, ERROR_TIMEOUT, language, text, 3, nullptr), 0u);
    EXPECT_ERROR(ERROR_INSUFFICIENT_BUFFER);
    EXPECT_EQ(FormatMessageA(from_system, nullptr, 0xFFFF, language, text, sizeof text, nullptr),
              0u);
    EXPECT_ERROR(ERROR_MR_MID_NOT_FOUND);
    EXPECT_EQ(FormatMessageA(FORMAT_MESSAGE_FROM_STRING, "%1", 0, 0, text, sizeof text, nullptr),
              0u);
    EXPECT_ERROR(ERROR_INVALID_PARAMETER);
    EXPECT_EQ(FormatMessageA(from_system, nullptr, 0, 0, nullptr, 0, nullptr), 0u);
    EXPECT_ERROR(ERROR_INVALID_PARAMETER);
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

TEST_F(windows_system, there_are_no_messages) {
    MSG message{};
    EXPECT_FALSE(PeekMessageA(&message, nullptr, 0, 0, PM_REMOVE));
    EXPECT_FALSE(PeekMessageW(&message, nullptr, 0, 0, PM_NOREMOVE));
    EXPECT_EQ(GetMessageA(&message, nullptr, 0, 0), -1);
    EXPECT_ERROR(ERROR_NOT_SUPPORTED);
    EXPECT_EQ(GetMessageW(&message, nullptr, 0, 0), -1);
    EXPECT_FALSE(TranslateMessage(&message));
    EXPECT_EQ(DispatchMessageA(&message), 0);
    EXPECT_EQ(DispatchMessageW(&message), 0);
    const DWORD ticks = GetTickCount();
    EXPECT_EQ(MsgWaitForMultipleObjects(0, nullptr, FALSE, 20, QS_ALLINPUT), DWORD{WAIT_TIMEOUT});
    EXPECT_GE(GetTickCount() - ticks, 19u);
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

TEST_F(windows_system, narrow_text_is_cut_as_on_windows) {
    char text[8] = "1234567";
    EXPECT_EQ(_sntprintf(text, 8, "%s", "short"), 5);
    EXPECT_STREQ(text, "short");
    EXPECT_EQ(tchar_snprintf(text, 4, "%s", "four"), 4);  // No room for a zero.
    EXPECT_STREQ(text, "fourt");
    EXPECT_EQ(_sntprintf(text, 3, "%d", 98765), -1);
    EXPECT_STREQ(text, "987rt");
    EXPECT_EQ(_sntprintf(nullptr, 0, "%d", 1), -1);
}

// What tchar.h calls when UNICODE is defined.
TEST_F(windows_system, wide_formats_mean_what_they_mean_on_windows) {
    wchar_t text[64];
    EXPECT_EQ(tchar_snwprintf(text, 64, L"%s %S %d%% %I64d %5s|%c", L"w\u00efde", "narrow", 7,
                              1LL << 40, L"ab", L'\u00e9'),
              36);
    EXPECT_STREQ(text, L"w\u00efde narrow 7% 1099511627776    ab|\u00e9");
    EXPECT_EQ(tchar_snwprintf(text, 64, L"50%% of %d%%%s %%s", 7, L"w"), 13);
    EXPECT_STREQ(text, L"50% of 7%w %s");
    EXPECT_EQ(tchar_snwprintf(text, 3, L"%s", L"long"), -1);
    EXPECT_EQ(std::wstring(text, 3), L"lon");
    const auto wmain = [](int argc, wchar_t** argv) {
        return argc == 2 && std::wstring{argv[1]} == L"\u00e9" && argv[2] == nullptr ? 5 : 6;
    };
    char program[] = "p", word[] = "\xc3\xa9";
    char* argv[] = {program, word, nullptr};
    EXPECT_EQ(tchar_wmain(wmain, 2, argv), 5);
    testing::internal::CaptureStdout();
    tchar_wprintf(L"<%s>", L"\u00e9");
    tchar_fwprintf(stdout, L"<%hs>", "x");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "<\u00e9><x>");
}

}  // namespace

int main(int argc, char** argv) { return child_main(argc, argv); }
