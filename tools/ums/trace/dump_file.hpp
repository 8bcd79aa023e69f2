// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace/dump_file.hpp: the file that UMS_TRACE names, which a process writes when it
// crashes or finds a deadlock (src/sched/record/trace.cpp has the format).

#include <memory>

#include "../inspect/process.hpp"
#include "record.hpp"

namespace tool::tracing {

struct dump {
    recording what;
    std::unique_ptr<inspect::process> of;  // For names: it has mappings, but no memory.
};

// Throws std::runtime_error with one line.
[[nodiscard]] bool is_dump(const std::string& path);
[[nodiscard]] dump read_dump(const std::string& path);

}  // namespace tool::tracing
