// SPDX-License-Identifier: MIT
#pragma once

// ums/run.hpp: starting and stopping the runtime.
//
//   int main() {
//       return ums::run([] { ...; return 0; });   // the lambda is the first fiber
//   }
//
// One runtime runs in a process at a time; it may be started again after it was stopped. It owns the
// default cluster's kernel threads (its carriers), the stacks and the report of stack overflows (a
// SIGSEGV handler that passes on what is not its own).
//
// Blocking: run() and stop() block the calling plain thread until every fiber, also the detached ones,
//           has ended. A fiber that never ends keeps them waiting.
// Lifetime: every handle of a fiber is joined or detached, every cluster destroyed, before the stop.
// Errors:   std::system_error: device_or_resource_busy (one runs already), invalid_argument (an
//           option), operation_not_supported (guards the kernel cannot make; no detector where one is asked for, or for
//           time slices), resource_unavailable_try_again (no thread), operation_not_permitted (run() on a fiber). An environment variable UMS_* that does not parse ends the program with exit
//           code 2 and one line that names it.

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "ums/cluster.hpp"
#include "ums/export.hpp"
#include "ums/options.hpp"
#include "ums/value_fiber.hpp"

namespace ums {

class UMS_EXPORT runtime {
public:
    explicit runtime(const options& chosen = {});
    ~runtime() { stop(); }
    runtime(const runtime&) = delete;
    runtime& operator=(const runtime&) = delete;

    // Waits until every fiber has ended, then ends the carriers and gives all memory back. Does nothing if stopped
    // already. From a plain thread.
    void stop() noexcept;

private:
    bool running_ = false;
};

// Starts a runtime, calls f() on its first fiber, waits until every fiber has ended, stops the runtime,
// and returns what f returned or rethrows what it threw.
template <class F>
auto run(const options& chosen, F&& f) {
    runtime started{chosen};
    return spawn(fiber_options{.name = "main"},
                 [&f]() -> std::invoke_result_t<F&> { return std::invoke(f); })
        .join();
}

template <class F>
auto run(F&& f) {
    return run(options{}, std::forward<F>(f));
}

}  // namespace ums
