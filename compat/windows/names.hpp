// SPDX-License-Identifier: MIT
#pragma once

// windows/names.hpp: the names of events, semaphores and mutexes, in this process.
//
// A "Global\" or "Local\" in front is dropped. All functions require the dispatcher's lock.

#include <optional>
#include <string>

#include "windows/object.hpp"

namespace ums::windows {

object* find_name(const std::string& name) noexcept;
void give_name(const std::string& name, object& o);
void forget_name(object& o) noexcept;

// The name without its prefix; empty if there is none.
std::string plain_name(const char* given);
std::string plain_name(const wchar_t* given);

}  // namespace ums::windows
