// SPDX-License-Identifier: MIT
#include "ums/metrics.hpp"

#include <string_view>

#include "capi/call.hpp"

using namespace ums;
using namespace ums::capi;

static_assert(std::string_view{UMS_METRICS_TYPE} == metrics_type);
static_assert(UMS_FIBER_WAITING == static_cast<int>(fiber_state::waiting));
static_assert(UMS_FIBER_ENDED == static_cast<int>(fiber_state::ended));

int ums_metrics(char* buffer, size_t bytes, size_t* length) {
    return call([&] {
        const std::size_t n = copy_text(metrics(), buffer, bytes);
        if (length != nullptr) *length = n;
    });
}

int ums_fibers(int (*each)(void* context, const ums_fiber_info_t* one), void* context) {
    return call([&] {
        for (const fiber_info& f : fibers()) {
            const ums_fiber_info_t one{.size = sizeof one,
                                       .id = f.id.value(),
                                       .made_by = f.made_by.value(),
                                       .spawned_at = f.spawned_at,
                                       .name = f.name.c_str(),
                                       .waits_for = f.waits_for,
                                       .waits_in = f.waits_in,
                                       .state = static_cast<int>(f.state)};
            if (const int answer = each(context, &one); answer != 0) return answer;
        }
        return 0;
    });
}
