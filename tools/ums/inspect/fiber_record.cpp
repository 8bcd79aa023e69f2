// SPDX-License-Identifier: MIT
#include "fiber_record.hpp"

namespace tool::inspect {

const char* name_of(fiber_state s) {
    switch (s) {
        case fiber_state::running:
            return "running";
        case fiber_state::blocked:
            return "blocked";
        case fiber_state::stopped:
            return "stopped";
        case fiber_state::ready:
            return "ready";
        case fiber_state::parked:
            return "parked";
        case fiber_state::ended:
            return "ended";
    }
    return "?";
}

const char* name_of(wait w) {
    switch (w) {
        case wait::none:
            return "";
        case wait::mutex:
            return "mutex";
        case wait::shared_mutex:
        case wait::shared_mutex_shared:
            return "shared_mutex";
        case wait::semaphore:
            return "semaphore";
        case wait::condition:
            return "condition";
        case wait::send:
            return "send";
        case wait::receive:
            return "receive";
        case wait::select:
            return "select";
        case wait::gate:
            return "latch";
        case wait::barrier:
            return "barrier";
        case wait::once:
            return "once";
        case wait::scope:
            return "scope";
        case wait::future:
            return "future";
        case wait::readable:
            return "read";
        case wait::writable:
            return "write";
        case wait::offload:
            return "offload";
        case wait::resolve:
            return "resolve";
        case wait::shortage:
            return "descriptors";
        case wait::permit:
            return "carrier";
        case wait::join:
            return "join";
        case wait::park:
            return "park";
        case wait::sleep:
            return "sleep";
        case wait::library:
            return "libums";
        case wait::system_call:
            return "syscall";
        case wait::page_fault:
            return "fault";
    }
    return "?";
}

}  // namespace tool::inspect
