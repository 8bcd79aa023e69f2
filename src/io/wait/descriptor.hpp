// SPDX-License-Identifier: MIT
#pragma once

// io/wait/descriptor.hpp: what libums knows about a file descriptor number, and the waiters of its
// file.
//
// There are two kinds of numbers.
//
// Kept: nothing but libums closes it, until forget(): the descriptors that libums made, and those
// that the program has adopted. A kept number is registered with the engine once, for both
// directions, edge-triggered, and has marks that save system calls. An adopted one may be blocking,
// because its flags belong to all that share the file. So operations on it make calls that do not
// block, as below, or ask poll(2) first.
//
// Shared: all others. Another library may close the file by ::close(), read from it, put another
// file under its number, or have a duplicate or a child that keeps it open. So libums remembers
// nothing of it from one wait to the next: each wait is armed for one event of its own
// (wait_once()), and the kernel says what is ready at that moment. The same system call proves that
// the registration is of the file that has the number now, because an epoll set knows its members
// by file and number: a number that was reused is not in the set. An operation that waited for the
// former file fails when somebody finds that, and asks for itself, whatever ended its wait, before
// it moves anything; those that only wait for readiness look again, since most likely they wait for
// the new file.
//
// What kind of file a shared number had is remembered as a hint. An operation on it makes a call
// that blocks for no kind of file (MSG_DONTWAIT, RWF_NOWAIT), and that says so if the file is of
// another kind (ENOTSOCK, EOPNOTSUPP; EPERM, if a file that is always ready would have to be waited
// for). Then the kernel is asked again, and also while others wait for the number: they may wait
// for a file that is gone, and nothing else would tell them. Files on a disk, files that refuse
// RWF_NOWAIT (`refuses`: pipes before Linux 6.5, terminals) and calls that have no such form, such
// as accept(), ask each time.
//
// Each direction has one word. For a shared number it only holds the waiters; for a kept number it
// is one of these:
//
//   maybe    trying is worth a system call
//   unsure   the same, but the last read took as much as it had asked for, and no edge came since
//   nothing  an attempt after the last edge found nothing to do, or took all there was
//   address  the same, and fibers or threads wait: a stack of waiters, last come first
//
// Why no edge is lost: a reader first takes `maybe` away (leaving `nothing`), then makes the system
// call. An edge that comes after that, for something the call did not see, puts `maybe` back or
// takes the waiters. A reader that finds nothing becomes a waiter by compare-and-swap from
// `nothing`, which fails if an edge came. If the call succeeded, the reader puts `maybe` back,
// except when it is certain that nothing is left. Writing mostly succeeds, so a writer takes
// `maybe` away only after an attempt failed, and tries again.
//
// When nothing is left: epoll(7) says that a stream which gave less than it was asked for was empty
// at that moment, so that whatever comes later makes an edge. That saves a system call for each
// request that a server waits for. It holds for a TCP socket, a pipe, and a Unix stream, except:
// - after an end, an error or urgent data. They may have been there when the edge was reported, and
//   have none of their own; and a read ends before urgent data, with more behind it. Both are
//   reported with an edge before a reader can meet them, or with a later one, which puts `maybe`
//   back.
// - for a read of a Unix stream that stopped at a message with descriptors or credentials: more may
//   lie behind. The kernel says so (MSG_CTRUNC), but only to recvmsg(), which these reads therefore
//   use.
// - for a pipe that keeps packets apart (O_DIRECT): pipes from elsewhere, which may be such or
//   become such at any time, are not trusted.
// - a read that does not take away what it returns (MSG_PEEK), or takes one message of several: the
//   caller passes no length.
// Other readers, of the same number, of a duplicate or in another process, change nothing: also to
// them what a short read saw was all, and each registration gets each edge.
//
// The other end: each end of a pipe or socket pair that io:: has made knows the other. A write
// through one end does to the other's word at once what the edge will do (wake_other_end()), so the
// reader is ready, or finds `maybe`, before any processor has asked the engine. This is one edge
// more, ahead of the kernel's:
// - Nothing relies on it. The kernel's edge still comes, after the write, and all of the above
//   rests on that one. So the early one may be left out: for a waiter that puts itself into the
//   word just after the writer looked; for duplicates; for a write in another process, which was
//   passed the end or inherited it; for the close of an end; and in the cases below.
// - It only says that trying is worth a system call. A reader that finds nothing, because another
//   was faster, waits again with the limits it has. The kernel's edge then finds `nothing`, `maybe`
//   or other waiters, as any late edge may. (epoll reports none for what has been read meanwhile.)
// - It comes before the edge that tells of an end, an error or urgent data behind the bytes. A
//   short read may then leave `nothing`, as above: that edge is still to come.
// - It may hit another file. The other end is known by its number and generation, and the closer
//   raises the generation first. A writer that compared it before that may come too late, and wake
//   waiters of the number's next file, which try in vain and wait again.
// The waiters are left to the kernel's edge while a processor waits inside the engine: that one has
// been woken by it and is idle, while the writer's processor runs the writer; and to wake a fiber
// of another cluster may cost a system call. They are also left to it after the write of a plain
// thread, which has no processor to put them on.
// The fibers go behind what is ready (sched::resume_all()), as after an edge. Rejected: to run them
// next, as after an unpark(). Each pair would keep the processor for a round, and of 256 pairs the
// 99th percentile of a round trip was four times as long.
// Rejected: that a read wakes a writer that waits for room. A pipe gets room by pages, and a Unix
// socket tells when three quarters are free, so after most reads there would be too little.
//
// A habit: where one fiber asks and another answers, each tries to read before there is anything.
// `unsure` tells such an attempt from others: a reader that has found nothing four times in a row
// after it had taken as much as it asked for does not try at once, but lets the others run that are
// ready (io/wait/give_way.hpp), and tries then. The peer is one of them, as it gives way as well,
// so neither waits: the attempt that fails goes, and what parks and wakes the reader. No edge can
// be lost by it, because the attempt comes anyway, whether the mark was taken before it or not.
// What it may cost is a turn of the others, if there was something after all. So one time in
// sixteen the reader tries at once, to see whether that has changed; and after an edge, or a write
// of ours through the other end, it always does. If that one attempt fails, the processor looks for
// events as the reader gives way: only so does it find an adopted peer that waits for the kernel's
// event.
//
// A waiter that gives up takes the whole stack by compare-and-swap, takes itself out, and wakes the
// others, which try again. If it is not in the stack, another thread has taken it and will wake it,
// and the waiter waits for that. A waiter is taken from the stack exactly once, and the thread that
// took it wakes it exactly once.
//
// Close: the closer raises the generation and takes the registration back, then takes the waiters,
// marks and wakes them, then closes. A waiter puts itself into the word, then reads the generation
// and the registration again. All of these are sequentially consistent. So either the closer finds
// the waiter, or the waiter sees the new generation; or the waiter began after that, and sees that
// the number is not registered, or registered for the next file. The closer holds the lock from the
// new generation until the system call has closed the file. Learning and registering wait for the
// lock, so a caller that comes in between does not begin to wait for the file that is about to go,
// and a number is never registered for the file that had it before. A waiter that may have been in
// the words of the next file by mistake puts `maybe` back.
//
// A close cannot wake a thread of the off-load pool (io/away/file.hpp). Such a thread holds the
// number: it takes the hold under the lock, if the generation is still that of its operation. A
// close that finds holds raises the generation, lets the number look closed (`closing`), and waits
// until each hold has ended, or its thread is seen to wait in the kernel, in the one call that the
// hold is for: there the kernel has the file, and the number is no longer used. So a number is not
// free for the next file while a thread is about to use it for the last one, and a call that blocks
// for long does not make the close wait.
//
// A plain thread waits in poll(2) while there is no engine. It has a bell, an eventfd, which a
// close rings. The thread puts the bell into a list, then reads the generation; the closer raises
// the generation, then looks at the list.
//
// Numbers that are reused: an engine's event carries the generation, and is dropped if that is not
// the present one. An event of a shared number's former file, which a duplicate may keep alive,
// comes once at most, and is dropped or makes the waiters of the number look again.

#include <cerrno>
#include <cstdint>
#include <stop_token>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "os/clock.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/fiber/parkable.hpp"

namespace ums::io {

enum class side : unsigned char { in, out };

// A list of fibers that were claimed and are to be made ready.
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
        kept = 128,      // Nothing else closes it: see the header. Implies `known`.
        closing = 256,   // A close waits for holds. The only trait.
        refuses = 512,   // RWF_NOWAIT.
        fifo = 1024,
        unix_stream = 2048,
        made_here = ours | kept,  // Without `ours`, a kept one was adopted.
        error_shift = 24,
        errors = 0xffu << error_shift,  // What note_error() has noted, or 0.
    };

    // Null if no descriptor can have this number, or there is no memory.
    static descriptor* find(int fd) noexcept {
        const auto n = static_cast<unsigned>(fd);  // A negative number is beyond the table.
        if (n / block_size >= blocks) return nullptr;
        descriptor* const d = table_[n / block_size].load(base::acquire);  // sync(io.table)
        return d != nullptr ? d + n % block_size : find_slow(n);
    }
    // Makes a number from elsewhere kept, and asks what it is; waits on it end as by forget().
    // Returns 0, also if it is kept already, or -errno.
    long adopt(int fd) noexcept { return part_with(fd, parting::adopts); }
    // Why find() has returned null: -EBADF or -ENOMEM.
    static long why_none(int fd) noexcept {
        return static_cast<unsigned>(fd) / block_size >= blocks ? -EBADF : -ENOMEM;
    }
    // Notes a number that one of our calls has just made. Without traits: they are found out when
    // it is used.
    static void adopt(int fd, std::uint32_t traits) noexcept;
    // The two ends of a pipe or socket pair, which were adopted just now: see the header.
    static void pair_up(int one, int other) noexcept;
    // Call after a write that returned `written`, whatever the number is.
    void wake_other_end(long written) noexcept {
        // relaxed: a hint. Negative: a shared number's file.
        const auto other = static_cast<std::int64_t>(identity_.load(base::relaxed));
        if (other > 0 && written > 0) wake_end(other);
    }
    // Drops all that is known of the number, including its registration, and ends all waits on it
    // as a close does. Waits for holds as a close does.
    void forget(int fd) noexcept;
    // There is no engine any more: waits of plain threads try again, registrations are gone.
    static void forget_all() noexcept;

    // In the child of a fork(), before it has an engine: nobody waits, and nothing is registered.
    // What is known of the files stays true.
    static void leave_all_behind() noexcept;

    // As far as they are known: all of them, or none.
    [[nodiscard]] std::uint32_t known_traits() const noexcept {
        return traits_.load(base::acquire);  // sync(io.descriptor)
    }
    [[nodiscard]] bool is_registered() const noexcept {
        return is_registered_.load(base::relaxed);  // relaxed: a hint.
    }
    [[nodiscard]] bool is_kept() const noexcept { return (known_traits() & kept) != 0; }
    // What the descriptor is: for a shared number a hint, see the header. Returns the traits, or
    // -errno.
    long learn(int fd) noexcept {
        const std::uint32_t t = known_traits();
        constexpr std::uint32_t uncertain = file | ask_first | refuses | errors;
        if ((t & kept) != 0) return static_cast<long>(t);
        return (t & (known | uncertain)) == known && !is_waited_for() ? static_cast<long>(t)
                                                                      : verify(fd);
    }
    // The same for calls that block for no file, whatever it is. The traits may be 0: not known.
    long recall(int fd) noexcept {
        const std::uint32_t t = known_traits();
        if ((t & kept) != 0) return static_cast<long>(t);
        return (t & (closing | errors)) == 0 && !is_waited_for() ? static_cast<long>(t)
                                                                 : verify(fd);
    }
    // The same for calls that rely on the answer: asks the kernel what a shared number is now, and
    // makes it non-blocking.
    long ask(int fd) noexcept {
        const std::uint32_t t = known_traits();
        return (t & kept) != 0 ? static_cast<long>(t) : verify(fd);
    }
    // ask(), after a call has found that the number has another kind of file, or that the file
    // refuses RWF_NOWAIT.
    long learn_again(int fd, long error) noexcept;
    // An operation met a socket's error after it had moved some bytes: it returns their number, and
    // the next operation the error, which the kernel tells only once.
    void note_error(int fd, std::uint32_t generation, long error) noexcept;
    // Returns the noted error, or 0, and forgets it.
    long take_error() noexcept;
    // Which file the number has now, to compare with a later answer; 0 if the kernel does not say.
    // Does not wait for a file server.
    static std::uint64_t file_of(int fd) noexcept;
    // The same as wait_once() has it: of a file that can be waited for.
    static std::uint64_t identity_at(int fd) noexcept;

    [[nodiscard]] std::uint32_t generation() const noexcept {
        // seq_cst: see the header.
        return generation_.load(base::seq_cst);
    }

    [[nodiscard]] bool may_be_ready(side s) const noexcept {
        return is_mark(at(s).load(base::relaxed));  // relaxed: a hint.
    }
    // Call before an attempt.
    bool take(side s) noexcept {
        std::uintptr_t seen = at(s).load(base::relaxed);
        // seq_cst: ordered before the reading of is_hung_up(), and the attempt's system call.
        while (is_mark(seen))
            if (at(s).compare_exchange(seen, nothing, base::seq_cst, base::relaxed)) return true;
        return false;
    }
    // Call after an attempt that may have left something. `took_all`: of a read, as much as it had
    // asked for.
    void restore(side s, bool took_all = false) noexcept;

    // Whether the last read took as much as it had asked for, and no edge came since. A hint.
    [[nodiscard]] bool is_unsure() const noexcept {
        return at(side::in).load(base::relaxed) == unsure;
    }
    // Whether reads of what is unsure mostly find nothing: see the header.
    [[nodiscard]] bool mostly_finds_nothing() const noexcept {
        return misses_.load(base::relaxed) >= habit;  // relaxed, here and below: a hint.
    }
    // The same, but not each time. Counts.
    bool puts_off_a_read() noexcept {
        const std::uint64_t n = misses_.load(base::relaxed);
        if (n < habit || n % tries_each == 0) return false;
        misses_.store(n + 1, base::relaxed);
        return true;
    }
    // What a read of what was unsure has found at once.
    void note_read(bool found) noexcept {
        misses_.store(found ? 0 : misses_.load(base::relaxed) + 1, base::relaxed);
    }
    [[nodiscard]] bool is_hung_up() const noexcept {
        return hung_up_.load(base::seq_cst);  // seq_cst: see take().
    }

    // For a kept number: waits for an edge. Returns 0 (try again; `maybe` has been taken),
    // -ETIMEDOUT, -ECANCELED (a stop), -EBADF (closed), or why it cannot be waited for. Without an
    // engine it may give up although there is something.
    long wait(int fd, side s, std::uint32_t generation, os::nanoseconds until,
              const std::stop_token* stop) noexcept;
    // For a shared number: waits until it is ready. The results are the same; 0 also without a
    // reason. `of_file` is 0 at first, and then the identity of the file that was waited for: there
    // is no wait for another (-EBADF).
    long wait_once(int fd, side s, std::uint32_t generation, std::uint64_t& of_file,
                   os::nanoseconds until, const std::stop_token* stop) noexcept;

    // For an engine that has edges: brings what ready() will touch into the cache. Call warm()
    // first, and warm_waiter() once the descriptor has arrived there.
    void warm() const noexcept { __builtin_prefetch(this); }
    void warm_waiter(bool in) const noexcept {
        const int s = in ? 0 : 1;
        // relaxed, both: hints.
        __builtin_prefetch(reinterpret_cast<const void*>(words_[s].load(base::relaxed)));
        const std::uintptr_t who = last_.load(base::relaxed);
        __builtin_prefetch(reinterpret_cast<const void*>(who));
        __builtin_prefetch(reinterpret_cast<const void*>(who + base::cache_line));
    }

    // For an engine's edges.
    void ready(std::uint32_t generation, bool in, bool out, bool hung_up,
               fiber_list& woken) noexcept;

    // The event that wait_once() armed has come.
    void fire(std::uint32_t generation, fiber_list& woken) noexcept;

    // Wakes all waiters, waits for holds, then closes. Returns 0 or -errno.
    long close(int fd) noexcept;

    // A use of the number by a call that blocks its kernel thread: see the header. For the thread
    // that makes the call.
    class hold {
    public:
        static constexpr long several_calls = -1;
        // `only_call` is the number of the one system call that the hold is for, and after which
        // its owner no longer uses the descriptor's number.
        hold(descriptor& of, std::uint32_t generation, long only_call) noexcept;
        ~hold();
        hold(const hold&) = delete;
        hold& operator=(const hold&) = delete;
        // False if the number was closed: do not use it.
        [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

    private:
        friend descriptor;
        descriptor* of_;
        const long only_call_;
        const std::uint32_t generation_;
        int tid_ = 0;
        // Guarded by the descriptor's lock:
        hold* next_ = nullptr;
        bool is_let_go_ = false;  // By a close: it is no longer in the list.
    };

private:
    struct waiter {
        sched::parkable* who;
        waiter* next;
        bool is_closed;
    };
    using word = base::atomic<std::uintptr_t>;
    // `maybe` is zero, because the memory begins as zeros. What is greater is an address.
    static constexpr std::uintptr_t maybe = 0, nothing = 1, unsure = 2;
    [[nodiscard]] static bool is_mark(std::uintptr_t seen) noexcept {
        return seen == maybe || seen == unsure;
    }
    [[nodiscard]] static bool has_waiters(std::uintptr_t seen) noexcept { return seen > unsure; }
    static constexpr std::uint64_t habit = 4, tries_each = 16;

    // The table: blocks of descriptors, each made when the first of its numbers is used, and kept.
    // Its size does not depend on the limit of open files.
    static constexpr unsigned block_size = 1024, blocks = 16 * 1024;
    static constinit base::atomic<descriptor*> table_[blocks];
    [[gnu::cold]] static descriptor* find_slow(unsigned fd) noexcept;
    static descriptor* make_block(base::atomic<descriptor*>& at) noexcept;

    word& at(side s) noexcept { return words_[static_cast<int>(s)]; }
    const word& at(side s) const noexcept { return words_[static_cast<int>(s)]; }

    [[nodiscard]] bool is_waited_for() const noexcept {
        // relaxed, both: a wait that is not seen begins at the same time.
        return has_waiters(words_[0].load(base::relaxed)) ||
               has_waiters(words_[1].load(base::relaxed));
    }
    long verify(int fd) noexcept;
    [[nodiscard]] std::int64_t as_other_end(int fd) const noexcept;
    static void wake_end(std::int64_t other) noexcept;
    long add_to_engine(int fd, std::uint32_t generation) noexcept;
    long arm(int fd, std::uint32_t generation, std::uint64_t& of_file) noexcept;
    [[nodiscard]] bool is_waited_for(side s) const noexcept {
        return has_waiters(at(s).load(base::seq_cst));
    }
    long sleep(int fd, side s, waiter& me, os::nanoseconds until,
               const std::stop_token* stop) noexcept;
    long wait_alone(int fd, side s, std::uint32_t generation, os::nanoseconds until,
                    const std::stop_token* stop) noexcept;
    bool withdraw(side s, waiter& me) noexcept;
    void edge(side s, fiber_list& woken) noexcept;
    void wake_all(side s) noexcept;
    void expel(side s) noexcept;
    void renew(int fd) noexcept;
    void leave_behind() noexcept;
    enum class parting : unsigned char { forgets, closes, adopts };
    long part_with(int fd, parting how) noexcept;
    bool hold_the_file() const noexcept;
    void let_go() noexcept;

    word words_[2];
    // The last waiter: a hint for warm_waiter(), which does not read what is there.
    base::atomic<std::uintptr_t> last_;
    // How many reads in a row, of what was unsure, have found nothing, or were put off.
    base::atomic<std::uint64_t> misses_;
    base::atomic<std::uint32_t> generation_;
    base::atomic<std::uint32_t> traits_;
    base::atomic<bool> hung_up_;  // An end, an error or urgent data was reported.
    // Written under lock_:
    base::atomic<bool> is_registered_;   // For a kept number: valid for its life.
    base::atomic<bool> was_armed_;       // For a shared number: for one event.
    base::atomic<bool> was_waited_for_;  // For a shared number, perhaps one without traits.
    std::uint32_t lock_ = 0;             // Excludes registration, closing and learning.
    // Written under lock_. Of a shared number: the identity of its file when the kernel was last
    // asked, from fstat(2), which is negative; while it is armed, that of the file in the engine;
    // 0: not asked. Of a kept number: its other end (as_other_end()), or 0.
    base::atomic<std::uint64_t> identity_;
    // Guarded by lock_:
    hold* holds_ = nullptr;
};
static_assert(sizeof(descriptor) == base::cache_line);

// An operation on a number, as it began: it is for the file that the number had then.
struct number_at {
    int fd;
    descriptor* d;
    std::uint32_t generation;

    explicit number_at(int n) noexcept
        : fd{n}, d{descriptor::find(n)}, generation{d != nullptr ? d->generation() : 0} {}
    // An operation in several pieces asks before each but the first.
    [[nodiscard]] bool was_closed() const noexcept {
        return d == nullptr || d->generation() != generation;
    }
};

// For an operation in several pieces, all of which are for the file that a number has when this is
// made. Asks the kernel, unless nothing else closes the number.
class file_at {
public:
    explicit file_at(const number_at& at) noexcept
        : at_{at}, file_{at.d != nullptr && !at.d->is_kept() ? descriptor::file_of(at.fd) : 0} {}
    // Ask before each piece but the first.
    [[nodiscard]] bool is_gone() const noexcept {
        return at_.was_closed() || (file_ != 0 && descriptor::file_of(at_.fd) != file_);
    }

private:
    number_at at_;
    std::uint64_t file_;
};

// Whether a call that fails so has found it in the socket, and taken it from there.
constexpr bool is_of_the_socket(long error) noexcept {
    switch (error) {
        case -EBADF:
        case -EFAULT:
        case -EINVAL:
        case -ENOMEM:
        case -ENOTCONN:
        case -ENOTSOCK:
        case -EOPNOTSUPP:
            return false;
        default:
            return true;
    }
}

}  // namespace ums::io
