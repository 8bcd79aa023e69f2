// SPDX-License-Identifier: MIT
#include "sched/run/ready.hpp"

#include "sched/run/here.hpp"

namespace ums::sched {

namespace {

// Takes the fibers of one cluster off the front of the list.
fiber* take_of_one_cluster(fiber*& list) noexcept {
    fiber* const first = list;
    fiber* last = first;
    while (last->link.get() != nullptr &&
           last->link.get()->home_cluster.get() == first->home_cluster.get())
        last = last->link.get();
    list = last->link.get();
    last->link.set(nullptr);
    return first;
}

// Gives the caller's processor the fibers that may run there. Returns the others.
fiber* take_in_here(fiber* list) noexcept {
    const here at;
    processor* const p = at.self != nullptr ? at.enter() : nullptr;
    if (p == nullptr) return list;
    fiber* others = nullptr;
    fiber* last = nullptr;
    while (fiber* const f = list) {
        list = f->link.get();
        if (p->may_run(*f)) {
            p->make_ready(*f, processor::place::back);
            continue;
        }
        f->link.set(nullptr);
        last != nullptr ? last->link.set(f) : void(others = f);
        last = f;
    }
    at.leave();
    p->wake_help();
    return others;
}

}  // namespace

void ready::all(fiber* list) noexcept {
    while (list != nullptr) {
        fiber* some = take_of_one_cluster(list);
        cluster& home = *some->home_cluster.get();
        const here at;
        if (at.self != nullptr && at.self->home_cluster.get() == &home) some = take_in_here(some);
        if (some != nullptr) home.make_all_ready_from_outside(some);
    }
}

}  // namespace ums::sched
