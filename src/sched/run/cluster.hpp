// SPDX-License-Identifier: MIT
#pragma once

// sched/run/cluster.hpp: a set of processors and the policy that orders their ready fibers.
//
// A fiber belongs to one cluster at a time and runs only on its processors. Processors are added
// and removed while fibers run; a removed one stays in the array, retired, because parked fibers
// may still name it, and is used again by the next add.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/look_inside.hpp"
#include "carry/maker.hpp"
#include "os/cpu/topology.hpp"
#include "os/visitors.hpp"
#include "sched/block/carrier_pool.hpp"
#include "sched/queue/inbox.hpp"
#include "sched/run/idle_set.hpp"
#include "sched/run/pause.hpp"
#include "sched/run/processor.hpp"
#include "ums/policy.hpp"

namespace ums::sched {

struct cluster_setup {
    std::string name;
    unsigned processors = 1;
    std::unique_ptr<ums::policy> policy;  // Null means work stealing.
    bool pin = false;                     // Each processor to one CPU.
    std::vector<int> cpus = {};           // Those it may use; none: all.
    bool scatter = false;                 // Debug: migrate at every park and yield.
    os::nanoseconds spin = 0;             // How long a searcher looks before it goes idle.
    unsigned carriers = 10'000;           // At most this many; more than there are processors.
    os::nanoseconds time_slice = 0;  // How long a fiber may run while others wait; 0: no limit.
    std::uint64_t seed = 1;
    bool is_watched = false;  // A detector finds long runs.
};

class cluster {
public:
    static constexpr unsigned max_processors = 1024;

    explicit cluster(cluster_setup setup);
    ~cluster();  // Requires: stopped.
    cluster(const cluster&) = delete;
    cluster& operator=(const cluster&) = delete;

    // Starts the carriers. Throws std::system_error if a thread cannot be made.
    void start();
    // Ends the carriers. Requires: no fiber is left in the cluster.
    void stop() noexcept;

    // Returns the new processor's index. Throws std::system_error.
    unsigned add_processor();
    // Retires the last processor and waits until its carrier has ended; its fibers continue
    // elsewhere. Throws std::system_error(invalid_argument) if it is the only one.
    void remove_processor();

    [[nodiscard]] unsigned active() const noexcept { return active_.load(base::seq_cst); }
    // Includes retired ones.
    [[nodiscard]] unsigned size() const noexcept {
        return size_.load(base::acquire);  // sync(cluster.all): sees the processors.
    }
    [[nodiscard]] processor& at(unsigned i) const noexcept {
        // sync(cluster.all): sees the processor.
        return *all_[i].load(base::acquire);
    }

    // For a fiber that the caller owns and that belongs to this cluster; may be called from
    // anywhere.
    void make_ready_from_outside(fiber& f) noexcept;
    // The same for a linked list of fibers, in order. One processor is woken for all that are not
    // pinned.
    void make_all_ready_from_outside(fiber* list) noexcept;
    // Wakes an idle processor, if none is searching, for work that was made visible, such as a
    // carrier on the list of stopped ones.
    void wake_for_work() noexcept;
    // The policy gives up what it kept for a processor that runs nothing any more.
    void detach_from_policy(unsigned index);

    // The processor that takes the place of a retired one.
    [[nodiscard]] processor& successor() const noexcept;

    // Whether another processor has a queued fiber that an idle one could take. A hint.
    [[nodiscard]] bool looks_busy(const processor& besides) const noexcept;

    [[nodiscard]] pausing& pauses() noexcept { return pauses_; }
    [[nodiscard]] bool is_paused() const noexcept { return pauses_.is_on(); }

    // --- fork() (runtime/fork.cpp) --- In the child, of a new cluster: its one processor is the
    // calling thread's, which continues with `f`. It is the default cluster, and the process ends
    // with its last fiber. False: no memory. Throws std::bad_alloc.
    [[nodiscard]] bool adopt(fiber& f);
    // In the child: of all clusters there are.
    static void leave_all_behind() noexcept;
    // A cluster of the parent's: nothing runs it, and fibers that become ready there are forgotten.
    [[nodiscard]] bool is_left_behind() const noexcept { return born_after_ != forks(); }
    // How many forks of fibers led to this process.
    [[nodiscard]] static std::uint32_t forks() noexcept {
        return forks_.load(base::relaxed);  // relaxed: it changes while there is one thread.
    }
    // In the child: ends the process if no fiber is left in it. By an idle processor, outside.
    void end_process_if_over() const noexcept {
        if (ends_process_ != nullptr) [[unlikely]]
            end_process_after_last();
    }

    // Waits until every fiber of the cluster has ended or left it. One caller at a time, from
    // outside the cluster.
    void drain() noexcept;
    // For a fiber that was counted as made and never became one. May be called from anywhere, as
    // the last access.
    void take_back_spawn() noexcept;
    // A fiber of processor `p` has ended or left, and its count is stored. Call it inside.
    UMS_ALWAYS_INLINE void fiber_left(bool asymmetric) noexcept {
        base::compiler_fence();
        if (!asymmetric) [[unlikely]]
            base::full_fence();
        // relaxed: drain() has a heavy fence between its store of this and its look at the counts.
        if (drainer_.load(base::relaxed) != nullptr) [[unlikely]]
            check_drained();
    }

    // The distance between the CPUs of two processors, as os::cpu_distance(). 3 if they are not
    // pinned.
    [[nodiscard]] int distance(const processor& a, const processor& b) const noexcept;

    // Fibers made minus fibers ended. Exact only while nothing runs.
    [[nodiscard]] std::uint64_t spawned() const noexcept;
    [[nodiscard]] std::uint64_t finished() const noexcept;

    // Changes with each switch of each of its processors. Any thread may read it, as a hint.
    [[nodiscard]] std::uint64_t activity() const noexcept;

    // Whether no cluster has anything to run, a deadline, a blocked fiber or a pause. A hint.
    [[nodiscard]] static bool nothing_can_run_anywhere() noexcept;

    // Whether each processor of all clusters has been seen outside its carrier's ownership during
    // the call: each switch that had begun before the call has ended. Costs a system call for each.
    [[nodiscard]] static bool all_have_left_once() noexcept;

    [[nodiscard]] const std::string& name() const noexcept { return setup_.name; }
    [[nodiscard]] bool is_running() const noexcept { return running_; }
    [[nodiscard]] bool pins() const noexcept { return setup_.pin; }
    // Where the n-th processor is, if they are pinned.
    [[nodiscard]] int cpu_of(unsigned n) const noexcept;
    // Called by a carrier's thread when it begins to hold the n-th processor.
    void place_thread(unsigned n, bool is_its_first) const noexcept;
    // The CPUs of all clusters that were given some (cluster_setup::cpus). One that several have
    // occurs several times.
    static std::vector<int> cpus_in_use();
    // How long a processor with nothing to run looks for work before it sleeps.
    [[nodiscard]] os::nanoseconds spin() const noexcept { return setup_.spin; }
    // The application's policy, or null: work stealing.
    [[nodiscard]] ums::policy* policy() const noexcept { return policy_.get(); }
    [[nodiscard]] unsigned cpus() const noexcept { return cpus_; }

    carrier_pool carriers;
    idle_set idle;
    inbox shared_inbox;

    // Whether an idle processor is to look after those that run (sched/run/search.hpp), or only the
    // detector does.
    [[nodiscard]] bool needs_watcher() const noexcept {
        // relaxed: a hint, see there.
        return !is_lazy_ || running_long.load(base::relaxed) != 0;
    }

    // The watcher: one idle processor that looks after those that run (sched/run/search.hpp).
    base::atomic<std::uint32_t> running_long;  // How many processors have runs_long.
    base::atomic<processor*> watcher;
    base::atomic<os::nanoseconds> watch_until{os::never};
    // off: none looks. rests: nothing waited when it last looked; it is asked to look again.
    // samples: it will look by itself. asked: the same, and it was asked since its last look.
    // Others than the watcher only change `samples` and `rests` to `asked`.
    enum : std::uint32_t { off, rests, samples, asked };
    base::atomic<std::uint32_t> watching;
    // Owned by the watcher; an earlier watcher may reset the period.
    base::owned<os::nanoseconds> sample_period;
    base::owned<os::nanoseconds> sampled_at;  // The time of the last sample.

    // Fibers made by threads that hold no processor of this cluster. It has a cache line of its
    // own, because each of those threads writes it.
    alignas(base::cache_line) base::atomic<std::uint64_t> spawned_outside;

private:
    friend struct ums::look_inside;
    friend class pausing;

    processor* make_processor(unsigned index);
    void delete_processors() noexcept;
    void forward(processor& retired) noexcept;
    void check_drained() noexcept;
    void wake(processor& p) noexcept;

    void end_process_after_last() const noexcept;

    static constinit cluster* all_clusters_;
    static inline constinit base::atomic<std::uint32_t> forks_;
    // In the child of a fork(), its default cluster. Set before another thread is there.
    static inline constinit cluster* ends_process_ = nullptr;

    // This, and what follows, is hardly ever written.
    alignas(base::cache_line) cluster_setup setup_;
    const unsigned cpus_ =
        setup_.cpus.empty() ? os::usable_cpus() : static_cast<unsigned>(setup_.cpus.size());
    std::unique_ptr<ums::policy> policy_;
    // See needs_watcher().
    const bool is_lazy_ = setup_.is_watched && policy_ == nullptr && !setup_.scatter;
    std::optional<carry::maker::use> maker_;  // While it runs.

    // For readers from outside (runtime/root.hpp). Set once:
    const char* const name_text_ = setup_.name.c_str();
    // Link in the list of all clusters, newest first. Guarded by a lock in cluster.cpp.
    cluster* next_cluster_ = nullptr;

    base::atomic<processor*> all_[max_processors];
    base::atomic<unsigned> size_;    // Slots of all_ in use.
    base::atomic<unsigned> active_;  // The first active_ of them are not retired.

    const std::uint32_t born_after_ = forks();

    pausing pauses_{*this};

    base::atomic<parkable*> drainer_;

    // The threads that push fibers from outside, or take a spawn back, or resume the cluster.
    alignas(base::cache_line) os::visitors visitors_;

    class change;
    alignas(base::cache_line) bool running_ = false;  // Guarded by `change`.
    permits turn_to_change_;                          // One.
};

// --- processor's inline parts that need the cluster ---

UMS_ALWAYS_INLINE void processor::wake_help(bool at_once) noexcept {
    // The light side of the idle set's protocol.
    base::compiler_fence();
    if (!asymmetric_) [[unlikely]]
        base::full_fence();
    if (home_.idle.look().idle != 0) [[unlikely]]
        help_wanted(at_once);
}

inline bool processor::has_policy() const noexcept { return home_.policy() != nullptr; }

UMS_ALWAYS_INLINE void processor::count_end() noexcept {
    count_end_of_joined();
    home_.fiber_left(asymmetric_);
}

}  // namespace ums::sched
