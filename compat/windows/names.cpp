// SPDX-License-Identifier: MIT
#include "windows/names.hpp"

#include <map>
#include <string_view>

#include "base/check.hpp"
#include "windows/utf8.hpp"

namespace ums::windows {
namespace {

// Never destroyed: threads may end after everything else.
std::map<std::string, object*>& names() {
    static auto* const all = new std::map<std::string, object*>;
    return *all;
}

}  // namespace

object* find_name(const std::string& name) noexcept {
    const auto found = names().find(name);
    return found != names().end() ? found->second : nullptr;
}

void give_name(const std::string& name, object& o) {
    UMS_DEBUG_CHECK(!o.has_name && !names().contains(name), "two objects have one name");
    names()[name] = &o;
    o.has_name = true;
}

void forget_name(object& o) noexcept {
    for (auto at = names().begin(); at != names().end(); ++at)
        if (at->second == &o) {
            names().erase(at);
            return;
        }
    UMS_DEBUG_CHECK(false, "another object took the name of one that is destroyed");
}

std::string plain_name(const char* given) {
    std::string_view name = given != nullptr ? given : "";
    for (const std::string_view prefix : {"Global\\", "Local\\"})
        if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    return std::string{name};
}

std::string plain_name(const wchar_t* given) {
    return given != nullptr ? plain_name(to_utf8(given).c_str()) : std::string{};
}

}  // namespace ums::windows
