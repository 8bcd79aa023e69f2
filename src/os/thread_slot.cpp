// SPDX-License-Identifier: MIT
#include "os/thread_slot.hpp"

extern "C" {
__attribute__((tls_model("initial-exec"),
               visibility("hidden"))) thread_local constinit void* ums_thread_slot = nullptr;
__attribute__((tls_model("initial-exec"),
               visibility("hidden"))) thread_local constinit unsigned ums_plain_sections = 0;
}

namespace ums::os {

#if !defined(__x86_64__)
void* thread_slot() noexcept { return ums_thread_slot; }
#endif

void set_thread_slot(void* value) noexcept { ums_thread_slot = value; }

void count_plain_sections(unsigned by) noexcept {
    volatile unsigned& n = ums_plain_sections;
    n = n + by;
}
unsigned plain_sections() noexcept {
    volatile unsigned& n = ums_plain_sections;
    return n;
}

}  // namespace ums::os
