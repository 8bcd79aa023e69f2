// SPDX-License-Identifier: MIT
// In the manner of C++/WinRT code: owners of handles, HRESULTs as exceptions, a scheduler class
// whose static procedure finds its object in the startup parameter; the standard library's headers
// after windows.h.
#include <windows.h>

#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sample {

struct hresult_error {
    HRESULT code;
};
inline void check_hresult(HRESULT result) {
    if (FAILED(result)) throw hresult_error{result};
}
inline void check_bool(BOOL done) {
    if (!done) check_hresult(HRESULT_FROM_WIN32(::GetLastError()));
}

template <typename Traits>
class handle_type {
public:
    using type = typename Traits::type;
    handle_type() noexcept = default;
    explicit handle_type(type value) noexcept : value_{value} {}
    handle_type(handle_type&& other) noexcept : value_{other.detach()} {}
    handle_type& operator=(handle_type&& other) noexcept {
        if (this != &other) close(), value_ = other.detach();
        return *this;
    }
    ~handle_type() { close(); }
    type get() const noexcept { return value_; }
    type* put() noexcept { return close(), &value_; }
    type detach() noexcept { return std::exchange(value_, Traits::invalid()); }
    explicit operator bool() const noexcept { return value_ != Traits::invalid(); }
    void close() noexcept {
        if (*this) Traits::close(detach());
    }

private:
    type value_ = Traits::invalid();
};

struct handle_traits {
    using type = HANDLE;
    static void close(type value) noexcept { ::CloseHandle(value); }
    static type invalid() noexcept { return nullptr; }
};
struct list_traits {
    using type = PUMS_COMPLETION_LIST;
    static void close(type value) noexcept { ::DeleteUmsCompletionList(value); }
    static type invalid() noexcept { return nullptr; }
};
struct context_traits {
    using type = PUMS_CONTEXT;
    static void close(type value) noexcept { ::DeleteUmsThreadContext(value); }
    static type invalid() noexcept { return nullptr; }
};
using handle = handle_type<handle_traits>;
using completion_list = handle_type<list_traits>;
using ums_context = handle_type<context_traits>;

class scheduler {
public:
    scheduler() { check_bool(::CreateUmsCompletionList(list_.put())); }

    template <typename F>
    void add(F&& function) {
        auto item = std::make_unique<worker>();
        item->function = std::forward<F>(function);
        check_bool(::CreateUmsThreadContext(item->context.put()));
        UMS_CREATE_THREAD_ATTRIBUTES attributes{UMS_VERSION, item->context.get(), list_.get()};
        SIZE_T bytes{};
        ::InitializeProcThreadAttributeList(nullptr, 1, 0, &bytes);
        std::vector<std::byte> storage(bytes);
        const auto native = reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(storage.data());
        check_bool(::InitializeProcThreadAttributeList(native, 1, 0, &bytes));
        check_bool(::UpdateProcThreadAttribute(native, 0, PROC_THREAD_ATTRIBUTE_UMS_THREAD,
                                               &attributes, sizeof(attributes), nullptr, nullptr));
        item->thread = handle{::CreateRemoteThreadEx(::GetCurrentProcess(), nullptr, 0,
                                                     &worker::run, item.get(), 0, native, nullptr)};
        ::DeleteProcThreadAttributeList(native);
        check_bool(static_cast<bool>(item->thread));
        workers_.push_back(std::move(item));
    }

    void run() {
        UMS_SCHEDULER_STARTUP_INFO info{UMS_VERSION, list_.get(), &scheduler::entry, this};
        check_bool(::EnterUmsSchedulingMode(&info));
        for (auto const& item : workers_) ::WaitForSingleObject(item->thread.get(), INFINITE);
    }

private:
    struct worker {
        std::function<void()> function;
        ums_context context;
        handle thread;
        static DWORD WINAPI run(void* self) {
            static_cast<worker*>(self)->function();
            return 0;
        }
    };

    static void CALLBACK entry(UMS_SCHEDULER_REASON reason, ULONG_PTR payload, void* parameter) {
        thread_local scheduler* self;
        if (reason == UmsSchedulerStartup) self = static_cast<scheduler*>(parameter);
        if (reason == UmsSchedulerThreadYield)
            self->ready_.push_back(reinterpret_cast<PUMS_CONTEXT>(payload));
        self->dispatch();
    }

    void dispatch() {
        while (ended_ != workers_.size()) {
            PUMS_CONTEXT next{};
            check_bool(
                ::DequeueUmsCompletionListItems(list_.get(), ready_.empty() ? INFINITE : 0, &next));
            for (; next; next = ::GetNextUmsListItem(next)) ready_.push_back(next);
            while (!ready_.empty()) {
                const auto chosen = std::exchange(ready_.front(), nullptr);
                ready_.pop_front();
                BOOLEAN gone{};
                check_bool(::QueryUmsThreadInformation(chosen, UmsThreadIsTerminated, &gone,
                                                       sizeof(gone), nullptr));
                if (gone) {
                    ++ended_;
                    break;
                }
                while (!::ExecuteUmsThread(chosen) && ::GetLastError() == ERROR_RETRY)
                    ::YieldProcessor();
            }
        }
    }

    completion_list list_;
    std::vector<std::unique_ptr<worker>> workers_;
    std::deque<PUMS_CONTEXT> ready_;
    std::size_t ended_{};
};

}  // namespace sample

int main() try {
    sample::scheduler all;
    std::vector<std::string> words{"user", "mode", "scheduling"};
    int matches = 0;
    for (auto& word : words)
        all.add([&] {
            if (!::UmsThreadYield(nullptr)) sample::check_hresult(E_UNEXPECTED);
            ::Sleep(1);
            if (std::regex_match(word, std::regex{"[a-z]+"})) ++matches;
        });
    all.run();
    try {
        sample::check_bool(::CloseHandle(reinterpret_cast<HANDLE>(0x7ffc)));
    } catch (sample::hresult_error const& error) {
        std::printf("%d matches, %08x\n", matches, static_cast<unsigned>(error.code));
    }
    return 0;
} catch (sample::hresult_error const& error) {
    std::fprintf(stderr, "%08x\n", static_cast<unsigned>(error.code));
    return 1;
}
