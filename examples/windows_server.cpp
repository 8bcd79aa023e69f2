// SPDX-License-Identifier: MIT
//
// A server whose handlers call library code that blocks, by the Windows names. Each connection has
// a worker, written as a thread is: it waits for a request, asks a data base that takes its time,
// and answers. While one waits, the scheduler runs the others on the same thread.
//
// Output:
//   8 clients got 24 answers
//   several requests were in the data base at once: yes
#include <atomic>
#include <cstdio>
#include <deque>
#include <vector>
#include <windows.h>

// --- The library, which knows nothing of schedulers ---

static std::atomic<int> inside{0}, most_inside{0};

static int AskDataBase(int question) {
    const int now = ++inside;
    for (int most = most_inside; now > most && !most_inside.compare_exchange_weak(most, now);) {
    }
    Sleep(20);
    --inside;
    return question * 2;
}

// --- A connection: one place for a request and one for its answer ---

struct Connection {
    HANDLE has_request = CreateEvent(nullptr, FALSE, FALSE, nullptr);
    HANDLE has_answer = CreateEvent(nullptr, FALSE, FALSE, nullptr);
    int request = 0, answer = 0;  // A negative request ends it.

    ~Connection() {
        CloseHandle(has_request);
        CloseHandle(has_answer);
    }
    int Ask(int question) {
        request = question;
        SignalObjectAndWait(has_request, has_answer, INFINITE, FALSE);
        return answer;
    }
};

static DWORD WINAPI Serve(LPVOID parameter) {
    auto& connection = *static_cast<Connection*>(parameter);
    for (;;) {
        WaitForSingleObject(connection.has_request, INFINITE);
        const int request = connection.request;
        if (request >= 0) connection.answer = AskDataBase(request);
        SetEvent(connection.has_answer);
        if (request < 0) return 0;
    }
}

// --- The scheduler: first come, first served ---

static PUMS_COMPLETION_LIST list;
static std::atomic<int> alive{0};

static VOID NTAPI Schedule(UMS_SCHEDULER_REASON, ULONG_PTR, PVOID) {
    // What is left of the last batch. Handlers block, they do not yield.
    static PUMS_CONTEXT batch;
    while (alive > 0 || batch != nullptr) {
        if (batch == nullptr) DequeueUmsCompletionListItems(list, INFINITE, &batch);
        const PUMS_CONTEXT context = batch;
        if (context == nullptr) continue;
        batch = GetNextUmsListItem(context);
        BOOLEAN ended = FALSE;
        QueryUmsThreadInformation(context, UmsThreadIsTerminated, &ended, sizeof ended, nullptr);
        if (ended) {
            DeleteUmsThreadContext(context);
            --alive;
        } else {
            while (!ExecuteUmsThread(context) && GetLastError() == ERROR_RETRY) YieldProcessor();
        }
    }
}

static DWORD WINAPI RunScheduler(LPVOID) {
    UMS_SCHEDULER_STARTUP_INFO info = {UMS_VERSION, list, Schedule, nullptr};
    return EnterUmsSchedulingMode(&info) ? 0 : 1;
}

static HANDLE StartHandler(Connection& connection) {
    UMS_CREATE_THREAD_ATTRIBUTES as = {UMS_VERSION, nullptr, list};
    CreateUmsThreadContext(&as.UmsContext);
    SIZE_T size = 0;
    InitializeProcThreadAttributeList(nullptr, 1, 0, &size);
    std::vector<char> memory(size);
    const auto attributes = reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory.data());
    InitializeProcThreadAttributeList(attributes, 1, 0, &size);
    UpdateProcThreadAttribute(attributes, 0, PROC_THREAD_ATTRIBUTE_UMS_THREAD, &as, sizeof as,
                              nullptr, nullptr);
    ++alive;
    return CreateRemoteThreadEx(GetCurrentProcess(), nullptr, 0, Serve, &connection, 0, attributes,
                                nullptr);
}

struct Client {
    Connection* to;
    int answers = 0;
    static DWORD WINAPI Run(LPVOID self) {
        auto& client = *static_cast<Client*>(self);
        for (int i = 0; i < 3; ++i) client.answers += client.to->Ask(i) == 2 * i;
        client.to->Ask(-1);
        return 0;
    }
};

int main() {
    CreateUmsCompletionList(&list);
    std::deque<Connection> connections(8);
    std::vector<Client> clients;
    std::vector<HANDLE> threads;
    for (Connection& c : connections) {
        threads.push_back(StartHandler(c));
        clients.push_back({&c});
    }
    threads.push_back(CreateThread(nullptr, 0, RunScheduler, nullptr, 0, nullptr));
    for (Client& c : clients)
        threads.push_back(CreateThread(nullptr, 0, Client::Run, &c, 0, nullptr));
    WaitForMultipleObjects(static_cast<DWORD>(threads.size()), threads.data(), TRUE, INFINITE);
    for (HANDLE thread : threads) CloseHandle(thread);
    DeleteUmsCompletionList(list);
    int answers = 0;
    for (const Client& c : clients) answers += c.answers;
    std::printf("%zu clients got %d answers\n", clients.size(), answers);
    std::printf("several requests were in the data base at once: %s\n",
                most_inside > 1 ? "yes" : "no");
}
