// SPDX-License-Identifier: MIT
#include "ums/cluster.hpp"

#include <ranges>
#include <span>

#include "capi/call.hpp"
#include "capi/fiber_options.hpp"
#include "capi/policy.hpp"
#include "sched/run/here.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

cluster& cluster_of(ums_cluster_t* c) noexcept { return *reinterpret_cast<cluster*>(c); }
const cluster& cluster_of(const ums_cluster_t* c) noexcept {
    return *reinterpret_cast<const cluster*>(c);
}

}  // namespace

int ums_cluster_create(ums_cluster_t** made, const ums_cluster_options_t* given) {
    *made = nullptr;
    ums_cluster_options_t o = UMS_CLUSTER_OPTIONS_INIT;
    if (const int error = copy_sized(o, given, sizeof o); error != 0) return error;
    if (const int error = check_policy(o.policy_calls, o.policy); error != 0) return error;
    return call([&] {
        const cluster_options chosen{.name = o.name != nullptr ? o.name : "cluster",
                                     .processors = o.processors,
                                     .policy = to_kind(o.policy),
                                     .make_policy = policy_maker(o.policy_calls, o.policy_argument),
                                     .pin = o.pin,
                                     .cpus = o.cpus != nullptr ? o.cpus : "",
                                     .carriers = o.carriers,
                                     .time_slice_us = o.time_slice_us};
        *made = reinterpret_cast<ums_cluster_t*>(new cluster{chosen});
    });
}

int ums_cluster_destroy(ums_cluster_t* c) {
    if (c == ums_cluster_standard()) return -EINVAL;
    const sched::here at;
    if (at.self != nullptr &&
        at.self->home_cluster.get() == sched::cluster_access::of(cluster_of(c)))
        return -EDEADLK;
    delete &cluster_of(c);
    return 0;
}

int ums_cluster_add_processor(ums_cluster_t* c, unsigned* index) {
    return call([&] {
        const unsigned added = cluster_of(c).add_processor();
        if (index != nullptr) *index = added;
    });
}

int ums_cluster_remove_processor(ums_cluster_t* c) {
    return call([&] { cluster_of(c).remove_processor(); });
}

int ums_cluster_pause(ums_cluster_t* c) {
    return call([&] { cluster_of(c).pause(); });
}

int ums_cluster_resume(ums_cluster_t* c) {
    return call([&] { cluster_of(c).resume(); });
}

int ums_cluster_move_processor(ums_cluster_t* from, ums_cluster_t* to, unsigned* index) {
    return call([&] {
        const unsigned moved = cluster_of(from).move_processor(cluster_of(to));
        if (index != nullptr) *index = moved;
    });
}

int ums_cluster_post(ums_cluster_t* c, const ums_fiber_options_t* given, void (*function)(void*),
                     void* argument) {
    fiber_options chosen;
    if (const int error = to_options(chosen, given); error != 0) return error;
    if (function == nullptr) return -EINVAL;
    return call([&] { cluster_of(c).post(chosen, function, argument); });
}

int ums_cluster_post_each(ums_cluster_t* c, const ums_fiber_options_t* given,
                          void (*function)(void*), void* const* arguments, size_t count) {
    fiber_options chosen;
    if (const int error = to_options(chosen, given); error != 0) return error;
    if (function == nullptr) return -EINVAL;
    struct one {
        void (*function)(void*);
        void* argument;
        void operator()() const { function(argument); }
    };
    return call([&] {
        cluster_of(c).post_each(
            chosen, std::span{arguments, count} | std::views::transform([function](void* argument) {
                        return one{function, argument};
                    }));
    });
}

unsigned ums_cluster_processors(const ums_cluster_t* c) { return cluster_of(c).processors(); }

int ums_cluster_set_group_weight(ums_cluster_t* c, unsigned group, unsigned weight) {
    return call([&] { cluster_of(c).set_group_weight(group, weight); });
}

size_t ums_cluster_name(const ums_cluster_t* c, char* buffer, size_t bytes) {
    return copy_text(cluster_of(c).name(), buffer, bytes);
}

ums_cluster_t* ums_cluster_standard() {
    return reinterpret_cast<ums_cluster_t*>(&cluster::standard());
}
