// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "arch/sanitizer.hpp"
#include "mem/slab.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/fiber/wait_record.hpp"
#include "ums/metrics.hpp"

namespace ums {

namespace {

using sched::fiber;
using sched::parkable;
using sched::wait_record;

const char* word_of(std::uint64_t mark) noexcept {
    using sched::wait_kind;
    switch (static_cast<wait_kind>(mark >> wait_record::kind_shift)) {
        case wait_kind::none:
            break;
        case wait_kind::mutex:
            return "mutex";
        case wait_kind::shared_mutex:
        case wait_kind::shared_mutex_shared:
            return "shared_mutex";
        case wait_kind::semaphore:
            return "semaphore";
        case wait_kind::condition:
            return "condition";
        case wait_kind::send:
            return "send";
        case wait_kind::receive:
            return "receive";
        case wait_kind::select:
            return "select";
        case wait_kind::gate:
            return "latch";
        case wait_kind::barrier:
            return "barrier";
        case wait_kind::once:
            return "once";
        case wait_kind::scope:
            return "scope";
        case wait_kind::future:
            return "future";
        case wait_kind::readable:
            return "read";
        case wait_kind::writable:
            return "write";
        case wait_kind::offload:
            return "offload";
        case wait_kind::resolve:
            return "resolve";
        case wait_kind::shortage:
            return "descriptors";
        case wait_kind::permit:
            return "carrier";
    }
    return "";
}

// Reads what its owner may write at the same moment. On x86-64 a load sees what was stored before
// the id.
template <class T>
UMS_UNINSTRUMENTED T peek(const T* at) noexcept {
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
template <class T, class Word>
UMS_UNINSTRUMENTED T peek_word(const Word* at) noexcept {
    static_assert(sizeof(T) == sizeof(Word));
    return __atomic_load_n(reinterpret_cast<const T*>(at), __ATOMIC_ACQUIRE);
}

struct seen {
    std::uint64_t id = 0, spawner = 0, mark = 0;
    std::uint32_t word = 0;
    std::uintptr_t joiner = 0;
    const void* spawned_at = nullptr;
    char name[257] = {};
};

// A name lies on the fiber's stack, which stays mapped and may belong to another fiber by now; or
// it is a constant of the library. No sanitizer watches, because the caller drops what has changed
// meanwhile.
UMS_UNINSTRUMENTED void copy_name(const fiber& f, const char* from, seen& to) noexcept {
    const auto* const head = reinterpret_cast<const char*>(&f);
    if (from == nullptr) return;
    const char* const bottom = f.home->bottom(f.index);
    const bool is_on_stack = from >= bottom && from < head;
    for (std::size_t i = 0; i < sizeof to.name - 1; ++i) {
        if (is_on_stack && from + i == head) break;
        to.name[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
        if (to.name[i] == 0) break;
    }
}

// Returns false if there is no fiber, or it has changed meanwhile.
UMS_UNINSTRUMENTED bool look_at(const fiber& f, seen& one) noexcept {
    one.id = peek_word<std::uint64_t>(&f.id);
    if (one.id == 0) return false;
    one.spawner = peek(&f.spawner);
    one.spawned_at = peek(&f.spawned_at);
    one.mark = peek_word<std::uint64_t>(&f.waits.what);
    one.word = peek_word<std::uint32_t>(&f.word);
    one.joiner = peek_word<std::uintptr_t>(&f.joiner);
    copy_name(f, peek(&f.name), one);
    return peek_word<std::uint64_t>(&f.id) == one.id;
}

fiber_info describe(const seen& one) {
    constexpr std::uint64_t object = (std::uint64_t{1} << wait_record::kind_shift) - 1;
    fiber_info to;
    to.id = fiber_id{one.id};
    to.made_by = fiber_id{one.spawner};
    to.spawned_at = one.spawned_at;
    to.name = one.name;
    if (one.joiner == fiber::finished) {
        to.state = fiber_state::ended;
    } else if (one.mark != 0) {
        to.state = fiber_state::waiting;
        to.waits_for = word_of(one.mark);
        to.waits_in = one.mark & object;
    } else if ((one.word & (parkable::parked | parkable::parked_user)) != 0) {
        to.state = fiber_state::waiting;
        to.waits_for = (one.word & parkable::parked_user) != 0 ? "park" : "sleep";
    }
    return to;
}

}  // namespace

std::vector<fiber_info> fibers() {
    std::vector<fiber_info> all;
    std::vector<std::pair<std::uintptr_t, std::size_t>> numbers;  // By the parkable's address.
    std::vector<std::pair<std::uintptr_t, std::uint64_t>> joins;
    // sync(slab_list): sees the headers.
    for (const mem::slab* s = mem::slab_list.load(base::acquire); s != nullptr; s = s->next) {
        const std::uint32_t carved = peek(&s->carved);
        for (std::uint32_t i = 0; i < carved; ++i) {
            const auto* const f = static_cast<const fiber*>(s->head(i));
            seen one;
            if (!look_at(*f, one)) continue;
            const parkable* const waiter = f;
            numbers.emplace_back(reinterpret_cast<std::uintptr_t>(waiter), all.size());
            if (one.joiner > fiber::detached) joins.emplace_back(one.joiner, one.id);
            all.push_back(describe(one));
        }
    }
    // The joiner word of a fiber names the fiber that waits for its end, or a plain thread.
    if (!joins.empty()) std::sort(numbers.begin(), numbers.end());
    for (const auto& [joiner, of] : joins) {
        const auto found =
            std::lower_bound(numbers.begin(), numbers.end(), std::pair{joiner, std::size_t{0}});
        if (found == numbers.end() || found->first != joiner) continue;
        fiber_info& waits = all[found->second];
        waits.state = fiber_state::waiting;
        waits.waits_for = "join";
        waits.waits_in = of;
    }
    return all;
}

}  // namespace ums
