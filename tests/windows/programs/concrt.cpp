// SPDX-License-Identifier: MIT
// In the manner of ConcRT: virtual processors with queues of their own that steal from each other,
// contexts with Block, Unblock and Yield, a free list of contexts, primary threads that wait for
// work on events.
#include "create.h"
#include <atomic>
#include <deque>
#include <memory>
#include <stdio.h>
#include <vector>

namespace concurrency {

class Scheduler;

class Context {
public:
    Context(Scheduler& owner, void (*function)(void*), void* data);
    ~Context();
    static Context* Current() {
        Context* self = nullptr;
        QueryUmsThreadInformation(GetCurrentUmsThread(), UmsThreadUserContext, &self, sizeof(self),
                                  nullptr);
        return self;
    }
    void Unblock();
    static void Block() {
        // The procedure decides: an Unblock() may have come first.
        UmsThreadYield(&blocks);
    }
    static void Yield() { UmsThreadYield(nullptr); }
    static char blocks;

    Scheduler& m_scheduler;
    PUMS_CONTEXT m_ums = nullptr;
    HANDLE m_thread = nullptr;
    std::atomic<int> m_balance{0};  // Blocks minus unblocks.
    void (*m_function)(void*);
    void* m_data;
};
char Context::blocks;

struct VirtualProcessor {
    Scheduler* m_scheduler;
    size_t m_index;
    CRITICAL_SECTION m_lock;
    std::deque<Context*> m_queue;
    HANDLE m_primary = nullptr;
};

class Scheduler {
public:
    explicit Scheduler(size_t processors) {
        CreateUmsCompletionList(&m_list);
        m_work = CreateSemaphore(nullptr, 0, MAXLONG, nullptr);
        for (size_t i = 0; i < processors; ++i) {
            m_processors.push_back(std::make_unique<VirtualProcessor>());
            m_processors.back()->m_scheduler = this;
            m_processors.back()->m_index = i;
            InitializeCriticalSectionEx(&m_processors.back()->m_lock, 1000,
                                        CRITICAL_SECTION_NO_DEBUG_INFO);
        }
    }
    ~Scheduler() {
        for (auto& one : m_processors) {
            WaitForSingleObject(one->m_primary, INFINITE);
            CloseHandle(one->m_primary);
            DeleteCriticalSection(&one->m_lock);
        }
        m_contexts.clear();
        CloseHandle(m_work);
        DeleteUmsCompletionList(m_list);
    }
    Context& Start(void (*function)(void*), void* data) {
        ++m_left;
        m_contexts.push_back(std::make_unique<Context>(*this, function, data));
        return *m_contexts.back();
    }
    void Run() {
        for (auto& one : m_processors)
            one->m_primary = CreateThread(nullptr, 0, Primary, one.get(), 0, nullptr);
    }
    void MakeRunnable(Context& context, size_t where) {
        VirtualProcessor& of = *m_processors[where % m_processors.size()];
        // Not while the owner's workers hold the heap's lock.
        EnterCriticalSection(&of.m_lock);
        of.m_queue.push_back(&context);
        LeaveCriticalSection(&of.m_lock);
        ReleaseSemaphore(m_work, 1, nullptr);
    }
    PUMS_COMPLETION_LIST m_list = nullptr;

private:
    static DWORD WINAPI Primary(LPVOID self) {
        UMS_SCHEDULER_STARTUP_INFO info{
            UMS_VERSION, static_cast<VirtualProcessor*>(self)->m_scheduler->m_list, Main, self};
        return EnterUmsSchedulingMode(&info) ? 0 : 1;
    }
    static VOID NTAPI Main(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID parameter) {
        static thread_local VirtualProcessor* self;
        if (reason == UmsSchedulerStartup) self = static_cast<VirtualProcessor*>(parameter);
        if (reason == UmsSchedulerThreadYield) {
            Context* context = nullptr;
            QueryUmsThreadInformation(reinterpret_cast<PUMS_CONTEXT>(payload), UmsThreadUserContext,
                                      &context, sizeof(context), nullptr);
            const bool blocks = parameter == &Context::blocks;
            if (!blocks || context->m_balance.fetch_add(1) < 0)
                self->m_scheduler->MakeRunnable(*context, self->m_index);
        }
        self->m_scheduler->Dispatch(*self);
    }
    void Sweep(size_t where) {
        PUMS_CONTEXT next = nullptr;
        DequeueUmsCompletionListItems(m_list, 0, &next);
        while (next != nullptr) {
            PUMS_CONTEXT const one = next;
            next = GetNextUmsListItem(one);
            Context* context = nullptr;
            QueryUmsThreadInformation(one, UmsThreadUserContext, &context, sizeof(context),
                                      nullptr);
            if (HasEnded(one))
                --m_left;
            else
                MakeRunnable(*context, where);
        }
    }
    Context* Steal(size_t from) {
        for (size_t i = 0; i < m_processors.size(); ++i) {
            VirtualProcessor& victim = *m_processors[(from + i) % m_processors.size()];
            EnterCriticalSection(&victim.m_lock);
            Context* found = nullptr;
            if (!victim.m_queue.empty()) {
                found = i == 0 ? victim.m_queue.front() : victim.m_queue.back();
                i == 0 ? victim.m_queue.pop_front() : victim.m_queue.pop_back();
            }
            LeaveCriticalSection(&victim.m_lock);
            if (found != nullptr) return found;
        }
        return nullptr;
    }
    void Dispatch(VirtualProcessor& self) {
        HANDLE ready = nullptr;
        GetUmsCompletionListEvent(m_list, &ready);
        const HANDLE both[] = {m_work, ready};
        while (m_left > 0) {
            Sweep(self.m_index);
            if (Context* const context = Steal(self.m_index)) {
                CloseHandle(ready);
                while (!ExecuteUmsThread(context->m_ums) && GetLastError() == ERROR_RETRY)
                    YieldProcessor();
                return MakeRunnable(*context, self.m_index), Dispatch(self);
            }
            WaitForMultipleObjects(2, both, FALSE, 5);
        }
        CloseHandle(ready);
    }

    HANDLE m_work = nullptr;
    std::vector<std::unique_ptr<VirtualProcessor>> m_processors;
    std::vector<std::unique_ptr<Context>> m_contexts;
    std::atomic<int> m_left{0};
};

Context::Context(Scheduler& owner, void (*function)(void*), void* data)
    : m_scheduler(owner), m_function(function), m_data(data) {
    CreateUmsThreadContext(&m_ums);
    Context* const self = this;
    SetUmsThreadInformation(m_ums, UmsThreadUserContext, const_cast<Context**>(&self),
                            sizeof(self));
    m_thread = CreateUmsWorker(
        owner.m_list, m_ums,
        [](LPVOID given) -> DWORD {
            Context* const context = static_cast<Context*>(given);
            context->m_function(context->m_data);
            return 0;
        },
        this, 0);
}
Context::~Context() {
    WaitForSingleObject(m_thread, INFINITE);
    CloseHandle(m_thread);
    DeleteUmsThreadContext(m_ums);
}
void Context::Unblock() {
    if (m_balance.fetch_sub(1) > 0) m_scheduler.MakeRunnable(*this, 0);
}

}  // namespace concurrency

using concurrency::Context;

static std::atomic<Context*> g_waiter{nullptr};
static std::atomic<int> g_total{0};

int main() {
    {
        concurrency::Scheduler scheduler(2);
        scheduler.Start(
            [](void*) {
                g_waiter = Context::Current();
                Context::Block();
                g_total += 100;
            },
            nullptr);
        for (int i = 0; i < 8; ++i)
            scheduler.Start(
                [](void*) {
                    for (int turn = 0; turn < 50; ++turn) ++g_total, Context::Yield();
                },
                nullptr);
        scheduler.Start(
            [](void*) {
                while (g_waiter == nullptr) Context::Yield();
                Sleep(1);
                g_waiter.load()->Unblock();
            },
            nullptr);
        scheduler.Run();
    }
    printf("total %d\n", g_total.load());
    return 0;
}
