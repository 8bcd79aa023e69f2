// SPDX-License-Identifier: MIT
#pragma once

// sync/channel/transfer.hpp: what a send and a receive do under a channel's lock. channel.cpp and
// select.cpp build on it.
//
// A waiting sender or receiver publishes a transfer: where its value is, or where it is wanted. A
// partner that finds it moves the value and takes the transfer out of the list; after releasing the
// lock it wakes the waiter. The move comes first, so that one that throws has changed nothing.
//
// Each case of a select (select.hpp) publishes one transfer, in several channels, which share one
// claim word. Of a partner, a close(), a stop and the deadline, the first that changes the word
// from 0 owns the select's one wake-up. A transfer whose claim is lost is dropped from its list
// without a wake-up. The word lies on the select's stack. It exists as long as a transfer of the
// select is queued, because the select returns only after it has looked at each under its channel's
// lock.

#include "sync/wait_list.hpp"
#include "ums/impl/channel.hpp"

namespace ums::sync {

struct transfer : waiter {
    // What the partner decided. `again`: its move threw after it had claimed a select, or when it
    // moved a sender's value into the channel; the waiter then tries for itself.
    enum class outcome : unsigned char { ok, closed, again };

    transfer(parkable& self, void* where) noexcept : waiter{self}, value{where} {}

    void* const value;
    std::uint32_t* claim = nullptr;  // The claim word of the select that this belongs to.
    std::uint32_t number = 0;        // What that claim word becomes.
    // Guarded by the channel's lock:
    outcome result = outcome::ok;
};

// Returns whether the caller now owns the wake-up of a select.
inline bool claim(std::uint32_t& word, std::uint32_t number) noexcept {
    std::uint32_t nobody = 0;
    // relaxed: the lock under which its transfers were found, and the wake-up, order everything.
    return base::atomic_ref<std::uint32_t>{word}.compare_exchange(nobody, number, base::relaxed,
                                                                  base::relaxed);
}

// Transfers that were taken out of their lists. Its destructor wakes them, so declare it before the
// lock's guard.
class woken {
public:
    woken() noexcept = default;
    woken(const woken&) = delete;
    woken& operator=(const woken&) = delete;
    ~woken() {
        for (transfer* t = first_; t != nullptr;) {
            auto* next = static_cast<transfer*>(t->next);
            parkable& who = *t->who;
            who.is_held.get() ? sched::resume_held(who) : sched::wake(who);
            t = next;
        }
    }
    void add(transfer& t, transfer::outcome result) noexcept {
        t.result = result;
        t.next = first_;
        first_ = &t;
    }

private:
    transfer* first_ = nullptr;
};

// The lists, as in wait_list.hpp; inline for a transfer that waits alone.
inline void link(wait_list& list, transfer& t) noexcept {
    if (list.first != nullptr) return push_back(list, t);
    t.is_queued = true;
    list.first = t.next = t.previous = &t;
}
inline void unlink(wait_list& list, transfer& t) noexcept {
    if (t.next != &t) return remove(list, t);
    t.is_queued = false;
    list.first = nullptr;
}

// --- Under the channel's lock: ---

using channel_state = impl::channel_state;

// A send that does not wait: ok, closed or full. Moves from `from` only if ok.
channel_status offer(channel_state& c, void* from, woken& partners);
// A receive that does not wait: ok, closed or empty.
channel_status accept(channel_state& c, void* into, woken& partners);

}  // namespace ums::sync
