// SPDX-License-Identifier: MIT
//
// Each fiber and each plain thread that has a value has a table: a slot for each index, and the
// list of its values in the order they were made. No other thread touches the table, so nothing
// here waits.
//
// An index is used again when its fiber_local is gone, an id never. A slot whose id is another
// one's holds a stale value, which counts as none. A stale value is destroyed when its slot is
// needed, so that a fiber that outlives many fiber_locals does not collect their values. A value
// knows how to destroy itself and nothing about its fiber_local, which may be gone, or may be in
// destruction on another kernel thread.

#include "ums/fiber_local.hpp"

#include <algorithm>
#include <new>

#include "base/assert.hpp"
#include "os/lock.hpp"
#include "sched/fiber/exit_hooks.hpp"
#include "sync/local_keys.hpp"
#include "ums/impl/at_exit.hpp"

namespace ums::impl {

// Made once for each index and never freed, because a fiber_local of static storage may be
// destroyed after anything else.
struct local_index {
    std::uint32_t index;
    local_index* next_free;
};

struct local_slot {
    std::uint64_t id = 0;  // 0: the slot is empty.
    local_node* value = nullptr;
};

struct local_table : exit_hook {
    std::uint32_t size = 0;
    std::unique_ptr<local_slot[]> slots;
    local_node* newest = nullptr;

    [[nodiscard]] local_slot* find(const local_key& key) const noexcept {
        if (key.index >= size || slots[key.index].id != key.id) return nullptr;
        return &slots[key.index];
    }

    void reserve(std::uint32_t index) {
        if (index < size) return;
        const std::uint32_t bigger = std::max(index + 1, std::max(4u, size * 2));
        auto grown = std::make_unique<local_slot[]>(bigger);
        std::copy_n(slots.get(), size, grown.get());
        slots = std::move(grown);
        size = bigger;
    }

    // Takes it out of the table first, because its destructor may ask for another.
    void destroy(local_node& value) noexcept {
        slots[value.key.index] = {};
        (value.newer != nullptr ? value.newer->older : newest) = value.older;
        if (value.older != nullptr) value.older->newer = value.newer;
        value.destroy(value);
    }
};

namespace {

using sched::this_belongings;

constinit os::lock keys_lock;
// Guarded by keys_lock:
constinit std::uint64_t last_id = 0;
constinit std::uint32_t indices = 0;
constinit local_index* free_indices = nullptr;

void destroy_all(exit_hook& self) noexcept {
    const std::unique_ptr<local_table> table{static_cast<local_table*>(&self)};
    while (table->newest != nullptr) table->destroy(*table->newest);
    this_belongings().locals = nullptr;
}

local_table& this_table() {
    sched::belongings& own = this_belongings();
    if (own.locals == nullptr) {
        own.locals = new local_table;
        own.locals->run = &destroy_all;
        at_fiber_exit(*own.locals);
    }
    return *own.locals;
}

}  // namespace

local_key make_local_key() {
    {
        const os::lock_guard guard{keys_lock};
        if (local_index* found = free_indices; found != nullptr) {
            free_indices = found->next_free;
            return {++last_id, found->index, found};
        }
    }
    auto* made = new local_index{0, nullptr};
    const os::lock_guard guard{keys_lock};
    made->index = indices++;
    return {++last_id, made->index, made};
}

void free_local_key(const local_key& key) noexcept {
    const os::lock_guard guard{keys_lock};
    key.home->next_free = free_indices;
    free_indices = key.home;
}

local_node* find_local(const local_key& key) noexcept {
    const local_table* table = this_belongings().locals;
    if (table == nullptr) return nullptr;
    const local_slot* slot = table->find(key);
    return slot != nullptr ? slot->value : nullptr;
}

void add_local(const local_key& key, local_node& made) {
    local_table& table = this_table();
    table.reserve(key.index);
    // A stale value's destructor may make another in the same slot, which is stale too.
    while (table.slots[key.index].id != 0) {
        UMS_ASSERT(table.slots[key.index].id != key.id, "the initialiser of a fiber_local used it");
        table.destroy(*table.slots[key.index].value);
    }
    made.key = key;
    made.older = table.newest;
    made.newer = nullptr;
    if (table.newest != nullptr) table.newest->newer = &made;
    table.newest = &made;
    table.slots[key.index] = {key.id, &made};
}

void destroy_local(const local_key& key) noexcept {
    local_table* table = this_belongings().locals;
    if (table == nullptr) return;
    if (const local_slot* slot = table->find(key); slot != nullptr) table->destroy(*slot->value);
}

}  // namespace ums::impl

namespace ums::sync {

void leave_local_keys_behind() noexcept { impl::keys_lock.leave_behind(); }

}  // namespace ums::sync
