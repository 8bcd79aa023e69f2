// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of carry/service_thread.hpp: the strand is the thread.

#include <thread>

namespace ums::carry {

template <class F>
std::thread service_thread(const char*, F) {
    return {};
}

}  // namespace ums::carry
