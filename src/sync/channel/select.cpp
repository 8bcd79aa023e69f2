// SPDX-License-Identifier: MIT
//
// A select looks at all its cases while it holds the locks of all its channels, and if none can
// happen, it publishes a transfer for each before it releases any lock. So for every other caller
// the select is either not there, or waits in all its channels.
//
// When two selects meet, the one that finds the other holds its own locks and is published nowhere.
// No other thread can claim it, so only the other select has to be claimed, with one
// compare-and-swap. That other has released all its locks, or the first would not have got this
// channel's. Locks are taken in the order of their addresses, each channel's once however often it
// occurs, and no caller waits for another lock while it holds a higher one, so there is no
// deadlock.
//
// No wake-up is lost or stray. The claim word is 0 while the select waits. A partner or a close()
// (under the lock of the channel in which it found a transfer), a stop (in its callback) and the
// deadline (the waiter itself) each try to change it; the first one wins. A winner other than the
// waiter wakes it exactly once, and the waiter parks until that wake() has come. A loser drops the
// transfer it found and looks for another partner, so no value goes to a select that already has
// something else. Before it returns, the waiter destroys its stop callbacks, which waits for those
// that run, and looks at each transfer under its channel's lock (the winner took out its own).
// After that no other thread knows of the waiter.
//
// Rejected: publishing case by case, with both sides claimed when they meet. Then two words must be
// claimed in an order, and the first claim be taken back when the second fails, while a third
// partner passes by. Go began like that, too.

#include "ums/select.hpp"

#include <new>
#include <optional>

#include "base/random.hpp"
#include "sync/channel/transfer.hpp"

namespace ums {

namespace sync {

namespace {

// Where a select begins to look. Each kernel thread has a sequence of its own; no address of it is
// kept across a switch.
[[gnu::noinline]] std::uint32_t random_below(std::uint32_t n) noexcept {
    // One fiber of this thread after the other uses it, as with errno, so there is no plain access.
    thread_local constinit base::owned<std::uint64_t> drawn;
    drawn.add(0x9e3779b97f4a7c15u);
    return base::random{drawn.get() + reinterpret_cast<std::uintptr_t>(&drawn)}.below(n);
}

// Lies on the select's stack.
struct waiting {
    parkable& who;
    std::uint32_t claimed = 0;  // The case that was claimed, counted from 1; 0: none yet.
};

// The callback of a stop case.
struct on_request {
    waiting* select;
    std::uint32_t number;
    void operator()() const noexcept {
        parkable& who = select->who;
        if (claim(select->claimed, number)) sched::wake(who);
    }
};
using stop_callback = std::stop_callback<on_request>;

}  // namespace

}  // namespace sync

using namespace sync;

struct select_access::internal {
    using kind = select_case::kind;
    static_assert(sizeof(transfer) <= sizeof(select_case::node_));
    static_assert(sizeof(stop_callback) <= sizeof(select_case::node_));
    static_assert(alignof(transfer) <= 8 && alignof(stop_callback) <= 8);

    static constexpr std::uint32_t nobody = ~std::uint32_t{0};

    static bool has_channel(const select_case& one) noexcept {
        return one.kind_ == kind::receive || one.kind_ == kind::send;
    }
    static transfer& transfer_of(select_case& one) noexcept {
        return *std::launder(reinterpret_cast<transfer*>(one.node_));
    }
    static wait_list& list_of(select_case& one) noexcept {
        return one.kind_ == kind::send ? one.channel_->senders : one.channel_->receivers;
    }

    // --- the locks ---

    static select_case* merge(select_case* a, select_case* b) noexcept {
        select_case* head = nullptr;
        select_case** end = &head;
        while (a != nullptr && b != nullptr) {
            select_case*& less = std::less<>{}(b->channel_, a->channel_) ? b : a;
            *end = less;
            end = &less->next_locked_;
            less = less->next_locked_;
        }
        *end = a != nullptr ? a : b;
        return head;
    }

    // The cases that have a channel, sorted by its address. A bottom-up merge sort: bin[i] holds
    // 2^i cases.
    static select_case* sorted(select_case* cases) noexcept {
        select_case* bins[32] = {};
        for (select_case* one = cases; one != nullptr; one = one->next_) {
            if (!has_channel(*one)) continue;
            one->next_locked_ = nullptr;
            select_case* carry = one;
            unsigned i = 0;
            for (; bins[i] != nullptr; ++i) carry = merge(std::exchange(bins[i], nullptr), carry);
            bins[i] = carry;
        }
        select_case* all = nullptr;
        for (select_case* bin : bins) all = merge(bin, all);
        return all;
    }

    class all_locked {
    public:
        explicit all_locked(select_case* by_address) noexcept : all_{by_address} {
            for (const select_case* one = all_; one != nullptr;
                 one = last_of_same(one)->next_locked_)
                os::lock_word::acquire(one->channel_->receivers.lock);
        }
        ~all_locked() { leave(); }
        all_locked(const all_locked&) = delete;
        all_locked& operator=(const all_locked&) = delete;

        void leave() noexcept {
            const select_case* one = std::exchange(all_, nullptr);
            while (one != nullptr) {
                // A channel may be gone once its lock is released, so first step past its cases.
                const select_case* next = last_of_same(one)->next_locked_;
                os::lock_word::release(one->channel_->receivers.lock);
                one = next;
            }
        }

    private:
        static const select_case* last_of_same(const select_case* one) noexcept {
            while (one->next_locked_ != nullptr && one->next_locked_->channel_ == one->channel_)
                one = one->next_locked_;
            return one;
        }
        select_case* all_;
    };

    // --- looking at the cases ---

    // Requires: the lock of its channel. Returns whether the case has happened.
    static bool happens(select_case& one, woken& partners) {
        void* value = one.value_(one);
        one.status_ = one.kind_ == kind::send ? offer(*one.channel_, value, partners)
                                              : accept(*one.channel_, value, partners);
        return one.status_ == channel_status::ok || one.status_ == channel_status::closed;
    }

    // Calls look(one, index) for each case from a random start, until it returns true. Returns the
    // index, or `nobody`.
    template <class Look>
    static std::uint32_t look_around(select_case* cases, std::uint32_t n, Look look) {
        const std::uint32_t start = n > 1 ? random_below(n) : 0;
        select_case* first = cases;
        for (std::uint32_t i = 0; i < start; ++i) first = first->next_;
        select_case* one = first;
        for (std::uint32_t i = start; i < n; ++i, one = one->next_)
            if (look(*one)) return i;
        one = cases;
        for (std::uint32_t i = 0; i < start; ++i, one = one->next_)
            if (look(*one)) return i;
        return nobody;
    }

    static bool has_passed(select_case& one) noexcept {
        if (one.kind_ == kind::stop) return one.token_.stop_requested();
        return one.kind_ == kind::time && os::to_nanoseconds(one.at_) <= os::now();
    }

    // Requires: the locks of all channels. Returns the case that has happened, or `nobody`.
    static std::uint32_t look_at_all(select_case* cases, std::uint32_t n, woken& partners) {
        return look_around(cases, n, [&](select_case& one) {
            return has_channel(one) ? happens(one, partners) : has_passed(one);
        });
    }

    // For a select with an otherwise() among its cases. That happens only if no case was possible
    // at one instant: while all locks are held.
    static std::uint32_t without_waiting(select_case* cases, std::uint32_t n, std::uint32_t other) {
        woken partners;
        const all_locked locked{sorted(cases)};
        const std::uint32_t found = look_at_all(cases, n, partners);
        return found != nobody ? found : other;
    }

    // --- waiting ---

    static void publish(select_case* cases, waiting& self) noexcept {
        std::uint32_t number = 0;
        for (select_case* one = cases; one != nullptr; one = one->next_) {
            ++number;
            if (!has_channel(*one)) continue;
            auto* t = ::new (one->node_) transfer{self.who, one->value_(*one)};
            t->claim = &self.claimed;
            t->number = number;
            link(list_of(*one), *t);
        }
    }

    static void withdraw(select_case* cases, std::uint32_t winner) noexcept {
        std::uint32_t number = 0;
        for (select_case* one = cases; one != nullptr; one = one->next_) {
            if (++number == winner || !has_channel(*one)) continue;
            const os::word_guard locked{one->channel_->receivers.lock};
            if (transfer& t = transfer_of(*one); t.is_queued) unlink(list_of(*one), t);
        }
    }

    // The callbacks of the stop cases, for as long as this object lives.
    class stops {
    public:
        stops(select_case* cases, waiting& self) noexcept : cases_{cases} {
            std::uint32_t number = 0;
            for (select_case* one = cases; one != nullptr; one = one->next_) {
                ++number;
                if (one->kind_ != kind::stop) continue;
                any_ = true;
                ::new (one->node_) stop_callback{one->token_, on_request{&self, number}};
            }
        }
        ~stops() {
            if (!any_) return;
            bool is_requested = false;
            for (select_case* one = cases_; one != nullptr; one = one->next_)
                is_requested |= one->kind_ == kind::stop && one->token_.stop_requested();
            if (is_requested) sched::come_after_processor();
            for (select_case* one = cases_; one != nullptr; one = one->next_)
                if (one->kind_ == kind::stop)
                    std::launder(reinterpret_cast<stop_callback*>(one->node_))->~stop_callback();
        }
        stops(const stops&) = delete;
        stops& operator=(const stops&) = delete;

    private:
        select_case* const cases_;
        bool any_ = false;
    };

    // Waits until a case is claimed. Returns which, counted from 1.
    static std::uint32_t wait(select_case* cases, waiting& self, nanoseconds until,
                              std::uint32_t deadline_number) noexcept {
        const sched::wait now{self.who, sched::wait_kind::select,
                              std::uint64_t{deadline_number} - 1};
        const stops armed{cases, self};
        if (sched::park(sched::park_kind::internal, until, nullptr) != reason::wake &&
            !claim(self.claimed, deadline_number))
            // Another thread was first: its wake() is on its way.
            sched::park(sched::park_kind::internal);
        // relaxed: the thread that changed the word has woken this waiter since, or was this
        // waiter.
        return base::atomic_ref<std::uint32_t>{self.claimed}.load(base::relaxed);
    }

    // Returns `nobody` if the select has to look again.
    static std::uint32_t with_waiting(select_case* cases, std::uint32_t n, select_case* by_address,
                                      nanoseconds until, std::uint32_t deadline_index) {
        waiting self{sched::this_parkable()};
        {
            woken partners;
            all_locked locked{by_address};
            const std::uint32_t found = look_at_all(cases, n, partners);
            if (found != nobody) return found;
            publish(cases, self);
        }
        const std::uint32_t number = wait(cases, self, until, deadline_index + 1);
        withdraw(cases, number);
        select_case* one = cases;
        for (std::uint32_t i = 1; i < number; ++i) one = one->next_;
        if (has_channel(*one)) {
            const transfer::outcome result = transfer_of(*one).result;
            if (result == transfer::outcome::again) return nobody;
            one->status_ =
                result == transfer::outcome::ok ? channel_status::ok : channel_status::closed;
        }
        return number - 1;
    }
};

selected select_access::select(select_case* cases, std::size_t size) {
    using kind = internal::kind;
    UMS_ASSERT(size != 0 && size < internal::nobody - 1, "a select without a case");
    const auto n = static_cast<std::uint32_t>(size);
    std::uint32_t other = internal::nobody, soonest = 0, index = 0;
    nanoseconds until = os::never;
    for (select_case* one = cases; one != nullptr; one = one->next_, ++index) {
        one->status_ = channel_status::ok;
        if (one->kind_ == kind::otherwise) other = index;
        if (one->kind_ == kind::time && os::to_nanoseconds(one->at_) < until) {
            until = os::to_nanoseconds(one->at_);
            soonest = index;
        }
    }
    std::uint32_t found = internal::nobody;
    if (other != internal::nobody) {
        found = internal::without_waiting(cases, n, other);
    } else {
        select_case* by_address = internal::sorted(cases);
        while (found == internal::nobody)
            found = internal::with_waiting(cases, n, by_address, until, soonest);
    }
    select_case* one = cases;
    for (std::uint32_t i = 0; i < found; ++i) one = one->next_;
    return {found, one->status_};
}

}  // namespace ums
