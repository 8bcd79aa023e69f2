// SPDX-License-Identifier: MIT
#include "io/engine/uring_engine.hpp"

#include <cerrno>

#if defined(UMS_HAS_URING)

#include <algorithm>
#include <cstdlib>
#include <liburing.h>
#include <new>
#include <poll.h>

#include "base/assert.hpp"
#include "io/engine/event_set.hpp"
#include "io/wait/descriptor.hpp"
#include "os/io_calls.hpp"
#include "os/lock.hpp"
#include "os/own_number.hpp"

namespace ums::io {

namespace {

constexpr unsigned submissions = 256, completions = 8192;
constexpr std::uint64_t no_data = ~std::uint64_t{0};
constexpr std::uint64_t set_data = no_data - 1;
constexpr unsigned poll_batch = 64;
constexpr int set_batch = 16;
constexpr unsigned cooperative = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;

class uring_engine final : public engine {
public:
    long open(bool has_one_processor) noexcept {
        io_uring_params p{};
        long error = set_up(has_one_processor ? cooperative : 0, p);
        if (error == -EINVAL && has_one_processor) error = set_up(0, p);  // For Linux before 5.19.
        if (error != 0) return error;
        // Linux 5.13 has this, as it has multishot poll.
        return (p.features & IORING_FEAT_RSRC_TAGS) != 0 ? 0 : -ENOSYS;
    }
    ~uring_engine() override {
        // The numbers may have other files by now.
        if (is_open_ && os::is_anonymous(ring_.ring_fd)) io_uring_queue_exit(&ring_);
        const int set = set_.load(base::relaxed);
        if (set >= 0 && os::is_anonymous(set)) os::io_call(SYS_close, set);
    }

    sched::fiber* wait(os::nanoseconds limit) noexcept override {
        os::lock_word::acquire(completion_lock_);
        fiber_list woken;
        if (!reap(woken, completions)) {
            __kernel_timespec left{};
            if (limit != os::never) {
                const os::nanoseconds ns = std::max(limit - os::now(), 0l);
                left = {ns / 1'000'000'000, ns % 1'000'000'000};
            }
            io_uring_getevents_arg arg{};
            arg.sigmask_sz = 8;
            arg.ts = limit != os::never ? reinterpret_cast<std::uint64_t>(&left) : 0;
            end_if_lost(os::io_call(SYS_io_uring_enter, ring_.ring_fd, 0, 1,
                                    IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg,
                                    sizeof arg));
            reap(woken, completions);
        }
        os::lock_word::release(completion_lock_);
        return woken.first;
    }

    sched::fiber* poll() noexcept override {
        if (!os::lock_word::try_acquire(completion_lock_)) return nullptr;
        fiber_list woken;
        if (has_pending())
            os::io_call(SYS_io_uring_enter, ring_.ring_fd, 0, 0, IORING_ENTER_GETEVENTS, nullptr,
                        0);
        reap(woken, poll_batch);
        os::lock_word::release(completion_lock_);
        return woken.first;
    }

    void interrupt() noexcept override {
        submit([](io_uring_sqe* e) { io_uring_prep_nop(e); }, no_data);
    }

    long add(int fd, std::uint32_t generation, bool is_adopted) noexcept override {
        // An edge-triggered poll accepts a file that is always ready, which epoll refuses.
        const long error = is_adopted ? add_to_set(fd, generation) : arm_for_good(fd, generation);
        if (error == 0) added_.fetch_add(1, base::relaxed);  // relaxed: a hint.
        return error;
    }

    void remove(int fd, std::uint32_t generation, bool is_adopted) noexcept override {
        is_adopted ? disarm(fd) : cancel(fd, generation);
        [[maybe_unused]] const std::uint32_t were = added_.fetch_sub(1, base::relaxed);
        UMS_DEBUG_ASSERT(were != 0, "the ring lost more descriptors than it was given");
    }

    long arm(int fd, std::uint32_t generation, bool in, bool out, bool& is_new) noexcept override {
        const long set = one_time();
        if (set < 0) return set;
        const int of = static_cast<int>(set);
        const long error = event_set::arm(of, fd, generation, in, out, is_new);
        if ((error == -EBADF || error == -EINVAL) && !os::is_anonymous(of))
            lost_descriptor("io_uring", of, -1);
        return error;
    }

    void disarm(int fd) noexcept override {
        if (const int set = set_.load(base::acquire); set >= 0) event_set::disarm(set, fd);
    }

    [[nodiscard]] const char* name() const noexcept override { return "io_uring"; }

private:
    static std::uint64_t data_of(int fd, std::uint32_t generation) noexcept {
        UMS_DEBUG_ASSERT(fd >= 0, "an error number would look like a ring's own completion");
        return std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(fd);
    }

    long set_up(unsigned flags, io_uring_params& p) noexcept {
        p = {};
        p.flags = flags | IORING_SETUP_CQSIZE;
        p.cq_entries = completions;
        const int error = io_uring_queue_init_params(submissions, &ring_, &p);
        is_open_ = error == 0;
        if (is_open_)
            ring_.ring_fd = ring_.enter_ring_fd =
                static_cast<int>(os::out_of_the_way(ring_.ring_fd));
        return error;
    }

    // Whether completions wait for a call that posts them: the queue was full, or no thread was
    // interrupted.
    [[nodiscard]] bool has_pending() const noexcept {
        return (IO_URING_READ_ONCE(*ring_.sq.kflags) &
                (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN)) != 0;
    }

    void end_if_lost(long error) const noexcept {
        if (error == -EBADF || error == -EOPNOTSUPP) lost_descriptor("io_uring", ring_.ring_fd, -1);
    }

    template <class Prepare>
    long submit(Prepare prepare, std::uint64_t data) noexcept {
        os::lock_word::acquire(submission_lock_);
        io_uring_sqe* e = io_uring_get_sqe(&ring_);
        long n = -EBUSY;
        // Each entry is submitted at once, so there is room unless the kernel refused.
        if (e != nullptr) {
            prepare(e);
            io_uring_sqe_set_data64(e, data);
        }
        do n = io_uring_submit(&ring_);
        while (n == -EINTR || n == -EAGAIN || n == -EBUSY);
        end_if_lost(n);
        os::lock_word::release(submission_lock_);
        return e == nullptr ? -EBUSY : n < 0 ? n : 0;
    }

    // Returns the set, which is made when first needed, or -errno.
    long one_time() noexcept {
        if (const int set = set_.load(base::acquire); set >= 0) return set;  // sync(io.uring)
        const os::word_guard locked{set_lock_};
        if (const int set = set_.load(base::relaxed); set >= 0) return set;
        const long made = os::out_of_the_way(os::io_call(SYS_epoll_create1, EPOLL_CLOEXEC));
        if (made < 0) return made;
        const int set = static_cast<int>(made);
        // The set is empty, so its poll does not complete before other threads know the set.
        if (const long error = watch(set); error != 0) {
            os::io_call(SYS_close, set);
            return error;
        }
        set_.store(set, base::release);  // sync(io.uring)
        return set;
    }

    long add_to_set(int fd, std::uint32_t generation) noexcept {
        const long set = one_time();
        return set < 0 ? set : event_set::watch(static_cast<int>(set), fd, generation);
    }

    long watch(int set) noexcept {
        return submit([=](io_uring_sqe* e) { io_uring_prep_poll_multishot(e, set, POLLIN); },
                      set_data);
    }

    // The set has events: takes all of them, because it is watched edge-triggered.
    void empty_set(int set, fiber_list& woken) noexcept {
        epoll_event events[set_batch];
        long n;
        do {
            n = os::io_call(SYS_epoll_pwait, set, events, set_batch, 0, nullptr, 8);
            if (n == -EBADF || n == -EINVAL) lost_descriptor("io_uring", set, -1);
            if (os::is_refused(n)) {  // The waiters for the set's descriptors would wait for ever.
                say_refused("epoll_pwait", n);
                std::abort();
            }
            for (long i = 0; i < n; ++i) event_set::deliver(events[i], woken);
        } while (n == set_batch || n == -EINTR);
    }

    long arm_for_good(int fd, std::uint32_t generation) noexcept {
        return submit(
            [=](io_uring_sqe* e) {
                io_uring_prep_poll_multishot(e, fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP);
            },
            data_of(fd, generation));
    }

    void cancel(int fd, std::uint32_t generation) noexcept {
        // Not POLL_REMOVE, which gives up while an edge is being reported: the poll would stay, and
        // with it the file, and the peer would not see the close.
        submit([=](io_uring_sqe* e) { io_uring_prep_cancel64(e, data_of(fd, generation), 0); },
               no_data);
    }

    // Requires: the completions' lock. Returns whether there were any completions.
    bool reap(fiber_list& woken, unsigned most) noexcept {
        UMS_DEBUG_ASSERT(base::atomic_ref<std::uint32_t>{completion_lock_}.load(base::relaxed) != 0,
                         "completions were taken without their lock");
        io_uring_cqe* c;
        unsigned head, n = 0;
        bool set_has_events = false, set_is_watched = true;
        io_uring_for_each_cqe(&ring_, head, c) {
            if (n == most) break;
            ++n;
            if (c->user_data == set_data) {
                set_has_events = true;
                // If not, the thread that watched the set has ended, or the queue was full.
                set_is_watched = (c->flags & IORING_CQE_F_MORE) != 0;
            } else if (c->user_data != no_data) {
                deliver(*c, woken);
            }
        }
        io_uring_cq_advance(&ring_, n);
        // Once for all edges of the set. One that comes after this look completes again.
        if (set_has_events) {
            const int set = set_.load(base::acquire);  // sync(io.uring)
            UMS_DEBUG_ASSERT(set >= 0, "the set had an event before others knew the set");
            if (!set_is_watched) watch(set);
            empty_set(set, woken);
        }
        return n != 0;
    }

    void deliver(const io_uring_cqe& c, fiber_list& woken) noexcept {
        const int fd = static_cast<int>(c.user_data);
        const auto generation = static_cast<std::uint32_t>(c.user_data >> 32);
        descriptor& d = *descriptor::find(fd);
        const bool is_over = (c.flags & IORING_CQE_F_MORE) == 0;
        if (c.res >= 0) {
            const auto e = static_cast<unsigned>(c.res);
            constexpr unsigned over = POLLHUP | POLLERR, odd = POLLRDHUP | POLLPRI;
            d.ready(generation, (e & (POLLIN | over | odd)) != 0, (e & (POLLOUT | over)) != 0,
                    (e & (over | odd)) != 0 || is_over, woken);
            // The poll of a hung-up file would complete at once, again and again; and the file is
            // ready for ever.
            if ((e & over) != 0) return;
        } else if (c.res != -ECANCELED) {
            d.ready(generation, true, true, true, woken);  // The operation will find out why.
            return;
        }
        // The thread that armed the poll has ended, or the queue was full.
        if (!is_over || d.generation() != generation) return;
        arm_for_good(fd, generation);
        // The descriptor was closed meanwhile, after remove() found no poll: this poll may be of
        // the next file.
        if (d.generation() != generation) cancel(fd, generation);
    }

    io_uring ring_{};
    bool is_open_ = false;
    base::atomic<int> set_{-1};   // An event_set.
    std::uint32_t set_lock_ = 0;  // Excludes two threads that make the set.
    std::uint32_t submission_lock_ = 0;
    std::uint32_t completion_lock_ = 0;
};

}  // namespace

std::unique_ptr<engine> make_uring_engine(bool has_one_processor, long& error) noexcept {
    error = probe_uring();
    if (error != 0) return nullptr;
    std::unique_ptr<uring_engine> made{new (std::nothrow) uring_engine};
    error = made != nullptr ? made->open(has_one_processor) : -ENOMEM;
    if (error != 0) made.reset();
    return made;
}

long probe_uring() noexcept {
    io_uring_params p{};
    const long fd = os::io_call(SYS_io_uring_setup, 1, &p);
    if (fd < 0) return fd;
    os::io_call(SYS_close, fd);
    return (p.features & IORING_FEAT_RSRC_TAGS) != 0 ? 0 : -ENOSYS;
}

}  // namespace ums::io

#else

namespace ums::io {
std::unique_ptr<engine> make_uring_engine(bool, long& error) noexcept {
    return error = -ENOSYS, nullptr;
}
long probe_uring() noexcept { return -ENOSYS; }
}  // namespace ums::io

#endif
