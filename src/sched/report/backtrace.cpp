// SPDX-License-Identifier: MIT
#include "sched/report/backtrace.hpp"

#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include "arch/backtrace.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/run/park.hpp"

namespace ums::sched {

std::vector<const void*> backtrace(fiber& f) {
    constexpr std::size_t most = 64;
    const void* addresses[most];
    const std::uint32_t bit = take_aside(f);
    if (bit == 0) return {};
    const std::size_t n = arch::backtrace(f.context, addresses, most);
    park_again(f, bit);
    return std::vector<const void*>(addresses, addresses + n);
}

std::string symbol(const void* return_address) {
    const auto at = reinterpret_cast<std::uintptr_t>(return_address);
    char text[64];
    std::snprintf(text, sizeof text, "%#lx", static_cast<unsigned long>(at));
    std::string all = text;
    Dl_info info{};
    link_map* module = nullptr;
    // Looks up the call itself, because what follows it may belong to the next function.
    if (::dladdr1(reinterpret_cast<const void*>(at - 1), &info, reinterpret_cast<void**>(&module),
                  RTLD_DL_LINKMAP) == 0)
        return all;
    if (info.dli_sname != nullptr) {
        int status = 0;
        char* plain = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
        std::snprintf(
            text, sizeof text, "+%#lx",
            static_cast<unsigned long>(at - reinterpret_cast<std::uintptr_t>(info.dli_saddr)));
        all += std::string{" "} + (plain != nullptr ? plain : info.dli_sname) + text;
        std::free(plain);
    }
    if (info.dli_fname != nullptr && module != nullptr) {
        std::snprintf(text, sizeof text, "+%#lx", static_cast<unsigned long>(at - module->l_addr));
        all += std::string{" ("} + info.dli_fname + text + ")";
    }
    return all;
}

}  // namespace ums::sched
