// SPDX-License-Identifier: MIT
#pragma once

// capi/gate.hpp: the C objects that are a gate.

#include "capi/call.hpp"
#include "ums/impl/gate.hpp"

namespace ums::capi {

template <class C>
impl::gate_state& gate_of(C* c) noexcept {
    return object<impl::gate_state>(c);
}
template <class C>
const impl::gate_state& gate_of(const C* c) noexcept {
    return object<const impl::gate_state>(c);
}

inline int wait_at_gate(impl::gate_state& g, std::int64_t deadline,
                        const ums_stop_t* stop) noexcept {
    return wait_until(deadline, stop, [&g](ums::deadline limit, const std::stop_token* token) {
        return token == nullptr ? impl::gate_calls::wait_until(g, limit)
                                : impl::gate_calls::wait_or_stop(g, *token, limit);
    });
}

}  // namespace ums::capi
