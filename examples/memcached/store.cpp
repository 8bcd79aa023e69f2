// SPDX-License-Identifier: MIT
#include "store.hpp"

#include <algorithm>
#include <chrono>
#include <new>

#include "size_classes.hpp"

namespace memcached {

store::store(const store_options& chosen) : options_(chosen) {
    for (auto& order : oldest_) order = none;
}

store::~store() {
    for (shard& s : shards_)
        while (s.oldest != nullptr) unlink(s, *s.oldest);
}

std::size_t store::block_bytes(const item& it) noexcept {
    return classes.rounded(sizeof(item) + it.key_bytes + it.value_bytes);
}

std::uint32_t store::hash_of(std::string_view key) noexcept {
    const std::uint64_t wide = std::hash<std::string_view>{}(key);
    return static_cast<std::uint32_t>(wide ^ wide >> 32);
}

allocation store::make(std::string_view key, std::uint32_t flags, seconds expires_at,
                       std::uint32_t value_bytes, item_ref& made) {
    return allocate(key, flags, expires_at, value_bytes, true, made);
}

allocation store::allocate(std::string_view key, std::uint32_t flags, seconds expires_at,
                           std::uint32_t value_bytes, bool may_evict, item_ref& made) {
    if (!fits(key.size(), flags, value_bytes)) return allocation::too_large;
    const std::size_t bytes = classes.rounded(sizeof(item) + key.size() + value_bytes);
    if (may_evict || !options_.evict) {
        if (!make_room(bytes)) return allocation::no_memory;
    } else {
        used_.fetch_add(bytes, std::memory_order_relaxed);  // relaxed: a figure.
    }
    void* const block = ::operator new(bytes, std::nothrow);
    if (block == nullptr) {
        used_.fetch_sub(bytes, std::memory_order_relaxed);  // relaxed: a figure.
        return allocation::no_memory;
    }
    item* const it = new (block) item;
    it->key_bytes = static_cast<std::uint8_t>(key.size());
    it->hash = hash_of(key);
    it->flags = flags;
    it->value_bytes = value_bytes;
    it->expires_at = expires_at;
    std::memcpy(it->key_begin(), key.data(), key.size());
    made = item_ref{*this, it};
    return allocation::done;
}

// Claims `bytes` of the memory, at the cost of the oldest items. Gives up when there is no item:
// then replies that are being sent hold the memory.
bool store::make_room(std::size_t bytes) noexcept {
    // relaxed, all of it: a sum that is compared with a limit. Nothing is read because of it.
    std::size_t used = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    while (used > options_.memory_bytes) {
        unsigned victim = 0;
        std::int64_t least = none;
        for (unsigned i = 0; i < shards; ++i) {
            const std::int64_t order = oldest_[i].load(std::memory_order_relaxed);
            if (order < least) {
                least = order;
                victim = i;
            }
        }
        if (!options_.evict || least == none) {
            used_.fetch_sub(bytes, std::memory_order_relaxed);
            return false;
        }
        shard& s = shards_[victim];
        {
            const std::lock_guard held{s.lock};
            // Unless another thread was faster.
            if (s.oldest != nullptr && s.oldest->order == least) {
                ++s.count.evictions;
                if (!s.oldest->fetched) ++s.count.evicted_unfetched;
                unlink(s, *s.oldest);
            }
        }
        used = used_.load(std::memory_order_relaxed);
    }
    return true;
}

void store::release(item* it) noexcept {
    // sync(item): the last reader's reads come before the memory is given back.
    if (it->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const std::size_t bytes = block_bytes(*it);
    it->~item();
    ::operator delete(it, bytes);
    used_.fetch_sub(bytes, std::memory_order_relaxed);  // relaxed: a figure.
}

void store::unlink(shard& s, item& it) noexcept {
    item** at = &bucket_of(s, it.hash);
    while (*at != &it) at = &(*at)->next_in_bucket;
    *at = it.next_in_bucket;
    take_out(s, it);
    it.linked = false;
    --s.linked.items;
    s.linked.bytes -= nominal_bytes(it.key_bytes, it.flags, it.value_bytes);
    release(&it);
}

void store::say_oldest(const shard& s) noexcept {
    // relaxed: make_room() looks again with the lock held.
    oldest_[static_cast<std::size_t>(&s - shards_.data())].store(
        s.oldest != nullptr ? s.oldest->order : none, std::memory_order_relaxed);
}

void store::take_out(shard& s, item& it) noexcept {
    (it.newer != nullptr ? it.newer->older : s.newest) = it.older;
    (it.older != nullptr ? it.older->newer : s.oldest) = it.newer;
    if (it.older == nullptr) say_oldest(s);
}

void store::add_newest(shard& s, item& it) noexcept {
    it.order = std::chrono::steady_clock::now().time_since_epoch().count();
    it.newer = nullptr;
    it.older = s.newest;
    (s.newest != nullptr ? s.newest->newer : s.oldest) = &it;
    s.newest = &it;
    if (it.older == nullptr) say_oldest(s);
}

void store::grow(shard& s) {
    std::vector<item*> before(s.buckets.size() * 2);
    before.swap(s.buckets);
    for (item* it : before)
        while (it != nullptr) {
            item* const next = it->next_in_bucket;
            item*& bucket = bucket_of(s, it->hash);
            it->next_in_bucket = bucket;
            bucket = it;
            it = next;
        }
}

bool store::is_flushed(const item& it, seconds now) const noexcept {
    // relaxed, both: a flush concerns what this shard held when its command came, and the order of
    // the connection makes a later command of the same client come later.
    const flush_times times = flush_times_.load(std::memory_order_relaxed);
    return it.cas <= flushed_cas_.load(std::memory_order_relaxed) || it.used_at <= times.past ||
           (times.next <= now && it.used_at <= times.next);
}

void store::flush(seconds at, seconds now) noexcept {
    // relaxed, all: see is_flushed().
    const bool is_later = at > now;
    if (at <= now + 1) flushed_cas_.store(next_cas(), std::memory_order_relaxed);
    flush_times before = flush_times_.load(std::memory_order_relaxed), after;
    do {
        after = before;
        // A flush whose time has come stays in force; one whose time had not come does not.
        if (before.next <= now) after.past = std::max(before.past, before.next);
        after.next = is_later ? at - 1 : 0;
    } while (!flush_times_.compare_exchange_weak(before, after, std::memory_order_relaxed));
}

store::access::access(store& of, std::string_view key, seconds now)
    : store_(of),
      key_(key),
      hash_(hash_of(key)),
      now_(now),
      shard_(of.shard_of(hash_)),
      held_(shard_.lock) {}

item* store::access::find() noexcept {
    item* it = bucket_of(shard_, hash_);
    while (it != nullptr && (it->hash != hash_ || it->key() != key_)) it = it->next_in_bucket;
    if (it == nullptr) return nullptr;
    const bool expired = it->expires_at != 0 && it->expires_at <= now_;
    if (!expired && !store_.is_flushed(*it, now_)) return it;
    ++(expired ? shard_.count.get_expired : shard_.count.get_flushed);
    if (expired && !it->fetched) ++shard_.count.expired_unfetched;
    store_.unlink(shard_, *it);
    return nullptr;
}

void store::access::bump(item& it) noexcept {
    // The time of use is that of the second and later reads, as with memcached (`me`, `mg l`).
    if (!it.fetched) {
        it.fetched = true;
    } else if (!it.active || it.used_at != now_) {
        it.active = true;
        it.used_at = now_;
    }
    store_.take_out(shard_, it);
    store_.add_newest(shard_, it);
}

void store::access::link(item& made, item* old) noexcept {
    if (old != nullptr) unlink(*old);
    if (shard_.linked.items >= shard_.buckets.size() * 3 / 2) grow(shard_);
    made.references.fetch_add(1, std::memory_order_relaxed);  // relaxed: the caller holds one.
    made.cas = store_.next_cas();
    made.used_at = now_;
    item*& bucket = bucket_of(shard_, hash_);
    made.next_in_bucket = bucket;
    bucket = &made;
    store_.add_newest(shard_, made);
    made.linked = true;
    ++shard_.linked.items;
    shard_.linked.bytes += nominal_bytes(made.key_bytes, made.flags, made.value_bytes);
    ++shard_.count.total_items;
}

void store::access::unlink(item& it) noexcept { store_.unlink(shard_, it); }

item_ref store::access::share(item& it) noexcept {
    it.references.fetch_add(1, std::memory_order_relaxed);  // relaxed: the store holds one.
    return {store_, &it};
}

counters& store::access::count() noexcept { return shard_.count; }

counters store::count() {
    counters sum;
    for (shard& s : shards_) {
        const std::lock_guard held{s.lock};
        sum += s.count;
    }
    return sum;
}

void store::reset_counters() {
    for (shard& s : shards_) {
        const std::lock_guard held{s.lock};
        s.count = {};
    }
}

store::use store::linked() {
    use sum;
    for (shard& s : shards_) {
        const std::lock_guard held{s.lock};
        sum.items += s.linked.items;
        sum.bytes += s.linked.bytes;
    }
    return sum;
}

}  // namespace memcached
