// SPDX-License-Identifier: MIT
#pragma once

// bench/common/on_ums.hpp: a workload on libums.

#include <ums/ums.hpp>

#include <cstdint>

namespace bench {

struct on_ums {
    using runner = ums::fiber;
    static constexpr bool is_native = false;
    static void yield() { ums::this_fiber::yield(); }

    template <class Body>
    static void run(std::uint64_t processors, Body body) {
        ums::run(ums::options{.processors = static_cast<unsigned>(processors)}, [&] {
            body();
            return 0;
        });
    }
};

}  // namespace bench
