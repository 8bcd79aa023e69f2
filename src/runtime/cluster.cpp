// SPDX-License-Identifier: MIT
#include "ums/cluster.hpp"

#include <system_error>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "runtime/runtime.hpp"
#include "sched/policies/built_in.hpp"
#include "sched/run/here.hpp"

namespace ums {

namespace rt {

// This is not a cluster of its own, but a name for the runtime's. Never destroyed.
ums::cluster& standard_name() noexcept {
    union holder {
        ums::cluster value;
        holder() : value{sched::cluster_access::wrap(nullptr)} {}
        ~holder() {}
    };
    static holder the_standard;
    return the_standard.value;
}

namespace {

// Throws std::system_error if it belongs to the parent of this process.
sched::cluster& here_not_left(sched::cluster* c) {
    if (c->is_left_behind())
        throw std::system_error{std::make_error_code(std::errc::no_such_process),
                                "ums: the cluster was left behind by fork()"};
    return *c;
}

}  // namespace

}  // namespace rt

cluster::cluster(const cluster_options& options) : impl_{nullptr} {
    rt::running_runtime* r = rt::current();
    if (r == nullptr)
        throw std::system_error{std::make_error_code(std::errc::operation_not_permitted),
                                "ums: no runtime is running: make clusters inside ums::run()"};
    if (options.processors == 0 || options.processors > sched::cluster::max_processors)
        throw std::system_error{std::make_error_code(std::errc::invalid_argument),
                                "ums: cluster_options::processors: expected 1 to 1024"};
    if (options.carriers < 2 || options.carriers > 1'000'000)
        throw std::system_error{std::make_error_code(std::errc::invalid_argument),
                                "ums: cluster_options::carriers: expected 2 to 1,000,000"};
    if (!sched::is_built_in(options.policy))
        throw std::system_error{std::make_error_code(std::errc::invalid_argument),
                                "ums: cluster_options::policy: there is no such policy"};
    rt::check_slice(options.time_slice_us);
    std::vector<int> cpus = rt::choose_cpus(options.cpus, options.processors);
    auto made = std::make_unique<sched::cluster>(
        sched::cluster_setup{.name = options.name,
                             .processors = options.processors,
                             .policy = rt::make_policy(options.policy, options.make_policy),
                             .pin = options.pin,
                             .cpus = std::move(cpus),
                             .scatter = r->set.chosen.migrate,
                             .spin = r->set.chosen.spin_ns,
                             .carriers = options.carriers,
                             .time_slice = r->watch->slice(options.time_slice_us),
                             .seed = r->set.chosen.seed + 1,
                             .is_watched = r->watch->detects()});
    try {
        made->start();
    } catch (...) {
        made->stop();
        throw;
    }
    r->clusters.fetch_add(1, base::relaxed);
    impl_ = made.release();
}

cluster::~cluster() {
    if (impl_ == nullptr || impl_->is_left_behind()) return;
    const sched::here at;
    const bool is_own = at.self != nullptr && at.self->home_cluster.get() == impl_;
    if (is_own && rt::is_ending_with_process(this)) return;  // As the runtime.
    UMS_ASSERT(!is_own,
               "a cluster was destroyed by one of its own fibers, which would wait for itself");
    impl_->drain();
    impl_->stop();
    delete impl_;
    // sync(runtime): everything of it is gone before the runtime's stop sees the count.
    rt::current()->clusters.fetch_sub(1, base::acq_rel);
}

unsigned cluster::add_processor() { return rt::here_not_left(impl_).add_processor(); }

void cluster::remove_processor() { rt::here_not_left(impl_).remove_processor(); }

void cluster::pause() { rt::here_not_left(impl_).pauses().begin(); }

void cluster::resume() { rt::here_not_left(impl_).pauses().end(); }

unsigned cluster::move_processor(cluster& to) {
    rt::here_not_left(impl_);
    rt::here_not_left(to.impl_);
    if (&to == this || to.impl_ == impl_)
        throw std::system_error{std::make_error_code(std::errc::invalid_argument),
                                "ums: cluster::move_processor: expected another cluster"};
    if (processors() <= 1)
        throw std::system_error{std::make_error_code(std::errc::invalid_argument),
                                "ums: a cluster's last processor cannot be moved"};
    const unsigned index = to.impl_->add_processor();
    try {
        impl_->remove_processor();
    } catch (...) {
        to.impl_->remove_processor();
        throw;
    }
    return index;
}

fiber_options cluster::posted(const fiber_options& given, bool is_batch) {
    if (given.cluster != nullptr && given.cluster->impl_ != impl_)
        throw std::system_error{std::make_error_code(std::errc::invalid_argument),
                                "ums: cluster::post: the options name another cluster"};
    if (is_batch && given.launch != launch::post)
        throw std::system_error{std::make_error_code(std::errc::invalid_argument),
                                "ums: cluster::post_each: expected launch::post"};
    fiber_options mine = given;
    mine.cluster = this;
    return mine;
}

void cluster::set_group_weight(unsigned group, unsigned weight) {
    if (group >= group_count || weight == 0 || weight > most_weight)
        throw std::system_error{
            std::make_error_code(std::errc::invalid_argument),
            "ums: cluster::set_group_weight: expected a group from 0 to 63 and a "
            "weight from 1 to 10,000"};
    policy* const order = rt::here_not_left(impl_).policy();
    if (order == nullptr || !order->set_group_weight(group, weight))
        throw std::system_error{std::make_error_code(std::errc::operation_not_supported),
                                "ums: the cluster's policy has no groups"};
}

unsigned cluster::processors() const noexcept {
    return impl_->is_left_behind() ? 0 : impl_->active();
}

std::string_view cluster::name() const noexcept { return impl_->name(); }

cluster& cluster::standard() noexcept { return rt::standard_name(); }

}  // namespace ums
