// SPDX-License-Identifier: MIT
#include "block/sentinels.hpp"

#include <algorithm>
#include <new>
#include <sched.h>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "block/report.hpp"
#include "block/service_thread.hpp"
#include "os/futex.hpp"
#include "os/thread_cpu.hpp"

namespace ums::block {

class sentinels::sentinel {
public:
    // What it does. `awake` is left by the sentinel only, `asleep` and `dormant` also by others.
    enum phase : std::uint32_t {
        awake,
        asleep,   // Shall be woken by a carrier. Counted in sleepers_.
        dormant,  // By the monitor only. So is one without a CPU.
    };

    explicit sentinel(sentinels& of) : of_{of}, looks_{of.all_} {
        thread_ = service_thread("ums sentinel", [this] { run(); });
    }
    ~sentinel() = default;  // Requires: joined.
    sentinel(const sentinel&) = delete;
    sentinel& operator=(const sentinel&) = delete;

    void join() { thread_.join(); }  // Once ends_ is set and it was woken.

    // By the monitor.
    void guard(int cpu) noexcept {
        cpu_ = cpu;  // Published by the wake-up.
        wake();
    }
    // Whatever it sleeps for. Returns at once if it is awake.
    void wake() noexcept {
        // acquire and release: see wait().
        const std::uint32_t was = phase_.exchange(awake, base::acq_rel);
        if (was == asleep) of_.sleepers_.fetch_sub(1, base::relaxed);  // relaxed: a hint for nudge().
        if (was != awake) os::futex_wake(phase_.address());
    }
    [[nodiscard]] bool is_asleep() const noexcept {
        return phase_.load(base::relaxed) == asleep;  // relaxed: a hint, or wake() decides.
    }
    // By the monitor: since it last asked, no block was found here.
    void let_sleep() noexcept {
        if (std::exchange(found_before_, found_.get()) != found_.get()) return;
        std::uint32_t was = asleep;
        // relaxed: nothing is published. The count is a hint for nudge().
        if (phase_.compare_exchange(was, dormant, base::relaxed, base::relaxed))
            of_.sleepers_.fetch_sub(1, base::relaxed);
    }

    // Set before its own thread takes up its duty; read once that has ended, or by the thread itself.
    std::unique_ptr<sentinel> next;

private:
    void run() noexcept {
        wait_for_wake(dormant);
        if (ends()) return;
        next = of_.make_one();
        if (!take_post()) return wait_for_end();
        while (!ends()) {
            if (is_worth_looking()) continue;
            wait(++in_vain_ > most_in_vain ? dormant : asleep);
        }
    }

    [[nodiscard]] bool ends() const noexcept {
        return of_.ends_.load(base::acquire) != 0;  // sync(block.sentinel): as wait().
    }

    void wait(phase why) noexcept {
        // Whoever wakes it changes this back. relaxed: the others only compare.
        phase_.store(why, base::relaxed);
        if (why == asleep) of_.sleepers_.fetch_add(1, base::relaxed);  // relaxed: see the header.
        // stop() stores ends_, then exchanges the phase. It finds the value stored above, and wakes; or that
        // was stored after the exchange, and ends_ is seen here. seq_cst, on both sides, for that.
        base::full_fence();
        if (ends() || (why == asleep && any_of_interest())) return wake();
        wait_for_wake(why);
    }
    void wait_for_wake(phase from) noexcept {
        // sync(block.sentinel): sees the CPU that it was given. What it sleeps for may change meanwhile.
        for (std::uint32_t now = from; now != awake; now = phase_.load(base::acquire))
            os::futex_wait(phase_, now);
    }
    void wait_for_end() noexcept {
        while (!ends()) wait(dormant);
    }

    // Confined to the CPU, and of the lowest class: whatever wakes up there takes the CPU at once.
    bool take_post() noexcept {
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(static_cast<unsigned>(cpu_), &only);
        if (sched_setaffinity(0, sizeof only, &only) != 0) return false;
        const sched_param none{};
        return sched_setscheduler(0, SCHED_IDLE, &none) == 0 || setpriority(PRIO_PROCESS, 0, 19) == 0;
    }

    // Looks until nothing has been of interest on this CPU for a while. True: look on.
    bool is_worth_looking() noexcept {
        const look l = take_look();
        if (l.has_found) {
            in_vain_ = 0;
            quiet_since_ = 0;
            return true;
        }
        if (l.any_of_interest) {
            quiet_since_ = 0;
        } else {
            const os::nanoseconds now = os::now();
            if (quiet_since_ == 0) quiet_since_ = now;
            if (now - quiet_since_ > linger) {
                quiet_since_ = 0;
                return false;
            }
        }
        sched_yield();
        return true;
    }

    [[nodiscard]] bool is_of_interest(watched& w) const noexcept {
        // One that was reported and not handed on (no permit, or a spare is being made) is the monitor's to repeat.
        return w.is_of_interest() && w.cpu() == cpu_ && !w.is_reported();
    }
    [[nodiscard]] bool any_of_interest() noexcept {
        bool any = false;
        looks_.each([&](watched& w) noexcept {
            any = is_of_interest(w);
            return !any;
        });
        return any;
    }

    struct look {
        bool any_of_interest = false;
        bool has_found = false;
    };

    look take_look() noexcept {
        look l;
        looks_.each([&](watched& w) noexcept {
            if (!is_of_interest(w)) return true;
            l.any_of_interest = true;
            if (!report_if_blocked(w, of_.states_, 0, false, cpu_)) return true;
            of_.found_.fetch_add(1, base::relaxed);  // relaxed: statistics.
            found_.add(1);
            l.has_found = true;
            return true;
        });
        return l;
    }

    sentinels& of_;
    watch_list::observer looks_;
    base::atomic<std::uint32_t> phase_{dormant};
    int cpu_ = -1;
    base::owned<std::uint64_t> found_{0};  // Written by its thread.
    std::uint64_t found_before_ = 0;       // The monitor's.

    // Its thread's:
    unsigned in_vain_ = 0;
    os::nanoseconds quiet_since_ = 0;

    std::thread thread_;  // Last: it uses the others.
};

std::unique_ptr<sentinels::sentinel> sentinels::make_one() noexcept {
    try {
        auto made = std::make_unique<sentinel>(*this);
        free_.store(made.get(), base::release);  // sync(block.sentinel): publishes it to guard().
        return made;
    } catch (const std::exception&) {  // No memory, or no thread: then there are no more.
        return nullptr;
    }
}

sentinels::sentinels(watch_list& all, os::thread_states& states,
                     base::atomic<std::uint32_t>& sleepers) noexcept
    : all_{all}, states_{states}, sleepers_{sleepers} {}

sentinels::~sentinels() = default;

void sentinels::start() noexcept {
    if (os::thread_cpu::here() < 0) return;
    ends_.store(0, base::relaxed);  // relaxed: no thread reads it yet.
    cpus_ = static_cast<unsigned>(std::clamp(::sysconf(_SC_NPROCESSORS_CONF), 1L, long{CPU_SETSIZE}));
    on_cpu_.reset(new (std::nothrow) base::atomic<sentinel*>[cpus_]);
    if (on_cpu_ != nullptr) first_ = make_one();
}

void sentinels::stop() noexcept {
    // seq_cst: see wait().
    ends_.store(1, base::seq_cst);
    base::full_fence();
    // Each has made the next, or will not, once it has ended. The joins go from the first to the last.
    while (std::unique_ptr<sentinel> s = std::move(first_)) {
        s->wake();
        s->join();
        first_ = std::move(s->next);
    }
    free_.store(nullptr, base::relaxed);  // relaxed: nobody else is left.
    on_cpu_.reset();
    cpus_ = 0;
}

void sentinels::guard(int cpu) noexcept {
    if (cpu < 0 || static_cast<unsigned>(cpu) >= cpus_) return;
    auto& place = on_cpu_[static_cast<unsigned>(cpu)];
    // relaxed: only the monitor writes it.
    if (sentinel* s = place.load(base::relaxed)) return s->wake();
    // sync(block.sentinel): sees how it was made.
    sentinel* s = free_.exchange(nullptr, base::acquire);
    if (s == nullptr) return;
    s->guard(cpu);
    place.store(s, base::release);  // sync(block.sentinel): publishes it to wake_here().
}

void sentinels::let_sleep() noexcept {
    for (unsigned i = 0; i < cpus_; ++i)
        if (sentinel* s = on_cpu_[i].load(base::relaxed)) s->let_sleep();  // relaxed: as in guard().
}

void sentinels::wake_here() noexcept {
    const int cpu = os::thread_cpu::here();
    if (cpu < 0 || static_cast<unsigned>(cpu) >= cpus_) return;
    // sync(block.sentinel): sees how it was made.
    sentinel* s = on_cpu_[static_cast<unsigned>(cpu)].load(base::acquire);
    if (s != nullptr && s->is_asleep()) s->wake();
}

}  // namespace ums::block
