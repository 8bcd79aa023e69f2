// SPDX-License-Identifier: MIT
#pragma once

// session: one client's conversation. It takes bytes and gives replies, and knows nothing of
// sockets, so that the server, the datagram front, the tests and the fuzzer drive the same code.
//
// The replies are those of memcached 1.6.18, byte for byte, also for commands that are wrong.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "clock.hpp"
#include "replies.hpp"
#include "store.hpp"
#include "words.hpp"

namespace memcached {

// How a value is stored.
enum class storing { set, add, replace, append, prepend, cas };

// What all sessions of a server share.
struct service {
    store& items;
    memcached::clock& time;
    // Writes what `stats` and `stats settings` show.
    struct reporter {
        virtual ~reporter() = default;
        virtual void general(replies& to) = 0;
        virtual void settings(replies& to) = 0;
    }* report = nullptr;
};

class session {
public:
    explicit session(service& of) noexcept : service_(of) {}

    // Takes the complete commands in `input` and adds their replies. Returns the bytes it took;
    // call it again with the rest and more. Stops early when there is much to send.
    std::size_t take(std::string_view input, replies& to);

    // If true, send what is there, then close.
    [[nodiscard]] bool is_over() const noexcept { return over_; }

    // While the rest of a large value is on its way: the memory to read it into, instead of a
    // buffer.
    [[nodiscard]] std::span<char> wanted() noexcept;
    // Call when that many bytes were read into it.
    void filled(std::size_t bytes, replies& to);

    // Begins a new conversation, for the next datagram.
    void reset() noexcept;

    static constexpr std::size_t much = 256 * 1024;  // Bytes of replies after which take() stops.
    static constexpr std::size_t key_bytes_max = 250;
    static constexpr std::string_view version = "1.6.18";

private:
    // How the value that is being read is to be stored and answered.
    struct terms {
        storing how = storing::set;
        bool quiet = false;
        bool is_meta = false;
        bool may_be_stale = false;
        std::uint64_t cas = 0;         // What the item's cas must be; 0: any.
        std::uint64_t stored_cas = 0;  // The cas that the item got.
    };
    struct pending : terms {
        item_ref it;
        std::size_t have = 0;
        std::string line;  // The meta command, for the flags that its reply repeats.
    };
    enum class result { stored, not_stored, exists, not_found };

    // Takes a complete line, without its end.
    void command(std::string_view line, replies& to);
    [[nodiscard]] bool is_hopeless(std::string_view input) const noexcept;
    void finish_value(replies& to);
    result store_value(store::access& held);
    void await_value(item_ref it, const terms& how);
    // The value that follows is not stored; after it comes `why`, unless that is empty.
    void swallow(std::uint64_t bytes, std::string_view why);

    // In text_commands.cpp:
    void text_command(const words& line, replies& to);
    void get(const words& line, replies& to, bool with_cas, bool touches);
    void update(const words& line, replies& to, storing how);
    void arithmetic(const words& line, replies& to, bool increment);
    void remove(const words& line, replies& to);
    void touch(const words& line, replies& to);
    void flush_all(const words& line, replies& to);
    void stats(const words& line, replies& to);

    // In meta_commands.cpp:
    void meta_command(const words& line, std::string_view text, replies& to);
    void meta_get(const words& line, replies& to);
    void meta_set(const words& line, std::string_view text, replies& to);
    void finish_meta_set(result outcome, replies& to);
    void meta_delete(const words& line, replies& to);
    void meta_arithmetic(const words& line, replies& to);
    void meta_debug(const words& line, replies& to);

    enum class delta_result { done, not_number, not_found, exists, no_memory };
    // Adds to or subtracts from the number that is the value: in place, or by a new item. `value`
    // becomes the new number, `it` its item.
    static delta_result apply_delta(store::access& held, std::string_view key, bool increment,
                                    std::uint64_t delta, std::uint64_t cas, std::uint64_t& value,
                                    item*& it);

    service& service_;
    pending pending_;
    std::uint64_t swallow_ = 0;  // Bytes of a value to be dropped.
    std::string_view refusal_;   // What is said after them.
    seconds now_ = 0;
    bool over_ = false;
};

}  // namespace memcached
