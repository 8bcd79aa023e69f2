// SPDX-License-Identifier: MIT

// The text protocol's commands, and how memcached answers each kind of mistake.

#include "session.hpp"

namespace memcached {

namespace {

constexpr std::string_view error = "ERROR\r\n";
constexpr std::string_view bad_format = "CLIENT_ERROR bad command line format\r\n";
constexpr std::string_view bad_exptime = "CLIENT_ERROR invalid exptime argument\r\n";

bool is_quiet(const words& line) noexcept { return line[line.count() - 1] == "noreply"; }

// The reply of a command that may have said noreply.
void answer(replies& to, bool quiet, std::string_view text) {
    if (!quiet) to.text(text);
}

}  // namespace

void session::text_command(const words& line, replies& to) {
    const std::string_view name = line[0];
    const unsigned n = line.count();
    const auto either = [n](unsigned a, unsigned b) { return n == a || n == b; };
    const auto is = [&](std::string_view what, bool fits) { return name == what && fits; };

    if (is("get", n >= 2) || is("bget", n >= 2)) return get(line, to, false, false);
    if (is("gets", n >= 2)) return get(line, to, true, false);
    if (is("gat", n >= 2)) return get(line, to, false, true);
    if (is("gats", n >= 2)) return get(line, to, true, true);
    if (is("set", either(5, 6))) return update(line, to, storing::set);
    if (is("add", either(5, 6))) return update(line, to, storing::add);
    if (is("replace", either(5, 6))) return update(line, to, storing::replace);
    if (is("append", either(5, 6))) return update(line, to, storing::append);
    if (is("prepend", either(5, 6))) return update(line, to, storing::prepend);
    if (is("cas", either(6, 7))) return update(line, to, storing::cas);
    if (is("incr", either(3, 4))) return arithmetic(line, to, true);
    if (is("decr", either(3, 4))) return arithmetic(line, to, false);
    if (is("delete", n >= 2 && n <= 4)) return remove(line, to);
    if (is("touch", either(3, 4))) return touch(line, to);
    if (is("flush_all", n <= 3)) return flush_all(line, to);
    if (name == "stats") return stats(line, to);
    if (name == "shutdown") return to.text("ERROR: shutdown not enabled\r\n");
    if (name == "version") {
        to.text("VERSION ");
        to.text(version);
        return to.text("\r\n");
    }
    // They are refused (docs/memcached.md), but a client that wants no reply counts on none.
    for (const std::string_view refused :
         {"verbosity", "cache_memlimit", "slabs", "lru", "lru_crawler"})
        if (is(refused, n >= 3) && is_quiet(line)) return;
    // A browser, or an attacker who makes one send a form here, gets no second chance.
    if (name == "quit" || line[n - 1].starts_with("HTTP/")) {
        over_ = true;
        return;
    }
    to.text(error);
}

void session::get(const words& line, replies& to, bool with_cas, bool touches) {
    const replies::mark before = to.here();
    seconds expires_at = 0;
    unsigned first = 1;
    if (touches) {
        std::int32_t exptime = 0;
        if (!parse(line[1], exptime)) return to.text(bad_exptime);
        expires_at = service_.time.expiry(exptime, now_);
        first = 2;
    }
    std::string_view rest = line.rest();
    for (unsigned i = first;; ++i) {
        const std::string_view key = i < line.count() ? line[i] : words::next(rest);
        if (key.empty()) break;
        if (key.size() > key_bytes_max) {
            to.take_back(before);
            return to.text(bad_format);
        }
        store::access held{service_.items, key, now_};
        item* const it = held.find();
        touches ? held.count().touched(it != nullptr) : held.count().got(it != nullptr);
        if (it == nullptr) continue;
        held.bump(*it);
        if (touches) it->expires_at = expires_at;
        to.text("VALUE ");
        to.text(key);
        to.character(' ');
        to.number(it->flags);
        to.character(' ');
        to.number(it->value_bytes - 2);
        if (with_cas) {
            to.character(' ');
            to.number(it->cas);
        }
        to.text("\r\n");
        if (it->value_bytes <= replies::copied)
            to.text(it->value());
        else
            to.value(held.share(*it));
    }
    to.text("END\r\n");
}

void session::update(const words& line, replies& to, storing how) {
    const bool quiet = is_quiet(line);
    const std::string_view key = line[1];
    std::uint32_t flags = 0;
    std::int32_t exptime = 0, length = 0;
    std::uint64_t cas = 0;
    if (key.size() > key_bytes_max || !parse(line[2], flags) || !parse(line[3], exptime) ||
        !parse(line[4], length) || (how == storing::cas && !parse(line[5], cas)) || length < 0 ||
        length > INT32_MAX - 2)
        return answer(to, quiet, bad_format);

    const std::uint32_t bytes = static_cast<std::uint32_t>(length) + 2;
    item_ref it;
    const allocation made =
        service_.items.make(key, flags, service_.time.expiry(exptime, now_), bytes, it);
    if (made != allocation::done) {
        if (made == allocation::no_memory)
            swallow(bytes, "SERVER_ERROR out of memory storing object");
        else
            swallow(bytes, quiet ? "" : "SERVER_ERROR object too large for cache");
        // Other clients must not see the old value after this client wanted to replace it.
        if (how == storing::set) {
            store::access held{service_.items, key, now_};
            if (item* const old = held.find()) held.unlink(*old);
        }
        return;
    }
    await_value(std::move(it), {.how = how, .quiet = quiet, .cas = cas});
}

void session::arithmetic(const words& line, replies& to, bool increment) {
    const bool quiet = is_quiet(line);
    const std::string_view key = line[1];
    std::uint64_t delta = 0, value = 0;
    if (key.size() > key_bytes_max) return answer(to, quiet, bad_format);
    if (!parse(line[2], delta))
        return answer(to, quiet, "CLIENT_ERROR invalid numeric delta argument\r\n");
    service_.items.trim();
    store::access held{service_.items, key, now_};
    item* it = nullptr;
    counters& count = held.count();
    switch (apply_delta(held, key, increment, delta, 0, value, it)) {
        case delta_result::done:
            ++(increment ? count.incr_hits : count.decr_hits);
            if (quiet) return;
            to.number(value);
            return to.text("\r\n");
        case delta_result::not_number:
            return answer(to, quiet,
                          "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
        case delta_result::no_memory:
            return to.text("SERVER_ERROR out of memory\r\n");
        default:
            ++(increment ? count.incr_misses : count.decr_misses);
            return answer(to, quiet, "NOT_FOUND\r\n");
    }
}

void session::remove(const words& line, replies& to) {
    const unsigned n = line.count();
    const bool quiet = n > 2 && is_quiet(line);
    // Old clients send a time of 0.
    const bool is_zero = n > 2 && line[2] == "0";
    if (n > 2 && !(n == 3 ? is_zero || quiet : is_zero && quiet))
        return answer(to, quiet,
                      "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n");
    const std::string_view key = line[1];
    if (key.size() > key_bytes_max) return answer(to, quiet, bad_format);
    store::access held{service_.items, key, now_};
    item* const it = held.find();
    ++(it != nullptr ? held.count().delete_hits : held.count().delete_misses);
    if (it != nullptr) held.unlink(*it);
    answer(to, quiet, it != nullptr ? "DELETED\r\n" : "NOT_FOUND\r\n");
}

void session::touch(const words& line, replies& to) {
    const bool quiet = is_quiet(line);
    const std::string_view key = line[1];
    std::int32_t exptime = 0;
    if (key.size() > key_bytes_max) return answer(to, quiet, bad_format);
    if (!parse(line[2], exptime)) return answer(to, quiet, bad_exptime);
    store::access held{service_.items, key, now_};
    item* const it = held.find();
    held.count().touched(it != nullptr);
    if (it != nullptr) {
        held.bump(*it);
        it->expires_at = service_.time.expiry(exptime, now_);
    }
    answer(to, quiet, it != nullptr ? "TOUCHED\r\n" : "NOT_FOUND\r\n");
}

void session::flush_all(const words& line, replies& to) {
    const bool quiet = is_quiet(line);
    // The counter of any shard will do.
    ++store::access{service_.items, "", now_}.count().cmd_flush;
    std::int32_t delay = 0;
    if (line.count() != (quiet ? 2u : 1u) && !parse(line[1], delay))
        return answer(to, quiet, bad_exptime);
    service_.items.flush(delay > 0 ? service_.time.expiry(delay, now_) : now_, now_);
    answer(to, quiet, "OK\r\n");
}

void session::stats(const words& line, replies& to) {
    const std::string_view what = line.count() > 1 ? line[1] : "";
    if (what == "reset") {
        service_.items.reset_counters();
        return to.text("RESET\r\n");
    }
    if (!what.empty() && what != "settings") return to.text(error);
    if (service_.report != nullptr)
        what.empty() ? service_.report->general(to) : service_.report->settings(to);
    to.text("END\r\n");
}

}  // namespace memcached
