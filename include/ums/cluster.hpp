// SPDX-License-Identifier: MIT
#pragma once

// ums/cluster.hpp: a set of processors with one policy.
//
// The runtime starts with the default cluster. More clusters separate kinds of work: each has its
// own processors (hence kernel threads) and its own order of ready fibers. A fiber is made in one
// cluster (fiber_options::cluster) and may move to another (this_fiber::migrate).
//
// Blocking: the constructor and add_processor() start kernel threads. remove_processor() waits
//           until a processor has stopped; the destructor waits until every fiber of the cluster
//           has ended or left. Both park a fiber and block a plain thread.
// Lifetime: destroy a cluster before the runtime stops, and from outside the cluster.
// Errors:   std::system_error: operation_not_permitted (no runtime is running),
//           resource_unavailable_try_again (no thread, or add_processor() beyond 1024),
//           invalid_argument (0 or more than 1024 processors, another option out of range, or the
//           last processor is removed), operation_not_supported (time slices without a detector).
// Cost:     a kernel thread for each processor.

#include <functional>
#include <memory>
#include <string>

#include "ums/export.hpp"
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
    bool pin = false;
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
