// SPDX-License-Identifier: MIT
#pragma once

// windows/holders.hpp: handles and threads that are closed and joined at the end of their block.

#include <gtest/gtest.h>

#include <windows.h>

struct holder {
    HANDLE of;
    ~holder() { EXPECT_TRUE(CloseHandle(of)); }
    operator HANDLE() const { return of; }
};

// Uses more of the stack than a small one has.
inline DWORD WINAPI use_stack(LPVOID) {
    volatile char bytes[400 * 1024];
    for (SIZE_T i = sizeof bytes; i > 0; i -= 1024) bytes[i - 1] = 1;
    return bytes[1023];
}

template <class F>
struct job {
    F run;
    static DWORD WINAPI start(LPVOID self) { return static_cast<job*>(self)->run(); }
};
// A thread that runs f() while this object exists.
template <class F>
class other_thread {
public:
    explicit other_thread(F f) : job_{f} {
        thread_ = CreateThread(nullptr, 0, job<F>::start, &job_, 0, nullptr);
        EXPECT_NE(thread_, nullptr);
    }
    ~other_thread() {
        EXPECT_EQ(WaitForSingleObject(thread_, INFINITE), WAIT_OBJECT_0);
        EXPECT_TRUE(CloseHandle(thread_));
    }

private:
    job<F> job_;
    HANDLE thread_;
};
