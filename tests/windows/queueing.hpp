// SPDX-License-Identifier: MIT
#pragma once

// windows/queueing.hpp: workers, completion lists and a scheduler for the tests, by the Windows
// names only.
//
// The scheduler runs the workers of its list in turn and returns when as many have ended as it was
// told to wait for. It allocates the memory for its notes beforehand, because it shares the heap
// with its workers.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "windows/holders.hpp"

inline void must(BOOL done) {
    if (done) return;
    std::fprintf(stderr, "a call that must succeed failed with %u\n", GetLastError());
    std::abort();
}

class completion_list {
public:
    completion_list() { must(CreateUmsCompletionList(&list_)); }
    ~completion_list() { EXPECT_TRUE(DeleteUmsCompletionList(list_)) << GetLastError(); }
    completion_list(const completion_list&) = delete;
    completion_list& operator=(const completion_list&) = delete;
    operator PUMS_COMPLETION_LIST() const { return list_; }

private:
    PUMS_COMPLETION_LIST list_ = nullptr;
};

// The attributes that make a thread a worker.
class worker_attributes {
public:
    worker_attributes(PUMS_COMPLETION_LIST list, PUMS_CONTEXT context)
        : as_{UMS_VERSION, context, list} {
        SIZE_T bytes = 0;
        InitializeProcThreadAttributeList(nullptr, 1, 0, &bytes);
        memory_.resize(bytes);
        must(InitializeProcThreadAttributeList(get(), 1, 0, &bytes));
        must(UpdateProcThreadAttribute(get(), 0, PROC_THREAD_ATTRIBUTE_UMS_THREAD, &as_, sizeof as_,
                                       nullptr, nullptr));
    }
    ~worker_attributes() { DeleteProcThreadAttributeList(get()); }
    worker_attributes(const worker_attributes&) = delete;
    worker_attributes& operator=(const worker_attributes&) = delete;

    LPPROC_THREAD_ATTRIBUTE_LIST get() {
        return reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory_.data());
    }
    HANDLE create(LPTHREAD_START_ROUTINE start, LPVOID argument, DWORD flags = 0,
                  LPDWORD id = nullptr) {
        return create_sized(256 * 1024, start, argument, flags | STACK_SIZE_PARAM_IS_A_RESERVATION,
                            id);
    }
    HANDLE create_sized(SIZE_T stack_bytes, LPTHREAD_START_ROUTINE start, LPVOID argument,
                        DWORD flags = 0, LPDWORD id = nullptr) {
        return CreateRemoteThreadEx(GetCurrentProcess(), nullptr, stack_bytes, start, argument,
                                    flags, get(), id);
    }

private:
    UMS_CREATE_THREAD_ATTRIBUTES as_;
    std::vector<char> memory_;
};

// A worker that runs a function. At its end it is waited for, and its context is deleted.
class worker {
public:
    worker(PUMS_COMPLETION_LIST list, std::function<DWORD()> run, DWORD flags = 0)
        : run_{std::move(run)} {
        must(CreateUmsThreadContext(&context_));
        thread_ = worker_attributes{list, context_}.create(
            [](LPVOID self) { return static_cast<worker*>(self)->run_(); }, this, flags, &id_);
        must(thread_ != nullptr);
    }
    ~worker() {
        EXPECT_EQ(WaitForSingleObject(thread_, INFINITE), WAIT_OBJECT_0);
        EXPECT_TRUE(CloseHandle(thread_));
        EXPECT_TRUE(DeleteUmsThreadContext(context_)) << GetLastError();
    }
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;

    [[nodiscard]] PUMS_CONTEXT context() const { return context_; }
    [[nodiscard]] HANDLE thread() const { return thread_; }
    [[nodiscard]] DWORD id() const { return id_; }
    [[nodiscard]] DWORD exit_code() const {
        DWORD code = 0;
        must(GetExitCodeThread(thread_, &code));
        return code;
    }

private:
    std::function<DWORD()> run_;
    PUMS_CONTEXT context_ = nullptr;
    HANDLE thread_ = nullptr;
    DWORD id_ = 0;
};

inline bool flag_of(PUMS_CONTEXT context, UMS_THREAD_INFO_CLASS what) {
    BOOLEAN flag = 0;
    must(QueryUmsThreadInformation(context, what, &flag, sizeof flag, nullptr));
    return flag != 0;
}
inline bool is_terminated(PUMS_CONTEXT context) { return flag_of(context, UmsThreadIsTerminated); }
inline bool is_suspended(PUMS_CONTEXT context) { return flag_of(context, UmsThreadIsSuspended); }

class round_robin {
public:
    // `ends` counts down for all schedulers that share it.
    round_robin(PUMS_COMPLETION_LIST list, std::atomic<int>& ends, std::size_t room = 64)
        : list_{list}, ends_{ends}, ready_(room) {}

    BOOL enter() {
        UMS_SCHEDULER_STARTUP_INFO info{UMS_VERSION, list_, procedure, this};
        return EnterUmsSchedulingMode(&info);
    }

    int startups = 0, yields = 0, in_syscall = 0, in_fault = 0;
    std::atomic<int> blocked{0};  // For other threads: in_syscall + in_fault.
    // If set, called at each activation; true: it has decided, so do nothing else.
    bool (*hook)(round_robin&, UMS_SCHEDULER_REASON, ULONG_PTR, PVOID) = nullptr;
    void* hook_data = nullptr;
    PUMS_CONTEXT running = nullptr;
    PVOID parameter = nullptr;

    void push(PUMS_CONTEXT context) {
        ready_[last_++ % ready_.size()] = context;
        if (last_ - first_ > ready_.size()) std::abort();
    }

    // Runs one worker after the other; returns when all have ended.
    void run() {
        for (;;) {
            while (first_ != last_) execute(ready_[first_++ % ready_.size()]);
            if (ends_ <= 0) return;
            PUMS_CONTEXT next = nullptr;
            // Another scheduler may take the last end from a shared list.
            if (!DequeueUmsCompletionListItems(list_, 10, &next) && GetLastError() != ERROR_TIMEOUT)
                must(FALSE);
            for (PUMS_CONTEXT one = next; one != nullptr; one = next) {
                next = GetNextUmsListItem(one);
                if (is_terminated(one))
                    --ends_;
                else
                    push(one);
            }
        }
    }

    void execute(PUMS_CONTEXT context) {
        running = context;
        do ExecuteUmsThread(context);
        while (GetLastError() == ERROR_RETRY);
        running = nullptr;
        // If it was suspended meanwhile it is not lost, but tried again in its turn. If it has
        // ended, its end is on the list.
        if (!is_terminated(context)) push(context);
    }

private:
    static VOID NTAPI procedure(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID parameter) {
        static thread_local round_robin* self;
        if (reason == UmsSchedulerStartup) self = static_cast<round_robin*>(parameter);
        self->activate(reason, payload, parameter);
    }
    void activate(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID given) {
        switch (reason) {
            case UmsSchedulerStartup:
                ++startups;
                break;
            case UmsSchedulerThreadBlocked:
                ++(payload == 1 ? in_syscall : in_fault), ++blocked;
                break;
            case UmsSchedulerThreadYield:
                ++yields;
                break;
        }
        running = nullptr;
        parameter = given;
        if (hook != nullptr && hook(*this, reason, payload, given)) return;
        if (reason == UmsSchedulerThreadYield) push(reinterpret_cast<PUMS_CONTEXT>(payload));
        run();
    }

    PUMS_COMPLETION_LIST list_;
    std::atomic<int>& ends_;
    std::vector<PUMS_CONTEXT> ready_;
    std::size_t first_ = 0, last_ = 0;
};

// A scheduler on a thread of its own, which `this` waits for.
class scheduler_thread {
public:
    explicit scheduler_thread(round_robin& of) : thread_{[&of] { return of.enter() ? 0 : 1; }} {}

private:
    other_thread<std::function<DWORD()>> thread_;
};
