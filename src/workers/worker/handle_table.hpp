// SPDX-License-Identifier: MIT
#pragma once

// workers/worker/handle_table.hpp: numbers that name objects, so that a wrong number is refused and
// never followed.
//
// A handle is a generation, a kind and an index. The objects lie in blocks that are never given
// back, so it is harmless to look at an object that is gone: it holds another handle, or none.
//
// Cost: find() is three loads that depend on each other; take(), withdraw() and give() take a lock.

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/lock.hpp"

namespace ums::scheduling {

using handle = std::uint64_t;

// Describes it to readers from outside (workers/root.cpp).
struct look_inside;

// The objects of a table begin with this.
struct entry {
    base::atomic<handle> self{0};  // 0: free.
};

// The objects have this somewhere, as `links`, for the table's use.
struct entry_links {
    handle first{0};              // Set once: kind and index.
    std::uint32_t generation{0};  // Owned by the thread that took the object.
    void* next_free{nullptr};     // Guarded by the table's lock.
};

template <class T, unsigned kind>
class handle_table {
public:
    // Returns null if no object has this number, or none has it any more.
    [[nodiscard]] T* find(handle h) const noexcept {
        const std::size_t index = h & index_mask;
        if (index >= blocks * per_block) return nullptr;
        // sync(ums.handle): sees the block as it was made.
        T* block = blocks_[index / per_block].load(base::acquire);
        if (block == nullptr) return nullptr;
        T& at = block[index % per_block];
        // sync(ums.handle): sees the object as it was when the handle was given out.
        return h != 0 && at.self.load(base::acquire) == h ? &at : nullptr;
    }

    // For a caller that found the object and has read it since: whether what it read was that
    // object's. Otherwise the object is gone, and what it read may be another one's.
    [[nodiscard]] bool still_has(const T& object, handle h) const noexcept {
        base::load_fence();  // sync(ums.handle): what was read before comes first.
        return object.self.load(base::relaxed) == h;
    }
    // The same for a caller that writes: calls f(object) while no thread withdraws the object.
    // Returns false if it is gone.
    template <class F>
    bool with(handle h, F f) noexcept {
        T* object = find(h);
        if (object == nullptr) return false;
        const os::lock_guard hold{lock_};
        if (object->self.load(base::relaxed) != h) return false;  // relaxed: under the lock.
        f(*object);
        return true;
    }

    // Returns an object without a handle, which no other thread can find yet; null: no memory, or
    // too many objects.
    [[nodiscard]] T* take() noexcept {
        const os::lock_guard hold{lock_};
        if (free_ != nullptr) {
            T* taken = static_cast<T*>(free_);
            free_ = taken->links.next_free;
            return taken;
        }
        if (carved_ == blocks * per_block) return nullptr;
        base::atomic<T*>& block = blocks_[carved_ / per_block];
        T* all = block.load(base::relaxed);  // relaxed: written under the lock only.
        if (all == nullptr) {
            all = new (std::nothrow) T[per_block];
            if (all == nullptr) return nullptr;
            // sync(ums.handle): publishes the new block to find().
            block.store(all, base::release);
        }
        T* taken = &all[carved_ % per_block];
        taken->links.first = (handle{kind} << kind_shift) | carved_;
        ++carved_;
        return taken;
    }

    // From here on the object can be found.
    handle publish(T& object) noexcept {
        // relaxed: the caller has taken it.
        UMS_ASSERT(object.self.load(base::relaxed) == 0, "an object has two handles");
        entry_links& links = object.links;
        links.generation = (links.generation + 1) & 0x7fffffffu;
        if (links.generation == 0) links.generation = 1;
        const handle h = (handle{links.generation} << 32) | links.first;
        // sync(ums.handle): publishes the object to find().
        object.self.store(h, base::release);
        return h;
    }
    // From here on the object cannot be found. Returns false if another thread was faster.
    bool withdraw(T& object, handle h) noexcept {
        const os::lock_guard hold{lock_};
        // relaxed: the lock orders.
        return object.self.compare_exchange(h, 0, base::relaxed, base::relaxed);
    }
    void give(T& object) noexcept {
        const os::lock_guard hold{lock_};
        // relaxed: the caller withdrew the object.
        UMS_ASSERT(object.self.load(base::relaxed) == 0, "an object is given back by its handle");
        object.links.next_free = free_;
        free_ = &object;
    }

    // Calls f for each object that can be found.
    template <class F>
    void for_each(F f) const {
        for (std::size_t b = 0; b < blocks; ++b) {
            T* all = blocks_[b].load(base::acquire);  // sync(ums.handle): as in find().
            if (all == nullptr) return;
            for (std::size_t i = 0; i < per_block; ++i)
                if (const handle h = all[i].self.load(base::acquire); h != 0)  // sync(ums.handle)
                    f(h, all[i]);
        }
    }

private:
    friend struct look_inside;

    static constexpr std::size_t per_block = 256, blocks = 16384;
    static constexpr handle index_mask = (handle{1} << 28) - 1;
    static constexpr unsigned kind_shift = 28;
    static_assert(kind != 0 && kind < 16 && per_block * blocks <= index_mask);

    base::atomic<T*> blocks_[blocks] = {};
    mutable os::lock lock_{os::lock_rank::leaf};
    // Guarded by lock_:
    std::size_t carved_ = 0;
    void* free_ = nullptr;
};

}  // namespace ums::scheduling
