// SPDX-License-Identifier: MIT
#include "sched/run/spread.hpp"

#include <sched.h>

#include "os/cpu/topology.hpp"
#include "sched/run/cluster.hpp"

namespace ums::sched {

void spread::arrived(processor& p, int cpu) noexcept {
    p.last_cpu.set(cpu);
    const cluster& home = p.home();
    const unsigned n = home.active();
    if (home.pins() || n > home.cpus()) return;
    base::full_fence();
    cpu_set_t taken;
    CPU_ZERO(&taken);
    bool is_shared = false;
    for (unsigned i = 0; i < n; ++i) {
        const processor& other = home.at(i);
        const int at = other.last_cpu.get();
        if (&other == &p || at < 0) continue;
        if (at < CPU_SETSIZE) CPU_SET(at, &taken);
        is_shared |= at == cpu;
    }
    if (!is_shared || !os::leave_cpus(taken)) return;
    p.counters.moves.add(1);
    p.last_cpu.set(sched_getcpu());
}

}  // namespace ums::sched
