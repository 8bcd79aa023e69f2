// SPDX-License-Identifier: MIT
#include "session.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace memcached {

// A line that is longer than this and has no end is not a command, unless it may be a get of many
// keys.
constexpr std::size_t line_bytes_max = 2048;
// But no get is longer than this.
constexpr std::size_t get_bytes_max = 1 << 20;

bool session::is_hopeless(std::string_view input) const noexcept {
    if (input.size() <= line_bytes_max) return false;
    const std::size_t begin = input.find_first_not_of(' ');
    if (begin == std::string_view::npos || begin > 100) return true;
    const std::string_view line = input.substr(begin);
    const bool is_get = line.starts_with("get ") || line.starts_with("gets ");
    return !is_get || input.size() > get_bytes_max;
}

std::size_t session::take(std::string_view input, replies& to) {
    now_ = service_.time.now();
    std::size_t taken = 0;
    while (!over_ && taken < input.size() && to.bytes() < much) {
        const std::string_view rest = input.substr(taken);
        if (swallow_ != 0) {
            const std::size_t n = std::min<std::uint64_t>(swallow_, rest.size());
            swallow_ -= n;
            taken += n;
            if (swallow_ == 0 && !refusal_.empty()) {
                to.text(refusal_);
                to.text("\r\n");
            }
        } else if (pending_.it) {
            const std::span<char> into = wanted();
            const std::size_t n = std::min(into.size(), rest.size());
            std::memcpy(into.data(), rest.data(), n);
            taken += n;
            filled(n, to);
        } else if (const std::size_t end = rest.find('\n'); end != std::string_view::npos) {
            const bool has_return = end > 1 && rest[end - 1] == '\r';
            taken += end + 1;
            command(rest.substr(0, end - (has_return ? 1 : 0)), to);
        } else {
            over_ = is_hopeless(rest);
            break;
        }
    }
    return taken;
}

std::span<char> session::wanted() noexcept {
    if (!pending_.it) return {};
    return {pending_.it->value_begin() + pending_.have, pending_.it->value_bytes - pending_.have};
}

void session::filled(std::size_t bytes, replies& to) {
    pending_.have += bytes;
    if (pending_.have == pending_.it->value_bytes) finish_value(to);
}

void session::reset() noexcept {
    pending_ = {};
    swallow_ = 0;
    over_ = false;
}

void session::command(std::string_view text, replies& to) {
    const words line{text};
    // No command has one letter.
    if (line.count() == 0 || line[0].size() < 2) return to.text("ERROR\r\n");
    if (line[0].size() == 2 && line[0][0] == 'm') return meta_command(line, text, to);
    text_command(line, to);
}

void session::await_value(item_ref it, const terms& how) {
    static_cast<terms&>(pending_) = how;
    pending_.it = std::move(it);
    pending_.have = 0;
}

void session::swallow(std::uint64_t bytes, std::string_view why) {
    swallow_ = bytes;
    refusal_ = why;
}

void session::finish_value(replies& to) {
    result outcome = result::not_stored;
    const bool is_whole = pending_.it->value().ends_with("\r\n");
    {
        store::access held{service_.items, pending_.it->key(), now_};
        ++held.count().cmd_set;
        if (is_whole) outcome = store_value(held);
    }
    if (pending_.is_meta) {
        if (is_whole)
            finish_meta_set(outcome, to);
        else
            to.text("CLIENT_ERROR bad data chunk\r\n");
    } else if (!pending_.quiet) {
        constexpr std::string_view said[] = {"STORED\r\n", "NOT_STORED\r\n", "EXISTS\r\n",
                                             "NOT_FOUND\r\n"};
        to.text(is_whole ? said[static_cast<unsigned>(outcome)]
                         : "CLIENT_ERROR bad data chunk\r\n");
    }
    pending_.it = {};
}

session::result session::store_value(store::access& held) {
    item& it = *pending_.it;
    const std::uint64_t cas = pending_.cas;
    item* const old = held.find();
    if (old == nullptr) {
        if (pending_.how == storing::cas) {
            ++held.count().cas_misses;
            return result::not_found;
        }
        if (pending_.how != storing::set && pending_.how != storing::add) return result::not_stored;
        held.link(it, nullptr);
        pending_.stored_cas = it.cas;
        return result::stored;
    }
    switch (pending_.how) {
        case storing::add:
            return result::not_stored;
        case storing::set:
        case storing::replace:
            break;
        case storing::cas:
            if (cas != 0 && cas == old->cas) {
                ++held.count().cas_hits;
            } else if (pending_.may_be_stale && cas != 0 && cas < old->cas) {
                ++held.count().cas_hits;
                // The value comes late, but it is better than nothing: it keeps the marks of the
                // item it replaces.
                it.expires_at = old->expires_at;
                it.stale = true;
                it.token_sent = old->token_sent;
            } else {
                ++held.count().cas_badval;
                return result::exists;
            }
            break;
        case storing::append:
        case storing::prepend: {
            if (cas != 0 && cas != old->cas) return result::exists;
            item_ref both;
            const std::uint32_t bytes = old->value_bytes - 2 + it.value_bytes;
            if (held.make(it.key(), old->flags, old->expires_at, bytes, both) != allocation::done)
                return result::not_stored;
            const item& first = pending_.how == storing::append ? *old : it;
            const item& second = pending_.how == storing::append ? it : *old;
            char* const into = both->value_begin();
            std::memcpy(into, first.value().data(), first.value_bytes - 2);
            std::memcpy(into + first.value_bytes - 2, second.value().data(), second.value_bytes);
            held.link(*both, old);
            pending_.stored_cas = both->cas;
            return result::stored;
        }
    }
    held.link(it, old);
    pending_.stored_cas = it.cas;
    return result::stored;
}

session::delta_result session::apply_delta(store::access& held, std::string_view key,
                                           bool increment, std::uint64_t delta, std::uint64_t cas,
                                           std::uint64_t& value, item*& it) {
    it = held.find();
    if (it == nullptr) return delta_result::not_found;
    const std::string_view number = it->value().substr(0, it->value_bytes - 2);
    // memcached keeps an item of more than half a megabyte in several pieces, and reads no number
    // from it.
    constexpr std::uint64_t piece_bytes = 512 * 1024;
    if (number.empty() || nominal_bytes(it->key_bytes, it->flags, it->value_bytes) > piece_bytes)
        return delta_result::not_number;
    if (cas != 0 && cas != it->cas) return delta_result::exists;
    if (!parse(number, value)) return delta_result::not_number;
    value = increment ? value + delta : delta > value ? 0 : value - delta;

    char digits[20];
    const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    const auto length = static_cast<std::uint32_t>(end - digits);
    if (length + 2 <= it->value_bytes && store::access::is_mine(*it)) {
        held.changed(*it);
        std::memcpy(it->value_begin(), digits, length);
        std::memset(it->value_begin() + length, ' ', it->value_bytes - 2 - length);
        return delta_result::done;
    }
    item_ref made;
    if (held.make(key, it->flags, it->expires_at, length + 2, made) != allocation::done)
        return delta_result::no_memory;
    std::memcpy(made->value_begin(), digits, length);
    std::memcpy(made->value_begin() + length, "\r\n", 2);
    held.link(*made, it);
    it = made.get();  // The store keeps it alive.
    return delta_result::done;
}

}  // namespace memcached
