// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/channel.hpp: a channel without the type of its values.
//
// ums/channel.hpp states the contract. src/sync/channel/channel.cpp implements these functions.

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums {

// How an operation of a channel ended.
enum class channel_status : unsigned char {
    ok,
    empty,            // try_receive(): no value is there, and nobody sends.
    full,             // try_send(): there is no room, and nobody receives.
    closed,           // The channel is closed; to receive, also drained.
    deadline_passed,  // A timed form gave up.
    stopped,          // A form with a stop token gave up.
};

namespace impl {

inline constexpr std::size_t bytes_most = 256;
template <class T>
inline constexpr bool moves_as_bytes =
    std::is_trivially_move_constructible_v<T>&& std::is_trivially_destructible_v<T> &&
    sizeof(T) <= bytes_most;

// The facts that the mechanism needs of a type. If build() or deliver() throws, it has made
// nothing. The three functions of a type that is bytes are null: the mechanism copies `size` bytes,
// and a receiver shows it raw memory.
struct element_type {
    std::size_t size;
    std::size_t align;
    void (*build)(void* cell, void* from);   // Moves the T at `from` into raw memory.
    void (*deliver)(void* out, void* from);  // Moves it into the std::optional<T> at `out`.
    void (*destroy)(void* cell) noexcept;
    bool is_bytes;
};

template <class T>
inline constexpr element_type element_type_of{
    sizeof(T),
    alignof(T),
    [](void* cell, void* from) { ::new (cell) T(std::move(*static_cast<T*>(from))); },
    [](void* out, void* from) {
        static_cast<std::optional<T>*>(out)->emplace(std::move(*static_cast<T*>(from)));
    },
    [](void* cell) noexcept { std::destroy_at(static_cast<T*>(cell)); },
    false};

template <class T>
requires moves_as_bytes<T>
inline constexpr element_type element_type_of<T>{sizeof(T), alignof(T), nullptr,
                                                 nullptr,   nullptr,    true};

// The raw memory that a receiver of bytes shows.
template <class T>
class raw_value {
public:
    raw_value() noexcept {}
    raw_value(const raw_value&) noexcept {}  // There is nothing to copy between receives.
    raw_value& operator=(const raw_value&) = delete;
    [[nodiscard]] void* place() noexcept { return bytes_; }
    // Requires: a value was received.
    [[nodiscard]] T&& take() noexcept {
        return std::move(*std::launder(reinterpret_cast<T*>(bytes_)));
    }

private:
    alignas(T) std::byte bytes_[sizeof(T)];
};

struct channel_block;

// Guarded by receivers.lock, except members that never change.
struct channel_state {
    wait_list receivers;  // Empty unless the channel is empty and no sender waits.
    wait_list senders;    // Its own lock is not used.
    std::size_t count = 0;
    // The capacity less one; 0 once the channel is closed, or if the short ways cannot copy the
    // type. So `count - 1 < between` says in one comparison that the channel is open, not empty and
    // not full.
    std::size_t between = 0;
    std::size_t size = 0;  // That of the type. Never changes.
    // The values: a circle of blocks of `cells` elements each. A bounded channel has one block. The
    // next value comes out at head_at and goes in at tail_at, up to the ends of their blocks.
    std::byte* head_at = nullptr;
    std::byte* tail_at = nullptr;
    std::byte* head_end = nullptr;
    std::byte* tail_end = nullptr;
    channel_block* head = nullptr;
    channel_block* tail = nullptr;
    std::size_t cells = 0;               // Never changes.
    std::size_t capacity = 0;            // Never changes.
    const element_type* type = nullptr;  // Never changes.
    bool is_closed = false;
};

// Several values of one call. at(context, i) is where the i-th value is, or is wanted, as for a
// single one. The channel asks once for each, in order.
struct channel_batch {
    void* (*at)(void* context, std::size_t i);
    void* context;
    std::size_t count;
    // Not null: the type is bytes, and the values lie, or are wanted, here, one after the other.
    std::byte* bytes = nullptr;
};

struct channel_calls {
    // Throws std::length_error, std::bad_alloc.
    UMS_EXPORT static void open(channel_state& c, const element_type& type, std::size_t capacity);
    UMS_EXPORT static void destroy(channel_state& c) noexcept;

    // `from`: a T, moved from only if ok comes back. `into`: an empty std::optional<T>, or raw
    // memory if T is bytes. These throw what a move of T throws, and std::bad_alloc where they need
    // a block.
    UMS_EXPORT static channel_status send(channel_state& c, void* from);
    UMS_EXPORT static channel_status try_send(channel_state& c, void* from);
    UMS_EXPORT static channel_status send_until(channel_state& c, void* from, deadline limit,
                                                const std::stop_token* stop);
    UMS_EXPORT static channel_status receive(channel_state& c, void* into);
    UMS_EXPORT static channel_status try_receive(channel_state& c, void* into);
    UMS_EXPORT static channel_status receive_until(channel_state& c, void* into, deadline limit,
                                                   const std::stop_token* stop);

    // `done` begins at zero and counts the values that went through, also if it throws.
    UMS_EXPORT static channel_status send_all(channel_state& c, const channel_batch& b,
                                              std::size_t& done, deadline limit,
                                              const std::stop_token* stop);
    UMS_EXPORT static channel_status receive_some(channel_state& c, const channel_batch& b,
                                                  std::size_t& done, deadline limit,
                                                  const std::stop_token* stop);

    // Does not wait.
    UMS_EXPORT static channel_status receive_ready(channel_state& c, const channel_batch& b,
                                                   std::size_t& done);
    // Takes the values that are in the channel now, of a type that is bytes; not those of waiting
    // senders.
    UMS_EXPORT static void receive_bytes(channel_state& c, const channel_batch& b,
                                         std::size_t& done);

    UMS_EXPORT static void close(channel_state& c) noexcept;
    UMS_EXPORT static bool is_closed(const channel_state& c) noexcept;
    UMS_EXPORT static std::size_t size(const channel_state& c) noexcept;
};

// Throws std::invalid_argument.
[[noreturn]] UMS_EXPORT std::size_t refuse_empty_queue();

}  // namespace impl

}  // namespace ums
