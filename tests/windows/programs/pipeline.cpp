// SPDX-License-Identifier: MIT
// A pipeline of generators: values travel by the parameter of the yield, the scheduler is a state
// machine that knows who waits for whom; the annotations and types of Windows' inside.
#include "create.h"
#include <functional>
#include <map>
#include <optional>
#include <stdio.h>
#include <windows.h>
#include <winternl.h>

struct Message {
    enum Kind { Emit, Receive } kind;
    int value;
};

struct Stage {
    std::function<void(Stage&)> run;
    CLIENT_ID id{};
    PUMS_CONTEXT context = nullptr;
    HANDLE thread = nullptr;
    Stage* output = nullptr;
    Stage* input = nullptr;
    std::optional<int> held;   // Emitted, but not received yet.
    Message* waits = nullptr;  // Where to put the next value.
    bool ended = false;

    void emit(int value) {
        Message message{Message::Emit, value};
        UmsThreadYield(&message);
    }
    [[nodiscard]] std::optional<int> receive() {
        Message message{Message::Receive, -1};
        UmsThreadYield(&message);
        return message.value < 0 ? std::nullopt : std::optional<int>{message.value};
    }
};

class Pipeline {
public:
    Pipeline() { CreateUmsCompletionList(&list_); }
    ~Pipeline() {
        for (auto& [context, stage] : stages_) {
            WaitForSingleObject(stage->thread, INFINITE);
            CloseHandle(stage->thread);
            DeleteUmsThreadContext(context);
        }
        DeleteUmsCompletionList(list_);
    }
    void add(_Inout_ Stage& stage) {
        CreateUmsThreadContext(&stage.context);
        stages_[stage.context] = &stage;
        stage.thread = CreateUmsWorker(
            list_, stage.context,
            [](_In_ LPVOID self) -> DWORD {
                auto& mine = *static_cast<Stage*>(self);
                mine.id.UniqueThread = ULongToHandle(GetCurrentThreadId());
                mine.run(mine);
                return 0;
            },
            &stage, 0);
        ++left_;
    }
    NTSTATUS run() {
        UMS_SCHEDULER_STARTUP_INFO info{UMS_VERSION, list_, entry, this};
        return EnterUmsSchedulingMode(&info) ? 0 : static_cast<NTSTATUS>(0xC0000001);
    }

private:
    static RTL_UMS_SCHEDULER_ENTRY_POINT entry;

    void yielded(Stage& stage, Message& message) {
        if (message.kind == Message::Emit)
            stage.held = message.value;
        else
            stage.waits = &message;
    }
    // The stage that can continue: a receiver whose source holds a value or has ended; then the
    // source.
    Stage* next() {
        for (auto& [context, stage] : stages_) {
            if (stage->waits != nullptr && (stage->input->held || stage->input->ended)) {
                stage->waits->value = stage->input->held.value_or(-1);
                stage->waits = nullptr;
                const bool goes_on = stage->input->held.has_value();
                stage->input->held.reset();
                if (goes_on) ready_[stage->input] = true;
                return stage;
            }
            if (ready_[stage]) return ready_[stage] = false, stage;
        }
        return nullptr;
    }
    void dispatch() {
        while (left_ > 0) {
            Stage* const stage = next();
            PUMS_CONTEXT one = nullptr;
            if (stage != nullptr)
                while (!ExecuteUmsThread(stage->context) && GetLastError() == ERROR_RETRY)
                    YieldProcessor();
            DequeueUmsCompletionListItems(list_, INFINITE, &one);
            for (; one != nullptr; one = GetNextUmsListItem(one))
                if (HasEnded(one))
                    stages_[one]->ended = true, --left_;
                else
                    ready_[stages_[one]] = true;
        }
    }

    PUMS_COMPLETION_LIST list_ = nullptr;
    std::map<PUMS_CONTEXT, Stage*> stages_;
    std::map<Stage*, bool> ready_;
    int left_ = 0;
};

VOID NTAPI Pipeline::entry(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, PVOID parameter) {
    static thread_local Pipeline* self;
    if (reason == UmsSchedulerStartup) self = static_cast<Pipeline*>(parameter);
    if (reason == UmsSchedulerThreadYield)
        self->yielded(*self->stages_[reinterpret_cast<PUMS_CONTEXT>(payload)],
                      *static_cast<Message*>(parameter));
    self->dispatch();
}

int main() {
    int sum = 0;
    Stage numbers, squares, total;
    numbers.run = [](Stage& self) {
        for (int i = 1; i <= 10; ++i) self.emit(i);
    };
    squares.run = [](Stage& self) {
        while (const auto n = self.receive()) self.emit(*n * *n);
    };
    total.run = [&](Stage& self) {
        while (const auto n = self.receive()) sum += *n;
    };
    squares.input = &numbers;
    total.input = &squares;
    {
        Pipeline line;
        for (Stage* stage : {&numbers, &squares, &total}) line.add(*stage);
        if (!NT_SUCCESS(line.run())) return 1;
    }
    printf("%d%s\n", sum, numbers.id.UniqueThread != total.id.UniqueThread ? "" : ", one thread");
    return 0;
}
