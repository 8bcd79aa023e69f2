// SPDX-License-Identifier: MIT
#pragma once

// ums/policy.hpp: the algorithm that orders the ready fibers of a cluster.
//
// A policy is a value given to a cluster when it is made. The default, work stealing, is built in; a
// policy of your own derives from ums::policy. Its methods are called by the scheduler, concurrently
// from several kernel threads, between two fibers: they must be thread-safe, must not throw (attach() may), must
// not park, must use nothing of libums that fibers wait for (a lock biased to the processor they are in could be wanted
// by another policy meanwhile), and should be short. A fiber handed to ready() is the policy's until next() or steal()
// returns it; meanwhile its queue link belongs to the policy, so a ums::fiber_queue holds any number
// of fibers without allocating.
//
// Processors are named by their index in the cluster, from 0.
//
// Not asked: pinned fibers (their processor keeps them in order of arrival).
// Cost:      a virtual call and your lock for each switch; the built-in policy pays neither.

#include <cstddef>
#include <cstdint>

#include "ums/fiber_ref.hpp"

namespace ums {

class UMS_EXPORT policy {
public:
    // Given to ready() when the caller is no processor of this cluster.
    static constexpr unsigned outside = ~0u;

    policy() = default;
    policy(const policy&) = delete;
    policy& operator=(const policy&) = delete;
    virtual ~policy() = default;

    // A processor joins or leaves the cluster. Before detach() returns, the fibers that were kept for
    // `processor` must be available to the others. Never called for one processor at once. What attach() throws
    // leaves the constructor of the cluster or of the runtime, which then has no use for the policy, or
    // add_processor(), which then adds none. A policy that goes is told of none of its processors.
    virtual void attach(unsigned processor) = 0;
    virtual void detach(unsigned processor) = 0;

    // `f` can run. Called on the processor of that index, or from outside. Any idle processor may be
    // woken for it, so every processor must be able to get it, by next() or by steal().
    virtual void ready(fiber_ref f, unsigned processor) noexcept = 0;

    // What `processor` shall run now; an empty reference if there is nothing for it. When a fiber
    // yields, this is asked before ready() is called for that fiber.
    virtual fiber_ref next(unsigned processor) noexcept = 0;

    // What `thief`, which next() gave nothing, may take from `victim`. A policy with one queue for all
    // needs none.
    virtual fiber_ref steal(unsigned thief, unsigned victim) noexcept {
        (void)thief, (void)victim;
        return {};
    }

    // Whether neither next(processor) nor steal() would give it anything. Called before a processor goes to sleep: a fiber
    // that was handed to ready() before must be seen.
    [[nodiscard]] virtual bool empty(unsigned processor) const noexcept = 0;
};

// An intrusive first-in-first-out list of ready fibers, for policies. Not thread-safe. All operations
// are O(1) and allocate nothing. A fiber can be in one queue at a time.
class UMS_EXPORT fiber_queue {
public:
    fiber_queue() = default;
    fiber_queue(const fiber_queue&) = delete;
    fiber_queue& operator=(const fiber_queue&) = delete;

    void push_back(fiber_ref f) noexcept;
    void push_front(fiber_ref f) noexcept;
    // An empty reference if the queue is empty.
    fiber_ref pop_front() noexcept;
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    sched::fiber* first_ = nullptr;
    sched::fiber* last_ = nullptr;
    std::size_t size_ = 0;
};

// The same in an order, for policies of priorities and deadlines: the fiber of the lowest key comes first, of equal ones
// that which was pushed first. Intrusive as well, so a fiber can be in one queue, of either type, at a time. push() is O(1),
// pop_front() O(log n) on average over many.
class UMS_EXPORT ordered_fiber_queue {
public:
    ordered_fiber_queue() = default;
    ordered_fiber_queue(const ordered_fiber_queue&) = delete;
    ordered_fiber_queue& operator=(const ordered_fiber_queue&) = delete;

    void push(fiber_ref f, std::uint64_t key) noexcept;
    // An empty reference if the queue is empty.
    fiber_ref pop_front() noexcept;
    // The key of the first. Requires: !empty().
    [[nodiscard]] std::uint64_t front_key() const noexcept;
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    sched::fiber* root_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t arrivals_ = 0;
};

}  // namespace ums
