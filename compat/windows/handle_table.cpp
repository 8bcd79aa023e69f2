// SPDX-License-Identifier: MIT
#include "windows/handle_table.hpp"

#include <cstdint>
#include <new>
#include <vector>

#include "base/check.hpp"
#include "windows/last_error.hpp"
#include "windows/thread.hpp"

namespace ums::windows {
namespace {

struct place {
    object* to = nullptr;
    std::uint32_t use = 0;
};

// Guarded by the dispatcher's lock. Never destroyed.
struct table {
    std::vector<place> places;
    std::vector<std::uint32_t> free;
};
table& handles() {
    static auto* const all = new table;
    return *all;
}

constexpr unsigned index_bits = 20;
constexpr std::uint32_t uses = 1u << 9, most = (1u << index_bits) - 2;

HANDLE to_handle(std::uint32_t index, std::uint32_t use) noexcept {
    const std::uintptr_t value = std::uintptr_t{use} << index_bits | (index + 1);
    return reinterpret_cast<HANDLE>(value << 2);
}

// Requires: the lock.
place* find_place(HANDLE handle) noexcept {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    const std::uintptr_t index = ((value >> 2) & ((1u << index_bits) - 1)) - 1;
    table& all = handles();
    if (index >= all.places.size()) return nullptr;
    place& found = all.places[index];
    const bool is_it =
        found.to != nullptr && to_handle(static_cast<std::uint32_t>(index), found.use) == handle;
    return is_it ? &found : nullptr;
}

const auto this_thread_handle = reinterpret_cast<HANDLE>(LONG_PTR{-2});
const auto this_process_handle = reinterpret_cast<HANDLE>(LONG_PTR{-1});

}  // namespace

HANDLE open_handle(object& o) noexcept {
    const uninterrupted section;
    try {
        const guard hold{dispatcher};
        table& all = handles();
        if (all.free.empty()) {
            if (all.places.size() >= most) return fail(ERROR_NOT_ENOUGH_MEMORY);
            all.free.reserve(all.places.size() + 1);  // So that closing cannot fail.
            all.places.emplace_back();
            all.free.push_back(static_cast<std::uint32_t>(all.places.size() - 1));
        }
        const std::uint32_t index = all.free.back();
        all.free.pop_back();
        place& taken = all.places[index];
        UMS_DEBUG_CHECK(taken.to == nullptr, "a free place of the handles is in use");
        taken.to = &o;
        taken.use = (taken.use + 1) % uses;
        o.share();
        return to_handle(index, taken.use);
    } catch (const std::bad_alloc&) {
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    }
}

ref<object> find_object(HANDLE handle) noexcept {
    object* const own = handle == this_thread_handle ? &thread::current() : nullptr;
    const guard hold{dispatcher};
    const place* const found = own == nullptr ? find_place(handle) : nullptr;
    object* const o = own != nullptr ? own : found != nullptr ? found->to : nullptr;
    if (o == nullptr) {
        SetLastError(ERROR_INVALID_HANDLE);
        return {};
    }
    o->share();
    return ref<object>{o};
}

}  // namespace ums::windows

using namespace ums::windows;

HANDLE GetCurrentThread() { return this_thread_handle; }
HANDLE GetCurrentProcess() { return this_process_handle; }

BOOL CloseHandle(HANDLE handle) {
    if (handle == this_thread_handle || handle == this_process_handle) return TRUE;
    object* closed = nullptr;
    {
        const guard hold{dispatcher};
        place* const found = find_place(handle);
        if (found == nullptr) return fail(ERROR_INVALID_HANDLE);
        closed = std::exchange(found->to, nullptr);
        table& all = handles();
        UMS_DEBUG_CHECK(all.free.size() < all.places.size(),
                        "more handles are free than there are");
        all.free.push_back(static_cast<std::uint32_t>(found - all.places.data()));
    }
    drop(closed);
    return TRUE;
}

BOOL DuplicateHandle(HANDLE source_process, HANDLE source, HANDLE target_process, LPHANDLE target,
                     DWORD, BOOL, DWORD options) {
    if (source_process != this_process_handle) return fail(ERROR_INVALID_HANDLE);
    if (target != nullptr && target_process != this_process_handle)
        return fail(ERROR_INVALID_HANDLE);
    const ref<object> found = find_object(source);
    if (!found) return FALSE;
    if (target != nullptr && (*target = open_handle(*found)) == nullptr) return FALSE;
    if ((options & DUPLICATE_CLOSE_SOURCE) != 0) CloseHandle(source);
    return TRUE;
}
