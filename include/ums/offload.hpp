// SPDX-License-Identifier: MIT
#pragma once

// ums/offload.hpp: calls that truly block, on kernel threads of their own.
//
//   auto hash = ums::offload([&] { return slow_library_call(input); });
//
// The pool keeps a thread idle for the next call, up to a limit; further calls wait in order. Of several
// threads with nothing to do for ten seconds all but one end; all end when the runtime stops. They inherit
// CPU affinity and scheduling from the thread that started the runtime, nothing from a fiber's. Files and
// net::resolve() use the pool.
//
// Blocking: parks the fiber until the call has returned. On a plain kernel thread, calls f() right there.
// Errors:   throws what f threw; std::system_error if the pool has no thread and none can be started.
// Cost:     two switches of kernel threads, 5 to 20 us. f() runs on another thread: no thread-local of the
//           caller's, no fiber.

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "ums/export.hpp"

namespace ums {

struct offload_statistics {
    std::uint64_t calls;    // Since the runtime started.
    std::uint64_t waited;   // Of them, those that found no thread free and the limit reached.
    std::uint32_t threads;  // Now.
    std::uint32_t busy;     // Now.
    std::uint32_t queued;   // Now.
    std::uint32_t most;     // The limit.
};
[[nodiscard]] UMS_EXPORT offload_statistics offload_stats() noexcept;

// From now on: at most that many threads, 1 to 4096. 64 at the start of the program.
UMS_EXPORT void set_offload_limit(unsigned threads) noexcept;

namespace impl {
// Calls run(argument), which does not throw, on a thread of the pool, and waits.
UMS_EXPORT void offload(void (*run)(void*), void* argument);
}  // namespace impl

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
            try {
                if constexpr (std::is_void_v<R>)
                    std::invoke(*self.function);
                else
                    self.result.emplace(std::invoke(*self.function));
            } catch (...) {
                self.thrown = std::current_exception();
            }
        },
        &c);
    if (c.thrown) std::rethrow_exception(c.thrown);
    if constexpr (!std::is_void_v<R>) return std::move(*c.result);
}

}  // namespace ums
