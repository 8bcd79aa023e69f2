// SPDX-License-Identifier: MIT
#pragma once

// ums/run.hpp: starts and stops the runtime.
//
//   int main() {
//       return ums::run([] { ...; return 0; });   // the lambda is the first fiber
//   }
//
// One runtime runs in a process at a time; a program may start it again after it was stopped. The
// runtime owns the default cluster's kernel threads (its carriers), the stacks, and the report of
// stack overflows (a SIGSEGV handler that passes on every signal that is not its own).
//
// Blocking: run() and stop() block the calling plain thread until every fiber has ended, including
//           the detached ones. A fiber that never ends keeps them waiting.
// Lifetime: before the stop, join or detach every handle of a fiber and destroy every cluster. The
//           child of a fiber's fork() has a runtime with one processor and that fiber alone, which
//           ends with the process; the child of a plain thread has none (docs/fork-and-pause.md).
// Errors:   std::system_error: device_or_resource_busy (a runtime is running), invalid_argument (an
//           option), operation_not_supported (the kernel cannot make the requested guards, the
//           requested detector does not work, or the requested time slices have no detector),
//           resource_unavailable_try_again (no thread), operation_not_permitted (started on a
//           fiber). An environment variable UMS_* that does not parse ends the program with exit
//           code 2 and one line that names it.
// Cost:     a start makes a kernel thread for each processor, and a few more.

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "ums/cluster.hpp"
#include "ums/export.hpp"
#include "ums/impl/outcome.hpp"
#include "ums/options.hpp"
#include "ums/value_fiber.hpp"

namespace ums {

class UMS_EXPORT runtime {
public:
    // Starts the runtime. Errors: see above.
    explicit runtime(const options& chosen = {});
    // Stops it. But a static runtime that exit() destroys on a fiber runs on until the process has
    // ended, as kernel threads do.
    ~runtime();
    runtime(const runtime&) = delete;
    runtime& operator=(const runtime&) = delete;

    // Waits until every fiber has ended, then ends the carriers and gives all memory back. Does
    // nothing if the runtime is stopped already. Call it from a plain thread.
    void stop() noexcept;

private:
    bool running_ = false;
};

namespace impl {

// Starts a runtime, runs run(callable) on its first fiber, and stops the runtime when all have
// ended.
UMS_EXPORT void run_first(const options& chosen, void (*run)(void*), void* callable);

// The first fiber's function, by reference. Its name shows in reports, as that of `bound`.
template <class F>
struct first_call {
    using result = std::invoke_result_t<F&>;
    static_assert(is_returnable<result>,
                  "a fiber's function must not return an rvalue reference: return a value");

    F& function;
    outcome<result> out;

    static void run_in_place(void* self) {
        auto* const mine = static_cast<first_call*>(self);
        mine->out.call(mine->function);
    }
};

}  // namespace impl

// Starts a runtime, calls f() on its first fiber ("main"), waits until every fiber has ended, and
// stops the runtime. Returns what f returned, or rethrows what it threw.
template <class F>
decltype(auto) run(const options& chosen, F&& f) {
    // Otherwise nothing else is compiled, so that this is the only error.
    if constexpr (std::is_invocable_v<F&>) {
        using call = impl::first_call<std::remove_reference_t<F>>;
        call first{f, {}};
        impl::run_first(chosen, &call::run_in_place, std::addressof(first));
        return first.out.take();
    } else {
        static_assert(std::is_invocable_v<F&>,
                      "the first fiber's function must be callable without arguments");
    }
}

// The same with default options.
template <class F>
decltype(auto) run(F&& f) {
    return run(options{}, std::forward<F>(f));
}

}  // namespace ums
