// SPDX-License-Identifier: MIT
#pragma once

// store: the items by key, within a limit of memory; the least recently used item is evicted first.
//
// It is split into shards by the hash of the key, each with a lock, a hash table and a list in
// order of use. All work on a key goes through a store::access, which holds the lock of its shard;
// nothing waits while it is held, so the sections are short.
//
// Memory is counted for the store as a whole, in blocks of the size classes. When an item does not
// fit, the store evicts the item whose last use is longest ago. Each shard publishes how old its
// oldest item is, so finding it takes a look at 64 numbers and one lock.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include <ums/mutex.hpp>

#include "counters.hpp"
#include "item.hpp"

namespace memcached {

struct store_options {
    std::size_t memory_bytes = 64u << 20;
    std::size_t item_bytes_max = 1u << 20;  // Nominal bytes of one item.
    bool evict = true;                      // Otherwise storing fails when the memory is used up.
};

enum class allocation { done, too_large, no_memory };

class store {
    struct shard;

public:
    explicit store(const store_options& chosen = {});
    ~store();  // Requires: no item_ref is left.
    store(const store&) = delete;
    store& operator=(const store&) = delete;

    // Makes an item that is not linked yet, without setting its value. May take locks, so do not
    // call it with an access held. `value_bytes` includes the "\r\n".
    allocation make(std::string_view key, std::uint32_t flags, seconds expires_at,
                    std::uint32_t value_bytes, item_ref& made);

    // Evicts items if more memory is in use than the limit allows: access::make() may exceed it.
    void trim() noexcept { (void)make_room(0); }

    [[nodiscard]] bool fits(std::size_t key_bytes, std::uint32_t flags,
                            std::uint64_t value_bytes) const noexcept {
        return nominal_bytes(key_bytes, flags, value_bytes) <= options_.item_bytes_max;
    }

    // Each number is used once.
    std::uint64_t next_cas() noexcept {
        // relaxed: a number; the shard's lock orders what it stands for.
        return cas_.fetch_add(1, std::memory_order_relaxed) + 1;
    }

    // The lock of the shard that holds `key`, and what can be done with it.
    class access {
    public:
        access(store& of, std::string_view key, seconds now);

        // Returns the item, unless it has expired or was flushed. The pointer is valid while the
        // access exists.
        [[nodiscard]] item* find() noexcept;
        // Call when the item was read: marks it as fetched, and as the most recently used.
        void bump(item& it) noexcept;
        // Links `made`, in the place of `old` unless that is null, and gives it a new cas.
        void link(item& made, item* old) noexcept;
        // Takes the item out.
        void unlink(item& it) noexcept;
        // Like store::make(), but evicts nothing; the next store::make() or trim() does.
        allocation make(std::string_view key, std::uint32_t flags, seconds expires_at,
                        std::uint32_t value_bytes, item_ref& made) {
            return store_.allocate(key, flags, expires_at, value_bytes, false, made);
        }
        // Call when the value was changed in place.
        void changed(item& it) noexcept { it.cas = store_.next_cas(); }
        // Whether no other reference exists.
        [[nodiscard]] static bool is_mine(const item& it) noexcept {
            // sync(item): a reader that has dropped its reference has finished reading.
            return it.references.load(std::memory_order_acquire) == 1;
        }
        // One more reference.
        [[nodiscard]] item_ref share(item& it) noexcept;
        [[nodiscard]] counters& count() noexcept;
        [[nodiscard]] seconds now() const noexcept { return now_; }

    private:
        store& store_;
        std::string_view key_;
        std::uint32_t hash_;
        seconds now_;
        shard& shard_;
        std::unique_lock<ums::mutex> held_;
    };

    // From `at` on (or now), items stored before are gone. Of several that are still to come, only
    // the last counts.
    void flush(seconds at, seconds now) noexcept;

    // Statistics. Each shard is locked in turn.
    [[nodiscard]] counters count();
    void reset_counters();
    struct use {
        std::uint64_t items = 0, bytes = 0;  // Nominal bytes.
    };
    [[nodiscard]] use linked();
    // The size of the blocks of all items, linked or not.
    [[nodiscard]] std::size_t used_bytes() const noexcept {
        return used_.load(std::memory_order_relaxed);  // relaxed: a figure.
    }
    [[nodiscard]] const store_options& options() const noexcept { return options_; }

private:
    friend class item_ref;
    static constexpr unsigned shards = 64;

    struct alignas(64) shard {
        ums::mutex lock;
        // Guarded by lock:
        std::vector<item*> buckets = std::vector<item*>(64);
        use linked;
        item* newest = nullptr;
        item* oldest = nullptr;
        counters count;
    };

    static std::size_t block_bytes(const item& it) noexcept;
    static std::uint32_t hash_of(std::string_view key) noexcept;
    [[nodiscard]] shard& shard_of(std::uint32_t hash) noexcept { return shards_[hash % shards]; }
    [[nodiscard]] static item*& bucket_of(shard& s, std::uint32_t hash) noexcept {
        return s.buckets[hash / shards & (s.buckets.size() - 1)];
    }
    [[nodiscard]] bool is_flushed(const item& it, seconds now) const noexcept;
    void unlink(shard& s, item& it) noexcept;
    // These make the item the most recently used, and take it out of the list in order of use.
    void add_newest(shard& s, item& it) noexcept;
    void take_out(shard& s, item& it) noexcept;
    // For make_room(): called after each change of the oldest item.
    void say_oldest(const shard& s) noexcept;
    static void grow(shard& s);
    allocation allocate(std::string_view key, std::uint32_t flags, seconds expires_at,
                        std::uint32_t value_bytes, bool may_evict, item_ref& made);
    bool make_room(std::size_t bytes) noexcept;
    void release(item* it) noexcept;

    const store_options options_;
    std::atomic<std::size_t> used_ = 0;  // Bytes of the blocks of all items, linked or not.
    // The order of each shard's oldest item; written with the shard's lock held.
    static constexpr std::int64_t none = INT64_MAX;
    alignas(64) std::array<std::atomic<std::int64_t>, shards> oldest_;
    std::atomic<std::uint64_t> cas_ = 0;
    // Items stored with this cas or before are gone...
    std::atomic<std::uint64_t> flushed_cas_ = 0;
    // ... and so are items stored up to `past`; and from `next` on, unless that is 0, those stored
    // up to that.
    struct flush_times {
        seconds past = 0, next = 0;
    };
    std::atomic<flush_times> flush_times_{};
    std::array<shard, shards> shards_;
};

inline item_ref::~item_ref() {
    if (item_ != nullptr) store_->release(item_);
}

}  // namespace memcached
