// SPDX-License-Identifier: MIT
#pragma once

// io/offload.hpp: the pool behind ums/offload.hpp.

#include "ums/offload.hpp"

namespace ums::io {

// Runs once; then the pool does not touch it any more. It wakes whoever waits for it by itself.
struct offload_task {
    void (*run)(offload_task& self) noexcept;
    offload_task* next = nullptr;
};

struct offload_pool {
    // From a fiber. Throws std::system_error if there is no thread and none can be started.
    static void submit(offload_task& task);
    // Runs what is queued and ends the threads. From a plain thread.
    static void stop() noexcept;
};

}  // namespace ums::io
