// SPDX-License-Identifier: MIT
//
// All state is under one lock, receivers.lock. offer() and accept() do what is possible now; a
// caller that can do nothing publishes a transfer in the same section and parks.
//
// No wake-up is lost: a waiter looked and published in one section. So a partner's section either
// came before, and the waiter saw what it left (a value, room, a waiting partner, the close), or it
// comes after and finds the transfer. A receiver waits only while there is no value in the channel,
// no sender waits, and the channel is not closed. Each section that ends this (a send, a close)
// serves or wakes the receivers first. So an invariant holds for the three lists "values",
// "senders" and "receivers": receivers wait only while the other two are empty, and senders only
// while the channel is full (except for a sender whose value's move threw: it is on its way to try
// again).
//
// A waiter that is found is woken exactly once, after the section; sync/wait_list.hpp has this
// protocol. The waiter touches its transfer and its value again only after that wake-up. The
// waker's last access to the channel is its release of the lock.
//
// An untimed wait usually parks while it holds the lock, which the next fiber releases
// (sched/run/park.hpp): then the list alone says which thread owns the waiter, and a hand-over
// saves three read-modify-writes.
//
// A channel whose waits and hand-overs all happen on one processor becomes biased to it
// (sched/lock/bias.hpp), unless moving a value could run code of the user's. Then send() and
// receive() work inside that processor and need no read-modify-write at all. What they cannot do
// there (a block must be allocated or freed, a select waits, the channel is closed) they leave to
// the ordinary way, which takes the lock, and gives the bias back if it was the caller's. No sender
// ever waits on an unbounded channel, so there each value counts as a wait.
//
// In a biased channel that is neither empty nor full nobody waits, by the invariant above (its
// exception, a move that throws, does not concern the types of biased channels). Then a send or
// receive is only a copy between enter() and leave(). send() and receive() do that part
// themselves and call no function in it, so that they save no registers. All else they leave to
// pass().
//
// Rejected: moving values outside the lock, by reserving a cell and publishing it later. A sender
// that stops between the two would block all receivers behind it, which is worse than a slow move.

#include "ums/channel.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "sched/lock/bias_count.hpp"
#include "sched/lock/inside.hpp"
#include "sync/channel/transfer.hpp"

namespace ums {

namespace impl {

struct channel_block {
    channel_block* next;
};

}  // namespace impl

namespace sync {

namespace {

using impl::channel_block;
using impl::element_type;
using outcome = transfer::outcome;

constexpr std::size_t block_bytes = 4096;

// --- what is in the channel ---

std::size_t alignment_of(const element_type& t) noexcept {
    return std::max(t.align, alignof(channel_block));
}
std::size_t offset_of(const element_type& t) noexcept {
    return std::max(t.align, sizeof(channel_block));
}
std::byte* first_cell(const channel_state& c, channel_block* b) noexcept {
    return reinterpret_cast<std::byte*>(b) + offset_of(*c.type);
}

channel_block* make_block(const channel_state& c) {
    const std::size_t bytes = offset_of(*c.type) + c.cells * c.size;
    return ::new (::operator new (bytes, std::align_val_t{alignment_of(*c.type)}))
        channel_block{nullptr};
}
void free_block(const channel_state& c, channel_block* b) noexcept {
    ::operator delete (b, std::align_val_t{alignment_of(*c.type)});
}

void begin_tail(channel_state& c) noexcept {
    c.tail_at = first_cell(c, c.tail);
    c.tail_end = c.tail_at + c.cells * c.size;
}
void begin_head(channel_state& c) noexcept {
    c.head_at = first_cell(c, c.head);
    c.head_end = c.head_at + c.cells * c.size;
}

// The tail's block is used up: goes to the next one.
[[gnu::noinline]] void enter_block(channel_state& c) {
    if (c.tail == nullptr) {
        c.head = c.tail = make_block(c);
        c.tail->next = c.tail;
        begin_head(c);
    } else if (c.capacity == unbounded && c.tail->next == c.head) {
        channel_block* b = make_block(c);
        b->next = c.head;
        c.tail->next = b;
    }
    c.tail = c.tail->next;
    begin_tail(c);
}

// The head's block is used up: it becomes a spare one behind the tail, unless there is one already.
[[gnu::noinline]] void leave_block(channel_state& c) noexcept {
    channel_block* left = c.head;
    c.head = left->next;
    begin_head(c);
    channel_block* spare = c.tail->next;
    if (left == c.head || spare == left) return;
    spare->next = c.head;
    free_block(c, left);
}

// The sizes that are copied without a call.
bool is_short(std::size_t size) noexcept { return size == 4 || size == 8 || size == 16; }

// Requires: is_short(size).
UMS_ALWAYS_INLINE void copy_short(void* to, const void* from, std::size_t size) noexcept {
    if (size == 4) return static_cast<void>(std::memcpy(to, from, 4));
    if (size == 8) return static_cast<void>(std::memcpy(to, from, 8));
    std::memcpy(to, from, 16);
}

UMS_ALWAYS_INLINE void copy_bytes(void* to, const void* from, std::size_t size) noexcept {
    is_short(size) ? copy_short(to, from, size) : static_cast<void>(std::memcpy(to, from, size));
}

// Moves the value at `from`, a cell or a sender's, to the receiver that shows `into`.
UMS_ALWAYS_INLINE void deliver(const channel_state& c, void* into, void* from) {
    c.type->is_bytes ? copy_bytes(into, from, c.size) : c.type->deliver(into, from);
}

UMS_ALWAYS_INLINE void put(channel_state& c, void* from) {
    if (c.tail_at == c.tail_end) [[unlikely]]
        enter_block(c);
    c.type->is_bytes ? copy_bytes(c.tail_at, from, c.size) : c.type->build(c.tail_at, from);
    c.tail_at += c.size;
    ++c.count;
}

std::byte* front(channel_state& c) noexcept {
    if (c.head_at == c.head_end) [[unlikely]]
        leave_block(c);
    return c.head_at;
}
// The channel is empty now. A channel that is emptied often stays in the same cache lines.
UMS_ALWAYS_INLINE void rewind(channel_state& c) noexcept {
    if (c.head == c.tail) c.head_at = c.tail_at = first_cell(c, c.head);
}
UMS_ALWAYS_INLINE void drop_front(channel_state& c) noexcept {
    std::byte* const gone = front(c);
    if (!c.type->is_bytes) c.type->destroy(gone);
    c.head_at += c.size;
    if (--c.count == 0) rewind(c);
}

// --- waiters ---

// Returns the first transfer that still waits, or null. If it belongs to a select, the caller has
// now claimed it.
transfer* first(wait_list& list) noexcept {
    while (auto* t = static_cast<transfer*>(list.first)) {
        if (t->claim == nullptr || claim(*t->claim, t->number)) [[likely]]
            return t;
        unlink(list, *t);
    }
    return nullptr;
}

// Moves a value from or to `t`, the first of `list`, and takes `t` out. If the move throws, a plain
// waiter stays as it was; a select that was claimed has to be told.
void serve(channel_state& c, wait_list& list, transfer& t, void* out, void* from, woken& partners) {
    try {
        deliver(c, out, from);
    } catch (...) {
        if (t.claim != nullptr) {
            unlink(list, t);
            partners.add(t, outcome::again);
        }
        throw;
    }
    unlink(list, t);
    partners.add(t, outcome::ok);
}

// There is room: the values of the first senders move up.
[[gnu::noinline]] void refill(channel_state& c, woken& partners) noexcept {
    while (c.count < c.capacity) {
        transfer* t = first(c.senders);
        if (t == nullptr) return;
        outcome result = outcome::ok;
        try {
            put(c, t->value);
        } catch (...) {
            // The sender tries again: it throws where that belongs, or succeeds.
            result = outcome::again;
        }
        unlink(c.senders, *t);
        partners.add(*t, result);
    }
}

// The channel's lock, held to the end of the scope unless it is left before. With sched::inside it
// shares what pass() needs.
class section {
public:
    explicit UMS_ALWAYS_INLINE section(channel_state& c) noexcept
        : c_{c}, next_{os::lock_word::acquire(c.receivers.lock)} {}
    UMS_ALWAYS_INLINE ~section() {
        if (is_held_) leave();
    }
    section(const section&) = delete;
    section& operator=(const section&) = delete;

    UMS_ALWAYS_INLINE void leave() noexcept { os::lock_word::release(c_.receivers.lock, left()); }
    void enter() noexcept {
        next_ = os::lock_word::acquire(c_.receivers.lock);
        is_held_ = true;
    }

    [[nodiscard]] UMS_ALWAYS_INLINE parkable& self() const noexcept {
        return sched::this_parkable();
    }
    // For each wait and each hand-over: after enough of them on one processor the lock is left
    // biased to it.
    UMS_ALWAYS_INLINE void count() noexcept {
        if (next_ != os::lock_states::free || !c_.type->is_bytes || c_.size > impl::bytes_most)
            return;
        const std::uint32_t mine = sched::bias::mine();
        // These words of the lists are otherwise unused.
        if (sched::bias_count::note(c_.receivers.spare, c_.senders.spare, mine)) next_ = mine;
    }
    // Leaves, and ends the wait of `who`, which the caller has taken out of its list.
    UMS_ALWAYS_INLINE void wake(parkable& who) noexcept {
        const bool is_held = who.is_held.get();
        count();
        leave();
        is_held ? sched::resume_held(who) : sched::wake(who);
    }
    // Leaves, and waits until the calling fiber, which is in a list, is woken.
    UMS_ALWAYS_INLINE void park() noexcept {
        std::uint32_t& lock = c_.receivers.lock;
        const std::uint32_t next = left();
        if (sched::park_holding(lock, next)) [[likely]]
            return;
        os::lock_word::release(lock, next);
        sched::park(sched::park_kind::internal);
    }

private:
    UMS_ALWAYS_INLINE std::uint32_t left() noexcept {
        is_held_ = false;
        return next_;
    }

    channel_state& c_;
    std::uint32_t next_;
    bool is_held_ = true;
};

enum class way : bool { send, receive };

template <way direction>
inline constexpr sched::wait_kind kind_of =
    direction == way::send ? sched::wait_kind::send : sched::wait_kind::receive;

template <way direction>
wait_list& own_list(channel_state& c) noexcept {
    return direction == way::send ? c.senders : c.receivers;
}

template <way direction>
channel_status attempt(channel_state& c, void* value, woken& partners) {
    return direction == way::send ? offer(c, value, partners) : accept(c, value, partners);
}

template <way direction>
channel_status try_now(channel_state& c, void* value) {
    woken partners;
    const section locked{c};
    return attempt<direction>(c, value, partners);
}

// --- waiting ---

// Like park_on().
reason park(section& locked, wait_list& list, transfer& t, nanoseconds until,
            const std::stop_token* stop) noexcept {
    locked.leave();
    const reason why = sched::park(sched::park_kind::internal, until, stop);
    if (why == reason::wake) return why;
    locked.enter();
    if (t.is_queued) {
        unlink(list, t);
        return why;
    }
    locked.leave();
    sched::park(sched::park_kind::internal);  // The wake() is on its way.
    return reason::wake;
}

// A whole operation, from the lock on.
template <way direction>
[[gnu::noinline]] channel_status transfer_until(channel_state& c, void* value, nanoseconds until,
                                                const std::stop_token* stop, bool is_again) {
    constexpr channel_status must_wait =
        direction == way::send ? channel_status::full : channel_status::empty;
    wait_list& list = own_list<direction>(c);
    if (stop != nullptr && !stop->stop_possible()) stop = nullptr;
    for (;; is_again = true) {
        woken partners;
        section locked{c};
        const channel_status status = attempt<direction>(c, value, partners);
        if (status != must_wait) return status;
        transfer t{sched::this_parkable(), value};
        const sched::wait now{*t.who, kind_of<direction>, &c};
        is_again ? push_front(list, t) : link(list, t);
        reason why = reason::wake;
        if (until == os::never && stop == nullptr)
            locked.park();
        else
            why = park(locked, list, t, until, stop);
        if (why == reason::deadline) return channel_status::deadline_passed;
        if (why == reason::stop) return channel_status::stopped;
        if (t.result == outcome::ok) return channel_status::ok;
        if (t.result == outcome::closed) return channel_status::closed;
    }
}

// --- several values at once ---

// Puts values that are plain bytes and lie one after the other: as many as fit in a row in a block.
// Returns false if this way is not possible for any.
bool put_run(channel_state& c, const impl::channel_batch& b, std::size_t& done) {
    if (b.bytes == nullptr || c.is_closed || c.receivers.first != nullptr || c.count >= c.capacity)
        return false;
    if (c.tail_at == c.tail_end) enter_block(c);
    const auto cells = static_cast<std::size_t>(c.tail_end - c.tail_at) / c.size;
    const std::size_t run = std::min({cells, c.capacity - c.count, b.count - done});
    std::memcpy(c.tail_at, b.bytes + done * c.size, run * c.size);
    c.tail_at += run * c.size;
    c.count += run;
    done += run;
    return true;
}

void take_run(channel_state& c, const impl::channel_batch& b, std::size_t& done) noexcept {
    const void* const from = front(c);  // This enters the next block first, if it must.
    const auto cells = static_cast<std::size_t>(c.head_end - c.head_at) / c.size;
    const std::size_t run = std::min({cells, c.count, b.count - done});
    std::memcpy(b.bytes + done * c.size, from, run * c.size);
    c.head_at += run * c.size;
    c.count -= run;
    if (c.count == 0) rewind(c);
    done += run;
}

// Moves as many values as is possible now, in one section, starting with number `done`.
template <way direction>
channel_status attempt_many(channel_state& c, const impl::channel_batch& b, std::size_t& done) {
    woken partners;
    const section locked{c};
    channel_status status = channel_status::ok;
    while (done < b.count) {
        if (direction == way::send && put_run(c, b, done)) continue;
        status = attempt<direction>(c, b.at(b.context, done), partners);
        if (status != channel_status::ok) break;
        ++done;
    }
    return status;
}

// `least` is how many values satisfy the caller. `done` counts on, also if a move throws.
template <way direction>
channel_status transfer_many(channel_state& c, const impl::channel_batch& b, std::size_t least,
                             std::size_t& done, nanoseconds until, const std::stop_token* stop) {
    for (;;) {
        channel_status status = attempt_many<direction>(c, b, done);
        if (done >= least || status == channel_status::closed)
            return done >= least ? channel_status::ok : status;
        status = transfer_until<direction>(c, b.at(b.context, done), until, stop, false);
        if (status != channel_status::ok) return status;
        ++done;
    }
}

// --- the short ways, which make up nearly all of an untimed operation ---
//
// Each is written once for the two kinds of `Section`: the lock, and a section inside the processor
// that the channel is biased to. If a move throws, the section's destructor releases the lock; a
// biased channel's moves do not throw.

template <class Section>
inline constexpr bool is_inside = std::is_same_v<Section, sched::inside>;

// After a value went in or out and no partner waited.
UMS_ALWAYS_INLINE void leave_after_move(channel_state&, sched::inside& here) noexcept {
    here.leave();
}
UMS_ALWAYS_INLINE void leave_after_move(channel_state& c, section& here) noexcept {
    if (c.capacity == unbounded) here.count();
    here.leave();
}

UMS_ALWAYS_INLINE void park(sched::inside& here) noexcept {
    if (!here.park()) [[unlikely]]
        sched::park(sched::park_kind::internal);
}
UMS_ALWAYS_INLINE void park(section& here) noexcept {
    here.count();
    here.park();
}

// Waits: nothing is possible now.
template <way direction, class Section>
UMS_ALWAYS_INLINE channel_status wait(channel_state& c, Section& here, void* value) {
    parkable& self = here.self();
    transfer t{self, value};
    link(own_list<direction>(c), t);
    const sched::wait now{self, kind_of<direction>, &c};
    park(here);
    if (t.result == outcome::ok) [[likely]]
        return channel_status::ok;
    if (t.result == outcome::closed) return channel_status::closed;
    return transfer_until<direction>(c, value, os::never, nullptr, true);
}

// `t` is a plain waiter, the first of `list`.
template <class Section>
UMS_ALWAYS_INLINE channel_status hand_over(channel_state& c, Section& here, wait_list& list,
                                           transfer& t, void* out, void* from) {
    deliver(c, out, from);
    unlink(list, t);
    here.wake(*t.who);
    return channel_status::ok;
}

// Receives the first value, and puts the value of `t`, a plain waiter and the first sender, in its
// place. The type is plain bytes. The channel is full, so it is bounded.
template <class Section>
UMS_ALWAYS_INLINE channel_status move_up(channel_state& c, Section& here, transfer& t, void* into) {
    deliver(c, into, front(c));
    drop_front(c);
    put(c, t.value);
    unlink(c.senders, t);
    here.wake(*t.who);
    return channel_status::ok;
}

// Whether the next value at `at` may be moved here. Inside no block is allocated or freed; a
// bounded channel keeps its one block for ever.
template <class Section>
UMS_ALWAYS_INLINE bool may_move(const channel_state& c, const std::byte* at,
                                const std::byte* end) noexcept {
    return !is_inside<Section> || at != end || c.capacity != unbounded;
}

// What is rare: not inside, with the lock; not by the short ways, by the long one.
template <way direction>
channel_status in_lock(channel_state& c, void* value);
template <way direction, class Section>
UMS_ALWAYS_INLINE channel_status otherwise(channel_state& c, void* value, Section& here) {
    here.leave();
    if constexpr (is_inside<Section>)
        return in_lock<direction>(c, value);
    else
        return transfer_until<direction>(c, value, os::never, nullptr, false);
}

template <class Section>
UMS_ALWAYS_INLINE channel_status send(channel_state& c, void* from, Section& here) {
    if (auto* t = static_cast<transfer*>(c.receivers.first)) {
        if (t->claim == nullptr) [[likely]]
            return hand_over(c, here, c.receivers, *t, t->value, from);
    } else if (!c.is_closed) [[likely]] {
        if (c.count >= c.capacity) return wait<way::send>(c, here, from);
        if (may_move<Section>(c, c.tail_at, c.tail_end)) [[likely]] {
            put(c, from);
            leave_after_move(c, here);
            return channel_status::ok;
        }
    }
    return otherwise<way::send>(c, from, here);
}

template <class Section>
UMS_ALWAYS_INLINE channel_status receive(channel_state& c, void* into, Section& here) {
    if (auto* t = static_cast<transfer*>(c.senders.first)) {
        if (t->claim == nullptr && (is_inside<Section> || c.count == 0 || c.type->is_bytes))
            [[likely]]
            return c.count == 0 ? hand_over(c, here, c.senders, *t, into, t->value)
                                : move_up(c, here, *t, into);
    } else if (c.count != 0) {
        if (may_move<Section>(c, c.head_at, c.head_end)) [[likely]] {
            deliver(c, into, front(c));
            drop_front(c);
            leave_after_move(c, here);
            return channel_status::ok;
        }
    } else if (!c.is_closed) [[likely]] {
        return wait<way::receive>(c, here, into);
    }
    return otherwise<way::receive>(c, into, here);
}

template <way direction, class Section>
UMS_ALWAYS_INLINE channel_status pass(channel_state& c, void* value, Section& here) {
    return direction == way::send ? send(c, value, here) : receive(c, value, here);
}

template <way direction>
[[gnu::noinline]] channel_status in_lock(channel_state& c, void* value) {
    section here{c};
    return pass<direction>(c, value, here);
}

// For ThreadSanitizer a section begins and ends in one function (sched/lock/inside.hpp).
#if defined(UMS_TSAN)
#define UMS_REST UMS_ALWAYS_INLINE
#else
#define UMS_REST [[gnu::noinline]]
#endif

// The rest of an operation, from within the section. A `place` would travel through memory.
template <way direction>
UMS_REST channel_status rest(channel_state& c, void* value, sched::carrier_core* at,
                             sched::fiber* self, sched::processor* p) {
    sched::inside here{c.receivers.lock, {at, self, p}};
    return pass<direction>(c, value, here);
}

// A thief asks for the processor, or the lock is not biased to it.
template <way direction>
[[gnu::noinline]] channel_status without_haste(channel_state& c, void* value) {
    sched::inside here{c.receivers.lock};
    return here.enter() ? pass<direction>(c, value, here) : in_lock<direction>(c, value);
}

// A whole untimed operation.
template <way direction>
UMS_ALWAYS_INLINE channel_status transfer_one(channel_state& c, void* value) {
    sched::inside here{c.receivers.lock};
    if (!here.is_biased()) return in_lock<direction>(c, value);
    if (!here.try_enter()) [[unlikely]]
        return without_haste<direction>(c, value);
    if (c.count - 1 < c.between) [[likely]] {  // So nobody waits: see channel_state.
        if constexpr (direction == way::send) {
            if (c.tail_at != c.tail_end) [[likely]] {
                copy_short(c.tail_at, value, c.size);
                c.tail_at += c.size;
                ++c.count;
                here.leave();
                return channel_status::ok;
            }
        } else if (c.head_at != c.head_end) [[likely]] {
            copy_short(value, c.head_at, c.size);
            c.head_at += c.size;
            if (--c.count == 0) rewind(c);
            here.leave();
            return channel_status::ok;
        }
    }
    const auto [at, self, p] = here.where();
    return rest<direction>(c, value, at, self, p);
}
#undef UMS_REST

void close_all(wait_list& list, woken& partners) noexcept {
    while (transfer* t = first(list)) {
        unlink(list, *t);
        partners.add(*t, outcome::closed);
    }
}

}  // namespace

channel_status offer(channel_state& c, void* from, woken& partners) {
    if (c.is_closed) [[unlikely]]
        return channel_status::closed;
    if (transfer* t = first(c.receivers)) {
        serve(c, c.receivers, *t, t->value, from, partners);
        return channel_status::ok;
    }
    if (c.count >= c.capacity) return channel_status::full;
    put(c, from);
    return channel_status::ok;
}

channel_status accept(channel_state& c, void* into, woken& partners) {
    if (c.count != 0) {
        deliver(c, into, front(c));
        drop_front(c);
        if (c.senders.first != nullptr) [[unlikely]]
            refill(c, partners);
        return channel_status::ok;
    }
    if (transfer* t = first(c.senders)) {
        serve(c, c.senders, *t, into, t->value, partners);
        return channel_status::ok;
    }
    return c.is_closed ? channel_status::closed : channel_status::empty;
}

}  // namespace sync

namespace impl {

using namespace sync;

void channel_calls::open(channel_state& c, const element_type& type, std::size_t capacity) {
    if (capacity != unbounded && capacity > (SIZE_MAX / 2 - type.align) / type.size)
        throw std::length_error{"ums: a channel of too great a capacity"};
    c.type = &type;
    c.size = type.size;
    c.capacity = capacity;
    c.between = capacity != 0 && type.is_bytes && is_short(type.size) ? capacity - 1 : 0;
    c.cells = capacity != unbounded ? capacity : std::max<std::size_t>(block_bytes / type.size, 1);
    if (capacity != 0 && capacity != unbounded) enter_block(c);
}

void channel_calls::destroy(channel_state& c) noexcept {
    UMS_ASSERT(sync::empty(c.receivers) && sync::empty(c.senders),
               "a channel was destroyed while somebody waits in it");
    while (c.count != 0) drop_front(c);
    if (c.head == nullptr) return;
    channel_block* b = c.head->next;
    c.head->next = nullptr;
    while (b != nullptr) {
        channel_block* next = b->next;
        free_block(c, b);
        b = next;
    }
}

channel_status channel_calls::send(channel_state& c, void* from) {
    return transfer_one<way::send>(c, from);
}
channel_status channel_calls::try_send(channel_state& c, void* from) {
    return try_now<way::send>(c, from);
}
channel_status channel_calls::send_until(channel_state& c, void* from, deadline limit,
                                         const std::stop_token* stop) {
    return transfer_until<way::send>(c, from, os::to_nanoseconds(limit), stop, false);
}

channel_status channel_calls::receive(channel_state& c, void* into) {
    return transfer_one<way::receive>(c, into);
}
channel_status channel_calls::try_receive(channel_state& c, void* into) {
    return try_now<way::receive>(c, into);
}
channel_status channel_calls::receive_until(channel_state& c, void* into, deadline limit,
                                            const std::stop_token* stop) {
    return transfer_until<way::receive>(c, into, os::to_nanoseconds(limit), stop, false);
}

channel_status channel_calls::send_all(channel_state& c, const channel_batch& b, std::size_t& done,
                                       deadline limit, const std::stop_token* stop) {
    return transfer_many<way::send>(c, b, b.count, done, os::to_nanoseconds(limit), stop);
}
channel_status channel_calls::receive_some(channel_state& c, const channel_batch& b,
                                           std::size_t& done, deadline limit,
                                           const std::stop_token* stop) {
    return transfer_many<way::receive>(c, b, std::min<std::size_t>(b.count, 1), done,
                                       os::to_nanoseconds(limit), stop);
}

channel_status channel_calls::receive_ready(channel_state& c, const channel_batch& b,
                                            std::size_t& done) {
    return attempt_many<way::receive>(c, b, done);
}

void channel_calls::receive_bytes(channel_state& c, const channel_batch& b, std::size_t& done) {
    woken partners;
    const section locked{c};
    while (done < b.count && c.count != 0) {
        take_run(c, b, done);
        if (c.senders.first != nullptr) refill(c, partners);
    }
}

void channel_calls::close(channel_state& c) noexcept {
    woken partners;
    const section locked{c};
    c.is_closed = true;
    c.between = 0;
    close_all(c.receivers, partners);
    close_all(c.senders, partners);
}

bool channel_calls::is_closed(const channel_state& c) noexcept {
    const section locked{const_cast<channel_state&>(c)};
    return c.is_closed;
}

std::size_t channel_calls::size(const channel_state& c) noexcept {
    const section locked{const_cast<channel_state&>(c)};
    return c.count;
}

std::size_t refuse_empty_queue() {
    throw std::invalid_argument{"ums: a concurrent_queue of capacity 0"};
}

}  // namespace impl

}  // namespace ums
