// SPDX-License-Identifier: MIT

// There is one signal for each arm(), though the event runs on: PERF_EVENT_IOC_REFRESH(1) lets it
// overflow once and then disables it. The kernel's count of overflows left cannot be read, and
// refreshing an event that is already armed would leave two. So we never disable an event that was
// armed and has not fired: disarm() gives it a period of decades, arm() a new period, and both
// leave the count at one. due_ says whether the count may be one: 1 since the refresh, 0 since the
// handler took the signal.
//
// No arm is lost: arm() exchanges due_. If it finds 0, it sets the period and refreshes: the event
// will fire. If it finds 1, there are two cases. The event has yet to fire, and does so with the
// period that arm() sets next. Or it has fired and is disabled, but its signal has not been taken:
// the handler will exchange due_ after us, and sees what was written before arm(). The exchange
// comes first, because an event that fires between a new period and the exchange would be
// refreshed, and fire twice for one arm.
#include "os/signal/user_interrupt.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

#include "base/assert.hpp"
#include "os/memory.hpp"
#include "os/own_number.hpp"
#include "os/say.hpp"
#include "os/system.hpp"

namespace ums::os {

namespace {

constexpr nanoseconds lost_again = 10'000'000;  // After this time a lost signal is sent again.
constexpr std::uint64_t decades = std::uint64_t{1} << 60;

// Our timers send the address of this variable.
constinit char from_timer;

// Says which user_interrupt a descriptor belongs to; the handler looks it up. A marker stands for
// one that is gone, whose last signal may still come.
class owners {
public:
    struct slot {
        base::atomic<user_interrupt*> owner;
        base::atomic<int> tid;  // The thread that the owner interrupts. Written before `owner`.
    };

    // Returns null if there is no memory for it.
    slot* make(int fd) noexcept {
        const auto n = static_cast<std::size_t>(fd);
        if (n < per_block) return &first_[n];
        if (n / per_block >= blocks) return nullptr;
        base::atomic<slot*>& block = more_[n / per_block];
        slot* made = block.load(base::acquire);
        if (made == nullptr) {
            void* fresh = map(per_block * sizeof(slot));
            if (fresh == nullptr) return nullptr;
            // sync(interrupt.owners): publishes the zeroed block.
            if (block.compare_exchange(made, static_cast<slot*>(fresh), base::acq_rel,
                                       base::acquire))
                made = static_cast<slot*>(fresh);
            else
                unmap(fresh, per_block * sizeof(slot));
        }
        return &made[n % per_block];
    }
    slot* find(int fd) noexcept {
        if (fd < 0) return nullptr;
        const auto n = static_cast<std::size_t>(fd);
        if (n < per_block) return &first_[n];
        if (n / per_block >= blocks) return nullptr;
        slot* block = more_[n / per_block].load(base::acquire);  // sync(interrupt.owners)
        return block == nullptr ? nullptr : &block[n % per_block];
    }
    // Calls f(user_interrupt&) for those of one thread. That thread calls this, and only it
    // destroys them.
    template <class F>
    void for_each_of(int tid, F f) noexcept {
        for (std::size_t n = 0; n < per_block * blocks; n += per_block) {
            slot* block = n == 0 ? first_ : more_[n / per_block].load(base::acquire);
            for (std::size_t i = 0; block != nullptr && i < per_block; ++i) {
                // sync(interrupt.owner): sees the thread's number, which is this owner's or a later
                // one's.
                user_interrupt* owner = block[i].owner.load(base::acquire);
                // relaxed: the acquire above orders.
                if (owner != nullptr && owner != gone() && block[i].tid.load(base::relaxed) == tid)
                    f(*owner);
            }
        }
    }
    static user_interrupt* gone() noexcept {
        return reinterpret_cast<user_interrupt*>(&from_timer);
    }

private:
    static constexpr std::size_t per_block = 4096, blocks = 512;
    slot first_[per_block];
    base::atomic<slot*> more_[blocks];
};

constinit owners all;

// How many clocks have a descriptor.
constinit base::atomic<unsigned> events;

// The clock of a thread's user CPU time, as clock_gettime(2) encodes it (CPUCLOCK_VIRT, per
// thread).
constexpr int user_time_of(int tid) noexcept { return (~tid << 3) | 4 | 1; }

// The first character of a file, or 0.
char first_of(const char* name) noexcept {
    const long fd = system.open_to_read(name);
    if (fd < 0) return 0;
    char text[2] = {};
    const long n = system.read_from_start(static_cast<int>(fd), text, 1);
    system.close_fd(static_cast<int>(fd));
    return n == 1 ? text[0] : '\0';
}

// With PREEMPT_RT a kernel thread sends the signal of an event, some time after the interrupt.
bool is_realtime_kernel() noexcept { return first_of("/sys/kernel/realtime") == '1'; }

}  // namespace

user_interrupt::way user_interrupt::best_way() noexcept {
    if (is_realtime_kernel()) return way::timer;
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_CPU_CLOCK;
    wanted.sample_period = decades;
    wanted.disabled = wanted.exclude_kernel = wanted.exclude_hv = 1;
    const long fd = system.perf_event_open(&wanted, ::gettid(), -1);
    if (fd < 0) return way::timer;
    system.close_fd(static_cast<int>(fd));
    return way::perf;
}

bool user_interrupt::has_ticks() noexcept {
    // The list of CPUs without, if the kernel can do it; "(null)" or an empty line: none.
    const char first = first_of("/sys/devices/system/cpu/nohz_full");
    return first < '0' || first > '9';
}

long user_interrupt::try_it() noexcept {
    // Without room in the queue the kernel drops a clock's signal, or refuses the clock.
    rlimit queued{};
    if (::getrlimit(RLIMIT_SIGPENDING, &queued) == 0 && queued.rlim_cur == 0) return -EAGAIN;
    user_interrupt trial;
    const int tid = ::gettid();
    const long error = trial.open(tid, SIGRTMAX, best_way());
    return error < 0 ? trial.open(tid, SIGRTMAX, way::timer) : error;
}

long user_interrupt::open_event(int tid, int signal) noexcept {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_CPU_CLOCK;
    wanted.sample_period = decades;
    wanted.disabled = wanted.exclude_kernel = wanted.exclude_hv = 1;
    const long fd = system.perf_event_open(&wanted, tid, -1);
    if (fd < 0) return fd;
    event_ = static_cast<int>(fd);
    owners::slot* mine = all.make(event_);
    long error = -ENOMEM;
    if (mine != nullptr) {
        mine->tid.store(tid, base::relaxed);  // relaxed: the store of the owner publishes it.
        // sync(interrupt.owner): the handler finds the object complete.
        mine->owner.store(this, base::release);
        error = system.signal_from(event_, tid, signal);
    }
    if (error < 0) close_event();
    return error < 0 ? error : 0;
}

void user_interrupt::close_event() noexcept {
    // relaxed: only for try_lost_again(), which runs on the same thread.
    if (due_.load(base::relaxed) == may_fire) due_.store(closing, base::relaxed);
    // A pending signal is delivered at the latest when the close returns, unless it is blocked.
    if (is_anonymous(event_)) system.close_fd(event_);  // Else it is the program's by now.
    if (owners::slot* mine = all.find(event_); mine != nullptr) {
        user_interrupt* expected = this;
        // This is not a store, because the number may belong to another by now. relaxed: a mark.
        mine->owner.compare_exchange(expected, owners::gone(), base::relaxed, base::relaxed);
    }
    event_ = -1;
}

long user_interrupt::open(int tid, int signal, way how) noexcept {
    UMS_ASSERT(event_ < 0 && timer_ < 0, "a clock of a thread was opened twice");
    // relaxed, all: the count is only a bound and orders nothing.
    if (how == way::perf && events.fetch_add(1, base::relaxed) >= most_events) {
        events.fetch_sub(1, base::relaxed);
        how = way::timer;
    }
    how_ = how;
    due_.store(0, base::relaxed);  // relaxed: published with the object.
    if (how == way::timer) {
        const long error =
            system.thread_timer_create(user_time_of(tid), tid, signal, &from_timer, &timer_);
        if (error < 0) timer_ = -1;
        return error < 0 ? error : 0;
    }
    const long error = open_event(tid, signal);
    if (error != 0) events.fetch_sub(1, base::relaxed);
    return error;
}

void user_interrupt::close() noexcept {
    if (timer_ >= 0) system.thread_timer_delete(timer_);
    timer_ = -1;
    if (event_ < 0) return;
    close_event();
    events.fetch_sub(1, base::relaxed);
}

user_interrupt::user_interrupt(int tid, int signal, way how) {
    if (const long error = open(tid, signal, how); error < 0)
        throw std::system_error{static_cast<int>(-error), std::generic_category(),
                                how == way::perf ? "ums: perf_event_open for a thread's clock"
                                                 : "ums: timer_create for a thread's user time"};
}

void user_interrupt::complain() const noexcept {
    static constinit base::atomic<bool> has_complained;
    // relaxed: it only says whether the line was written.
    if (has_complained.exchange(true, base::relaxed)) return;
    say("the program has closed or replaced descriptor %d, by which libums stops fibers and "
        "workers: "
        "one of its kernel threads is not stopped any more; let close_range(), closefrom() and "
        "dup2() leave it alone",
        event_);
}

void user_interrupt::arm(nanoseconds after) noexcept {
    if (after < 1) after = 1;
    if (how_ == way::timer) {
        system.thread_timer_arm(timer_, after);
        return;
    }
    const auto period = static_cast<std::uint64_t>(std::max(after, shortest));
    // sync(interrupt.due): the handler of an arm's signal sees what was written before that arm.
    const bool has_fired = due_.exchange(may_fire, base::acq_rel) == 0;
    const long error = system.perf_control(event_, PERF_EVENT_IOC_PERIOD,
                                           reinterpret_cast<unsigned long>(&period));
    if (error == -EBADF || error == -ENOTTY) [[unlikely]]
        complain();
    if (has_fired) system.perf_control(event_, PERF_EVENT_IOC_REFRESH, 1);
}

void user_interrupt::disarm() noexcept {
    if (how_ == way::timer) {
        system.thread_timer_arm(timer_, 0);
        return;
    }
    const std::uint64_t period = decades;
    system.perf_control(event_, PERF_EVENT_IOC_PERIOD, reinterpret_cast<unsigned long>(&period));
}

void user_interrupt::taken(int code) noexcept {
    // The last overflow says "hung up". Any other code would mean that the kernel has lost count:
    // then the event must not run on.
    if (code != POLL_HUP) system.perf_control(event_, PERF_EVENT_IOC_DISABLE, 0);
    due_.exchange(0, base::acq_rel);  // sync(interrupt.due)
}

bool user_interrupt::take(const siginfo_t& signal) noexcept {
    if (signal.si_code == SI_TIMER) return signal.si_value.sival_ptr == &from_timer;
    if (signal.si_code != POLL_HUP && signal.si_code != POLL_IN) return false;
    owners::slot* at = all.find(signal.si_fd);
    if (at == nullptr) return false;
    user_interrupt* owner = at->owner.load(base::acquire);  // sync(interrupt.owner)
    if (owner == nullptr) return false;
    if (owner != owners::gone()) owner->taken(signal.si_code);
    return true;
}

bool user_interrupt::try_lost_again() noexcept {
    bool any = false;
    all.for_each_of(::gettid(), [&any](user_interrupt& i) noexcept {
        // relaxed: it is the thread's own; if another thread armed it meanwhile, it has not fired
        // yet.
        const unsigned due = i.due_.load(base::relaxed);
        if (due == 0) return;
        any = true;
        if (due == closing) return;
        i.taken(0);
        i.arm(lost_again);
    });
    return any;
}

}  // namespace ums::os
