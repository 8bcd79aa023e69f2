// SPDX-License-Identifier: MIT

// What the system reports to a program: addresses of hosts, ends of children, signals.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "base/assert.hpp"
#include "capi/io_result.hpp"
#include "ums/child.hpp"
#include "ums/resolve.hpp"
#include "ums/signals.hpp"
#include "ums/ums_io.h"

using namespace ums;
using namespace ums::capi;

struct ums_signals {
    explicit ums_signals(std::span<const int> numbers) : events{numbers} {}
    signal_events events;
};

namespace {

constexpr std::int64_t for_ever = UMS_NEVER;

const char* text(const char* given) noexcept { return given != nullptr ? given : ""; }

// Returns how many addresses there are, or -errno.
int store(const net::resolved& found, ums_address_t* into, int most, int* why) noexcept {
    if (found.error.category() == net::resolve_category() && found.error) {
        if (why != nullptr) *why = found.error.value();
        return -ENOENT;
    }
    if (found.error) return -found.error.value();
    const auto n = std::min(static_cast<std::size_t>(std::max(most, 0)), found.endpoints.size());
    UMS_DEBUG_ASSERT(into != nullptr || n == 0, "addresses have no place to go to");
    for (std::size_t i = 0; i < n; ++i) {
        const net::endpoint& e = found.endpoints[i];
        UMS_ASSERT(e.size() <= sizeof into[i].address, "an address is larger than its place");
        into[i] = {};
        into[i].bytes = e.size();
        std::memcpy(&into[i].address, e.data(), e.size());
    }
    return static_cast<int>(found.endpoints.size());
}

}  // namespace

int ums_resolve(const char* host, const char* service, int family, int type, ums_address_t* into,
                int most, int* why) {
    return ums_resolve_until(host, service, family, type, into, most, why, for_ever, nullptr);
}

int ums_resolve_until(const char* host, const char* service, int family, int type,
                      ums_address_t* into, int most, int* why, int64_t deadline, ums_stop_t* stop) {
    return call([=] {
        limits l{to_deadline(deadline)};
        std::stop_token token;
        if (stop != nullptr) {
            token = stop->source.get_token();
            l.stop = &token;
        }
        const auto found = net::resolve(text(host), text(service), l, {family, type});
        return store(found, into, most, why);
    });
}

int ums_child_wait(pid_t pid, int* status) {
    return ums_child_wait_until(pid, status, for_ever, nullptr);
}

int ums_child_wait_until(pid_t pid, int* status, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, [=](const limits& l) -> result<void> {
        const result<int> ended = wait_child(pid, l);
        if (!ended) return result<void>::failure(ended.error().value());
        if (status != nullptr) *status = *ended;
        return {};
    });
}

int ums_signals_create(ums_signals_t** made, const int* numbers, size_t count) {
    return call([=] { *made = new ums_signals{std::span{numbers, count}}; });
}

void ums_signals_destroy(ums_signals_t* signals) { delete signals; }

int ums_signals_wait(ums_signals_t* signals) {
    return ums_signals_wait_until(signals, for_ever, nullptr);
}

int ums_signals_wait_until(ums_signals_t* signals, int64_t deadline, ums_stop_t* stop) {
    return until(deadline, stop, [=](const limits& l) { return signals->events.wait(l); });
}
