// SPDX-License-Identifier: MIT
#pragma once

// scheduling/spares.hpp: kernel threads that carry a scheduler whose worker has blocked on its own; see scheduling/seat.hpp.
//
// There are as many idle ones as schedulers are entered, so that all of them can be moved at once; the maker
// (carry/maker.hpp) makes the next ones, for whoever needs one is not to be kept (it may be the detector) and must not
// wait for the heap's lock (the blocked worker may hold it). They end with the last scheduler. One that still
// carries a stray then is left to itself, and ends when that has come back; what it leaves is given back when
// the next scheduler enters or leaves.

#include <memory>
#include <optional>
#include <vector>

#include "carry/maker.hpp"
#include "os/lock.hpp"
#include "scheduling/seat.hpp"

namespace ums::scheduling {

class spare_seats final : public carry::crew {
public:
    // The detector sees those that are made from now on. Throws std::system_error: no kernel thread.
    void start(carry::detector& by);
    void stop() noexcept;
    // How many schedulers there are.
    void want(unsigned schedulers) noexcept;

    // An idle one, of several rather one that ran on `cpu` last; null: none. Any thread, not kept.
    [[nodiscard]] seat* take(int cpu = -1) noexcept;
    // After a take(), once nobody waits for the caller: what was taken is made anew. Does not wait, but the maker may
    // get the caller's CPU.
    void replenish() noexcept { carry::maker::ask(*this); }

private:
    struct spare;

    outcome work() noexcept override;
    [[nodiscard]] int make_one() noexcept;  // 0, or an error number.
    static void* run(void* spare) noexcept;
    bool give(spare& x) noexcept;
    void reap_orphans() noexcept;

    carry::detector* detector_ = nullptr;
    std::optional<carry::maker::use> maker_;
    bool has_complained_ = false;  // Of threads that cannot be made. The maker's.

    os::lock lock_{os::lock_rank::leaf};
    // Guarded by lock_:
    spare* idle_ = nullptr;
    unsigned idle_count_ = 0;

    base::atomic<std::uint32_t> wanted_{0};

    std::vector<std::unique_ptr<spare>> all_;      // The maker's, then stop()'s.
    std::vector<std::unique_ptr<spare>> orphans_;  // Of start() and stop().
};

// Never destroyed: the program may end while schedulers are entered.
spare_seats& spares() noexcept;

// Makes its kernel thread, which waits, go on where `target` says, or end.
void order_seat(seat& k, home_order order) noexcept;

}  // namespace ums::scheduling
