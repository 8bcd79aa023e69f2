// SPDX-License-Identifier: MIT
#pragma once

// workers/left/spares.hpp: kernel threads that carry a scheduler whose worker has blocked on the
// scheduler's own kernel thread; see workers/scheduler/seat.hpp.
//
// There are as many idle spares as schedulers are entered, so that all of them can be moved at
// once. The maker (carry/maker.hpp) makes more, because the thread that needs one, which may be the
// detector, must not be delayed and must not wait for the heap's lock, which the blocked worker may
// hold. The spares end with the last scheduler. A spare that still carries a stray then is left
// alone, and ends when the stray has come back; the next scheduler that enters or leaves gives back
// what it leaves.

#include <memory>
#include <optional>
#include <vector>

#include "carry/maker.hpp"
#include "os/lock.hpp"
#include "workers/scheduler/seat.hpp"

namespace ums::scheduling {

class spare_seats final : public carry::crew {
public:
    // From now on the detector sees the spares that are made. Throws std::system_error if there is
    // no kernel thread.
    void start(carry::detector& by);
    void stop() noexcept;
    // How many schedulers there are.
    void want(unsigned schedulers) noexcept;

    // Returns an idle spare, preferably one that ran on `cpu` last; null: there is none. Any thread
    // may call this; it never waits long.
    [[nodiscard]] seat* take(int cpu = -1) noexcept;
    // Call after take(), once no thread waits for the caller: replaces the spare that was taken.
    // Does not wait, but the maker may get the caller's CPU.
    void replenish() noexcept { carry::maker::ask(*this); }

private:
    struct spare;

    outcome work() noexcept override;
    [[nodiscard]] int make_one() noexcept;  // Returns 0 or an error number.
    static void* run(void* spare) noexcept;
    bool give(spare& x) noexcept;
    void reap_orphans() noexcept;

    carry::detector* detector_ = nullptr;
    std::optional<carry::maker::use> maker_;
    // It has reported threads that cannot be made. Owned by the maker.
    bool has_complained_ = false;

    os::lock lock_{os::lock_rank::leaf};
    // Guarded by lock_:
    spare* idle_ = nullptr;
    unsigned idle_count_ = 0;

    base::atomic<std::uint32_t> wanted_{0};

    std::vector<std::unique_ptr<spare>> all_;      // Owned by the maker, then by stop().
    std::vector<std::unique_ptr<spare>> orphans_;  // Owned by start() and stop().
};

// Never destroyed: the program may end while schedulers are entered.
spare_seats& spares() noexcept;

// Makes the seat's waiting kernel thread continue where `target` says, or end.
void order_seat(seat& k, home_order order) noexcept;

}  // namespace ums::scheduling
