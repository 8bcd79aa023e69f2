// SPDX-License-Identifier: MIT
#include "sched/run/cluster.hpp"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "base/chain.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/cpu/topology.hpp"
#include "os/lock.hpp"
#include "os/no_stop.hpp"
#include "sched/fiber/access.hpp"
#include "sched/lock/urgency.hpp"
#include "sched/run/here.hpp"
#include "sched/run/park.hpp"
#include "sched/run/search.hpp"
#include "sched/run/wake.hpp"

namespace ums::sched {

namespace {

constinit os::lock list_lock{os::lock_rank::leaf};

}  // namespace

constinit cluster* cluster::all_clusters_ = nullptr;

cluster::cluster(cluster_setup setup)
    : carriers{*this, setup.carriers, setup.time_slice},
      setup_{std::move(setup)},
      policy_{std::move(setup_.policy)} {
    try {
        for (unsigned i = 0; i < setup_.processors; ++i) make_processor(i);
    } catch (...) {
        delete_processors();
        throw;
    }
    if (policy_ != nullptr && policy_->has_priorities()) urgency::add_cluster();
    const os::lock_guard guard{list_lock};
    base::chain::push_front(all_clusters_, *this, &cluster::next_cluster_);
}

cluster::~cluster() {
    {
        const os::lock_guard guard{list_lock};
        base::chain::remove(all_clusters_, *this, &cluster::next_cluster_);
    }
    if (policy_ != nullptr && policy_->has_priorities()) urgency::remove_cluster();
    // A fiber that has left may hold a mutex on whose account somebody still looks at this cluster.
    urgency::wait_for_sections();
    delete_processors();
}

void cluster::delete_processors() noexcept {
    for (unsigned i = 0; i < size(); ++i) delete all_[i].load(base::relaxed);
}

processor* cluster::make_processor(unsigned index) {
    std::unique_ptr<processor> made{
        new processor{*this, index, setup_.seed * 0x9e3779b97f4a7c15u + index}};
    processor* const p = made.get();
    if (setup_.scatter) p->scatter();
    if (policy_ != nullptr) p->ready.always_look();
    if (setup_.pin) {
        p->distance = std::make_unique<unsigned char[]>(index + 1);
        const int cpu = cpu_of(index);
        for (unsigned i = 0; i < index; ++i)
            p->distance[i] = static_cast<unsigned char>(os::cpu_distance(cpu, cpu_of(i)));
    }
    if (policy_ != nullptr) policy_->attach(index);
    // sync(cluster.all): publishes the processor to threads that read the size.
    all_[index].store(made.release(), base::release);
    size_.store(index + 1, base::release);
    // seq_cst: an idler that still reads the old number after it joined the idle set is seen there
    // by the new processor.
    active_.store(index + 1, base::seq_cst);
    return p;
}

int cluster::cpu_of(unsigned n) const noexcept {
    return setup_.cpus.empty() ? os::nth_usable_cpu(n) : setup_.cpus[n % setup_.cpus.size()];
}

void cluster::place_thread(unsigned n, bool is_its_first) const noexcept {
    if (setup_.pin) {
        const int only = cpu_of(n);
        os::confine_this_thread({&only, 1});
    } else if (is_its_first) {
        os::confine_this_thread(setup_.cpus);
    }
}

bool cluster::nothing_can_run_anywhere() noexcept {
    base::full_fence();
    const os::lock_guard guard{list_lock};
    for (const cluster* c = all_clusters_; c != nullptr; c = c->next_cluster_)
        if (c->is_paused() || !search::nothing_can_run(*c)) return false;
    return true;
}

bool cluster::all_have_left_once() noexcept {
    const os::lock_guard guard{list_lock};
    for (const cluster* c = all_clusters_; c != nullptr; c = c->next_cluster_)
        for (unsigned i = 0; i < c->size(); ++i) {
            carrier* const holder = c->at(i).holder();
            if (holder == nullptr) continue;
            if (!holder->ownership.try_claim()) return false;
            holder->ownership.unclaim();
        }
    return true;
}

std::vector<int> cluster::cpus_in_use() {
    const os::lock_guard guard{list_lock};
    std::vector<int> all;
    for (const cluster* c = all_clusters_; c != nullptr; c = c->next_cluster_)
        all.insert(all.end(), c->setup_.cpus.begin(), c->setup_.cpus.end());
    return all;
}

// add, remove, start and stop exclude each other. They wait by parking, because a fiber that waited
// in a lock would hold the processor that is to leave.
class cluster::change {
public:
    explicit change(cluster& c) noexcept : turn_{c.turn_to_change_} { turn_.take(1); }
    ~change() { turn_.give(); }

private:
    permits& turn_;
};

void cluster::start() {
    change turn{*this};
    UMS_ASSERT(!running_, "a cluster is started twice");
    maker_.emplace();
    for (unsigned i = 0; i < size(); ++i) carriers.hold(at(i));
    carriers.keep_spare();
    running_ = true;
}

void cluster::stop() noexcept {
    change turn{*this};
    for (unsigned i = 0; i < active(); ++i) at(i).retirement.is_asked.store(true, base::seq_cst);
    for (unsigned i = 0; i < active(); ++i) at(i).notify();
    pauses_.look_again();
    carriers.stop();
    for (unsigned i = 0; i < active(); ++i) carriers.forget(at(i));
    maker_.reset();
    visitors_.wait_for_all();
    running_ = false;
}

// A fiber calls this if a processor could not be added. If it were stopped in the middle, it would
// wait for a processor, and the processors for it: for the policy's turn, or for fibers that it has
// in hand.
void cluster::detach_from_policy(unsigned index) {
    if (policy_ == nullptr) return;
    const os::no_stop policy_is_used_by_processors;
    policy_->detach(index);
    wake_for_work();  // For the fibers that the policy has given to the other processors.
}

unsigned cluster::add_processor() {
    change turn{*this};
    const unsigned index = active();
    if (index == max_processors)
        throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again),
                                "ums: a cluster has at most 1024 processors"};
    processor* p;
    if (index < size()) {
        p = &at(index);
        if (policy_ != nullptr) policy_->attach(index);
        p->retirement.is_asked.store(false, base::relaxed);
        p->retirement.is_done.store(false, base::seq_cst);
        active_.store(index + 1, base::seq_cst);
    } else {
        p = make_processor(index);
    }
    try {
        carriers.hold(*p);
    } catch (...) {
        active_.store(index, base::release);
        detach_from_policy(index);
        p->retirement.is_done.store(true, base::seq_cst);
        forward(*p);
        throw;
    }
    return index;
}

void cluster::remove_processor() {
    change turn{*this};
    const unsigned left = active() - 1;
    if (left == 0)
        throw std::system_error{std::make_error_code(std::errc::invalid_argument),
                                "ums: a cluster's last processor cannot be removed"};
    processor& p = at(left);
    active_.store(left, base::release);
    parkable& me = this_parkable();
    // Otherwise no carrier would look into this processor's inbox for its own remover.
    if (me.is_fiber && static_cast<fiber&>(me).pinned_to.get() == &p)
        static_cast<fiber&>(me).pin(&successor());
    p.retirement.remover = &me;  // sync(retire): published by the store below.
    p.retirement.is_asked.store(true, base::seq_cst);
    p.notify();
    pauses_.look_again();
    park(park_kind::internal);
    p.retirement.remover = nullptr;
    UMS_ASSERT(p.holder() == nullptr, "a removed processor is held");
    // The carrier is past its last switch, so this is short.
    carriers.join(*p.retirement.last_holder);
    carriers.forget(p);
    // seq_cst: pairs with make_ready_from_outside(): a fiber pushed before this is forwarded here,
    // and a fiber pushed after it is forwarded by the thread that pushed it.
    p.retirement.is_done.store(true, base::seq_cst);
    forward(p);
    // From now on the deadlines of the fibers that sleep there are the first processor's. One that
    // was added before the store above is seen by the look after this; the thread that adds one
    // later sees the store: processor::notify_of_deadline(). The watcher does not know of those
    // that the removed processor, being idle, waited for itself.
    at(0).notify();
    search::ask_watcher(*this);
}

void cluster::leave_all_behind() noexcept {
    for (cluster* c = all_clusters_; c != nullptr; c = c->next_cluster_) c->carriers.leave_behind();
    all_clusters_ = nullptr;
    list_lock.leave_behind();
    forks_.fetch_add(1, base::relaxed);  // relaxed: there is one thread.
}

// As after a migration: what another cluster's policy kept of it is forgotten.
bool cluster::adopt(fiber& f) {
    maker_.emplace();
    carrier& c = carriers.adopt(at(0));
    running_ = true;
    f.pin(f.is_pinned.get() ? &at(0) : nullptr);
    f.home_cluster.set(this);
    f.kept.forget();
    spawned_outside.store(1, base::relaxed);  // relaxed, here and below: there is one thread.
    if (f.blocks.holds_permit()) carriers.take_permit();
    ends_process_ = this;
    return c.adopt(f);
}

// Every processor looks here before it waits, so the one that ran the last fiber does. Of two last
// fibers that end at the same time, the fence lets at least one of their processors see both
// counts. The ends are read first, and a fiber that migrates is counted in before it is counted
// out: if the sums are equal, no fiber was left when the last end was read.
//
// exit() runs on a carrier of the default cluster, which is never stopped, so that the destructors
// of static objects may stop and join the carriers of other clusters. The caller's thread is a
// plain one from then on.
void cluster::end_process_after_last() const noexcept {
    base::full_fence();
    {
        const os::lock_guard guard{list_lock};
        std::uint64_t ended = 0, begun = 0;
        for (const cluster* c = all_clusters_; c != nullptr; c = c->next_cluster_)
            ended += c->finished();
        for (const cluster* c = all_clusters_; c != nullptr; c = c->next_cluster_)
            begun += c->spawned();
        if (ended != begun) return;
    }
    if (this != ends_process_) return ends_process_->at(0).notify();
    os::set_thread_slot(nullptr);
    std::exit(0);
}

void cluster::drain() noexcept {
    parkable& me = this_parkable();
    UMS_ASSERT(drainer_.load(base::relaxed) == nullptr, "a cluster is drained twice at a time");
    drainer_.store(&me, base::seq_cst);
    // Every fiber that ends after this sees the drainer; the counts of all that ended before are
    // visible.
    os::heavy_fence();
    check_drained();
    park(park_kind::internal);
}

void cluster::check_drained() noexcept {
    // Of two last fibers that end at the same time, at least one sees both counts.
    base::full_fence();
    // Read first: if the two are then equal, nothing is left.
    const std::uint64_t ended = finished();
    const std::uint64_t begun = spawned();
    UMS_ASSERT(ended <= begun, "more fibers have ended than were made");
    if (ended != begun) return;
    // sync(park) orders what the fibers did before drain() returns.
    if (parkable* d = drainer_.exchange(nullptr, base::acq_rel)) sched::wake(*d);
}

void cluster::forward(processor& retired) noexcept {
    for (inbox* box : {&retired.pinned, &retired.scattered}) {
        for (fiber* f = box->take_all(); f != nullptr;) {
            fiber* next = f->link.get();
            make_ready_from_outside(*f);
            f = next;
        }
    }
}

processor& cluster::successor() const noexcept { return at(0); }

// Like the end of a fiber: changes the count, then looks at the drainer. The count was what kept
// the cluster alive, so the caller registers before.
void cluster::take_back_spawn() noexcept {
    const os::no_stop registered_here;
    const os::visit registered{visitors_};
    // sync(drain): a thread that sees the spawn taken back also sees that it was made; otherwise it
    // would count one too few. The fence there orders this before the look: of this and drain() at
    // least one sees what the other stored.
    spawned_outside.fetch_sub(1, base::release);
    check_drained();
}

// Once pushed, the fiber may run, end, and be the last, and the thread that waited for that may
// stop and delete its cluster. So a thread that pushes registers before, while the fiber that it
// owns keeps the cluster alive.
void cluster::make_ready_from_outside(fiber& f) noexcept {
    if (is_left_behind()) [[unlikely]]
        return;
    const os::no_stop pushed_and_nobody_woken;
    const os::visit registered{visitors_};
    if (processor* only = f.pinned_to.get()) {
        if (only->retirement.is_done.load(base::acquire)) f.pin(only = &successor());
        only->pinned.push(f);
        if (only->retirement.is_done.load(base::seq_cst)) return forward(*only);
        return wake(*only);
    }
    if (const unsigned n = active(); setup_.scatter && n > 1) {
        // Any processor but the one that it comes from.
        // Read once, because it may be handed off at any time.
        const processor* from = here{}.at();
        const bool is_here = from != nullptr && &from->home() == this;
        static thread_local constinit base::owned<std::uint32_t> turn;
        turn.add(1);
        const unsigned i = (is_here ? from->index() + 1 : 0) + turn.get() % (is_here ? n - 1 : n);
        processor& p = at(i % n);
        p.scattered.push(f);
        if (p.retirement.is_done.load(base::seq_cst)) return forward(p);
        if (idle.claim(p)) return p.notify();
        // The push was a read-modify-write: a fence, as search::watch() needs it.
        return search::ask_watcher(*this);
    }
    if (policy_ != nullptr)
        policy_->ready(access::ref(&f), policy::outside);
    else
        shared_inbox.push(f);
    wake_for_work();
}

void cluster::make_all_ready_from_outside(fiber* list) noexcept {
    if (is_left_behind()) [[unlikely]]
        return;
    const os::no_stop pushed_and_nobody_woken;
    const os::visit registered{visitors_};
    fiber* newest = nullptr;
    fiber* oldest = nullptr;
    bool for_policy = false;
    while (fiber* const f = list) {
        list = f->link.get();
        if (f->pinned_to.get() != nullptr || setup_.scatter) {
            make_ready_from_outside(*f);
        } else if (policy_ != nullptr) {
            policy_->ready(access::ref(f), policy::outside);
            for_policy = true;
        } else {
            f->link.set(newest);
            newest = f;
            if (oldest == nullptr) oldest = f;
        }
    }
    if (newest != nullptr) shared_inbox.push_all(*newest, *oldest);
    if (newest != nullptr || for_policy) wake_for_work();
}

void cluster::wake_for_work() noexcept {
    // A thread that is stopped in between would wait for a processor, and all idle processors would
    // wait for the one that was claimed.
    const os::no_stop claimed_and_not_yet_woken;
    // The push was a read-modify-write, but a policy of the user's may not have ended in one.
    base::full_fence();
    if (!idle.wants_waking()) return;
    if (processor* p = idle.claim_any(false)) p->notify();
}

void cluster::wake(processor& p) noexcept {
    if (idle.claim(p)) p.notify();
}

bool cluster::looks_busy(const processor& besides) const noexcept {
    for (unsigned i = 0; i < size(); ++i) {
        const processor& p = at(i);
        if (&p != &besides && p.looks_busy()) return true;
    }
    return policy_ != nullptr && !policy_->empty(besides.index());
}

int cluster::distance(const processor& a, const processor& b) const noexcept {
    const processor& later = a.index() > b.index() ? a : b;
    const processor& earlier = a.index() > b.index() ? b : a;
    return later.distance != nullptr ? later.distance[earlier.index()] : 3;
}

std::uint64_t cluster::activity() const noexcept {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < size(); ++i) sum += at(i).activity();
    return sum;
}

std::uint64_t cluster::spawned() const noexcept {
    std::uint64_t n = spawned_outside.load(base::seq_cst);  // sync(drain)
    for (unsigned i = 0; i < size(); ++i) n += at(i).counters.spawned.get();
    return n;
}

std::uint64_t cluster::finished() const noexcept {
    std::uint64_t n = 0;
    for (unsigned i = 0; i < size(); ++i)
        n += at(i).counters.finished.load(base::acquire);  // sync(drain)
    return n;
}

}  // namespace ums::sched
