// SPDX-License-Identifier: MIT
#include "runtime/runtime.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <system_error>
#include <unistd.h>

#include "base/assert.hpp"
#include "io/engine/engine.hpp"
#include "mem/overflow.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/say.hpp"
#include "runtime/environment.hpp"
#include "runtime/fork.hpp"
#include "runtime/root.hpp"
#include "runtime/standstill.hpp"
#include "sched/block/detection.hpp"
#include "sched/life/end.hpp"
#include "sched/life/plain_join.hpp"
#include "sched/life/spawn.hpp"
#include "sched/queue/depot.hpp"
#include "sched/record/describe.hpp"
#include "sched/record/trace.hpp"
#include "sched/report/crash.hpp"
#include "sched/run/carrier.hpp"
#include "sched/run/unused_pages.hpp"
#include "ums/run.hpp"

// libgcc's, in programs that -fsplit-stack has compiled.
extern "C" [[gnu::weak]] void __morestack();

namespace ums::rt {

namespace {

// A reference, so that every program with a runtime contains it.
[[gnu::used]] const root* const description = &ums_root;

constinit base::atomic<running_runtime*> the_runtime;
constinit base::atomic<bool> starting_or_running;

const void* describe_stack(const mem::stack_head& head, char* buffer, unsigned long size) noexcept {
    const auto& f = static_cast<const sched::fiber&>(head);
    if (f.id.get() == 0) return nullptr;
    sched::describe(f, buffer, size);
    return f.spawned_at;
}

// Does what UMS_TRACE asks for. A tool may have switched recording on already.
void begin_trace() {
    const environment::trace_wish wish = environment::trace();
    if (!wish.is_on) return;
    sched::set_trace_file(wish.file);
    if (wish.ring_bytes != 0)
        sched::tracing.ring_bytes.store(static_cast<std::uint32_t>(wish.ring_bytes), base::relaxed);
    sched::tracing.wanted.store(1, base::relaxed);
}

// The last step of the start that can fail.
void follow_cpus(running_runtime& r) {
    if (!sched::detection::is_on())
        throw std::system_error{std::make_error_code(std::errc::operation_not_supported),
                                "ums: options::follow_cpus: no detector of blocking works here "
                                "(ums info says why)"};
    const std::size_t named =
        r.set.cpus.empty() ? sched::cluster::max_processors : r.set.cpus.size();
    const unsigned asked =
        r.set.is_number_asked ? r.set.chosen.processors : sched::cluster::max_processors;
    r.follower.emplace(*r.standard, std::min(static_cast<unsigned>(named), asked),
                       environment::system_root());
}

void start(const options& asked) {
    handle_forks();
    auto made = std::make_unique<running_runtime>();
    made->set = settle(asked);
    const options& o = made->set.chosen;
    os::enable_asymmetric_fence(o.membarrier);
    sched::depot().configure({.default_bytes = o.stack_bytes,
                              .guard = made->set.guard,
                              .head_bytes = sizeof(sched::fiber),
                              .warm_limit = o.warm_stacks});
    sched::measure_stacks = o.measure_stacks;
    sched::unused_pages::begin(o.measure_stacks);
    sched::stack_high_water.store(0, base::relaxed);
    base::describe_caller = &sched::describe_caller;
    watch_for_standstill(o.deadlock);
    begin_trace();
    made->watch.emplace(made->set);
    make_standard(*made);
    mem::install_overflow_report(
        &describe_stack, {&sched::report_signal, &sched::mention_signal, &sched::dump_trace});
    sched::report_terminate();
    try {
        made->standard->start();
        if (o.follow_cpus) follow_cpus(*made);
    } catch (...) {
        made->standard->stop();
        sched::stop_reporting_terminate();
        mem::remove_overflow_report();
        throw;
    }
    io::start();
    sched::cluster_access::set(standard_name(), made->standard.get());
    // sync(runtime): publishes the cluster to threads that make fibers.
    sched::default_cluster.store(made->standard.get(), base::release);
    the_runtime.store(made.release(), base::release);
}

}  // namespace

running_runtime* current() noexcept {
    return the_runtime.load(base::acquire);  // sync(runtime)
}

void replace(running_runtime* by) noexcept {
    sched::cluster_access::set(standard_name(), by->standard.get());
    // relaxed, both: there is one thread.
    sched::default_cluster.store(by->standard.get(), base::relaxed);
    the_runtime.store(by, base::relaxed);
}

void make_standard(running_runtime& r) {
    const options& o = r.set.chosen;
    r.standard = std::make_unique<sched::cluster>(
        sched::cluster_setup{.name = "main",
                             .processors = o.processors,
                             .policy = make_policy(o.policy, o.make_policy),
                             .pin = o.pin,
                             .cpus = r.set.cpus,
                             .scatter = o.migrate,
                             .spin = o.spin_ns,
                             .carriers = o.carriers,
                             .time_slice = r.watch->slice(o.time_slice_us),
                             .seed = o.seed,
                             .is_watched = r.watch->detects()});
}

bool is_ending_with_process(const void* object) noexcept {
    Dl_info in;
    return sched::this_carrier() != nullptr && ::dladdr(object, &in) != 0;
}

std::unique_ptr<ums::policy> make_policy(policy_kind kind,
                                         const std::function<std::unique_ptr<ums::policy>()>& own) {
    return own ? own() : ums::make_policy(kind);
}

}  // namespace ums::rt

namespace ums {

runtime::runtime(const options& chosen) {
    if (sched::this_carrier() != nullptr)
        throw std::system_error{std::make_error_code(std::errc::operation_not_permitted),
                                "ums: a fiber cannot start a runtime"};
    // sync(runtime): sees what the previous stop gave back.
    if (rt::starting_or_running.exchange(true, base::acq_rel))
        throw std::system_error{std::make_error_code(std::errc::device_or_resource_busy),
                                "ums: a runtime is running already: a process has one at a time"};
    if (&__morestack != nullptr) {
        os::say(
            "the program was compiled with -fsplit-stack, which would take a fiber's stack for "
            "the kernel thread's: compile it without");
        _exit(2);
    }
    try {
        rt::start(chosen);
    } catch (...) {
        rt::starting_or_running.store(false, base::release);
        throw;
    }
    running_ = true;
}

runtime::~runtime() {
    if (running_ && rt::is_ending_with_process(this)) return;
    stop();
}

void runtime::stop() noexcept {
    if (!running_) return;
    rt::running_runtime* r = rt::current();
    if (r->parents != nullptr) return;  // fork() has made it: it ends with the process.
    UMS_ASSERT(sched::this_carrier() == nullptr, "a fiber cannot stop the runtime");
    r->standard->drain();
    if (r->follower) r->follower->end();
    UMS_ASSERT(r->clusters.load(base::acquire) == 0,
               "the runtime was stopped before a cluster was destroyed");
    sched::default_cluster.store(nullptr, base::release);
    rt::the_runtime.store(nullptr, base::release);
    r->standard->stop();
    sched::plain_joins.wait_for_all();
    const mem::depot_stats left = sched::depot().stats();
    UMS_ASSERT(left.carved == left.warm + left.cold,
               "the runtime was stopped before all handles of fibers were joined or detached");
    io::stop();
    sched::stop_reporting_terminate();
    mem::remove_overflow_report();
    delete r;
    sched::depot().clear();
    running_ = false;
    // sync(runtime): the next start sees everything given back.
    rt::starting_or_running.store(false, base::release);
}

}  // namespace ums

namespace ums::impl {

void run_first(const options& chosen, void (*run)(void*), void* callable) {
    runtime started{chosen};
    const fiber_options name{.name = "main"};
    sched::fiber* const first = spawn_begin(&name, 0, 1).fiber;
    first->spawned_at = __builtin_return_address(0);
    spawn_commit(first, run, callable, launch::post);
    join(first);
}

}  // namespace ums::impl
