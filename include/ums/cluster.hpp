// SPDX-License-Identifier: MIT
#pragma once

// ums/cluster.hpp: a set of processors with one policy.
//
// The runtime starts with the default cluster. More clusters separate kinds of work: each has its
// own processors (hence kernel threads) and its own order of ready fibers. A fiber is made in one
// cluster (fiber_options::cluster) and may move to another (this_fiber::migrate).
//
// Blocking: the constructor and add_processor() start kernel threads. remove_processor() and
//           move_processor() wait until a processor has stopped; the destructor waits until every
//           fiber of the cluster has ended or left. They park a fiber and block a plain thread.
// Lifetime: destroy a cluster before the runtime stops, and from outside the cluster: a fiber of
//           the cluster that destroyed it would wait for itself, and ends the program with a
//           message. So does a runtime that is stopped while a cluster exists.
// Errors:   std::system_error: operation_not_permitted (no runtime is running),
//           resource_unavailable_try_again (no thread, or more than 1024 processors),
//           invalid_argument (0 or more than 1024 processors, another option out of range, or the
//           last processor is removed), operation_not_supported (time slices without a detector,
//           or CPUs that this process may not use).
// Cost:     a kernel thread for each processor.

#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "ums/export.hpp"
#include "ums/impl/other_than.hpp"
#include "ums/impl/spawn.hpp"
#include "ums/options.hpp"

namespace ums {

namespace sched {
class cluster;
struct cluster_access;
}  // namespace sched

struct cluster_options {
    std::string name = "cluster";
    unsigned processors = 1;
    policy_kind policy = policy_kind::work_stealing;
    // Makes a policy of your own; wins over `policy`.
    std::function<std::unique_ptr<ums::policy>()> make_policy = {};
    // Confines each processor to one CPU, of those that `cpus` names.
    bool pin = false;
    // The CPUs that the cluster's kernel threads may use. Empty: all that the process may. A list
    // as the kernel writes it: "0-3,8"; those of a NUMA node: "node:1"; or "auto": one for each
    // processor, near each other (the same last-level cache, if that has as many), and if possible
    // none that another cluster got by its `cpus`. With fewer CPUs than processors several share
    // one.
    std::string cpus = {};
    // Most kernel threads, as options::carriers.
    std::uint32_t carriers = 10'000;
    // As options::time_slice_us, and refused in the same cases.
    std::uint32_t time_slice_us = default_time_slice_us;
};

class UMS_EXPORT cluster {
public:
    // Starts a cluster and its kernel threads.
    explicit cluster(const cluster_options& options = {});
    // Waits until every fiber of the cluster has ended or left, then ends its kernel threads.
    ~cluster();
    cluster(const cluster&) = delete;
    cluster& operator=(const cluster&) = delete;

    // Adds a processor and returns its index. Errors: see above, and what policy::attach() throws.
    unsigned add_processor();

    // Removes the processor with the highest index. Its fibers continue on the others; fibers
    // pinned to it are pinned to processor 0 from then on. A fiber on it that computes without ever
    // switching delays the removal.
    void remove_processor();

    // Stops the world of this cluster: returns once none of its fibers runs. Each is then ready,
    // parked, stopped at some instruction, or in a call outside of its processor (see Blocking).
    // What becomes ready meanwhile waits, deadlines too. Calls are counted: the fibers continue
    // after as many calls of resume(). The caller is a plain thread, or a fiber of another cluster.
    //
    // Blocking: waits until each running fiber has switched or was stopped. A fiber is stopped
    //           where there is a detector of blocking and a clock, and not inside the C library, so
    //           that the caller may allocate. Elsewhere a fiber that never switches keeps pause()
    //           waiting, and so does, without a detector, one that is blocked in the kernel. Not
    //           covered: a call inside ums::blocking() or ums::offload(); a fiber that was blocked
    //           in the kernel without a mark, or that was released (docs/hand-off.md), and runs
    //           without a processor for a while. docs/fork-and-pause.md has the details.
    // Ordering: what the fibers did happens before pause() returns; what the caller did before
    //           resume() happens before what they do after it.
    // Errors:   resource_deadlock_would_occur: a fiber of this cluster called. no_such_process:
    //           fork() has left the cluster behind.
    // Cost:     some microseconds for each processor, and a signal for each fiber that computes.
    void pause();
    // Undoes one pause(). Does not wait. Errors: operation_not_permitted: it is not paused.
    void resume();

    // Moves a processor from this cluster to another one: adds one there and removes one here, as
    // the two functions above do. If either fails nothing has changed. Returns its index there.
    unsigned move_processor(cluster& to);

    // Runs f(args...) on a new fiber of this cluster that nobody joins, as ums::fiber and detach()
    // would, for less. The caller may be any fiber or thread, while the cluster exists. Does not
    // wait for the fiber. Errors: as ums::fiber's; invalid_argument if the options name another
    // cluster.
    template <impl::other_than<fiber_options> F, class... Args>
    void post(F&& f, Args&&... args) {
        post(fiber_options{}, std::forward<F>(f), std::forward<Args>(args)...);
    }
    template <class F, class... Args>
    void post(const fiber_options& options, F&& f, Args&&... args) {
        static_assert(impl::is_callable<F, Args...>,
                      "what is posted must be callable with copies of its arguments, as rvalues");
        const fiber_options mine = posted(options);
        using call = impl::bound<std::decay_t<F>, std::decay_t<Args>...>;
        impl::spawning begun{&mine, sizeof(call), alignof(call)};
        void* const at = ::new (begun.storage())
            call(std::in_place, std::forward<F>(f), std::forward<Args>(args)...);
        impl::spawn_detached(begun.release(), &call::run_in_place, at, mine.launch);
    }

    // The same for each function of a range. They become ready together, in order, and one idle
    // processor is woken for all of them (which wakes the next, if there is work left). A container
    // that is moved in has its functions moved, so they need not be copyable; those of any other
    // range are copied. If there is no stack for one of them, or copying a function throws, none of
    // them runs, and some of those of a container that was moved in are gone. Errors: as post();
    // invalid_argument if the options say launch::dispatch.
    template <class Range>
    void post_each(Range&& functions) {
        post_each(fiber_options{}, std::forward<Range>(functions));
    }
    template <class Range>
    void post_each(const fiber_options& options, Range&& functions) {
        using function = std::decay_t<decltype(*std::begin(functions))>;
        static_assert(impl::is_callable<function>,
                      "what is posted must be callable without arguments, as an rvalue");
        const fiber_options mine = posted(options, true);
        using call = impl::bound<function>;
        impl::batch_of<function> batch;
        for (auto&& f : functions) {
            impl::spawning begun{&mine, sizeof(call), alignof(call)};
            void* at = nullptr;
            if constexpr (impl::owns_elements<Range>)
                at = ::new (begun.storage()) call(std::in_place, std::move(f));
            else
                at = ::new (begun.storage()) call(std::in_place, std::forward<decltype(f)>(f));
            batch.add(begun.release(), &call::run_in_place, at);
        }
        batch.commit();
    }

    // Sets how much the fibers of a group (fiber_options::group) get together: a weight of 1 to
    // 10,000, 100 unless set. Errors: std::system_error, invalid_argument if a value is out of
    // range; operation_not_supported if the cluster's policy has no groups.
    void set_group_weight(unsigned group, unsigned weight);

    // The number of processors now.
    [[nodiscard]] unsigned processors() const noexcept;
    [[nodiscard]] std::string_view name() const noexcept;

    // The cluster that the runtime started with. Requires: a runtime is running.
    static cluster& standard() noexcept;

private:
    // What a post() goes by. Throws invalid_argument.
    [[nodiscard]] fiber_options posted(const fiber_options& given, bool is_batch = false);

    friend struct sched::cluster_access;
    // Names an existing cluster. Two parameters, so that cluster{{}} means default options.
    cluster(const sched::cluster_access&, sched::cluster* existing) noexcept : impl_{existing} {}

    sched::cluster* impl_;
};

namespace sched {
struct cluster_access {
    static sched::cluster* of(ums::cluster& c) noexcept { return c.impl_; }
    static void set(ums::cluster& c, sched::cluster* to) noexcept { c.impl_ = to; }
    static ums::cluster wrap(sched::cluster* c) noexcept {
        return ums::cluster{cluster_access{}, c};
    }
};
}  // namespace sched

}  // namespace ums
