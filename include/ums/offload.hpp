// SPDX-License-Identifier: MIT
#pragma once

// ums/offload.hpp: runs calls that truly block on kernel threads of their own.
//
//   auto hash = ums::offload([&] { return slow_library_call(input); });
//
// So many calls run at once as the limit says; beyond it calls wait in order. If the program has
// not set the limit, a call that has slept in the kernel for a second no longer counts, so that
// calls which wait for each other go on. The pool keeps one idle thread for the next call: of
// several threads with nothing to do for ten seconds, all but one end. All end when the runtime
// stops. The threads inherit CPU affinity and scheduling from the thread that started the runtime,
// and nothing from a fiber's carrier.
//
// libums's own calls use the pool, too, and calls of the program hold them up as little as they
// hold up those: the limit counts for each kind by itself. Own calls are name look-ups
// (net::resolve()); and files, opens, connects, closes that linger, which no longer count once they
// have slept in the kernel for 10 ms.
//
// Blocking: parks the fiber until the call has returned. A plain kernel thread calls f() itself.
// Fairness: calls of one kind start in order of arrival.
// Errors:   throws what f threw; std::system_error if the pool has no thread and cannot start one.
// Cost:     two switches of kernel threads, 5 to 20 us. f() runs on another thread: it is on no
//           fiber and sees none of the caller's thread-locals.

#include <cstdint>
#include <cxxabi.h>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "ums/export.hpp"
#include "ums/impl/exceptions.hpp"

namespace ums {

struct offload_statistics {
    std::uint64_t calls;    // Since the runtime started.
    std::uint64_t waited;   // Those of them that found the limit reached.
    std::uint32_t threads;  // Threads of the pool now.
    std::uint32_t busy;     // Threads in a call now.
    std::uint32_t queued;   // Calls that wait for a thread now.
    std::uint32_t most;     // The limit.
};
// Never parks; takes the pool's lock.
[[nodiscard]] UMS_EXPORT offload_statistics offload_stats() noexcept;

// Lets at most `threads` calls of offload() run at once from now on, 1 to 4096 (other values are
// clamped), and as many of each other kind. The limit is 64 at the start of the program. Never
// parks; calls under way continue.
UMS_EXPORT void set_offload_limit(unsigned threads) noexcept;

namespace impl {
// Calls run(argument), which must not throw, on a thread of the pool, and waits. If pthread_exit()
// unwinds it there, the program ends with a message.
UMS_EXPORT void offload(void (*run)(void*), void* argument);
}  // namespace impl

// Calls f() on a thread of the pool and returns its result.
template <class F>
std::invoke_result_t<F&> offload(F&& f) {
    using R = std::invoke_result_t<F&>;
    struct call {
        std::remove_reference_t<F>* function;
        std::exception_ptr thrown;
        std::conditional_t<std::is_void_v<R>, bool,
                           std::optional<std::conditional_t<std::is_void_v<R>, int, R>>>
            result;
    } c{&f, nullptr, {}};
    impl::offload(
        [](void* argument) {
            auto& self = *static_cast<call*>(argument);
            UMS_TRY {
                if constexpr (std::is_void_v<R>)
                    std::invoke(*self.function);
                else
                    self.result.emplace(std::invoke(*self.function));
            }
            UMS_CATCH_FORCED_UNWIND()
            UMS_CATCH_ALL { self.thrown = std::current_exception(); }
        },
        &c);
    if (c.thrown) std::rethrow_exception(c.thrown);
    if constexpr (!std::is_void_v<R>) return std::move(*c.result);
}

}  // namespace ums
