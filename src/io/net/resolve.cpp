// SPDX-License-Identifier: MIT
//
// A caller that gives up leaves the lookup running in the pool. The two share the state, and the
// last one frees it. The caller publishes itself as the waiter under the state's lock. Either the
// task takes the waiter out and wakes it; or the waiter takes itself out, and if it is too late for
// that, waits for the wake-up.

#include "ums/resolve.hpp"

#include <cerrno>
#include <memory>
#include <netdb.h>
#include <utility>

#include "base/assert.hpp"
#include "io/away/offload.hpp"
#include "os/clock.hpp"
#include "os/lock.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/run/park.hpp"
#include "sched/run/wake.hpp"

namespace ums::net {

namespace {

struct eai_category final : std::error_category {
    [[nodiscard]] const char* name() const noexcept override { return "resolve"; }
    [[nodiscard]] std::string message(int code) const override { return gai_strerror(code); }
    [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
        switch (code) {
            case EAI_AGAIN:
                return std::errc::resource_unavailable_try_again;
            case EAI_MEMORY:
                return std::errc::not_enough_memory;
            case EAI_FAMILY:
                return std::errc::address_family_not_supported;
            default:
                return {code, *this};
        }
    }
};

struct question {
    std::string host, service;
    resolve_options options;
    resolved answer;

    void ask() noexcept {
        addrinfo hints{};
        hints.ai_family = options.family;
        hints.ai_socktype = options.type;
        hints.ai_flags = AI_ADDRCONFIG;
        addrinfo* list = nullptr;
        const auto word = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
        // getaddrinfo() would take the part before a zero byte for the name.
        const bool is_cut = host.find('\0') != host.npos || service.find('\0') != service.npos;
        const int error =
            is_cut ? EAI_NONAME : getaddrinfo(word(host), word(service), &hints, &list);
        if (error == EAI_SYSTEM)
            answer.error = {errno, std::system_category()};
        else if (error != 0)
            answer.error = {error, resolve_category()};
        const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned{list, [](addrinfo* l) {
                                                                       if (l != nullptr)
                                                                           freeaddrinfo(l);
                                                                   }};
        try {
            for (const addrinfo* a = list; error == 0 && a != nullptr; a = a->ai_next)
                answer.endpoints.emplace_back(a->ai_addr, a->ai_addrlen);
        } catch (const std::bad_alloc&) {
            answer.error = std::make_error_code(std::errc::not_enough_memory);
        }
    }
};

struct lookup : io::offload_task {
    question asked;
    os::lock lock;
    // Guarded by lock:
    sched::parkable* waiter = nullptr;
    bool is_done = false;

    std::shared_ptr<lookup> self;  // The task's share.

    static void perform(io::offload_task& task) noexcept {
        auto& l = static_cast<lookup&>(task);
        const std::shared_ptr<lookup> kept = std::move(l.self);
        UMS_DEBUG_ASSERT(kept != nullptr, "the pool made a look-up twice");
        l.asked.ask();
        l.lock.acquire();
        l.is_done = true;
        sched::parkable* who = std::exchange(l.waiter, nullptr);
        l.lock.release();
        if (who != nullptr) sched::wake(*who);
    }
};

resolved failed(std::errc code) {
    resolved r;
    r.error = std::make_error_code(code);
    return r;
}

}  // namespace

const std::error_category& resolve_category() noexcept {
    static const eai_category category;
    return category;
}

const std::vector<endpoint>& resolved::value() const {
    if (error) throw std::system_error{error};
    return endpoints;
}

resolved resolve(std::string_view host, std::string_view service, const limits& l,
                 const resolve_options& o) {
    sched::parkable& me = sched::this_parkable();
    if (!me.is_fiber) {
        question q{std::string{host}, std::string{service}, o, {}};
        q.ask();
        return std::move(q.answer);
    }
    const auto state = std::make_shared<lookup>();
    state->run = &lookup::perform;
    state->kind = io::call_kind::name;
    state->asked = {std::string{host}, std::string{service}, o, {}};
    state->waiter = &me;
    state->self = state;
    try {
        io::offload_pool::submit(*state);
    } catch (...) {
        state->self.reset();
        throw;
    }
    const sched::wait now{me, sched::wait_kind::resolve, nullptr};
    const auto why = sched::park(sched::park_kind::internal, os::to_nanoseconds(l.until), l.stop);
    if (why == sched::parkable::reason::wake) {
        UMS_ASSERT(state->is_done, "a look-up's caller was woken before there is an answer");
        return std::move(state->asked.answer);
    }
    state->lock.acquire();
    const bool is_taken = std::exchange(state->waiter, nullptr) == nullptr;
    state->lock.release();
    if (is_taken) {
        sched::park(sched::park_kind::internal);  // The wake() is on its way.
        return std::move(state->asked.answer);
    }
    return failed(why == sched::parkable::reason::deadline ? std::errc::timed_out
                                                           : std::errc::operation_canceled);
}

}  // namespace ums::net
