// SPDX-License-Identifier: MIT
//
// Why the maker misses nobody: who takes a spare counts that and wakes the maker; who enters does the same with
// `wanted_`. The maker reads the count, makes what is missing, and sleeps only while the count is what it read.

#include "scheduling/spares.hpp"

#include <algorithm>
#include <cstdio>
#include <system_error>
#include <utility>

#include "arch/x86_64/thread_pointer.hpp"
#include "base/assert.hpp"
#include "block/service_thread.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/system.hpp"
#include "scheduling/watch.hpp"

namespace ums::scheduling {

spare_seats& spares() noexcept {
    static auto* const all = new spare_seats;
    return *all;
}

namespace {
constexpr std::uint32_t ends = 1u << 31;
}

struct spare_seats::spare {
    seat place;
    spare* next_idle = nullptr;
    seat_watch* watched = nullptr;
    std::thread thread;
};

namespace {

// The kernel thread is in our code, and nobody's: also after a worker has left it, who was outside.
void stay_inside(seat& k) noexcept {
    k.own.occupy();
    (void)k.own.enter();
    k.own.vacate();
}

}  // namespace

void order_seat(seat& k, home_order order) noexcept {
    UMS_ASSERT(order != stay, "a seat stays without an order");
    // sync(ums.seat): publishes the rider to the kernel thread.
    const std::uint32_t before = k.order.exchange(order, base::release);
    UMS_ASSERT(before == stay, "a seat gets one order at a time");
    os::futex_wake(k.order.address());
}

void spare_seats::start(block::detector& by) {
    detector_ = &by;
    // relaxed, both: the maker does not exist yet.
    wanted_.store(0, base::relaxed);
    taken_.store(0, base::relaxed);
    maker_ = block::service_thread("ums seats", [this] { make_more(); });
}

void spare_seats::want(unsigned schedulers) noexcept {
    wanted_.store(schedulers, base::relaxed);  // relaxed: the count orders.
    taken_.fetch_add(1, base::acq_rel);        // sync(ums.spares)
    os::futex_wake(taken_.address());
}

seat* spare_seats::take() noexcept {
    spare* x = nullptr;
    {
        const os::lock_guard hold{lock_};
        x = idle_;
        if (x != nullptr) {
            idle_ = x->next_idle;
            --idle_count_;
            const bool was_idle = x->place.change_phase(seat::idle, seat::busy);
            UMS_ASSERT(was_idle, "the list of spares has one that is not idle");
        }
    }
    taken_.fetch_add(1, base::acq_rel);  // sync(ums.spares)
    os::futex_wake(taken_.address());
    return x != nullptr ? &x->place : nullptr;
}

void spare_seats::make_more() noexcept {
    // No memory or no thread: the detector may not ask again, so the maker tries again by itself.
    constexpr os::nanoseconds first_pause = 1'000'000, longest_pause = 1'000'000'000;
    os::nanoseconds pause = 0;
    for (;;) {
        const std::uint32_t seen = taken_.load(base::acquire);  // sync(ums.spares)
        const std::uint32_t wanted = wanted_.load(base::relaxed);
        if (wanted == ends) return;
        unsigned idle = 0;
        {
            const os::lock_guard hold{lock_};
            idle = idle_count_;
        }
        try {
            for (; idle < wanted; ++idle) make_one();
            pause = 0;
        } catch (const std::exception& e) {
            if (pause == 0)
                std::fprintf(stderr,
                             "ums: no spare kernel thread for a scheduler whose worker blocks: %s; "
                             "until there is one it blocks with its worker\n",
                             e.what());
            pause = pause == 0 ? first_pause : std::min(2 * pause, longest_pause);
        }
        if (pause == 0)
            os::futex_wait(taken_, seen);
        else
            os::futex_wait(taken_, seen, os::now() + pause);
    }
}

void spare_seats::make_one() {
    auto x = std::make_unique<spare>();
    all_.reserve(all_.size() + 1);
    x->place.detector = detector_;
    x->place.own.reset(os::asymmetric());
    x->place.is_asymmetric = os::asymmetric();
    spare& made = *x;
    made.thread = block::service_thread("ums seat", [&made] { run(made); });
    all_.push_back(std::move(x));
}

bool spare_seats::give(spare& x) noexcept {
    {
        const os::lock_guard hold{lock_};
        if (!x.place.change_phase(seat::busy, seat::idle)) return false;
        x.next_idle = idle_;
        idle_ = &x;
        ++idle_count_;
    }
    os::futex_wake(x.place.phase.address());
    return true;
}

void spare_seats::run(spare& x) noexcept {
    seat& k = x.place;
    k.pointer = arch::thread_pointer();
    k.interrupt = make_interrupt(static_cast<int>(current_tid()));
    try {
        x.watched = new seat_watch{current_tid(), k};
        k.detector->add(*x.watched);
    } catch (const std::exception&) {
    }
    for (;;) {
        stay_inside(k);
        if (!spares().give(x)) break;
        std::uint32_t got;
        // sync(ums.seat): sees the rider.
        while ((got = k.order.exchange(stay, base::acquire)) == stay) os::futex_wait(k.order, stay);
        if (got == end) break;
        os::system.signal_mask(&k.mask, nullptr);
        arch::switch_identity(k.registers, *k.target, k.target_pointer, k.target_argument);
        // Back: who left has blocked the signals.
        arch::happens_after(&k);
        if (context* left = std::exchange(k.left, nullptr); left != nullptr) {
            // First: whoever has executed the worker finds no stray here, in stop().
            k.change_phase(seat::stray, seat::busy);
            left->state.unlock();
        }
        if (seat* to = std::exchange(k.passes_to, nullptr); to != nullptr)
            order_seat(*to, home_order::run);
    }
    // relaxed: it decides nothing else.
    const bool is_orphan = k.phase.load(base::relaxed) == seat::orphan;
    if (x.watched != nullptr && !is_orphan) {
        k.detector->remove(*x.watched);
        delete x.watched;
    }
    delete k.interrupt;
    if (is_orphan) delete &x;
}

void spare_seats::stop() noexcept {
    want(ends);
    maker_.join();
    for (auto& x : all_) {
        seat& k = x->place;
        if (k.change_phase(seat::stray, seat::orphan)) {
            if (x->watched != nullptr) detector_->remove(*x->watched);
            delete x->watched;
            k.detector = nullptr;
            x->thread.detach();
            (void)x.release();
            continue;
        }
        // On its way back, or just made.
        std::uint32_t seen;
        while ((seen = k.phase.load(base::acquire)) != seat::idle)
            os::futex_wait(k.phase, seen);  // sync(ums.spares)
        order_seat(k, end);
        x->thread.join();
    }
    all_.clear();
    idle_ = nullptr;
    idle_count_ = 0;
}

}  // namespace ums::scheduling
