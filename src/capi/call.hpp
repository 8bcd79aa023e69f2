// SPDX-License-Identifier: MIT
#pragma once

// capi/call.hpp: connects a C call and the C++ call it stands for.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "base/assert.hpp"
#include "base/sized.hpp"
#include "sched/fiber/access.hpp"
#include "ums/deadline.hpp"
#include "ums/ums.h"

// Opaque to C. A waiter holds a token of it, so it may be destroyed meanwhile.
struct ums_stop {
    std::stop_source source;
};

namespace ums::capi {

// Whether a C program's number is one of an enumeration whose last value is `last`.
constexpr bool is_kind(int value, int last) noexcept { return value >= 0 && value <= last; }

// Calls f() and returns what it returns (nothing: 0), or what it threw as a negative error number.
template <class F>
int call(F&& f) noexcept {
    try {
        if constexpr (std::is_void_v<std::invoke_result_t<F&>>)
            return f(), 0;
        else
            return f();
    } catch (const std::system_error& error) {
        UMS_ASSERT(error.code().value() > 0, "a failure would look like a success");
        return -error.code().value();
    } catch (const std::bad_alloc&) {
        return -ENOMEM;
    }
}

inline deadline to_deadline(std::int64_t ns) noexcept {
    return deadline{std::chrono::nanoseconds{ns}};
}

// The result of a wait that may give up: wait(limit, token) returns whether it succeeded; a null
// token means none.
template <class Wait>
int wait_until(std::int64_t limit, const ums_stop_t* stop, Wait wait) noexcept {
    return call([&] {
        std::stop_token token;
        if (stop != nullptr) token = stop->source.get_token();
        if (wait(to_deadline(limit), stop != nullptr ? &token : nullptr)) return 0;
        if (token.stop_requested()) return -ECANCELED;
        UMS_DEBUG_ASSERT(limit != UMS_NEVER, "a wait without a limit has timed out");
        return -ETIMEDOUT;
    });
}

inline ums_ref_t to_c(fiber_ref r) noexcept { return {sched::access::parkable_of(r)}; }
inline fiber_ref from_c(ums_ref_t r) noexcept {
    return sched::access::ref(static_cast<sched::parkable*>(r.who));
}

// The C++ object that lies in a C one.
template <class T, class C>
T& object(C* c) noexcept {
    static_assert(sizeof(T) <= sizeof(C) && alignof(T) <= alignof(C));
    return *reinterpret_cast<T*>(c);
}

// Writes the text, cut to bytes - 1, and a zero. Returns its length.
inline std::size_t copy_text(std::string_view text, char* buffer, std::size_t bytes) noexcept {
    UMS_DEBUG_ASSERT(buffer != nullptr || bytes == 0, "a text has no buffer to go to");
    if (bytes != 0) {
        const std::size_t n = std::min(text.size(), bytes - 1);
        std::memcpy(buffer, text.data(), n);
        buffer[n] = 0;
    }
    return text.size();
}

// Options that C code may leave out.
template <class T>
int copy_sized(T& known, const T* given, std::size_t smallest) noexcept {
    return given == nullptr ? 0 : base::copy_sized(known, *given, smallest);
}

}  // namespace ums::capi
