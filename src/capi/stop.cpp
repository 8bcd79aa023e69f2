// SPDX-License-Identifier: MIT
#include "capi/call.hpp"

using namespace ums::capi;

int ums_stop_create(ums_stop_t** made) {
    *made = nullptr;
    return call([&] { *made = new ums_stop; });
}

void ums_stop_destroy(ums_stop_t* stop) { delete stop; }
bool ums_stop_request(ums_stop_t* stop) {
    // A fiber that sees the request may destroy the stop while this call is returning.
    std::stop_source own = stop->source;
    return own.request_stop();
}
bool ums_stop_requested(const ums_stop_t* stop) { return stop->source.stop_requested(); }
