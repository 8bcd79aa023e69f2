// SPDX-License-Identifier: MIT
#include "carry/detect/sentinels.hpp"

#include <algorithm>
#include <new>
#include <sched.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/assert.hpp"
#include "carry/detect/report.hpp"
#include "carry/detect/sentinel.hpp"
#include "carry/service_thread.hpp"
#include "os/futex.hpp"
#include "os/thread/slice.hpp"
#include "os/thread/thread_cpu.hpp"

namespace ums::carry {

namespace {

constexpr os::nanoseconds slice = 100'000;

}  // namespace

class sentinels::agent {
public:
    explicit agent(sentinels& of) : of_{of}, looks_{of.all_} {
        thread_ = service_thread("ums agent", [this] { run(); });
    }
    ~agent() = default;  // Requires: ended.
    agent(const agent&) = delete;
    agent& operator=(const agent&) = delete;

    // Called by the monitor, once.
    void guard(int cpu) noexcept {
        UMS_ASSERT(cpu_ < 0, "an agent is given a second CPU");
        cpu_ = cpu;
        has_post_.store(1, base::release);  // sync(block.post): publishes the CPU.
        os::futex_wake(has_post_.address());
    }
    // Makes its sentinel watch again, whatever the agent sleeps for. Does nothing if it already
    // watches.
    void wake() noexcept {
        sentinel* s = watch();
        if (s == nullptr) return;
        std::uint32_t was = s->word.load(base::relaxed);  // relaxed: the exchange decides.
        do {
            if (was == sentinel::watching || was == sentinel::called) return;
            // relaxed, both: the agent looks for itself.
        } while (!s->word.compare_exchange(was, sentinel::watching, base::relaxed, base::relaxed));
        if (was == sentinel::asleep)
            of_.sleepers_.fetch_sub(1, base::relaxed);  // relaxed: a hint for nudge().
        s->arm();
    }
    // Lets its sentinel rest until wake(). Returns whether it watched. The agent sleeps on, because
    // it waits for `called`.
    [[nodiscard]] bool rest() noexcept {
        sentinel* s = watch();
        std::uint32_t was = sentinel::watching;
        // relaxed, both: nothing is published. The count is a hint for nudge().
        if (s == nullptr ||
            !s->word.compare_exchange(was, sentinel::asleep, base::relaxed, base::relaxed))
            return false;
        of_.sleepers_.fetch_add(1, base::relaxed);
        return true;
    }
    [[nodiscard]] bool is_asleep() const noexcept {
        const sentinel* s = watch();
        return s != nullptr && s->word.load(base::relaxed) == sentinel::asleep;  // relaxed: a hint,
                                                                                 // or wake()
                                                                                 // decides.
    }
    // Called by the monitor: since it last asked, no block was found here.
    void let_sleep() noexcept {
        if (std::exchange(found_before_, found_.get()) != found_.get()) return;
        std::uint32_t was = sentinel::asleep;
        // relaxed: nothing is published. The count is a hint for nudge().
        if (sentinel* s = watch();
            s != nullptr &&
            s->word.compare_exchange(was, sentinel::dormant, base::relaxed, base::relaxed))
            of_.sleepers_.fetch_sub(1, base::relaxed);
    }

    // Call after ends_ is set, with a full fence in between.
    void end() noexcept {
        os::futex_wake(of_.ends_.address(), __INT_MAX__);
        has_post_.store(1, base::release);
        os::futex_wake(has_post_.address());
        if (watch() != nullptr) call();
        thread_.join();
        if (sentinel* s = watch()) s->stop();
    }

    // Set before its own thread takes up its duty; read after that thread has ended, or by the
    // thread itself.
    std::unique_ptr<agent> next;

private:
    void run() noexcept {
        // sync(block.post)
        while (has_post_.load(base::acquire) == 0) os::futex_wait(has_post_, 0);
        if (ends()) return;
        next = of_.make_one();
        if (!take_post()) return;
        sentinel* s = sentinel::start();
        if (s == nullptr) return;
        // sync(block.sentinel): publishes it. seq_cst: see ends().
        sentinel_.store(s, base::seq_cst);
        while (!ends()) {
            const seen l = look();
            if (l == seen::nothing) {
                sleep(*s, ++in_vain_ > most_in_vain ? sentinel::dormant : sentinel::asleep);
                continue;
            }
            if (l == seen::block) in_vain_ = 0;
            pause_if_in_a_row(l);
            watch_on(*s);
        }
    }

    // stop() stores ends_, then calls the agent. This thread changes the word, or publishes it,
    // then reads ends_. seq_cst, all of them: either it sees ends_, or it is called.
    [[nodiscard]] bool ends() const noexcept { return of_.ends_.load(base::seq_cst) != 0; }

    [[nodiscard]] sentinel* watch() const noexcept { return sentinel_.load(base::seq_cst); }

    void call() noexcept {
        sentinel& s = *watch();
        if (s.word.exchange(sentinel::called, base::seq_cst) == sentinel::asleep)
            of_.sleepers_.fetch_sub(1, base::relaxed);  // relaxed: a hint for nudge().
        os::futex_wake(s.word.address());
    }

    // Watches until the CPU is free.
    void watch_on(sentinel& s) noexcept {
        s.word.store(sentinel::watching, base::seq_cst);  // See ends().
        if (ends()) return;
        s.arm();
        wait_for_call(s);
    }
    void sleep(sentinel& s, sentinel::phase why) noexcept {
        s.word.store(why, base::seq_cst);  // See ends().
        if (why == sentinel::asleep)
            of_.sleepers_.fetch_add(1, base::relaxed);  // relaxed: see the header.
        base::compiler_fence();
        if (ends() || (why == sentinel::asleep && any_of_interest())) return call();
        wait_for_call(s);
    }
    static void wait_for_call(const sentinel& s) noexcept {
        // The reason for the sleep may change meanwhile, and the loads are looked at anew.
        // sync(block.sentinel): sees that the sentinel rests.
        for (std::uint32_t now; (now = s.word.load(base::acquire)) != sentinel::called;)
            os::futex_wait(s.word, now);
    }

    // So that it is soon at work when it is called, and the carriers' slices do not matter.
    bool take_post() noexcept {
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(static_cast<unsigned>(cpu_), &only);
        (void)os::ask_for_slice(slice);
        return sched_setaffinity(0, sizeof only, &only) == 0;
    }

    enum class seen { nothing, interest, block };

    [[nodiscard]] seen look() noexcept {
        seen l = seen::nothing;
        looks_.each([&](load& w) noexcept {
            if (!is_of_interest(w)) return true;
            if (report_if_blocked(w, of_.states_, 0, false, cpu_)) {
                of_.found_.fetch_add(1, base::relaxed);  // relaxed: statistics.
                found_.add(1);
                l = seen::block;
            } else if (l == seen::nothing) {
                l = seen::interest;
            }
            return true;
        });
        return l;
    }
    [[nodiscard]] bool is_of_interest(load& w) const noexcept {
        // A load that was reported but not handed off (no permit, or a spare is being made) is for
        // the monitor to repeat.
        return w.is_of_interest() && w.cpu() == cpu_ && !w.is_reported();
    }
    [[nodiscard]] bool any_of_interest() noexcept {
        bool any = false;
        looks_.each([&](load& w) noexcept {
            any = is_of_interest(w);
            return !any;
        });
        return any;
    }

    void pause_if_in_a_row(seen l) noexcept {
        const os::nanoseconds now = os::now();
        const bool is_next = l != seen::block && now - looked_at_ < shortest_pause;
        in_a_row_ = is_next ? in_a_row_ + 1 : 0;
        looked_at_ = now;
        if (in_a_row_ <= most_in_a_row) return;
        const unsigned doublings = std::min(in_a_row_ - most_in_a_row - 1, 5u);
        os::futex_wait(of_.ends_, 0, now + (shortest_pause << doublings));
        looked_at_ = os::now();
    }

    sentinels& of_;
    watch_list::observer looks_;
    base::atomic<std::uint32_t> has_post_;
    int cpu_ = -1;
    base::atomic<sentinel*> sentinel_;     // It is stopped once the thread has ended.
    base::owned<std::uint64_t> found_{0};  // Written by its thread.
    std::uint64_t found_before_ = 0;       // Owned by the monitor.

    // Owned by its thread:
    unsigned in_vain_ = 0;
    unsigned in_a_row_ = 0;
    os::nanoseconds looked_at_ = 0;

    std::thread thread_;  // It comes last, because it uses the others.
};

std::unique_ptr<sentinels::agent> sentinels::make_one() noexcept {
    try {
        auto made = std::make_unique<agent>(*this);
        free_.store(made.get(), base::release);  // sync(block.post): publishes it to guard().
        return made;
    } catch (const std::exception&) {  // No memory, or no thread: then no more agents are made.
        return nullptr;
    }
}

sentinels::sentinels(watch_list& all, os::thread_states& states,
                     base::atomic<std::uint32_t>& sleepers) noexcept
    : all_{all}, states_{states}, sleepers_{sleepers} {}

sentinels::~sentinels() = default;

void sentinels::start() noexcept {
    if (os::thread_cpu::here() < 0) return;
    UMS_ASSERT(first_ == nullptr && cpus_ == 0, "sentinels are started twice");
    ends_.store(0, base::relaxed);  // relaxed: no thread reads it yet.
    cpus_ =
        static_cast<unsigned>(std::clamp(::sysconf(_SC_NPROCESSORS_CONF), 1L, long{CPU_SETSIZE}));
    on_cpu_.reset(new (std::nothrow) base::atomic<agent*>[cpus_]);
    if (on_cpu_ != nullptr) first_ = make_one();
}

void sentinels::stop() noexcept {
    ends_.store(1, base::seq_cst);  // See agent::ends().
    // After an agent has ended, it has either made the next one, or never will.
    while (std::unique_ptr<agent> a = std::move(first_)) {
        a->end();
        first_ = std::move(a->next);
    }
    free_.store(nullptr, base::relaxed);  // relaxed: no other thread is left.
    on_cpu_.reset();
    cpus_ = 0;
}

void sentinels::guard(int cpu) noexcept {
    if (cpu < 0 || static_cast<unsigned>(cpu) >= cpus_) return;
    auto& place = on_cpu_[static_cast<unsigned>(cpu)];
    // relaxed: only the monitor writes it.
    if (agent* a = place.load(base::relaxed)) return a->wake();
    // sync(block.post): sees the agent as it was made.
    agent* a = free_.exchange(nullptr, base::acquire);
    if (a == nullptr) return;
    a->guard(cpu);
    place.store(a, base::release);  // sync(block.post): publishes it to wake_here().
}

void sentinels::let_sleep() noexcept {
    for (unsigned i = 0; i < cpus_; ++i)
        if (agent* a = on_cpu_[i].load(base::relaxed)) a->let_sleep();  // relaxed: as in guard().
}

sentinels::agent* sentinels::agent_on(int cpu) const noexcept {
    if (cpu < 0 || static_cast<unsigned>(cpu) >= cpus_) return nullptr;
    // sync(block.post): sees the agent as it was made.
    return on_cpu_[static_cast<unsigned>(cpu)].load(base::acquire);
}

void sentinels::wake_here() noexcept {
    agent* const a = agent_on(os::thread_cpu::here());
    if (a != nullptr && a->is_asleep()) a->wake();
}

int sentinels::look_away() noexcept {
    const int cpu = os::thread_cpu::here();
    agent* const a = agent_on(cpu);
    return a != nullptr && a->rest() ? cpu : -1;
}

void sentinels::watch_again(int cpu) noexcept {
    agent* const a = agent_on(cpu);
    // Whatever the monitor has made of its rest: it watched before.
    if (a != nullptr) a->wake();
}

}  // namespace ums::carry
