// SPDX-License-Identifier: MIT
#pragma once

// sched/block/carrier_pool.hpp: the carriers of a cluster: those that hold a processor, those that
// block in the kernel with a fiber, and the spares.
//
// The pool keeps a spare ready, so that a hand-off need not wait for a kernel thread to be made. A
// spare that was not needed for `linger` ends, except the last. If the kernel refuses a thread, the
// maker tries again, after 1 ms to 1 s, and says so once on standard error. The number of carriers
// is bounded: see permits. If the bound keeps a carrier blocked with a processor for a second,
// while fibers wait for that processor, standard error says that, too.
//
// A call that blocks unmarked borrows a permit (sched/block/permits.hpp) before its processor moves
// elsewhere. Past the bound the processor stays with it until a permit is free or the call returns,
// and the statistics say so.
//
// A call that blocks unmarked may wait for a lock whose holder was stopped (sched/block/stop.hpp)
// and has no processor either. That ends at the bound, too: when a carrier is refused a permit, its
// processor goes to one that was stopped, which leaves its permit to it; and a carrier that is
// about to be stopped takes the processor of one that was refused. Both lists are under one lock,
// so if the two miss each other, the second finds the first.

#include <utility>

#include "base/atomic.hpp"
#include "base/chain.hpp"
#include "base/look_inside.hpp"
#include "carry/maker.hpp"
#include "os/clock.hpp"
#include "os/lock.hpp"
#include "sched/block/detection.hpp"
#include "sched/block/permits.hpp"
#include "sched/run/carrier.hpp"

namespace ums::sched {

class cluster;

struct carrier_counters {
    std::uint32_t now = 0;  // Kernel threads of the pool.
    std::uint32_t peak = 0;
    std::uint32_t spare = 0;
    std::uint64_t made = 0;
    std::uint64_t ended = 0;    // Spares that were not needed.
    std::uint64_t waits = 0;    // Marked regions that waited for a permit.
    std::uint64_t refused = 0;  // Unmarked blocks that kept their processor, past the bound.
    std::uint64_t hand_offs = 0;
    std::uint64_t stops = 0;        // Fibers stopped because they ran on without a processor.
    std::uint64_t preemptions = 0;  // Fibers that were stopped because their time was over.
};

class carrier_pool final : public carry::crew {
public:
    // Set while no runtime runs; for tests.
    static inline os::nanoseconds linger = 2'000'000'000;

    // How long a fiber may run while others wait; 0: as long as it likes.
    const os::nanoseconds time_slice;
    // How long nothing switches before the detector takes it that nothing will.
    [[nodiscard]] os::nanoseconds patience() const noexcept;

    // At most `most` carriers, of which `processors` are for the processors.
    carrier_pool(cluster& home, unsigned most, os::nanoseconds slice) noexcept
        : time_slice{slice}, most_{most}, home_{home} {}
    carrier_pool(const carrier_pool&) = delete;
    carrier_pool& operator=(const carrier_pool&) = delete;
    ~carrier_pool();

    // Makes a carrier that holds `p`. Throws std::system_error, std::bad_alloc. Called by the
    // thread that changes the cluster.
    void hold(processor& p);
    // In the child of a fork(): one for the calling thread, which holds `p`. Throws std::bad_alloc.
    carrier& adopt(processor& p);
    // In the child of a fork(), for a pool that the child does not use: closes the descriptors of
    // its carriers.
    void leave_behind() noexcept {
        for (carrier* c = all_; c != nullptr; c = c->next_made)
            c->stopping.interrupt.leave_behind();
    }
    // After a hold(), once no carrier holds the processor any more.
    static void forget(processor& p) noexcept { detection::end(p); }
    // Makes the maker make the first spare. Does not wait.
    void keep_spare() noexcept;
    // Waits until the kernel thread is gone of a carrier that has left its processor for good.
    void join(carrier& c) noexcept;
    // Ends and joins all carriers. Requires: each has retired or is a spare.
    void stop() noexcept;

    // For a hand-off: returns a spare, or null; in that case the maker makes one for `blocked`,
    // which takes that carrier's processor by itself if it is still there. Among several spares it
    // prefers one that ran on `cpu` last. Call replenish() afterwards.
    carrier* take_spare(carrier* blocked, int cpu = -1) noexcept;
    // Call after take_spare(), once no thread waits for the caller: replaces what was taken, and
    // makes what was missing. Does not wait, but the maker may get the caller's CPU.
    void replenish() noexcept;
    // Takes back a spare that was not needed after all.
    void put_back(carrier& spare) noexcept;
    // Sends a spare that was given a processor to work.
    void run(carrier& spare) noexcept;

    // For a fiber that is to keep its carrier: takes a permit, and a carrier that stands by
    // (sched/block/keep.hpp). If there is no spare, makes one; the kernel thread blocks meanwhile.
    // May yield. Returns 0 or an error number: EAGAIN also if there is no permit.
    [[nodiscard]] int take_relief(carrier*& relief) noexcept;
    // Takes both back. Null if the carrier has none now.
    void give_relief(carrier* relief) noexcept;

    // A carrier without a processor, and without a fiber, waits here. False: its thread is to end.
    bool wait_for_processor(carrier& self) noexcept;

    // --- permits ---
    // Takes one, and parks until there is one. For a fiber.
    void take_permit() noexcept;
    void give_permit() noexcept;
    // For a carrier that blocks unmarked. Returns false if there is none.
    [[nodiscard]] bool borrow_permit(carrier& c) noexcept;
    void give_borrowed_permit(carrier& c) noexcept;
    // `from` holds a processor again, and `to`, which is blocked, has lost its own.
    void pass_permit_on(carrier& from, carrier& to) noexcept;
    // For a carrier that could not borrow a permit: returns a stopped carrier, taken out of the
    // list, that is to have its processor. Null if there is none, and the next one that comes back
    // will take it.
    [[nodiscard]] carrier* stopped_or_refuse(carrier& c) noexcept;
    // Call after a refusal, without a claim on the carrier: a permit may have become free in
    // between.
    void look_again_at_refused() noexcept;
    // The calling carrier, which borrowed a permit and has no processor, is about to be stopped: it
    // takes the processor of a carrier that was refused (returns true), or joins the list of
    // stopped ones.
    [[nodiscard]] bool take_or_stop(carrier& c) noexcept;
    // Call these around the wait of a stopped carrier for its turn. The first tells the detector.
    void begin_waiting(carrier& c) noexcept;
    void end_waiting(carrier& c) noexcept;
    // For a detector: if fibers wait for their turn, and nothing has switched for so long that
    // nothing else will, lets all of them run on without a processor. Only one thread calls this.
    // Returns after how long to call it again; os::never: none wait.
    [[nodiscard]] os::nanoseconds release_if_stuck(os::nanoseconds now) noexcept;
    // Returns the carrier that was stopped first, or null. Its fiber runs next on the caller's
    // processor.
    [[nodiscard]] carrier* take_stopped() noexcept;
    [[nodiscard]] bool has_stopped() const noexcept {
        // seq_cst: a lone processor that has joined the idle set looks here without a fence between
        // the two, as it does at the inboxes (search::must_look_again()).
        return stopped_.load(base::seq_cst) != 0;
    }
    // The processor of a carrier that borrowed a permit has left: the carrier is to be stopped when
    // it runs again.
    void go_away(carrier& c) noexcept;
    // The carrier has left its fiber, or holds a processor again.
    void come_back(carrier& c) noexcept;

    [[nodiscard]] carrier_counters counters() noexcept;
    void count_hand_off() noexcept;
    void count_stop(bool preempted) noexcept;
    // Returns a spare that is there now, for a preemption; none is made at once.
    carrier* take_ready_spare() noexcept;

    // Whether fibers may be blocked in the kernel without a processor: they come back.
    // A hint.
    [[nodiscard]] bool any_away() const noexcept {
        return permits_.used() > resting_.load(base::relaxed);
    }
    // A fiber that keeps its carrier leaves a marked region, and enters one: it has no permit for
    // that.
    void begin_rest() noexcept { resting_.fetch_add(1, base::relaxed); }
    void end_rest() noexcept { resting_.fetch_sub(1, base::relaxed); }
    [[nodiscard]] unsigned most() const noexcept { return most_; }
    [[nodiscard]] cluster& home() const noexcept { return home_; }

private:
    friend struct ums::look_inside;

    outcome work() noexcept override;

    // The maker's work: joins spares that have ended; starts as many as are wanted.
    void reap() noexcept;
    // Returns whether all that are wanted were made; otherwise it is to be tried again.
    [[nodiscard]] bool make_spares() noexcept;
    // Reports once if a carrier without a permit is blocked for long with a processor that is
    // wanted. Returns whether to look again, after `told_after`.
    [[nodiscard]] bool look_at_refused() noexcept;
    static constexpr os::nanoseconds told_after = 1'000'000'000;

    // Lets the fiber of a stopped carrier run on without a processor, if it still waits for its
    // turn.
    void release(carrier& c) noexcept;
    [[nodiscard]] int make_relief(carrier*& relief) noexcept;
    carrier& new_carrier();
    void discard(carrier& c) noexcept;
    void put_unused(carrier& c) noexcept;
    void serve_refused() noexcept;
    [[nodiscard]] unsigned bound() const noexcept;
    [[nodiscard]] unsigned most_permits() const noexcept;
    void push_wanting(carrier& c) noexcept;
    carrier* pop_wanting() noexcept;
    carrier* pop_spare(int cpu) noexcept;
    carrier* pop_stopped() noexcept;
    bool serve_wanting(carrier& self) noexcept;
    void count_new() noexcept;
    void occupy(carrier& c, processor& p) noexcept;
    // Whether to make another spare. Those that are on their way count as available. Requires:
    // lock_.
    [[nodiscard]] bool lacks_spare() const noexcept {
        return !stopping_ && counters_.now < bound() &&
               (wanting_count_ > counters_.spare || counters_.spare == 0);
    }

    const unsigned most_;
    cluster& home_;

    os::lock lock_{os::lock_rank::carriers};
    // Guarded by lock_:
    carrier* all_ = nullptr;     // Never shrinks while the cluster runs.
    carrier* spares_ = nullptr;  // Last come, first used.
    carrier* unused_ = nullptr;  // Objects without a kernel thread.
    carrier* ended_ = nullptr;   // To be joined by the maker.
    // They are blocked, with a processor that the next carrier that can is to take.
    carrier* wanting_ = nullptr;
    unsigned wanting_count_ = 0;
    std::uint64_t wants_ = 0;  // How often a spare was wanted that was not there.
    bool stopping_ = false;
    bool looks_at_refused_ = false;  // The maker looks from time to time.
    carrier_counters counters_;

    // It has reported threads that cannot be made. Owned by the maker.
    bool has_complained_ = false;
    bool has_told_bound_ = false;  // Owned by the maker.

    permits permits_;
    // The permits of ums::keep_carrier whose fiber is not in a marked region: they do not say that
    // a fiber is blocked in the kernel.
    base::atomic<unsigned> resting_;

    // Carriers that were stopped without a processor: first come, first served. Guarded by lock_;
    // the count is for has_stopped().
    base::fifo<carrier, &carrier::next> stopped_list_;
    base::atomic<unsigned> stopped_;
    base::atomic<unsigned> waiting_;  // In wait_for_turn().
    // Owned by the detector, for release_if_stuck():
    std::uint64_t seen_activity_ = 0;
    os::nanoseconds seen_since_ = 0;
};

}  // namespace ums::sched
