// SPDX-License-Identifier: MIT
#pragma once

// item: a key with its value, in one block of memory. The value ends in the "\r\n" that follows it
// on the wire, so that a reply is sent straight from here.
//
// Lifetime: counted. The store holds one reference while the item is linked, and each reply that is
// being sent from it holds another. The holder of a reference may read key and value without a
// lock; the value of a linked item is written (by incr, in place) only while no other reference
// exists.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace memcached {

// Seconds on the server's own clock (clock.hpp); 0 as an expiry means never.
using seconds = std::uint32_t;

struct item {
    // Guarded by the shard's lock while linked:
    item* next_in_bucket = nullptr;
    item* newer = nullptr;  // Towards the most recently used.
    item* older = nullptr;
    std::uint64_t cas = 0;
    std::int64_t order =
        // The time of the last use in ns. The item with the least value of all shards is evicted
        // first.
        0;
    seconds used_at = 0;
    seconds expires_at = 0;
    bool linked = false;
    bool fetched = false;     // Read since it was stored.
    bool active = false;      // Read twice.
    bool stale = false;       // Invalidated, but kept (md I).
    bool token_sent = false;  // One client has been told to recache it.

    // Set once, before it is linked:
    bool key_is_base64 = false;  // On the wire.
    std::uint8_t key_bytes = 0;
    std::atomic<std::uint32_t> references = 1;
    std::uint32_t hash = 0;
    std::uint32_t flags = 0;
    std::uint32_t value_bytes = 0;  // Includes the "\r\n".

    [[nodiscard]] char* key_begin() noexcept { return reinterpret_cast<char*>(this + 1); }
    [[nodiscard]] const char* key_begin() const noexcept {
        return reinterpret_cast<const char*>(this + 1);
    }
    [[nodiscard]] char* value_begin() noexcept { return key_begin() + key_bytes; }
    [[nodiscard]] std::string_view key() const noexcept { return {key_begin(), key_bytes}; }
    [[nodiscard]] std::string_view value() const noexcept {  // Includes the "\r\n".
        return {key_begin() + key_bytes, value_bytes};
    }
};

// How many bytes memcached would need for the item. This number decides what is too large, and `me`
// shows it.
inline std::uint64_t nominal_bytes(std::size_t key_bytes, std::uint32_t flags,
                                   std::uint64_t value_bytes) noexcept {
    return 48 + 8 + key_bytes + 1 + (flags != 0 ? 4 : 0) + value_bytes;
}

class store;

// A counted reference.
class item_ref {
public:
    item_ref() = default;
    // Takes over the caller's reference.
    item_ref(store& of, item* it) noexcept : store_(&of), item_(it) {}
    item_ref(item_ref&& other) noexcept
        : store_(other.store_), item_(std::exchange(other.item_, nullptr)) {}
    item_ref& operator=(item_ref&& other) noexcept {
        std::swap(store_, other.store_);
        std::swap(item_, other.item_);
        return *this;
    }
    ~item_ref();

    [[nodiscard]] item* get() const noexcept { return item_; }
    item* operator->() const noexcept { return item_; }
    item& operator*() const noexcept { return *item_; }
    explicit operator bool() const noexcept { return item_ != nullptr; }

private:
    store* store_ = nullptr;
    item* item_ = nullptr;
};

}  // namespace memcached
