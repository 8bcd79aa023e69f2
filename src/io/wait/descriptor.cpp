// SPDX-License-Identifier: MIT
#include "io/wait/descriptor.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <netinet/in.h>
#include <new>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.hpp"
#include "base/chain.hpp"
#include "io/engine/engine.hpp"
#include "os/io_calls.hpp"
#include "os/lock.hpp"
#include "os/own_number.hpp"
#include "os/thread/thread_state.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/queue/driver.hpp"
#include "sched/run/carrier.hpp"
#include "sched/run/park.hpp"
#include "sched/run/wake.hpp"

namespace ums::io {

namespace {

bool is_file(const struct stat& is) noexcept {
    return S_ISREG(is.st_mode) || S_ISDIR(is.st_mode) || S_ISBLK(is.st_mode);
}

// Never 0. If two are equal, they are the same socket or pipe, or files of one kind.
std::uint64_t identity_of(const struct stat& is) noexcept {
    return (is.st_ino ^ is.st_dev << 40 ^ std::uint64_t{is.st_mode & S_IFMT} << 16) | 1ull << 63;
}

int socket_option(int fd, int name) noexcept {
    int value = -1;
    socklen_t bytes = sizeof value;
    if (os::io_call(SYS_getsockopt, fd, SOL_SOCKET, name, &value, &bytes) < 0) return -1;
    return value;
}

// The kind of a descriptor: the traits that its file has for its whole life.
std::uint32_t kind_of(int fd, const struct stat& is) noexcept {
    if (is_file(is)) return descriptor::file;
    if (S_ISFIFO(is.st_mode)) return descriptor::fifo;
    if (!S_ISSOCK(is.st_mode)) return 0;
    if (socket_option(fd, SO_TYPE) != SOCK_STREAM)
        return descriptor::is_socket | descriptor::messages;
    if (socket_option(fd, SO_DOMAIN) == AF_UNIX)
        return descriptor::is_socket | descriptor::unix_stream;
    return socket_option(fd, SO_PROTOCOL) == IPPROTO_TCP ? descriptor::is_socket | descriptor::tcp
                                                         : descriptor::is_socket;
}
constexpr std::uint32_t kinds = descriptor::file | descriptor::is_socket | descriptor::tcp |
                                descriptor::messages | descriptor::fifo | descriptor::unix_stream;

// Whether generation a was before b. They wrap.
[[maybe_unused]] bool is_before(std::uint32_t a, std::uint32_t b) noexcept {
    return static_cast<std::int32_t>(a - b) < 0;
}

// A plain thread that waits without an engine. Its bell ends its poll(2).
class lone_waiter {
public:
    explicit lone_waiter(int fd) noexcept
        : fd_{fd},
          bell_{os::out_of_the_way(os::io_call(SYS_eventfd2, 0, EFD_CLOEXEC),
                                   os::lowest_for_a_moment)} {
        const os::lock_guard guard{list_lock_};
        base::chain::push_front(first_, *this, &lone_waiter::next_);
        count_.fetch_add(1, base::seq_cst);  // seq_cst: comes before the generation is read.
    }
    ~lone_waiter() {
        {
            const os::lock_guard guard{list_lock_};
            base::chain::remove(first_, *this, &lone_waiter::next_);
            // relaxed: a thread that still sees the old count looks at the list.
            [[maybe_unused]] const std::uint32_t were = count_.fetch_sub(1, base::relaxed);
            UMS_DEBUG_ASSERT(were != 0, "more plain threads stopped waiting than began");
        }
        // The number may have another file by now; also below.
        if (bell_ >= 0 && os::is_anonymous(static_cast<int>(bell_))) os::io_call(SYS_close, bell_);
    }
    lone_waiter(const lone_waiter&) = delete;
    lone_waiter& operator=(const lone_waiter&) = delete;

    // The descriptor of the bell, or -errno.
    [[nodiscard]] long bell() const noexcept { return bell_; }
    void ring() const noexcept {
        const std::uint64_t one = 1;
        if (os::is_anonymous(static_cast<int>(bell_)))
            os::io_call(SYS_write, bell_, &one, sizeof one);
    }
    static void leave_all_behind() noexcept {
        list_lock_.leave_behind();
        first_ = nullptr;
        count_.store(0, base::relaxed);  // relaxed: there is one thread.
    }
    static void ring_all(int fd) noexcept {
        // seq_cst: comes after the generation is raised.
        if (count_.load(base::seq_cst) == 0) return;
        const os::lock_guard guard{list_lock_};
        for (const lone_waiter* w = first_; w != nullptr; w = w->next_)
            if (w->fd_ == fd) w->ring();
    }

private:
    const int fd_;
    const long bell_;
    lone_waiter* next_;

    static constinit os::lock list_lock_;
    // Guarded by list_lock_:
    static constinit lone_waiter* first_;
    // The number in the list, for threads that do not hold the lock:
    static constinit base::atomic<std::uint32_t> count_;
};
constinit os::lock lone_waiter::list_lock_;
constinit lone_waiter* lone_waiter::first_ = nullptr;
constinit base::atomic<std::uint32_t> lone_waiter::count_;

}  // namespace

constinit base::atomic<descriptor*> descriptor::table_[blocks];

// What arm() returns while no runtime runs.
static constexpr long no_engine = 1;

descriptor* descriptor::make_block(base::atomic<descriptor*>& at) noexcept {
    auto* made = new (std::nothrow) descriptor[block_size];
    if (made == nullptr) return nullptr;
    descriptor* seen = nullptr;
    // sync(io.table): publishes the block.
    if (at.compare_exchange(seen, made, base::acq_rel, base::acquire)) return made;
    delete[] made;
    return seen;
}

descriptor* descriptor::find_slow(unsigned fd) noexcept {
    descriptor* const d = make_block(table_[fd / block_size]);
    return d != nullptr ? d + fd % block_size : nullptr;
}

void descriptor::adopt(int fd, std::uint32_t traits) noexcept {
    UMS_DEBUG_ASSERT(fd >= 0, "an error number was adopted as a descriptor");
    descriptor* d = find(fd);
    if (d == nullptr) return;
    const os::word_guard locked{d->lock_};
    // Another library has closed the number, or the kernel would not have given it.
    d->let_go();
    if (d->traits_.load(base::relaxed) != 0 || d->was_waited_for_.load(base::seq_cst)) d->renew(fd);
    UMS_DEBUG_ASSERT(!d->is_registered_.load(base::relaxed),
                     "the engine still watches the last file of a number that is new");
    // sync(io.descriptor)
    d->traits_.store(traits != 0 ? traits | known : 0, base::release);
}

// Positive: one more than the number, below what fits of the generation.
std::int64_t descriptor::as_other_end(int fd) const noexcept {
    // relaxed: a hint. In pair_up() nobody else has the number yet.
    return static_cast<std::int64_t>(generation_.load(base::relaxed) & 0x7fff'ffffu) << 32 |
           (std::int64_t{fd} + 1);
}

void descriptor::pair_up(int one, int other) noexcept {
    descriptor* const ends[2] = {find(one), find(other)};
    if (ends[0] == nullptr || ends[1] == nullptr) return;
    const int numbers[2] = {one, other};
    for (const int i : {0, 1}) {
        const os::word_guard locked{ends[i]->lock_};
        UMS_DEBUG_ASSERT(ends[i]->is_kept(), "an end was paired that others may close");
        const std::int64_t name = ends[1 - i]->as_other_end(numbers[1 - i]);
        // relaxed: a hint.
        ends[i]->identity_.store(static_cast<std::uint64_t>(name), base::relaxed);
    }
}

void descriptor::wake_end(std::int64_t other) noexcept {
    const int fd = static_cast<int>((other & 0xffff'ffff) - 1);
    descriptor& end = *find(fd);
    // The number has another file by now.
    if (end.as_other_end(fd) != other) return;
    std::uintptr_t seen = end.at(side::in).load(base::relaxed);  // relaxed: a hint.
    // As edge(), which orders it.
    while (!has_waiters(seen))
        if (seen == maybe ||
            end.at(side::in).compare_exchange(seen, maybe, base::seq_cst, base::relaxed))
            return;
    // Otherwise its waiters are left to the engine: see the header.
    if (sched::this_carrier() != nullptr && !sched::driver::takes_events()) end.wake_all(side::in);
}

void descriptor::forget(int fd) noexcept { part_with(fd, parting::forgets); }

long descriptor::close(int fd) noexcept { return part_with(fd, parting::closes); }

long descriptor::part_with(int fd, parting how) noexcept {
    constexpr os::nanoseconds last_pause = 2'000'000;
    struct stat is;
    std::uint32_t noted = 0;
    for (os::nanoseconds pause = 0;; pause = std::clamp(2 * pause, 20'000l, last_pause)) {
        // A call that is about to be made, or runs in the kernel, ends or blocks soon.
        if (pause != 0) sched::park(sched::park_kind::internal, os::now() + pause, nullptr);
        const os::word_guard locked{lock_};
        const bool is_closing = traits_.load(base::relaxed) == closing;
        if (pause != 0 && !is_closing) return 0;  // The number has been given to another file.
        if (pause == 0) {
            if (is_closing) return -EBADF;
            const std::uint32_t t = traits_.load(base::relaxed);
            if (how == parting::adopts) {
                if ((t & kept) != 0) return 0;
                if (const long r = os::io_call(SYS_fstat, fd, &is); r < 0) return r;
                if (identity_.load(base::relaxed) == identity_of(is)) noted = t & errors;
            }
            renew(fd);
        }
        if (!hold_the_file()) {
            traits_.store(closing, base::relaxed);
            continue;
        }
        let_go();
        if (how == parting::adopts) {
            // sync(io.descriptor)
            traits_.store(known | kept | kind_of(fd, is) | noted, base::release);
            return 0;
        }
        traits_.store(0, base::relaxed);
        if (how == parting::forgets) return 0;
        // Under the lock, because a thread that asks between the two what the number is would learn
        // of, register, and wait for a file that is about to go.
        const long result = os::io_call(SYS_close, fd);
        // Linux has closed it all the same.
        return result == -EINTR ? 0 : result;
    }
}

descriptor::hold::hold(descriptor& of, std::uint32_t generation, long only_call) noexcept
    : of_{&of}, only_call_{only_call}, generation_{generation} {
    const os::word_guard locked{of.lock_};
    if (of.generation_.load(base::relaxed) != generation ||
        of.traits_.load(base::relaxed) == closing) {
        of_ = nullptr;
        return;
    }
    tid_ = ::gettid();
    base::chain::push_front(of.holds_, *this, &hold::next_);
}

descriptor::hold::~hold() {
    if (of_ == nullptr) return;
    const os::word_guard locked{of_->lock_};
    if (is_let_go_) return;
    UMS_DEBUG_ASSERT(of_->generation_.load(base::relaxed) == generation_ ||
                         of_->traits_.load(base::relaxed) == closing,
                     "a number was given to the next file while a thread used it for the last");
    base::chain::remove(of_->holds_, *this, &hold::next_);
}

// Call under the lock. Whether no hold's thread will use the number again: the kernel has found the
// file of each, so a call that waits there no longer needs the number.
bool descriptor::hold_the_file() const noexcept {
    if (holds_ == nullptr) return true;
    os::thread_states threads;
    if (threads.open() != 0) return false;
    for (hold* h = holds_; h != nullptr; h = h->next_) {
        const os::thread_states::seen now = threads.look(h->tid_);
        if (now.what != os::thread_states::kind::in_call || now.call != h->only_call_) return false;
    }
    return true;
}

void descriptor::let_go() noexcept {
    while (hold* const h = base::chain::pop_front(holds_, &hold::next_)) h->is_let_go_ = true;
}

// Call under the lock: the file that had the number is gone, or is about to go.
void descriptor::renew(int fd) noexcept {
    UMS_DEBUG_ASSERT(find(fd) == this, "a descriptor was closed under another's number");
    UMS_DEBUG_ASSERT(base::atomic_ref<std::uint32_t>{lock_}.load(base::relaxed) != 0,
                     "a number was given to the next file without its lock");
    const std::uint32_t old = generation_.load(base::relaxed);
    // This comes first: a thread that sees the new generation must learn again what the number is,
    // and waits for the lock to do so.
    traits_.store(0, base::relaxed);
    generation_.store(old + 1, base::seq_cst);
    if (is_registered_.load(base::relaxed)) {
        is_registered_.store(false, base::seq_cst);  // seq_cst: pairs with wait().
        const engine_use use;
        if (engine* e = use.get(); e != nullptr) e->remove(fd);
    }
    if (was_armed_.load(base::relaxed)) {
        was_armed_.store(false, base::relaxed);
        const engine_use use;
        if (engine* e = use.get(); e != nullptr) e->disarm(fd);
    }
    was_waited_for_.store(false, base::relaxed);
    identity_.store(0, base::relaxed);
    misses_.store(0, base::relaxed);
    hung_up_.store(false, base::relaxed);
    expel(side::in);
    expel(side::out);
    lone_waiter::ring_all(fd);
}

void descriptor::expel(side s) noexcept {
    // sync(io.descriptor): sees the waiters' fields.
    const std::uintptr_t seen = at(s).exchange(maybe, base::seq_cst);
    if (!has_waiters(seen)) return;
    for (auto* w = reinterpret_cast<waiter*>(seen); w != nullptr;) {
        waiter* next = w->next;
        UMS_DEBUG_ASSERT(!w->is_closed, "a close told the same waiter twice");
        w->is_closed = true;
        sched::wake(*w->who);
        w = next;
    }
}

// Writes only where there is something: each page that is written is copied.
void descriptor::leave_behind() noexcept {
    // relaxed, all: there is one thread.
    for (word& w : words_)
        if (w.load(base::relaxed) != maybe) w.store(maybe, base::relaxed);
    for (base::atomic<bool>* was : {&is_registered_, &was_armed_})
        if (was->load(base::relaxed)) was->store(false, base::relaxed);
    if (lock_ != 0) lock_ = 0;
    if (holds_ != nullptr) holds_ = nullptr;
    if (traits_.load(base::relaxed) == closing) traits_.store(0, base::relaxed);
}

void descriptor::leave_all_behind() noexcept {
    lone_waiter::leave_all_behind();
    for (base::atomic<descriptor*>& block : table_)
        if (descriptor* const first = block.load(base::relaxed); first != nullptr)
            for (unsigned i = 0; i < block_size; ++i) first[i].leave_behind();
}

void descriptor::note_error(int fd, std::uint32_t generation, long error) noexcept {
    UMS_DEBUG_ASSERT(error < 0 && error > -256, "no error that fits was noted");
    const os::word_guard locked{lock_};
    if (generation_.load(base::relaxed) != generation) return;
    std::uint32_t t = traits_.load(base::relaxed);
    if ((t & kept) == 0) {
        // From now on the kernel is asked whether the number still has this file.
        struct stat is;
        if (os::io_call(SYS_fstat, fd, &is) < 0) return;
        identity_.store(identity_of(is), base::relaxed);
    }
    t = (t & ~std::uint32_t{errors}) | static_cast<std::uint32_t>(-error) << error_shift;
    traits_.store(t, base::release);  // sync(io.descriptor)
}

long descriptor::take_error() noexcept {
    const os::word_guard locked{lock_};
    const std::uint32_t t = traits_.load(base::relaxed);
    traits_.store(t & ~std::uint32_t{errors}, base::release);  // sync(io.descriptor)
    return -static_cast<long>((t & errors) >> error_shift);
}

std::uint64_t descriptor::file_of(int fd) noexcept {
    struct statx is;
    if (os::io_call(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO,
                    &is) < 0)
        return 0;
    return is.stx_ino ^ std::uint64_t{is.stx_dev_major} << 52 ^
           std::uint64_t{is.stx_dev_minor} << 32 ^
           static_cast<std::uint64_t>(is.stx_mode & S_IFMT) << 16;
}

std::uint64_t descriptor::identity_at(int fd) noexcept {
    struct stat is;
    return os::io_call(SYS_fstat, fd, &is) == 0 ? identity_of(is) : 0;
}

long descriptor::verify(int fd) noexcept {
    const os::word_guard locked{lock_};
    std::uint32_t t = traits_.load(base::relaxed);
    if ((t & kept) != 0) return t;
    if (t == closing) return -EBADF;
    const long flags = os::io_call(SYS_fcntl, fd, F_GETFL);
    if (flags < 0) return flags;
    const bool may_block = (flags & O_NONBLOCK) == 0;
    struct stat is;
    if (const long r = os::io_call(SYS_fstat, fd, &is); r < 0) return r;
    const std::uint64_t before = identity_.load(base::relaxed), identity = identity_of(is);
    if ((t & known) != 0 && identity == before && (!may_block || (t & (file | ask_first)) != 0))
        return t;

    // A duplicate of a standard stream, made by io::dup(), stays blocking.
    t = known | kind_of(fd, is) | (before == 0 ? t & ask_first : 0u) |
        (before == identity ? t & (errors | refuses) : 0u);
    if ((t & (file | ask_first)) == 0 && may_block) {
        if (fd <= 2)
            t |= ask_first;
        else if (const long r = os::io_call(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK); r < 0)
            return r;
    }
    identity_.store(identity, base::relaxed);
    traits_.store(t, base::release);  // sync(io.descriptor)
    // Not a close: some of the waiters came for this file.
    if (before != 0 && identity != before) {
        wake_all(side::in);
        wake_all(side::out);
    }
    return t;
}

long descriptor::learn_again(int fd, long error) noexcept {
    const long t = verify(fd);
    if (t < 0 || (error != -EOPNOTSUPP && !os::is_refused(error)) || (t & (file | ours)) != 0)
        return t;
    // A shared one is non-blocking now; an adopted one stays as it is.
    const std::uint32_t more = (t & kept) != 0 ? refuses | ask_first : refuses;
    const os::word_guard locked{lock_};
    const std::uint32_t now = traits_.load(base::relaxed);
    // Otherwise the number has been given to another file meanwhile.
    if (now == static_cast<std::uint32_t>(t))
        traits_.store(now | more, base::release);  // sync(io.descriptor)
    return t | more;
}

void descriptor::restore(side s, bool took_all) noexcept {
    std::uintptr_t seen = at(s).load(base::relaxed);
    if (seen == nothing &&
        at(s).compare_exchange(seen, took_all ? unsure : maybe, base::release, base::relaxed))
        return;
    if (is_mark(seen)) return;
    // A fiber or thread has begun to wait meanwhile, perhaps for what this caller has left.
    wake_all(s);
}

void descriptor::wake_all(side s) noexcept {
    fiber_list woken;
    edge(s, woken);
    sched::resume_all(woken.first);
}

void descriptor::edge(side s, fiber_list& woken) noexcept {
    std::uintptr_t seen = at(s).load(base::seq_cst);
    for (;;) {
        if (seen == maybe) return;
        const std::uintptr_t next = has_waiters(seen) ? nothing : maybe;
        // sync(io.descriptor): sees the waiters' fields; publishes what came before the edge.
        if (at(s).compare_exchange(seen, next, base::seq_cst, base::seq_cst)) break;
    }
    if (!has_waiters(seen)) return;
    for (auto* w = reinterpret_cast<waiter*>(seen); w != nullptr;) {
        waiter* next = w->next;
        UMS_DEBUG_ASSERT(!w->is_closed, "an edge found a waiter that a close had taken");
        woken.add(sched::claim_for_wake(*w->who));
        w = next;
    }
}

void descriptor::ready(std::uint32_t generation, bool in, bool out, bool hung_up,
                       fiber_list& woken) noexcept {
    const std::uint32_t now = generation_.load(base::acquire);  // sync(io.descriptor)
    UMS_DEBUG_ASSERT(!is_before(now, generation), "an edge came of a file that is still to come");
    if (now != generation) return;
    // This comes before the word: a reader that takes `maybe` after this sees it.
    if (hung_up) hung_up_.store(true, base::seq_cst);
    if (in) edge(side::in, woken);
    if (out) edge(side::out, woken);
}

void descriptor::fire(std::uint32_t generation, fiber_list& woken) noexcept {
    const std::uint32_t now = generation_.load(base::acquire);  // sync(io.descriptor)
    UMS_DEBUG_ASSERT(!is_before(now, generation), "an event came of a file that is still to come");
    if (now != generation) return;
    // Both directions: the waiters arm again what is left of the two.
    edge(side::in, woken);
    edge(side::out, woken);
}

// Arms the single registration for all waiters of now. Returns 0, -errno, or no_engine.
// `of_file`: see wait_once().
long descriptor::arm(int fd, std::uint32_t generation, std::uint64_t& of_file) noexcept {
    const engine_use use;
    long error = 0;
    engine* const e = obtain_engine(error);
    if (e == nullptr) return error != 0 ? error : no_engine;
    const os::word_guard locked{lock_};
    if (generation_.load(base::relaxed) != generation) return -EBADF;
    const bool in = is_waited_for(side::in), out = is_waited_for(side::out);
    if (!in && !out) return 0;  // An earlier event has taken the caller.
    bool is_new = !was_armed_.load(base::relaxed);
    error = e->arm(fd, generation, in, out, is_new);
    if (error != 0) return error;
    // seq_cst: comes before forget_all() is trusted to find the waiters.
    was_armed_.store(true, base::seq_cst);
    if (is_new) {
        // The engine did not know this file under this number, so what is noted of the number may
        // belong to another file, too.
        struct stat is;
        const std::uint32_t t = traits_.load(base::relaxed);
        const bool is_there = os::io_call(SYS_fstat, fd, &is) == 0;
        if ((t & known) != 0 && (!is_there || kind_of(fd, is) != (t & kinds)))
            traits_.store(0, base::relaxed);
        identity_.store(is_there ? identity_of(is) : 0, base::relaxed);
    }
    const std::uint64_t now = identity_.load(base::relaxed);
    if (of_file != 0 && of_file != now) return -EBADF;
    of_file = now;
    return 0;
}

long descriptor::add_to_engine(int fd, std::uint32_t generation) noexcept {
    const engine_use use;
    long error = 0;
    engine* e = obtain_engine(error);
    if (e == nullptr) return error;  // 0 means that no runtime runs.
    const os::word_guard locked{lock_};
    if (is_registered_.load(base::relaxed)) return 0;
    if (generation_.load(base::relaxed) != generation) return -EBADF;
    UMS_DEBUG_ASSERT(is_kept(), "a number that others may close was registered for good");
    error = e->add(fd, generation);
    if (error == 0) is_registered_.store(true, base::release);  // sync(io.descriptor)
    return error;
}

bool descriptor::withdraw(side s, waiter& me) noexcept {
    std::uintptr_t seen = at(s).load(base::acquire);
    do {
        if (!has_waiters(seen)) return false;
        // sync(io.descriptor): sees the other waiters' fields.
    } while (!at(s).compare_exchange(seen, nothing, base::acq_rel, base::acquire));
    bool found = false;
    for (auto* w = reinterpret_cast<waiter*>(seen); w != nullptr;) {
        waiter* next = w->next;
        if (w == &me)
            found = true;
        else
            sched::wake(*w->who);
        w = next;
    }
    return found;
}

long descriptor::wait(int fd, side s, std::uint32_t generation, os::nanoseconds until,
                      const std::stop_token* stop) noexcept {
    sched::parkable& self = sched::this_parkable();
    if (!is_registered_.load(base::acquire)) [[unlikely]]  // sync(io.descriptor)
        if (const long error = add_to_engine(fd, generation); error != 0) return error;
    if (current_engine() == nullptr) return wait_alone(fd, s, generation, until, stop);

    waiter me{&self, nullptr, false};
    // relaxed: a hint.
    last_.store(reinterpret_cast<std::uintptr_t>(&self), base::relaxed);
    std::uintptr_t seen = at(s).load(base::relaxed);
    for (;;) {
        if (is_mark(seen)) {
            if (at(s).compare_exchange(seen, nothing, base::seq_cst, base::relaxed)) return 0;
            continue;
        }
        me.next = seen == nothing ? nullptr : reinterpret_cast<waiter*>(seen);
        // sync(io.descriptor): publishes the waiter's fields. seq_cst: see the header.
        if (at(s).compare_exchange(seen, reinterpret_cast<std::uintptr_t>(&me), base::seq_cst,
                                   base::relaxed))
            break;
    }
    if (generation_.load(base::seq_cst) != generation) {
        if (!withdraw(s, me)) {
            sched::park(sched::park_kind::internal);
            restore(s);  // The wake-up may have been an edge of the next file.
        }
        return -EBADF;
    }
    // It is no longer registered: expel(), or the sweep of forget_all(), may have run before this
    // waiter was in the word.
    if (!is_registered_.load(base::seq_cst)) {
        if (!withdraw(s, me)) sched::park(sched::park_kind::internal);
        return me.is_closed ? -EBADF : 0;
    }
    return sleep(fd, s, me, until, stop);
}

long descriptor::wait_once(int fd, side s, std::uint32_t generation, std::uint64_t& of_file,
                           os::nanoseconds until, const std::stop_token* stop) noexcept {
    // seq_cst: comes before the generation is read again. The closer, and the maker of the next
    // file, clean up after this number.
    if (!was_waited_for_.load(base::relaxed)) was_waited_for_.store(true, base::seq_cst);
    const engine::waiting_once counted;
    waiter me{&sched::this_parkable(), nullptr, false};
    std::uintptr_t seen = at(s).load(base::relaxed);
    do {
        me.next = has_waiters(seen) ? reinterpret_cast<waiter*>(seen) : nullptr;
        // sync(io.descriptor): publishes the waiter's fields. seq_cst: see the header.
    } while (!at(s).compare_exchange(seen, reinterpret_cast<std::uintptr_t>(&me), base::seq_cst,
                                     base::relaxed));
    const long error =
        generation_.load(base::seq_cst) != generation ? -EBADF : arm(fd, generation, of_file);
    if (error == 0) return sleep(fd, s, me, until, stop);
    if (!withdraw(s, me)) sched::park(sched::park_kind::internal);
    if (me.is_closed) return -EBADF;
    if (error != no_engine) return error;
    const std::uint64_t now = identity_at(fd);
    if (of_file != 0 && of_file != now) return -EBADF;
    of_file = now;
    return wait_alone(fd, s, generation, until, stop);
}

// The end of a wait: `me` is in the word, or an edge or a closer has taken it out.
long descriptor::sleep(int fd, side s, waiter& me, os::nanoseconds until,
                       const std::stop_token* stop) noexcept {
    const sched::wait now{*me.who,
                          s == side::in ? sched::wait_kind::readable : sched::wait_kind::writable,
                          static_cast<unsigned>(fd)};
    const auto why = sched::park(sched::park_kind::internal, until, stop);
    if (why == sched::parkable::reason::wake) return me.is_closed ? -EBADF : 0;
    if (!withdraw(s, me)) {
        sched::park(sched::park_kind::internal);  // The wake() is on its way.
        return me.is_closed ? -EBADF : 0;
    }
    return why == sched::parkable::reason::deadline ? -ETIMEDOUT : -ECANCELED;
}

// How a plain thread waits while no runtime runs.
long descriptor::wait_alone(int fd, side s, std::uint32_t generation, os::nanoseconds until,
                            const std::stop_token* stop) noexcept {
    // What poll(2) calls ready may have nothing for the caller's attempt, so the limits are checked
    // here too.
    if (until != os::never && os::now() >= until) return -ETIMEDOUT;
    const bool stoppable = stop != nullptr && stop->stop_possible();
    if (stoppable && stop->stop_requested()) return -ECANCELED;

    const lone_waiter me{fd};
    if (me.bell() < 0 && stoppable) return me.bell();
    if (generation_.load(base::seq_cst) != generation) return -EBADF;
    pollfd fds[2] = {{fd, static_cast<short>(s == side::in ? POLLIN | POLLRDHUP : POLLOUT), 0},
                     {static_cast<int>(me.bell()), POLLIN, 0}};
    timespec left{};
    long result;
    {
        std::stop_token none;
        const std::stop_callback on_stop{stoppable ? *stop : none, [&me] { me.ring(); }};
        do {
            if (until != os::never) {
                const os::nanoseconds ns = std::max(until - os::now(), 0l);
                left = {ns / 1'000'000'000, ns % 1'000'000'000};
            }
            result = os::poll_call(fds, 2, until == os::never ? nullptr : &left);
        } while (result == -EINTR);
    }
    if (generation_.load(base::seq_cst) != generation) return -EBADF;
    if (result < 0) return result;
    if (result == 0) return -ETIMEDOUT;
    if ((fds[0].revents & POLLNVAL) != 0) return -EBADF;
    if (fds[0].revents == 0) return -ECANCELED;
    return 0;
}

void descriptor::forget_all() noexcept {
    UMS_DEBUG_ASSERT(current_engine() == nullptr, "an engine was forgotten that is in use");
    for (auto& block : table_) {
        descriptor* d = block.load(base::acquire);  // sync(io.table)
        if (d == nullptr) continue;
        for (unsigned i = 0; i < block_size; ++i, ++d) {
            if (!d->is_registered_.load(base::relaxed) && !d->was_armed_.load(base::seq_cst))
                continue;
            const os::word_guard locked{d->lock_};
            d->is_registered_.store(false, base::seq_cst);  // seq_cst: pairs with wait().
            d->was_armed_.store(false, base::relaxed);
            fiber_list none;
            d->edge(side::in, none);
            d->edge(side::out, none);
        }
    }
}

}  // namespace ums::io
