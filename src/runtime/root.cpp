// SPDX-License-Identifier: MIT
#include "runtime/root.hpp"

#include <cstddef>

#include "base/look_inside.hpp"
#include "io/engine/engine.hpp"
#include "runtime/version.hpp"
#include "sched/block/detection.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/life/spawn.hpp"
#include "sched/run/carrier.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/processor.hpp"
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
    static consteval void memory(rt::root& r) {
        using mem::slab;
        r.place("slabs", &mem::slab_list);  // The newest slab.
        r.value("slab.next", offsetof(slab, next));
        r.value("slab.stacks", offsetof(slab, stacks));
        r.value("slab.bytes", offsetof(slab, bytes));
        r.value("slab.stride", offsetof(slab, stride));
        r.value("slab.guard_bytes", offsetof(slab, guard_bytes));
        r.value("slab.head_bytes", offsetof(slab, head_bytes));
        r.value("slab.count", offsetof(slab, count));
        r.value("slab.carved", offsetof(slab, carved));
        r.value("slab.cold_count", offsetof(slab, cold_count));
        r.value("slab.warm_count", offsetof(slab, warm_count));
        // The descriptor of stack i lies at
        // (stacks + (i+1) * stride - (i * colour_factor % colours) * 64 - head_bytes), rounded
        // down to 64.
        r.value("slab.colour_factor", slab::colour_factor);
        r.value("slab.colours", slab::colours);
    }

    static consteval void fibers(rt::root& r) {
        using sched::fiber;
        using sched::parkable;
        r.value("fiber.size", sizeof(fiber));
        r.value("fiber.id", offsetof(fiber, id));  // 64 bits; 0: the stack is free.
        r.value("fiber.sp", offsetof(fiber, context) + offsetof(arch::context, sp));
        r.value("fiber.ip", offsetof(fiber, context) + offsetof(arch::context, ip));
        r.value("fiber.bp", offsetof(fiber, context) + offsetof(arch::context, bp));
        r.value("fiber.name", offsetof(fiber, name));
        // How far below its descriptor a fiber's name may lie.
        r.value("fiber.top_bytes", fiber::top_bytes);
        r.value("fiber.word", offsetof(fiber, word));
        r.value("fiber.parked", parkable::parked);
        r.value("fiber.parked_user", parkable::parked_user);
        r.value("fiber.run", offsetof(fiber, run));
        r.value("fiber.callable", offsetof(fiber, callable));
        r.value("fiber.spawner", offsetof(fiber, spawner));
        r.value("fiber.spawned_at", offsetof(fiber, spawned_at));
        r.value("fiber.link", offsetof(fiber, link));
        r.value("fiber.cluster", offsetof(fiber, home_cluster));
        r.value("fiber.pinned_to", offsetof(fiber, pinned_to));
        r.value("fiber.joiner", offsetof(fiber, joiner));
        r.value("fiber.joiner_finished", fiber::finished);
        r.value("fiber.joiner_detached", fiber::detached);
        r.value("fiber.mark", offsetof(fiber, waits.what));
        r.value("fiber.mark_shift", sched::wait_record::kind_shift);
        r.value("fiber.blocking_depth",
                offsetof(fiber, blocks) + offsetof(sched::blocking_note, depth));
        // The owner word of a lock names this part of a fiber.
        r.value("fiber.parkable", static_cast<std::size_t>(parkable_offset));
    }
    // A base class has no offsetof(), so this takes that of its only first member.
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
        r.value("processor.size", sizeof(processor));
        r.value("processor.run_next", offsetof(processor, ready) + offsetof(run_queue, run_next_));
        r.value("processor.queue", offsetof(processor, ready) + offsetof(run_queue, ring_));
        r.value("processor.pinned_queue",
                offsetof(processor, ready) + offsetof(run_queue, pinned_));
        r.value("processor.inbox", offsetof(processor, scattered) + offsetof(sched::inbox, first_));
        r.value("processor.pinned_inbox",
                offsetof(processor, pinned) + offsetof(sched::inbox, first_));
        r.value("processor.arrived", offsetof(processor, arrived_));
        r.value("processor.holder", offsetof(processor, holder_));
        r.value("processor.index", offsetof(processor, index_));
        r.value("processor.cluster", offsetof(processor, home_));
        r.value("processor.is_idle", offsetof(processor, is_idle));
        r.value("processor.retired", offsetof(processor, retirement.is_done));
        r.value("processor.timers", heap + offsetof(entries, data_));
        r.value("processor.timer_count", heap + offsetof(entries, size_));
        r.value("processor.slices", offsetof(processor, ready) + offsetof(run_queue, rounds_));
        // The number of switches so far: those in past rounds, plus the length of this round minus
        // what is left of it.
        r.value("processor.past_switches",
                offsetof(processor, ready) + offsetof(run_queue, in_past_slices_));
        r.value("processor.slice_length",
                offsetof(processor, ready) + offsetof(run_queue, length_));
        r.value("processor.slice_left",
                offsetof(processor, ready) + offsetof(run_queue, ticks_left_));
        r.value("processor.spawned",
                offsetof(processor, counters) + offsetof(sched::processor_counters, spawned));
        r.value("processor.finished",
                offsetof(processor, counters) + offsetof(sched::processor_counters, finished));
        r.value("processor.steals",
                offsetof(processor, counters) + offsetof(sched::processor_counters, steals));
        r.value("processor.timers_fired",
                offsetof(processor, counters) + offsetof(sched::processor_counters, timers_fired));
        r.value("processor.idles",
                offsetof(processor, counters) + offsetof(sched::processor_counters, idles));
        r.value("timer.size", sizeof(entry));  // The size of an entry: when, and the timer.
        r.value("timer.at", offsetof(entry, at));
        r.value("timer.who", offsetof(entry, who));
        r.value("queue.head", offsetof(fiber_ring, head_));
        r.value("queue.size", offsetof(fiber_ring, size_));
        r.value("queue.mask", offsetof(fiber_ring, mask_));
        r.value("queue.slots", offsetof(fiber_ring, slots_));
    }

    static consteval void clusters(rt::root& r) {
        using sched::carrier;
        using sched::cluster;
        using pool = sched::carrier_pool;
        using carry::turn_word;
        r.place("clusters", &cluster::all_clusters_);
        r.place("default_cluster", &sched::default_cluster);
        r.place("notices", &sched::detection::notices);
        r.value("notices.count", runtime_stats::notice_buckets);
        r.value("cluster.next", offsetof(cluster, next_cluster_));
        r.value("cluster.name", offsetof(cluster, name_text_));
        r.value("cluster.policy", offsetof(cluster, policy_));  // Null means work stealing.
        r.value("cluster.processors", offsetof(cluster, all_));
        r.value("cluster.size", offsetof(cluster, size_));
        r.value("cluster.active", offsetof(cluster, active_));
        r.value("cluster.inbox", offsetof(cluster, shared_inbox) + offsetof(sched::inbox, first_));
        r.value("cluster.spawned_outside", offsetof(cluster, spawned_outside));
        r.value("cluster.carriers", offsetof(cluster, carriers) + offsetof(pool, all_));
        r.value("cluster.carriers_most", offsetof(cluster, carriers) + offsetof(pool, most_));
        r.value("cluster.carriers_now", offsetof(cluster, carriers) + offsetof(pool, counters_) +
                                            offsetof(sched::carrier_counters, now));
        r.value("cluster.hand_offs", offsetof(cluster, carriers) + offsetof(pool, counters_) +
                                         offsetof(sched::carrier_counters, hand_offs));
        r.value("cluster.stops", offsetof(cluster, carriers) + offsetof(pool, counters_) +
                                     offsetof(sched::carrier_counters, stops));
        r.value("cluster.preemptions", offsetof(cluster, carriers) + offsetof(pool, counters_) +
                                           offsetof(sched::carrier_counters, preemptions));

        r.value("carrier.next", offsetof(carrier, next_made));
        r.value("carrier.running", offsetof(carrier, running));
        r.value("carrier.processor", offsetof(carrier, proc));
        r.value("carrier.tid", offsetof(carrier, tid));
        r.value("carrier.brings", offsetof(carrier, brings));
        r.value("carrier.runs_first", offsetof(carrier, keeping.runs_first));
        r.value("carrier.turn", offsetof(carrier, turn) + offsetof(turn_word, word_));
        r.value("carrier.turn_holds", turn_word::holds);
        r.value("carrier.turn_stopped", turn_word::stopped);
        r.value("carrier.turn_given", turn_word::given);
        r.value("carrier.turn_runs_on", turn_word::runs_on);
    }

    static consteval void waits(rt::root& r) {
        using impl::channel_state;
        using sched::thread_wait;
        r.place("thread_waits", &sched::thread_waits);
        r.place("engine", &io::engine_in_use);  // Its name, or null.
        r.value("thread_wait.who", offsetof(thread_wait, who));
        r.value("thread_wait.owner", offsetof(thread_wait, owner));
        r.value("thread_wait.thread", offsetof(thread_wait, thread));
        r.value("thread_wait.next", offsetof(thread_wait, next));
        r.value("mutex.owner", offsetof(impl::mutex_state, owner));
        r.value("mutex.flags", 7);  // The bits of an owner word that are not part of the address.
        r.value("shared_mutex.holder", offsetof(impl::shared_mutex_state, holder));
        r.value("shared_mutex.has_readers", 2);
        r.value("shared_mutex.one_reader", 8);
        r.value("gate.word", offsetof(impl::gate_state, word));  // Twice the count, plus a flag.
        r.value("barrier.missing", offsetof(impl::barrier_state, missing));
        r.value("channel.count", offsetof(channel_state, count));
        r.value("channel.capacity", offsetof(channel_state, capacity));
        r.value("channel.is_closed", offsetof(channel_state, is_closed));
    }

    static consteval void trace(rt::root& r) {
        // sched/record/trace.hpp has its layout; the first word is its version.
        r.place("trace", &sched::tracing);
    }

    static consteval rt::root all() {
        rt::root r{"umsroot", rt::version_text};
        memory(r);
        fibers(r);
        processors(r);
        clusters(r);
        waits(r);
        trace(r);
        return r;
    }
};

}  // namespace ums

extern "C" UMS_EXPORT constinit const ums::rt::root ums_root = ums::look_inside::all();

// The note of runtime/root.hpp uses this name, which no other library can take over.
extern "C" [[gnu::visibility("hidden"), gnu::alias("ums_root")]] const ums::rt::root ums_root_here;
asm(R"(
        .pushsection .note.ums, "a", @note
        .balign 4
        .long   7, 8, 1
        .asciz  "libums"
        .balign 4
        .quad   ums_root_here - .
        .popsection
)");
