// SPDX-License-Identifier: MIT
#include "ums/scope.hpp"

#include "capi/call.hpp"
#include "capi/fiber_options.hpp"
#include "sched/fiber/exit_request.hpp"

using namespace ums;
using namespace ums::capi;

struct ums_scope {
    explicit ums_scope(std::stop_token parent) : children{std::move(parent)} {
        stop.source = children.get_stop_source();
    }

    // Destroyed after the children, which use it.
    ums_stop stop{std::stop_source{std::nostopstate}};
    scope children;
};

namespace {

// What a child that fails throws to its scope.
struct failure {
    int result;
};

int result_of(int (*function)(void*, ums_stop_t*), void* argument, ums_stop_t* stop) noexcept {
    try {
        return function(argument, stop);
    } catch (const sched::exit_request&) {
        return 0;
    }
}

}  // namespace

int ums_scope_create(ums_scope_t** made, ums_stop_t* parent) {
    *made = nullptr;
    return call([&] {
        *made = new ums_scope{parent != nullptr ? parent->source.get_token() : std::stop_token{}};
    });
}

void ums_scope_destroy(ums_scope_t* s) { delete s; }

int ums_scope_spawn(ums_scope_t* s, const ums_fiber_options_t* options,
                    int (*function)(void*, ums_stop_t*), void* argument) {
    fiber_options chosen;
    if (const int error = to_options(chosen, options); error != 0) return error;
    if (function == nullptr) return -EINVAL;
    return call([&] {
        s->children.spawn(chosen, [s, function, argument] {
            if (const int result = result_of(function, argument, &s->stop); result != 0)
                throw failure{result};
        });
    });
}

int ums_scope_join(ums_scope_t* s) {
    try {
        s->children.join();
        return 0;
    } catch (const failure& first) {
        return first.result;
    }
}

ums_stop_t* ums_scope_stop(ums_scope_t* s) { return &s->stop; }
