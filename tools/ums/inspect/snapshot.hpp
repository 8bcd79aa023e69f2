// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/snapshot.hpp: all fibers of a process, and what runs them.
//
// In a live process each descriptor is read twice, before and after the queues, timers and locks. A
// fiber whose descriptor is the same both times was in that state all the while (or came back to
// it), and what is said of it fits together. For the other fibers the last state read is shown,
// together with has_moved.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "fiber_record.hpp"
#include "layout.hpp"

namespace tool::inspect {

struct carrier_record {
    address at = 0;
    address running = 0;     // The fiber.
    address running_at = 0;  // The address of the word that says so.
    address processor = 0;
    int tid = 0;
    std::uint32_t turn = 0;
    std::uint32_t cluster = nobody;
    std::optional<thread_state> thread;
};

struct processor_record {
    address at = 0;
    std::uint32_t cluster = nobody;
    std::uint32_t index = 0;
    address holder = 0;
    bool is_idle = false, is_retired = false;
    std::uint32_t queued = 0;  // Fibers in its queues and inboxes.
    std::uint64_t timers = 0;
    // Since the start:
    std::uint64_t switches = 0, steals = 0, spawned = 0, finished = 0, timers_fired = 0, idles = 0;
};

struct cluster_record {
    address at = 0;
    std::string name;
    bool has_policy = false;  // Only the policy knows the order of its fibers.
    std::uint32_t processors = 0;
    std::uint32_t carriers = 0, carriers_most = 0;
    std::uint32_t queued = 0;  // In the inbox of all its processors.
    // Since the start:
    std::uint64_t hand_offs = 0, stops = 0, preemptions = 0, spawned_outside = 0;
};

// A plain thread that waits for a mutex without limit.
struct thread_wait_record {
    int tid = 0;
    address who = 0;    // The value that the owner words of the locks it holds have.
    address owner = 0;  // The owner word it waits for.
    std::uint32_t held_by = nobody;
};

// A worker of the UMS API, or a scheduler.
struct worker_record {
    std::uint64_t handle = 0;
    bool is_scheduler = false;
    std::uint32_t state = 0;    // A value of src/workers/worker/worker_state.hpp.
    int tid = 0;                // The id of its own kernel thread.
    std::uint64_t partner = 0;  // The scheduler that executed it last; for a scheduler: its worker.
    std::uint64_t switches = 0;
    address sp = 0, ip = 0, bp = 0;      // Where it continues; 0: it runs, or is at home.
    std::optional<thread_state> thread;  // For a worker that is blocked.
};
[[nodiscard]] const char* state_of(const worker_record& w);
// The system call that it is in; empty: none.
[[nodiscard]] std::string wait_of(const worker_record& w);

struct memory_use {
    std::uint64_t slabs = 0, mapped_bytes = 0, stacks = 0, warm = 0, cold = 0;
};

class snapshot {
public:
    snapshot(const process& of, const layout& how);

    [[nodiscard]] const process& of() const { return of_; }
    // Null if it is not the descriptor of a fiber.
    [[nodiscard]] std::uint32_t fiber_at(address descriptor) const;
    // Finds a fiber by an address on its stack.
    [[nodiscard]] std::uint32_t fiber_on(address stack) const;

    std::vector<fiber_record> fibers;
    std::vector<cluster_record> clusters;
    std::vector<processor_record> processors;
    std::vector<carrier_record> carriers;
    std::vector<thread_wait_record> thread_waits;
    std::vector<worker_record> workers;
    memory_use memory;
    std::string engine;
    std::vector<std::uint64_t> notices;  // runtime_stats::notice_us
    std::int64_t taken_at = 0;
    std::string warning;  // Says in one line what could not be read.

private:
    struct slab {
        address stacks, end;
        std::uint64_t stride, guard, head_bytes;
        std::uint32_t carved;
        std::size_t first;  // The number of the first of its descriptors.
    };

    void read_slabs();
    [[nodiscard]] address descriptor_at(const slab& s, std::uint64_t index) const;
    // The fibers' numbers, ascending, with a hash of their descriptors as they were before the
    // queues were read. What the process keeps for no fiber takes no room here.
    using first_look = std::vector<std::pair<std::uint32_t, std::size_t>>;
    [[nodiscard]] first_look read_descriptors() const;
    [[nodiscard]] bool may_have(std::uint64_t count, std::size_t bytes_each) const;
    [[nodiscard]] bool step();
    void read_clusters();
    void read_carriers(std::uint32_t cluster, address first);
    void read_processor(std::uint32_t cluster, address at);
    void read_queue(std::uint32_t p, address at);
    void read_list(std::uint32_t p, address first_at);
    void read_timers(address processor);
    void note_ready(address fiber, std::uint32_t p);
    void read_fibers(const first_look& before);
    void read_names(std::span<const address> at);
    void find_joins();
    void classify();
    void note_stack_used(fiber_record& f) const;
    void look_at_threads();
    void read_objects();
    void read_workers();
    [[nodiscard]] std::uint32_t holder_of(std::uint64_t owner_word) const;

    const process& of_;
    const layout& how_;
    const std::uint64_t bytes_;           // process::bytes()
    std::vector<slab> slabs_;             // By address.
    std::size_t stacks_ = 0;              // How many descriptors there are: slab after slab.
    std::vector<std::uint32_t> numbers_;  // Of each of `fibers`, ascending.
    std::size_t steps_left_ = 0;          // In lists, of which a fiber is in one.
    std::map<address, std::uint32_t> cluster_index_;
    std::map<address, std::uint32_t> processor_index_;
    std::map<address, std::uint32_t>
        ready_on_;  // For each ready fiber: its processor, or nobody if a cluster's inbox holds it.
    std::vector<std::pair<address, std::int64_t>> timers_;
    [[nodiscard]] std::uint32_t number_on(address stack) const;
};

}  // namespace tool::inspect
