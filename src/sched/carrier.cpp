// SPDX-License-Identifier: MIT
#include "sched/carrier.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <pthread.h>

#include "os/signal_stack.hpp"
#include "os/topology.hpp"
#include "sched/cluster.hpp"
#include "sched/search.hpp"
#include "sched/switch.hpp"
#include "sched/wake.hpp"

namespace ums::sched {

carrier* carrier::start(processor& p) {
    auto* c = new carrier;
    c->proc.set(&p);
    c->made_by_carrier = this_carrier() != nullptr;
    p.carrier_ = c;
    try {
        c->thread = std::thread{[c] { c->run(); }};
    } catch (...) {
        p.carrier_ = nullptr;
        delete c;
        try {
            throw;
        } catch (const std::system_error& e) {
            throw std::system_error{e.code(), "ums: no kernel thread for another processor"};
        }
    }
    return c;
}

void carrier::join(carrier* c) noexcept {
    c->thread.join();
    delete c;
}

void carrier::run() noexcept {
    char name[16];
    std::snprintf(name, sizeof name, "ums %.4s/%u", proc.get()->home().name().c_str(),
                  proc.get()->index() % 10000);
    pthread_setname_np(pthread_self(), name);
    if (proc.get()->home().setup_.pin)
        os::pin_this_thread(proc.get()->index());
    else if (made_by_carrier)
        os::unpin_this_thread();

    const os::signal_stack overflow_report;  // A fiber's overflow leaves no room for a handler.
    errno_at = &errno;
    exceptions = arch::exception_state_of_thread();
    race.adopt_current();
#if defined(UMS_ASAN)
    pthread_attr_t attributes;
    void* bottom = nullptr;
    std::size_t bytes = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &bottom, &bytes);
    pthread_attr_destroy(&attributes);
    arch::set_bounds(loop_shadow, bottom, bytes);
#endif
    arch::happens_before(this);  // Fibers that run here come after this thread's start.
    os::set_thread_slot(this);
    run_loop();
    os::set_thread_slot(nullptr);
}

void carrier::run_loop() noexcept {
    proc.get()->enter();
    while (fiber* f = search::find(*proc.get(), *this)) {
        running.set(f);
        arch::before_switch(loop_shadow, f->shadow);
        const arch::arrival a = arch::switch_context(loop, f->context, this, nullptr);
        arch::after_switch(loop_shadow);
        if (a.handover != nullptr) {
            const auto* h = static_cast<const handover*>(a.handover);
            h->finish(*h, *this);
        }
    }
    search::give_all_away(*proc.get());
    processor& left = *proc.get();
    proc.set(nullptr);
    parkable* remover = left.remover_;
    arch::happens_before(&left);  // All that ran here comes before this thread's end.
    left.leave(race);
    arch::happens_after(&left);
    if (remover != nullptr) wake(*remover);
}

}  // namespace ums::sched
