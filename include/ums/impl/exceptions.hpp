// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/exceptions.hpp: for the headers' code in programs that are compiled without exceptions
// (-fno-exceptions). What it would throw ends the program there, with a line; nothing is caught,
// because nothing is thrown.
//
// __forced_unwind is what pthread_exit() and cancellation unwind with. libstdc++ has a name for it;
// a handler for all must let it pass. Other libraries' handlers never see it.

#include <cxxabi.h>
#include <exception>

#if defined(__cpp_exceptions)
#define UMS_TRY try
#define UMS_CATCH(type, name) catch (const type& name)
#define UMS_CATCH_ALL catch (...)
#define UMS_THROW(...) throw __VA_ARGS__
#define UMS_RETHROW throw
#if defined(__GLIBCXX__)
#define UMS_CATCH_FORCED_UNWIND(...) \
    catch (abi::__forced_unwind&) {  \
        __VA_ARGS__ throw;           \
    }
#else
#define UMS_CATCH_FORCED_UNWIND(...)
#endif
#else
#include <cstdio>
#include <cstdlib>

#define UMS_TRY
#define UMS_CATCH(type, name) \
    while (false)             \
        for ([[maybe_unused]] const type& name = ::ums::impl::never_caught<type>(); false;)
#define UMS_CATCH_ALL if constexpr (false)
#define UMS_THROW(...) ::ums::impl::cannot_throw(__VA_ARGS__)
#define UMS_RETHROW static_cast<void>(0)
#define UMS_CATCH_FORCED_UNWIND(...)

namespace ums::impl {

[[noreturn]] inline void cannot_throw(const std::exception& e) noexcept {
    std::fprintf(stderr, "ums: %s (thrown where exceptions are off: -fno-exceptions)\n", e.what());
    std::abort();
}
template <class E>
[[noreturn]] const E& never_caught() noexcept {
    std::abort();
}

}  // namespace ums::impl
#endif
