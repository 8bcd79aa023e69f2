// SPDX-License-Identifier: MIT
#include "ums/fiber.hpp"

#include <utility>

#include "base/assert.hpp"
#include "capi/call.hpp"
#include "capi/fiber_options.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

sched::fiber* taken(ums_fiber_t* fiber) noexcept {
    return static_cast<sched::fiber*>(std::exchange(fiber->handle, nullptr));
}

fiber_ref ref_of(const ums_fiber_t* fiber) noexcept {
    auto* f = static_cast<sched::fiber*>(fiber->handle);
    return f != nullptr ? impl::ref_of(f) : fiber_ref{};
}

}  // namespace

int ums_fiber_create(ums_fiber_t* made, const ums_fiber_options_t* given, void (*function)(void*),
                     void* argument) {
    made->handle = nullptr;
    fiber_options chosen;
    if (const int error = to_options(chosen, given); error != 0) return error;
    if (function == nullptr) return -EINVAL;
    return call([&] {
        using call = impl::bound<void (*)(void*), void*>;
        const impl::new_fiber begun =
            impl::spawn_begin(given != nullptr ? &chosen : nullptr, sizeof(call), alignof(call));
        void* const at = ::new (begun.storage) call(std::in_place, function, argument);
        // Set before the fiber can run, because it may ask for its own handle.
        made->handle = begun.fiber;
        impl::spawn_commit(begun.fiber, &call::run_in_place, at, chosen.launch);
    });
}

int ums_fiber_join(ums_fiber_t* fiber) {
    if (fiber->handle == nullptr) return -EINVAL;
    return call([&] {
        impl::join(static_cast<sched::fiber*>(fiber->handle));
        fiber->handle = nullptr;
    });
}

int ums_fiber_detach(ums_fiber_t* fiber) {
    if (fiber->handle == nullptr) return -EINVAL;
    impl::detach(taken(fiber));
    return 0;
}

bool ums_fiber_joinable(const ums_fiber_t* fiber) { return fiber->handle != nullptr; }
ums_ref_t ums_fiber_ref(const ums_fiber_t* fiber) { return to_c(ref_of(fiber)); }
uint64_t ums_fiber_id(const ums_fiber_t* fiber) { return ums_ref_id(to_c(ref_of(fiber))); }

unsigned ums_hardware_concurrency() { return fiber::hardware_concurrency(); }

void ums_ref_unpark(ums_ref_t who) {
    UMS_DEBUG_ASSERT(who.who != nullptr, "a reference to no fiber was unparked");
    from_c(who).unpark();
}
void ums_ref_unpark_all(const ums_ref_t* all, size_t count) {
    static_assert(sizeof(ums_ref_t) == sizeof(fiber_ref) &&
                  alignof(ums_ref_t) == alignof(fiber_ref));
    unpark_all({reinterpret_cast<const fiber_ref*>(all), count});
}
uint64_t ums_ref_id(ums_ref_t who) { return from_c(who).id().value(); }

const char* ums_ref_name(ums_ref_t who) {
    const sched::fiber* f = sched::access::fiber_of(from_c(who));
    return f != nullptr ? f->name : "";
}

uint64_t ums_ref_tag(ums_ref_t who) { return from_c(who).tag(); }
void ums_ref_set_tag(ums_ref_t who, uint64_t tag) { from_c(who).set_tag(tag); }

int ums_ref_priority(ums_ref_t who) { return from_c(who).priority(); }
void ums_ref_set_priority(ums_ref_t who, int priority) { from_c(who).set_priority(priority); }
int ums_ref_effective_priority(ums_ref_t who) { return from_c(who).effective_priority(); }
int64_t ums_ref_deadline(ums_ref_t who) {
    return from_c(who).deadline().time_since_epoch() / std::chrono::nanoseconds{1};
}
void ums_ref_set_deadline(ums_ref_t who, int64_t deadline) {
    from_c(who).set_deadline(to_deadline(deadline));
}
unsigned ums_ref_weight(ums_ref_t who) { return from_c(who).weight(); }
void ums_ref_set_weight(ums_ref_t who, unsigned weight) { from_c(who).set_weight(weight); }
unsigned ums_ref_group(ums_ref_t who) { return from_c(who).group(); }
void ums_ref_set_group(ums_ref_t who, unsigned group) { from_c(who).set_group(group); }
