// SPDX-License-Identifier: MIT
#include "workers/left/spares.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <new>
#include <pthread.h>
#include <utility>

#include "arch/x86_64/thread_pointer.hpp"
#include "base/assert.hpp"
#include "base/chain.hpp"
#include "os/futex.hpp"
#include "os/say.hpp"
#include "os/system.hpp"
#include "os/thread/kernel_thread.hpp"
#include "workers/left/watch.hpp"

namespace ums::scheduling {

spare_seats& spares() noexcept {
    // Not allocated: it is there without memory, too.
    alignas(spare_seats) static std::byte place[sizeof(spare_seats)];
    static auto* const all = ::new (place) spare_seats;
    return *all;
}

struct spare_seats::spare {
    seat place;
    spare* next_idle = nullptr;
    seat_watch watched{place};
    os::kernel_thread thread;
    base::atomic<bool> has_ended;  // For an orphan: nothing of it is used any more except `thread`.
};

namespace {

// Marks the kernel thread as in our code and without an owner, also after a worker that was outside
// has left it.
void stay_inside(seat& k) noexcept {
    k.ownership.occupy();
    (void)k.ownership.enter();
    k.ownership.vacate();
}

}  // namespace

void order_seat(seat& k, home_order order) noexcept {
    UMS_ASSERT(order != stay, "a seat stays without an order");
    // sync(ums.seat): publishes the rider to the kernel thread.
    const std::uint32_t before = k.order.exchange(order, base::release);
    UMS_ASSERT(before == stay, "a seat gets one order at a time");
    os::futex_wake(k.order.address());
}

void spare_seats::start(carry::detector& by) {
    reap_orphans();
    detector_ = &by;
    wanted_.store(0, base::relaxed);  // relaxed: the maker does not work for it yet.
    maker_.emplace();
}

void spare_seats::want(unsigned schedulers) noexcept {
    wanted_.store(schedulers, base::relaxed);  // relaxed: asking the maker orders.
    carry::maker::ask(*this);
}

seat* spare_seats::take(int cpu) noexcept {
    const os::lock_guard hold{lock_};
    spare** at = &idle_;
    for (int i = 0; i < 8 && *at != nullptr && (*at)->place.cpu.get() != cpu; ++i)
        at = &(*at)->next_idle;
    if (*at == nullptr || (*at)->place.cpu.get() != cpu) at = &idle_;
    spare* x = *at;
    if (x == nullptr) return nullptr;
    *at = x->next_idle;
    --idle_count_;
    const bool was_idle = x->place.change_phase(seat::idle, seat::busy);
    UMS_ASSERT(was_idle, "the list of spares has one that is not idle");
    return &x->place;
}

carry::crew::outcome spare_seats::work() noexcept {
    unsigned idle = 0;
    {
        const os::lock_guard hold{lock_};
        idle = idle_count_;
    }
    // relaxed: a thread that changes it asks again.
    for (; idle < wanted_.load(base::relaxed); ++idle) {
        const int error = make_one();
        if (error == 0) continue;
        if (!std::exchange(has_complained_, true))
            os::say(
                "no spare kernel thread for a scheduler whose worker blocks (%s): until there is "
                "one it blocks with its worker; it is tried again (%s)",
                std::strerror(error), os::kernel_thread::advice(error));
        return {.was_refused = true};
    }
    has_complained_ = false;
    return {};
}

int spare_seats::make_one() noexcept try {
    auto x = std::make_unique<spare>();
    all_.reserve(all_.size() + 1);
    seat& k = x->place;
    k.detector = detector_;
    k.ownership.reset(os::asymmetric());
    k.is_asymmetric = os::asymmetric();
    detector_->add(x->watched);
    sigset_t all, before;
    sigfillset(&all);
    // The new thread inherits the mask, so it handles no signal.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = x->thread.start(&run, x.get());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0)
        detector_->remove(x->watched);
    else
        all_.push_back(std::move(x));
    return error;
} catch (const std::bad_alloc&) {
    return ENOMEM;
}

bool spare_seats::give(spare& x) noexcept {
    {
        const os::lock_guard hold{lock_};
        if (!x.place.change_phase(seat::busy, seat::idle)) return false;
        base::chain::push_front(idle_, x, &spare::next_idle);
        ++idle_count_;
    }
    os::futex_wake(x.place.phase.address());
    return true;
}

void* spare_seats::run(void* it) noexcept {
    spare& x = *static_cast<spare*>(it);
    seat& k = x.place;
    pthread_setname_np(pthread_self(), "ums seat");
    k.pointer = arch::thread_pointer();
    k.tid.set(current_tid());
    k.cpu.begin();
    for (;;) {
        stay_inside(k);
        if (!spares().give(x)) break;
        std::uint32_t got;
        // sync(ums.seat): sees the rider.
        while ((got = k.order.exchange(stay, base::acquire)) == stay) os::futex_wait(k.order, stay);
        k.wake_place.end();
        if (got == end) break;
        os::system.signal_mask(&k.mask, nullptr);
        arch::switch_identity(k.registers, *k.target, k.target_pointer, k.target_argument);
        // Back from a worker that left; it has blocked the signals.
        arch::happens_after(&k);
        if (context* left = std::exchange(k.left, nullptr); left != nullptr) {
            // This comes first, so that a scheduler that has executed the worker finds no stray
            // here, in stop().
            k.change_phase(seat::stray, seat::busy);
            left->state.unlock();
        }
        if (seat* to = std::exchange(k.passes_to, nullptr); to != nullptr)
            order_seat(*to, home_order::run);
    }
    k.cpu.end();
    k.interrupt.close();
    x.has_ended.store(true, base::release);  // sync(ums.orphan)
    return nullptr;
}

void spare_seats::reap_orphans() noexcept {
    std::erase_if(orphans_, [](const std::unique_ptr<spare>& x) {
        if (!x->has_ended.load(base::acquire)) return false;  // sync(ums.orphan)
        x->thread.join();
        return true;
    });
}

void spare_seats::stop() noexcept {
    reap_orphans();
    carry::maker::forget(*this);
    maker_.reset();
    for (auto& x : all_) {
        seat& k = x->place;
        if (k.change_phase(seat::stray, seat::orphan)) {
            detector_->remove(x->watched);
            k.detector = nullptr;
            orphans_.push_back(std::move(x));
            continue;
        }
        // The spare is on its way back, or was just made.
        std::uint32_t seen;
        while ((seen = k.phase.load(base::acquire)) != seat::idle)
            os::futex_wait(k.phase, seen);  // sync(ums.spares)
        order_seat(k, end);
        x->thread.join();
        detector_->remove(x->watched);
    }
    all_.clear();
    idle_ = nullptr;
    idle_count_ = 0;
}

}  // namespace ums::scheduling
