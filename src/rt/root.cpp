// SPDX-License-Identifier: MIT
#include "rt/root.hpp"

#include <cstddef>

#include "base/look_inside.hpp"
#include "io/engine.hpp"
#include "rt/version.hpp"
#include "sched/carrier.hpp"
#include "sched/cluster.hpp"
#include "sched/fiber.hpp"
#include "sched/processor.hpp"
#include "sched/spawn.hpp"
#include "sched/wait_note.hpp"
#include "sync/wait_list.hpp"
#include "ums/barrier.hpp"
#include "ums/channel.hpp"
#include "ums/condition_variable.hpp"
#include "ums/export.hpp"
#include "ums/impl/gate.hpp"
#include "ums/mutex.hpp"
#include "ums/semaphore.hpp"
#include "ums/shared_mutex.hpp"

// The types are not standard-layout (they have a base class with members), but single inheritance
// without virtuals is laid out the same way by every compiler we support; the test reads it back.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace ums {

// A friend of the classes it describes, so that every number here is the compiler's own.
struct look_inside {
    template <std::size_t n>
    static consteval void copy(char (&to)[n], const char* from) {
        std::size_t i = 0;
        for (; from[i] != 0; ++i) to[i] = from[i];  // Too long: no constant expression.
        to[i] = 0;
    }
    static consteval void value(rt::root& r, const char* name, std::size_t v) {
        rt::root_value& next = r.values[r.value_count++];
        copy(next.name, name);
        next.value = static_cast<std::uint32_t>(v);
    }
    static consteval void place(rt::root& r, const char* name, const void* at) {
        rt::root_place& next = r.places[r.place_count++];
        copy(next.name, name);
        next.at = at;
    }

    static consteval void memory(rt::root& r) {
        using mem::slab;
        place(r, "slabs", &mem::slab_list);  // The newest slab.
        value(r, "slab.next", offsetof(slab, next));
        value(r, "slab.stacks", offsetof(slab, stacks));
        value(r, "slab.bytes", offsetof(slab, bytes));
        value(r, "slab.stride", offsetof(slab, stride));
        value(r, "slab.guard_bytes", offsetof(slab, guard_bytes));
        value(r, "slab.head_bytes", offsetof(slab, head_bytes));
        value(r, "slab.count", offsetof(slab, count));
        value(r, "slab.carved", offsetof(slab, carved));
        value(r, "slab.cold_count", offsetof(slab, cold_count));
        value(r, "slab.warm_count", offsetof(slab, warm_count));
        // The descriptor of stack i lies at
        // (stacks + (i+1) * stride - (i * colour_factor % colours) * 64 - head_bytes), rounded
        // down to 64.
        value(r, "slab.colour_factor", slab::colour_factor);
        value(r, "slab.colours", slab::colours);
    }

    static consteval void fibers(rt::root& r) {
        using sched::fiber;
        using sched::parkable;
        value(r, "fiber.size", sizeof(fiber));
        value(r, "fiber.id", offsetof(fiber, id));  // 64 bits; 0: the stack is free.
        value(r, "fiber.sp", offsetof(fiber, context) + offsetof(arch::context, sp));
        value(r, "fiber.ip", offsetof(fiber, context) + offsetof(arch::context, ip));
        value(r, "fiber.bp", offsetof(fiber, context) + offsetof(arch::context, bp));
        value(r, "fiber.name", offsetof(fiber, name));
        value(r, "fiber.word", offsetof(fiber, word));
        value(r, "fiber.parked", parkable::parked);
        value(r, "fiber.parked_user", parkable::parked_user);
        value(r, "fiber.run", offsetof(fiber, run));
        value(r, "fiber.callable", offsetof(fiber, callable));
        value(r, "fiber.spawner", offsetof(fiber, spawner));
        value(r, "fiber.link", offsetof(fiber, link));
        value(r, "fiber.cluster", offsetof(fiber, home_cluster));
        value(r, "fiber.pinned_to", offsetof(fiber, pinned_to));
        value(r, "fiber.joiner", offsetof(fiber, joiner));
        value(r, "fiber.joiner_finished", fiber::finished);
        value(r, "fiber.joiner_detached", fiber::detached);
        value(r, "fiber.mark", offsetof(fiber, mark));
        value(r, "fiber.mark_shift", sched::wait_mark::kind_shift);
        value(r, "fiber.blocking_depth",
              offsetof(fiber, blocks) + offsetof(sched::blocking_note, depth));
        // What a lock's owner word names: this part of a fiber.
        value(r, "fiber.parkable", static_cast<std::size_t>(parkable_offset));
    }
    // A base class has no offsetof(): that of its only first member.
    static constexpr std::size_t parkable_offset =
        offsetof(sched::fiber, word) - offsetof(sched::parkable, word);

    static consteval void processors(rt::root& r) {
        using sched::fiber_ring;
        using sched::processor;
        using sched::run_queue;
        using entry = timers::timer_heap::entry;
        using entries = os::mapped_array<entry>;
        constexpr std::size_t heap = offsetof(processor, timers) +
                                     offsetof(sched::timer_queue, heap_) +
                                     offsetof(timers::timer_heap, entries_);
        value(r, "processor.size", sizeof(processor));
        value(r, "processor.run_next", offsetof(processor, ready) + offsetof(run_queue, run_next_));
        value(r, "processor.queue", offsetof(processor, ready) + offsetof(run_queue, ring_));
        value(r, "processor.pinned_queue",
              offsetof(processor, ready) + offsetof(run_queue, pinned_));
        value(r, "processor.inbox",
              offsetof(processor, scattered) + offsetof(sched::inbox, first_));
        value(r, "processor.pinned_inbox",
              offsetof(processor, pinned) + offsetof(sched::inbox, first_));
        value(r, "processor.arrived", offsetof(processor, arrived_));
        value(r, "processor.holder", offsetof(processor, holder_));
        value(r, "processor.index", offsetof(processor, index_));
        value(r, "processor.cluster", offsetof(processor, home_));
        value(r, "processor.is_idle", offsetof(processor, is_idle));
        value(r, "processor.retired", offsetof(processor, retirement.is_done));
        value(r, "processor.timers", heap + offsetof(entries, data_));
        value(r, "processor.timer_count", heap + offsetof(entries, size_));
        value(r, "processor.slices", offsetof(processor, ready) + offsetof(run_queue, slices_));
        value(r, "processor.spawned",
              offsetof(processor, counters) + offsetof(sched::processor_counters, spawned));
        value(r, "processor.finished",
              offsetof(processor, counters) + offsetof(sched::processor_counters, finished));
        value(r, "processor.steals",
              offsetof(processor, counters) + offsetof(sched::processor_counters, steals));
        value(r, "timer.size", sizeof(entry));  // Of an entry: when, and the timer.
        value(r, "timer.at", offsetof(entry, at));
        value(r, "timer.who", offsetof(entry, who));
        value(r, "queue.head", offsetof(fiber_ring, head_));
        value(r, "queue.tail", offsetof(fiber_ring, tail_));
        value(r, "queue.mask", offsetof(fiber_ring, mask_));
        value(r, "queue.slots", offsetof(fiber_ring, slots_));
    }

    static consteval void clusters(rt::root& r) {
        using sched::carrier;
        using sched::cluster;
        using pool = sched::carrier_pool;
        using carry::turn_word;
        place(r, "clusters", &cluster::all_clusters_);
        place(r, "default_cluster", &sched::default_cluster);
        value(r, "cluster.next", offsetof(cluster, next_cluster_));
        value(r, "cluster.name", offsetof(cluster, name_text_));
        value(r, "cluster.policy", offsetof(cluster, policy_));  // Null: work stealing.
        value(r, "cluster.processors", offsetof(cluster, all_));
        value(r, "cluster.size", offsetof(cluster, size_));
        value(r, "cluster.active", offsetof(cluster, active_));
        value(r, "cluster.inbox", offsetof(cluster, shared_inbox) + offsetof(sched::inbox, first_));
        value(r, "cluster.spawned_outside", offsetof(cluster, spawned_outside));
        value(r, "cluster.carriers", offsetof(cluster, carriers) + offsetof(pool, all_));
        value(r, "cluster.carriers_most", offsetof(cluster, carriers) + offsetof(pool, most_));
        value(r, "cluster.carriers_now",
              offsetof(cluster, carriers) + offsetof(pool, counters_) +
                  offsetof(sched::carrier_counters, now));
        value(r, "cluster.hand_offs",
              offsetof(cluster, carriers) + offsetof(pool, counters_) +
                  offsetof(sched::carrier_counters, hand_offs));
        value(r, "cluster.stops",
              offsetof(cluster, carriers) + offsetof(pool, counters_) +
                  offsetof(sched::carrier_counters, stops));
        value(r, "cluster.preemptions",
              offsetof(cluster, carriers) + offsetof(pool, counters_) +
                  offsetof(sched::carrier_counters, preemptions));

        value(r, "carrier.next", offsetof(carrier, next_made));
        value(r, "carrier.running", offsetof(carrier, running));
        value(r, "carrier.processor", offsetof(carrier, proc));
        value(r, "carrier.tid", offsetof(carrier, tid));
        value(r, "carrier.brings", offsetof(carrier, brings));
        value(r, "carrier.turn", offsetof(carrier, turn) + offsetof(turn_word, word_));
        value(r, "carrier.turn_holds", turn_word::holds);
        value(r, "carrier.turn_stopped", turn_word::stopped);
        value(r, "carrier.turn_given", turn_word::given);
        value(r, "carrier.turn_runs_on", turn_word::runs_on);
    }

    static consteval void waits(rt::root& r) {
        using impl::channel_state;
        using sched::thread_wait;
        place(r, "thread_waits", &sched::thread_waits);
        place(r, "engine", &io::engine_in_use);  // Its name, or null.
        value(r, "thread_wait.who", offsetof(thread_wait, who));
        value(r, "thread_wait.owner", offsetof(thread_wait, owner));
        value(r, "thread_wait.thread", offsetof(thread_wait, thread));
        value(r, "thread_wait.next", offsetof(thread_wait, next));
        value(r, "mutex.owner", offsetof(impl::mutex_state, owner));
        value(r, "mutex.flags", 7);  // The bits of an owner word that are no address.
        value(r, "shared_mutex.holder", offsetof(impl::shared_mutex_state, holder));
        value(r, "shared_mutex.has_readers", 2);
        value(r, "shared_mutex.one_reader", 8);
        value(r, "gate.word", offsetof(impl::gate_state, word));  // Twice the count, and a flag.
        value(r, "barrier.missing", offsetof(impl::barrier_state, missing));
        value(r, "channel.count", offsetof(channel_state, count));
        value(r, "channel.capacity", offsetof(channel_state, capacity));
        value(r, "channel.is_closed", offsetof(channel_state, is_closed));
    }

    static consteval rt::root all() {
        rt::root r{};
        copy(r.magic, "umsroot");
        r.version = 2;
        r.bytes = sizeof r;
        copy(r.library, rt::version_text);
        memory(r);
        fibers(r);
        processors(r);
        clusters(r);
        waits(r);
        return r;
    }
};

}  // namespace ums

extern "C" UMS_EXPORT constinit const ums::rt::root ums_root = ums::look_inside::all();

// The note of rt/root.hpp names it by this name, which no other library can take over.
extern "C" [[gnu::visibility("hidden"), gnu::alias("ums_root")]] const ums::rt::root ums_root_here;
