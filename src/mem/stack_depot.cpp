// SPDX-License-Identifier: MIT
#include "mem/stack_depot.hpp"

#include <algorithm>
#include <bit>

#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "os/memory.hpp"

namespace ums::mem {

void stack_depot::configure(const depot_options& options) noexcept {
    options_ = options;
    default_class_ = class_of(options.default_bytes);
    most_stacks_ = most_guards(options.guard);
}

std::uint32_t stack_depot::class_of(std::size_t bytes) noexcept {
    bytes = std::clamp(std::bit_ceil(bytes), min_bytes, max_bytes);
    return static_cast<std::uint32_t>(std::countr_zero(bytes) - std::countr_zero(min_bytes));
}

std::uint32_t stack_depot::take(std::uint32_t size_class, std::uint32_t wanted,
                                stack_head*& list) noexcept {
    UMS_DEBUG_ASSERT(size_class < classes, "there is no stack of that size class");
    os::lock_guard guard{lock_};
    std::uint32_t n = 0;
    while (n < wanted) {
        stack_head* head = take_one(size_class, wanted - n);
        if (head == nullptr) break;
        head->next_free = list;
        list = head;
        ++n;
    }
    return n;
}

stack_head* stack_depot::take_one(std::uint32_t size_class, std::uint32_t wanted) noexcept {
    slab* s = with_free_[size_class];
    while (s != nullptr && !s->has_free()) {
        s->is_listed = false;
        s = with_free_[size_class] = s->next_with_free;
    }
    if (s == nullptr && (s = grow(size_class)) == nullptr) return nullptr;

    if (s->warm != nullptr) {
        stack_head* head = s->warm;
        UMS_DEBUG_ASSERT(s->warm_count != 0 && warm_ != 0, "a free stack was not counted");
        UMS_DEBUG_ASSERT(head->home == s, "a free stack lies in the list of another slab");
        s->warm = head->next_free;
        --s->warm_count;
        --warm_;
        return head;
    }
    if (s->cold_count != 0) {
        const std::uint32_t index = s->cold()[--s->cold_count];
        UMS_DEBUG_ASSERT(index < s->carved && cold_ != 0, "a cold stack is not one of its slab's");
        --cold_;
        stack_head* head = s->head(index);
        head->home = s;  // The page is new, so write again what was lost with the old one.
        head->index = index;
        return head;
    }
    return carve(*s, wanted);
}

stack_head* stack_depot::carve(slab& s, std::uint32_t wanted) noexcept {
    if (carved_ >= most_stacks_) return nullptr;
    const std::uint32_t index = s.carved;
    UMS_DEBUG_ASSERT(index <= s.guarded && s.guarded <= s.count && index < s.count,
                     "a stack was carved beyond its slab or its guards");
    if (index == s.guarded) {
        // Takes more than one only where guards are unlimited.
        const std::size_t ahead = options_.guard == guard_kind::mprotect ? 1 : most_at_once;
        s.guarded += static_cast<std::uint32_t>(
            install_guards(options_.guard, s.bottom(index) - s.guard_bytes, s.guard_bytes, s.stride,
                           std::min<std::size_t>({wanted, s.count - index, ahead})));
        if (index == s.guarded) return nullptr;
    }
    ++s.carved;
    ++carved_;
    stack_head* head = s.head(index);
    head->home = &s;
    head->index = index;
    head->valgrind_id = arch::register_stack(s.bottom(index), s.bottom(index) + s.usable());
    arch::add_leak_root(s.bottom(index), s.usable());
    return head;
}

slab* stack_depot::grow(std::uint32_t size_class) noexcept {
    // Each slab is as large as all before it: few mappings for a million stacks, little address
    // space for a few. Slabs of large stacks hold fewer.
    const std::size_t before = stacks_in_class_[size_class];
    const std::size_t most =
        std::max<std::size_t>(1, (std::size_t{512} << 20) / bytes_of(size_class));
    const auto count =
        static_cast<std::uint32_t>(std::min(std::clamp<std::size_t>(before, 16, 4096), most));
    slab* s = slab::make(size_class, bytes_of(size_class), guard_bytes, options_.head_bytes, count);
    if (s == nullptr) return nullptr;
    stacks_in_class_[size_class] += count;
    ++slabs_;
    mapped_ += s->bytes;
    list(*s);
    return s;
}

void stack_depot::list(slab& s) noexcept {
    if (s.is_listed) return;
    s.is_listed = true;
    s.next_with_free = with_free_[s.size_class];
    with_free_[s.size_class] = &s;
}

void stack_depot::give(stack_head* head) noexcept {
    os::lock_guard guard{lock_};
    while (head != nullptr) {
        stack_head* next = head->next_free;
        slab& s = *head->home;
        UMS_ASSERT(head->index < s.carved && s.head(head->index) == head,
                   "the head of a stack was overwritten, or is no head");
        head->next_free = s.warm;
        s.warm = head;
        ++s.warm_count;
        ++warm_;
        UMS_ASSERT(s.warm_count + s.cold_count <= s.carved, "a stack was given back twice");
        list(s);
        if (warm_ > options_.warm_limit && s.warm_count + s.cold_count == s.carved) chill(s);
        head = next;
    }
}

// Takes one system call for all stacks of a slab if all are free, otherwise one each. Guards
// survive.
void stack_depot::chill(slab& s) noexcept {
    if (s.warm == nullptr) return;
    const bool whole = s.warm_count + s.cold_count == s.carved;
    if (whole) os::system.madvise(s.stacks, s.stride * s.carved, MADV_DONTNEED);
    UMS_DEBUG_ASSERT(s.warm_count <= warm_, "a slab has more free stacks than the depot");
    cold_ += s.warm_count;
    warm_ -= s.warm_count;
    trimmed_ += s.warm_count;
    if (whole) {
        for (std::uint32_t i = 0; i < s.carved; ++i) s.cold()[i] = s.carved - 1 - i;
        s.cold_count = s.carved;
    } else {
        for (stack_head* head = s.warm; head != nullptr;) {
            stack_head* next = head->next_free;
            const std::uint32_t index = head->index;
            os::system.madvise(s.bottom(index), s.usable(), MADV_DONTNEED);
            s.cold()[s.cold_count++] = index;
            head = next;
        }
    }
    s.warm = nullptr;
    s.warm_count = 0;
}

void stack_depot::trim() noexcept {
    os::lock_guard guard{lock_};
    // relaxed: the list changes under lock_ only.
    for (slab* s = slab_list.load(base::relaxed); s != nullptr; s = s->next) chill(*s);
}

void stack_depot::clear() noexcept {
    os::lock_guard guard{lock_};
    for (slab* s = slab_list.load(base::relaxed); s != nullptr; s = s->next) {
        for (std::uint32_t i = 0; i < s->carved; ++i) {
            arch::unpoison(s->bottom(i), s->usable());
            arch::remove_leak_root(s->bottom(i), s->usable());
        }
    }
    release_all_slabs();
    for (auto& first : with_free_) first = nullptr;
    for (auto& n : stacks_in_class_) n = 0;
    warm_ = cold_ = carved_ = trimmed_ = slabs_ = mapped_ = 0;
}

depot_stats stack_depot::stats() noexcept {
    os::lock_guard guard{lock_};
    return {slabs_, carved_, warm_, cold_, trimmed_, mapped_};
}

std::size_t high_water_bytes(const stack_head& head) noexcept {
    char* bottom = head.bottom();
    const std::size_t usable = head.usable_bytes();
    unsigned char resident[256];
    for (std::size_t at = 0; at < usable; at += sizeof resident * os::page_bytes) {
        const std::size_t bytes = std::min(usable - at, sizeof resident * os::page_bytes);
        if (os::system.mincore(bottom + at, bytes, resident) != 0) return 0;
        for (std::size_t i = 0; i < bytes / os::page_bytes; ++i)
            if ((resident[i] & 1) != 0) return usable - at - i * os::page_bytes;
    }
    return 0;
}

}  // namespace ums::mem
