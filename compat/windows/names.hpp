// SPDX-License-Identifier: MIT
#pragma once

// windows/names.hpp: the names of events, semaphores and mutexes, in this process.
//
// "Global\" and "Local\" in front are left out. All functions: under the dispatcher's lock.

#include <optional>
#include <string>

#include "windows/object.hpp"

namespace ums::windows {

object* find_name(const std::string& name) noexcept;
void give_name(const std::string& name, object& o);
void forget_name(object& o) noexcept;

// Without its prefix; empty: none.
std::string plain_name(const char* given);
std::string plain_name(const wchar_t* given);

}  // namespace ums::windows
