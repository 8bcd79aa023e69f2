// SPDX-License-Identifier: MIT
#pragma once

// ums/policy.hpp: the algorithm that orders the ready fibers of a cluster.
//
// A cluster gets its policy when it is made. The default, work stealing, is built in; a policy of
// your own derives from ums::policy.
//
// Blocking:  the scheduler calls the methods between two fibers, concurrently from several kernel
//            threads. They must be thread-safe and short, and must not park. They must use nothing
//            of libums that fibers wait for: another policy might meanwhile want a lock that is
//            biased to the processor they run on.
// Ordering:  the methods must order their own data; use a lock of your own or atomics.
// Lifetime:  a fiber handed to ready() belongs to the policy until next() or steal() returns it.
//            Meanwhile its queue link belongs to the policy too, so a ums::fiber_queue holds any
//            number of fibers without allocating.
// Errors:    the methods must not throw, except attach().
// Cost:      a virtual call and your lock for each switch; the built-in policy pays neither.
//
// A processor's name is its index in the cluster, from 0. The scheduler does not ask the policy
// about pinned fibers: their processor keeps them in order of arrival.

#include <cstddef>
#include <cstdint>

#include "ums/fiber_ref.hpp"

namespace ums {

// Of fiber_options and fiber_ref, for policies that heed them.
inline constexpr int least_priority = -4, most_priority = 3;
inline constexpr unsigned most_weight = 10'000, usual_weight = 100;
inline constexpr unsigned group_count = 64;

class UMS_EXPORT policy {
public:
    // ready() gets this when the caller is no processor of this cluster.
    static constexpr unsigned outside = ~0u;

    policy() = default;
    policy(const policy&) = delete;
    policy& operator=(const policy&) = delete;
    virtual ~policy() = default;

    // A processor joins or leaves the cluster. Before detach() returns, the fibers that the policy
    // kept for `processor` must be available to the others. The processor itself calls detach(),
    // after its last next(); so does add_processor(), if it fails later. The scheduler never calls
    // these twice at once. An exception of attach() leaves the constructor of the cluster or of the
    // runtime, which then has no use for the policy, or add_processor(), which then adds no
    // processor. Destroying a policy does not call detach().
    virtual void attach(unsigned processor) = 0;
    virtual void detach(unsigned processor) = 0;

    // `f` can run. Called on the processor of that index, or from outside. The scheduler may wake
    // any idle processor for it, so every processor must be able to get it, by next() or by
    // steal().
    virtual void ready(fiber_ref f, unsigned processor) noexcept = 0;

    // Returns the fiber that `processor` is to run now, or an empty reference if there is none.
    // When a fiber yields, the scheduler calls this before it calls ready() for that fiber.
    virtual fiber_ref next(unsigned processor) noexcept = 0;

    // Returns a fiber that `thief`, which got none from next(), may take from `victim`, or an empty
    // reference. A policy with one queue for all need not override it.
    virtual fiber_ref steal(unsigned thief, unsigned victim) noexcept {
        (void)thief, (void)victim;
        return {};
    }

    // Whether both next(processor) and steal() would return nothing. Called before a processor goes
    // to sleep: it must see each fiber that was handed to ready() before.
    [[nodiscard]] virtual bool empty(unsigned processor) const noexcept = 0;

    // The rest need not be overridden.

    // `f` runs on `processor` and yields. Returns the fiber that runs there now; an empty reference
    // lets `f` run on. Unless overridden, `f` gives way to whatever next() returns. `f` is not the
    // policy's: if another fiber is returned, ready(f) follows.
    virtual fiber_ref instead_of(fiber_ref f, unsigned processor) noexcept {
        (void)f;
        return next(processor);
    }

    // `f` stops on `processor`: it waits, ends, or goes to another cluster. Called before next().
    // Not called for a fiber that yields, that is stopped because its time slice is over, or that
    // is blocked in the kernel while its processor moves on: ready() gets such a fiber back.
    virtual void left(fiber_ref f, unsigned processor) noexcept { (void)f, (void)processor; }

    // A more urgent fiber waits for a mutex that `f` holds, or for one whose holder waits for `f`,
    // and f.effective_priority() has risen. `f` may be the policy's or not; it may run, wait, or be
    // on its way to another cluster. Called from any fiber or thread, one call at a time, with the
    // mutex's own lock held. A priority that falls is not reported: it counts from the next
    // ready().
    virtual void raised(fiber_ref f) noexcept { (void)f; }
    // Whether raised() is wanted. Must not change.
    [[nodiscard]] virtual bool has_priorities() const noexcept { return false; }

    // Sets how much of the processors the fibers of `group` (fiber_options::group) get together.
    // Returns false if the policy has no groups.
    virtual bool set_group_weight(unsigned group, unsigned weight) noexcept {
        (void)group, (void)weight;
        return false;
    }

    // `f`, which runs, has gone to `processor` by this_fiber::migrate(cluster, processor). A policy
    // by which each fiber belongs to a processor lets it belong to that one; if that processor has
    // been removed since, to any. Called by the fiber, which is not the policy's. Not called for a
    // pinned fiber.
    virtual void placed(fiber_ref f, unsigned processor) noexcept { (void)f, (void)processor; }
};

// An intrusive first-in, first-out list of ready fibers, for policies. Not thread-safe. All
// operations are O(1) and allocate nothing. A fiber can be in one queue at a time.
class UMS_EXPORT fiber_queue {
public:
    fiber_queue() = default;
    fiber_queue(const fiber_queue&) = delete;
    fiber_queue& operator=(const fiber_queue&) = delete;

    void push_back(fiber_ref f) noexcept;
    void push_front(fiber_ref f) noexcept;
    // Returns an empty reference if the queue is empty.
    fiber_ref pop_front() noexcept;
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    sched::fiber* first_ = nullptr;
    sched::fiber* last_ = nullptr;
    std::size_t size_ = 0;
};

// The same list in order of keys, for policies with priorities or deadlines: the fiber with the
// lowest key comes first; among equal keys, the fiber that was pushed first. It is intrusive too,
// so a fiber can be in one queue, of either type, at a time. push() is O(1); pop_front() is O(log
// n) on average over many.
class UMS_EXPORT ordered_fiber_queue {
public:
    ordered_fiber_queue() = default;
    ordered_fiber_queue(const ordered_fiber_queue&) = delete;
    ordered_fiber_queue& operator=(const ordered_fiber_queue&) = delete;

    void push(fiber_ref f, std::uint64_t key) noexcept;
    // Returns an empty reference if the queue is empty.
    fiber_ref pop_front() noexcept;
    // Returns the key of the first fiber. Requires: !empty().
    [[nodiscard]] std::uint64_t front_key() const noexcept;
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    sched::fiber* root_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t arrivals_ = 0;
};

}  // namespace ums
