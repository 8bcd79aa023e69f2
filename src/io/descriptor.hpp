// SPDX-License-Identifier: MIT
#pragma once

// io/descriptor.hpp: what libums knows about a file descriptor number, and the waiters of its file.
//
// Two kinds of numbers.
//
// Kept: made by libums, and closed by nobody else: the sockets of net::, and descriptors of our own. Such a one is
// registered with the engine once, for both directions, edge-triggered, and has marks that save system calls.
//
// Shared: all others. Another library may close the file by ::close(), read from it, put another file under its number,
// or have a duplicate or a child that keeps it open. So nothing is remembered of it from one wait to the next: each
// wait is armed for one event of its own (wait_once()), and the kernel answers for what is ready at that moment. The same
// system call proves that the registration is of the file that has the number now, because an epoll set knows its
// members by file and number: a number that was reused is not there. What kind of file it is, is asked again for each
// operation, except of sockets that io:: made, until a wait finds that the number was reused.
//
// One word for each direction, here for a kept number; of a shared one it only holds the waiters:
//
//   maybe    trying is worth a system call
//   nothing  an attempt after the last edge found nothing to do, or all there was
//   address  the same, and fibers or threads wait: a stack of waiters, last come first
//
// No edge is lost. Who is about to try to read takes `maybe` away first (to `nothing`), then makes the
// system call. An edge that comes after that, for something the call did not see, puts `maybe` back or takes
// the waiters. Who finds nothing becomes a waiter by compare-and-swap from `nothing`, which fails if an edge came.
// If the call succeeded, `maybe` is put back, except when it is certain that nothing is left: a TCP
// socket gave less than it was asked for, and has not been hung up (an end that was already
// there when the edge was reported has no edge of its own). That saves a system call for each
// request that a server waits for. Writing mostly succeeds, so a writer takes `maybe` away only after an attempt
// failed, and tries again.
//
// Who gives up takes the whole stack by compare-and-swap, takes itself out, and wakes the others, who try
// again; if it is not in there, somebody else has taken it and will wake it, and it waits for that. A waiter is
// taken from the stack exactly once, and woken exactly once by who took it.
//
// Close. The closer raises the generation and takes the registration back, then takes the waiters, marks and wakes
// them, then closes. A waiter puts itself into the word, then reads the generation and the registration again. All are
// sequentially consistent: the closer finds the waiter, or the waiter sees the new generation; or it began after that, and
// sees that the number is not registered, or registered for the next file. The lock is held from the new generation
// until the system call has closed the file: learning and registering wait for it, so nobody who comes in between
// begins to wait for the file that is about to go, and a number is never registered for the file that had it before.
// Whoever may have been in the words of the next file by mistake puts `maybe` back.
//
// A plain thread waits in poll(2) while there is no engine. It has a bell, an eventfd, which a close rings; it puts the
// bell into a list, then reads the generation, and the closer raises the generation, then looks at the list.
//
// Numbers that are reused. An engine's event carries the generation, and is dropped if that is not the
// present one. An event of a shared number's former file, which a duplicate may keep alive, comes once at most, and is
// dropped or makes the waiters of the number look again.

#include <cstdint>
#include <stop_token>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "os/clock.hpp"
#include "sched/fiber.hpp"
#include "sched/parkable.hpp"

namespace ums::io {

enum class side : unsigned char { in, out };

// A list of fibers that were claimed and shall be made ready.
struct fiber_list {
    sched::fiber* first = nullptr;
    sched::fiber* last = nullptr;
    void add(sched::fiber* f) noexcept {
        if (f == nullptr) return;
        f->link.set(nullptr);
        if (last != nullptr)
            last->link.set(f);
        else
            first = f;
        last = f;
    }
};

class alignas(base::cache_line) descriptor {
public:
    enum traits : std::uint32_t {
        known = 1,
        file = 2,  // Regular, directory, block device: always ready, and blocks.
        is_socket = 4,
        tcp = 8,
        ask_first = 16,  // Blocking, and must stay so: ask poll(2) before each attempt.
        messages = 32,   // A socket that keeps messages apart.
        ours = 64,       // One of our calls has made it, non-blocking.
        kept = 128,      // And nobody else closes it: see the header. Implies `known`.
    };

    // Null: no descriptor can have this number (or there is no memory).
    static descriptor* find(int fd) noexcept {
        const auto n = static_cast<unsigned>(fd);  // A negative one is beyond the table.
        if (n / block_size >= blocks) return nullptr;
        descriptor* const d = table_[n / block_size].load(base::acquire);  // sync(io.table)
        return d != nullptr ? d + n % block_size : find_slow(n);
    }
    // A number that one of our calls has just made. No traits: find out when it is used.
    static void adopt(int fd, std::uint32_t traits) noexcept;
    // Its owner never gives the number away without forget().
    static void keep(int fd) noexcept;
    // Drops all that is known of the number, its registration too, and ends all waits on it as a close does.
    void forget(int fd) noexcept;
    // No engine any more: waits of plain threads try again, registrations are gone.
    static void forget_all() noexcept;

    // As far as they are known: all of them, or none.
    [[nodiscard]] std::uint32_t known_traits() const noexcept {
        return traits_.load(base::acquire);  // sync(io.descriptor)
    }
    [[nodiscard]] bool is_kept() const noexcept { return (known_traits() & kept) != 0; }
    // Finds out what it is, and makes it non-blocking. Returns the traits, or -errno.
    long learn(int fd) noexcept {
        const std::uint32_t t = known_traits();
        return (t & kept) != 0 || (t & (ours | is_socket)) == (ours | is_socket) ? static_cast<long>(t)
                                                                           : verify(fd);
    }
    // The same, but asks the kernel what a shared number is now.
    long verify(int fd) noexcept;
    // An operation has found that it is not what it was.
    void doubt() noexcept;

    [[nodiscard]] std::uint32_t generation() const noexcept {
        // seq_cst: see the header.
        return generation_.load(base::seq_cst);
    }

    [[nodiscard]] bool may_be_ready(side s) const noexcept {
        return at(s).load(base::relaxed) == maybe;  // relaxed: a hint.
    }
    // Before an attempt.
    bool take(side s) noexcept {
        std::uintptr_t seen = maybe;
        // seq_cst: ordered before the reading of is_hung_up(), and the attempt's system call.
        return at(s).compare_exchange(seen, nothing, base::seq_cst, base::relaxed);
    }
    // After an attempt that may have left something.
    void restore(side s) noexcept;
    [[nodiscard]] bool is_hung_up() const noexcept {
        return hung_up_.load(base::seq_cst);  // seq_cst: see take().
    }

    // Of a kept number: waits for an edge. 0: try again, `maybe` has been taken. -ETIMEDOUT, -ECANCELED (a stop),
    // -EBADF (closed), or why it cannot be waited for. Without an engine it may give up when there is something.
    long wait(int fd, side s, std::uint32_t generation, os::nanoseconds until,
              const std::stop_token* stop) noexcept;
    // Of a shared number: waits until it is ready. The results are the same; 0 also without a reason.
    long wait_once(int fd, side s, std::uint32_t generation, os::nanoseconds until,
                   const std::stop_token* stop) noexcept;

    // An engine has edges: brings what ready() will touch into the cache; first the descriptor, then, once
    // that has come, the last one's who waits.
    void warm() const noexcept { __builtin_prefetch(this); }
    void warm_waiter(bool in) const noexcept {
        const int s = in ? 0 : 1;
        // relaxed, both: hints.
        __builtin_prefetch(reinterpret_cast<const void*>(words_[s].load(base::relaxed)));
        const std::uintptr_t who = last_[s].load(base::relaxed);
        __builtin_prefetch(reinterpret_cast<const void*>(who));
        __builtin_prefetch(reinterpret_cast<const void*>(who + base::cache_line));
    }

    // An engine's edges.
    void ready(std::uint32_t generation, bool in, bool out, bool hung_up,
               fiber_list& woken) noexcept;

    // What wait_once() armed has come.
    void fire(std::uint32_t generation, fiber_list& woken) noexcept;

    // Wakes all that wait, then closes. 0 or -errno.
    long close(int fd) noexcept;

private:
    struct waiter {
        sched::parkable* who;
        waiter* next;
        bool is_closed;
    };
    using word = base::atomic<std::uintptr_t>;
    // Zero is `maybe`: memory begins as zeros.
    static constexpr std::uintptr_t maybe = 0, nothing = 1;

    // The table: blocks of descriptors, made when the first of their numbers is used and kept. Its size
    // does not depend on the limit of open files.
    static constexpr unsigned block_size = 1024, blocks = 16 * 1024;
    static constinit base::atomic<descriptor*> table_[blocks];
    [[gnu::cold]] static descriptor* find_slow(unsigned fd) noexcept;
    static descriptor* make_block(base::atomic<descriptor*>& at) noexcept;

    word& at(side s) noexcept { return words_[static_cast<int>(s)]; }
    const word& at(side s) const noexcept { return words_[static_cast<int>(s)]; }

    long add_to_engine(int fd, std::uint32_t generation) noexcept;
    long arm(int fd, std::uint32_t generation) noexcept;
    [[nodiscard]] bool has_waiters(side s) const noexcept;
    long sleep(int fd, side s, waiter& me, os::nanoseconds until,
               const std::stop_token* stop) noexcept;
    long wait_alone(int fd, side s, std::uint32_t generation, os::nanoseconds until,
                    const std::stop_token* stop) noexcept;
    bool withdraw(side s, waiter& me) noexcept;
    void edge(side s, fiber_list& woken) noexcept;
    void expel(side s) noexcept;
    void renew(int fd) noexcept;

    word words_[2];
    // Who last waited: a hint for warm_waiter(), which does not read what is there.
    base::atomic<std::uintptr_t> last_[2];
    base::atomic<std::uint32_t> generation_;
    base::atomic<std::uint32_t> traits_;
    base::atomic<bool> hung_up_;        // An end, an error or urgent data was reported.
    // Written under lock_:
    base::atomic<bool> is_registered_;  // For its life: a kept number.
    base::atomic<bool> was_armed_;      // For one event: a shared number.
    base::atomic<bool> was_waited_for_; // A shared number, perhaps without traits.
    std::uint32_t lock_ = 0;            // Excludes registration, closing and learning.
    // Guarded by lock_:
    std::uint64_t identity_ = 0;  // Of a shared number's file, as fstat(2) tells it. 0: not asked.
};

}  // namespace ums::io
