// SPDX-License-Identifier: MIT

// The meta protocol: mg ms md ma mn me.
//
// A reply repeats some of the command's flags in the command's order. So the flags are walked
// twice: once for what they ask, once for the reply.

#include <cstring>
#include <string>

#include "session.hpp"
#include "size_classes.hpp"

namespace memcached {

namespace {

constexpr std::string_view bad_format = "CLIENT_ERROR bad command line format";
constexpr std::string_view opaque_too_long = "CLIENT_ERROR opaque token too long";
constexpr std::string_view bad_token = "CLIENT_ERROR bad token in command line format";
constexpr unsigned flags_max = 20;  // The number of words, including the command, and one more.
constexpr std::size_t opaque_max = 32;

// What the flags ask for.
struct request {
    char key_space[session::key_bytes_max];  // Holds a decoded key.
    std::string_view key;
    bool key_is_base64 = false;
    bool wants_value = false;
    bool quiet = false;
    bool sets_ttl = false;
    bool creates = false;
    bool invalidates = false;
    bool keeps_order = false;  // Reading the item does not count as use.
    bool looks_first = false;  // The use counts after the reply, not before it.
    char mode = 0;
    std::uint32_t flags = 0;
    seconds expires_at = 0;
    seconds created_expires_at = 0;
    seconds recache_at = 0;
    std::uint64_t cas = 0;
    bool has_cas = false;
    std::uint64_t initial = 0;
    std::uint64_t delta = 1;
    std::string_view mistake = bad_format;

    // Reads the flags from word `first` on. Returns false if they are wrong; `mistake` says why.
    bool read(const words& line, unsigned first, const clock& time, seconds now);

private:
    bool read(std::string_view flag, const clock& time, seconds now, bool& known);
};

bool request::read(const words& line, unsigned first, const clock& time, seconds now) {
    bool seen[128] = {};
    bool good = true;
    key = line[1];
    for (unsigned i = first; i < line.count(); ++i) {
        const auto letter = static_cast<unsigned char>(line[i][0]);
        if (letter >= 127 || seen[letter]) {
            mistake = "CLIENT_ERROR duplicate flag";
            return false;
        }
        seen[letter] = true;
        bool known = true;
        if (!read(line[i], time, now, known)) good = false;
        if (!known) {
            mistake = "CLIENT_ERROR invalid flag";
            return false;
        }
    }
    return good;
}

bool request::read(std::string_view flag, const clock& time, seconds now, bool& known) {
    const std::string_view token = flag.substr(1);
    const auto number = [&](auto& into, std::string_view otherwise) {
        if (parse(token, into)) return true;
        mistake = otherwise;
        return false;
    };
    const auto moment = [&](seconds& into) {
        std::int32_t exptime = 0;
        if (!number(exptime, bad_token)) return false;
        into = time.expiry(exptime, now);
        return true;
    };
    switch (flag[0]) {
        case 'b': {
            const std::size_t bytes = base64_decode(key, key_space, sizeof key_space);
            if (bytes == 0) {
                mistake = "CLIENT_ERROR error decoding key";
                return false;
            }
            key = {key_space, bytes};
            key_is_base64 = true;
            return true;
        }
        case 'N':
            creates = true;
            looks_first = true;
            return moment(created_expires_at);
        case 'T':
            sets_ttl = true;
            looks_first = true;
            return moment(expires_at);
        case 'R':
            looks_first = true;
            return moment(recache_at);
        case 'F':
            return parse(token, flags);
        case 'C':
            has_cas = true;
            return number(cas, bad_token);
        case 'J':
            return number(initial, "CLIENT_ERROR invalid numeric initial value");
        case 'D':
            return number(delta, "CLIENT_ERROR invalid numeric delta value");
        case 'M':
            if (token.size() != 1) {
                mistake = "CLIENT_ERROR incorrect length for M token";
                return false;
            }
            mode = token[0];
            return true;
        case 'I':
            invalidates = true;
            return true;
        case 'q':
            quiet = true;
            return true;
        case 'v':
            wants_value = true;
            return true;
        case 'u':
            keeps_order = true;
            return true;
        case 'O':
        case 'P':
        case 'L':
        case 'k':
        case 's':
        case 't':
        case 'c':
        case 'f':
            return true;
        case 'h':
        case 'l':
            looks_first = true;
            return true;
        default:
            known = false;
            return true;
    }
}

void say_key(replies& to, std::string_view key, bool is_base64) {
    if (!is_base64) return to.text(key);
    char encoded[session::key_bytes_max * 4 / 3 + 4];
    to.text({encoded, base64_encode(key, encoded)});
}

void say_number(replies& to, char letter, std::uint64_t n) {
    to.character(' ');
    to.character(letter);
    to.number(n);
}

void say_ttl(replies& to, const item& it, seconds now) {
    if (it.expires_at == 0)
        to.text(" t-1");
    else
        say_number(to, 't', it.expires_at - now);
}

// The flags that every reply repeats.
void say_common(replies& to, std::string_view flag, std::string_view key, bool key_is_base64) {
    if (flag[0] == 'O') {
        to.character(' ');
        to.text(flag);
    } else if (flag[0] == 'k') {
        to.text(" k");
        say_key(to, key, key_is_base64);
        if (key_is_base64) to.text(" b");
    }
}

bool has_long_opaque(const words& line, unsigned first) noexcept {
    for (unsigned i = first; i < line.count(); ++i)
        if (line[i][0] == 'O' && line[i].size() > opaque_max) return true;
    return false;
}

void mistake(replies& to, std::string_view text) {
    to.text(text);
    to.text("\r\n");
}

}  // namespace

void session::meta_command(const words& line, std::string_view text, replies& to) {
    const char letter = line[0][1];
    if (letter == 'n') return to.text("MN\r\n");
    if (line.count() < 2 && std::strchr("gsda", letter) != nullptr) return to.text("ERROR\r\n");
    switch (letter) {
        case 'g':
            return meta_get(line, to);
        case 's':
            return meta_set(line, text, to);
        case 'd':
            return meta_delete(line, to);
        case 'a':
            return meta_arithmetic(line, to);
        case 'e':
            return meta_debug(line, to);
        default:
            return to.text("ERROR\r\n");
    }
}

void session::meta_get(const words& line, replies& to) {
    if (line[1].size() > key_bytes_max) return mistake(to, bad_format);
    if (line.count() >= flags_max) return mistake(to, "CLIENT_ERROR options flags are too long");
    request asked;
    if (!asked.read(line, 2, service_.time, now_)) return mistake(to, asked.mistake);

    const replies::mark before = to.here();
    if (asked.creates) service_.items.trim();
    store::access held{service_.items, asked.key, now_};
    item* it = held.find();
    bool created = false, won = false;
    if (it == nullptr && asked.creates) {
        item_ref made;
        if (held.make(asked.key, 0, 0, 2, made) != allocation::done)
            return mistake(to, "SERVER_ERROR out of memory writing get response");
        std::memcpy(made->value_begin(), "\r\n", 2);
        held.link(*made, nullptr);
        it = made.get();  // The store keeps it alive.
        created = true;
    }
    if (it == nullptr) {
        held.count().got(false);
        if (has_long_opaque(line, 2)) return mistake(to, opaque_too_long);
        if (asked.quiet) return;
        to.text("EN");
        for (unsigned i = 2; i < line.count(); ++i)
            say_common(to, line[i], asked.key, asked.key_is_base64);
        return to.text("\r\n");
    }
    if (asked.wants_value) {
        to.text("VA ");
        to.number(it->value_bytes - 2);
    } else {
        to.text("HD");
    }
    for (unsigned i = 2; i < line.count(); ++i) switch (line[i][0]) {
            case 'T':
                it->expires_at = asked.expires_at;
                break;
            case 'N':
                if (!created) break;
                it->expires_at = asked.created_expires_at;
                won = true;
                break;
            case 'R':
                if (!it->token_sent && !created && it->expires_at != 0 &&
                    it->expires_at < asked.recache_at)
                    won = true;
                break;
            case 's':
                say_number(to, 's', it->value_bytes - 2);
                break;
            case 't':
                say_ttl(to, *it, now_);
                break;
            case 'c':
                say_number(to, 'c', it->cas);
                break;
            case 'f':
                say_number(to, 'f', it->flags);
                break;
            case 'l':
                say_number(to, 'l', now_ - it->used_at);
                break;
            case 'h':
                say_number(to, 'h', it->fetched ? 1 : 0);
                break;
            case 'O':  // The flags before it have already had their effect.
                if (line[i].size() > opaque_max) {
                    if (!asked.keeps_order && !asked.looks_first) held.bump(*it);
                    to.take_back(before);
                    return mistake(to, opaque_too_long);
                }
                [[fallthrough]];
            default:
                say_common(to, line[i], asked.key, it->key_is_base64);
        }
    asked.sets_ttl ? held.count().touched(true) : held.count().got(true);
    if (it->token_sent) to.text(" Z");
    if (it->stale) {
        to.text(" X");
        if (!it->token_sent) won = true;
    }
    if (won) {
        to.text(" W");
        it->token_sent = true;
    }
    to.text("\r\n");
    if (asked.wants_value) {
        if (it->value_bytes <= replies::copied)
            to.text(it->value());
        else
            to.value(held.share(*it));
    }
    if (!asked.keeps_order) held.bump(*it);
}

void session::meta_set(const words& line, std::string_view text, replies& to) {
    if (line[1].size() > key_bytes_max || line.count() == 2) return mistake(to, bad_format);
    if (line.count() >= flags_max) return mistake(to, "CLIENT_ERROR options flags too long");
    std::int32_t length = 0;
    if (!parse(line[2], length) || length < 0 || length > INT32_MAX - 2)
        return mistake(to, bad_format);
    const std::uint32_t bytes = static_cast<std::uint32_t>(length) + 2;
    // From here on the length is known, and the value follows.
    const auto refuse = [&](std::string_view why) { swallow(bytes, why); };
    request asked;
    if (!asked.read(line, 3, service_.time, now_)) return refuse(asked.mistake);
    storing how = storing::set;
    switch (asked.mode) {
        case 0:
        case 'S':
            break;
        case 'E':
            how = storing::add;
            break;
        case 'A':
            how = storing::append;
            break;
        case 'P':
            how = storing::prepend;
            break;
        case 'R':
            how = storing::replace;
            break;
        default:
            return refuse("CLIENT_ERROR invalid mode for ms M token");
    }
    if (has_long_opaque(line, 3)) return refuse(opaque_too_long);
    if (asked.has_cas && (how == storing::set || how == storing::replace)) how = storing::cas;

    item_ref it;
    const allocation made =
        service_.items.make(asked.key, asked.flags, asked.expires_at, bytes, it);
    if (made != allocation::done) {
        refuse(made == allocation::too_large ? "SERVER_ERROR object too large for cache"
                                             : "SERVER_ERROR out of memory storing object");
        store::access held{service_.items, asked.key, now_};
        if (item* const old = held.find()) held.unlink(*old);
        return;
    }
    it->key_is_base64 = asked.key_is_base64;
    await_value(std::move(it), {.how = how,
                                .quiet = asked.quiet,
                                .is_meta = true,
                                .may_be_stale = asked.invalidates,
                                .cas = asked.cas});
    pending_.line = text;
}

void session::finish_meta_set(result outcome, replies& to) {
    if (outcome == result::stored && pending_.quiet) return;
    constexpr std::string_view said[] = {"HD", "NS", "EX", "NF"};
    to.text(said[static_cast<unsigned>(outcome)]);
    const words line{pending_.line};
    for (unsigned i = 3; i < line.count(); ++i) switch (line[i][0]) {
            case 'c':
                say_number(to, 'c', pending_.stored_cas);
                break;
            default:
                say_common(to, line[i], pending_.it->key(), pending_.it->key_is_base64);
        }
    to.text("\r\n");
}

void session::meta_delete(const words& line, replies& to) {
    if (line[1].size() > key_bytes_max) return mistake(to, bad_format);
    if (line.count() >= flags_max) return mistake(to, "CLIENT_ERROR options flags too long");
    request asked;
    if (!asked.read(line, 2, service_.time, now_))
        return mistake(to, "CLIENT_ERROR invalid or duplicate flag");
    if (has_long_opaque(line, 2)) return mistake(to, opaque_too_long);
    store::access held{service_.items, asked.key, now_};
    item* const it = held.find();
    const bool matches = it != nullptr && (!asked.has_cas || asked.cas == it->cas);
    if (!matches) ++held.count().delete_misses;
    if (matches && asked.invalidates) {
        if (asked.sets_ttl) it->expires_at = asked.expires_at;
        it->stale = true;
        it->token_sent = false;
        held.changed(*it);
    } else if (matches) {
        ++held.count().delete_hits;
        held.unlink(*it);
    }
    if (matches && asked.quiet) return;
    to.text(matches ? "HD" : it != nullptr ? "EX" : "NF");
    for (unsigned i = 2; i < line.count(); ++i)
        say_common(to, line[i], asked.key, asked.key_is_base64);
    to.text("\r\n");
}

void session::meta_arithmetic(const words& line, replies& to) {
    if (line[1].size() > key_bytes_max) return mistake(to, bad_format);
    if (line.count() >= flags_max) return mistake(to, "CLIENT_ERROR options flags too long");
    request asked;
    if (!asked.read(line, 2, service_.time, now_))
        return mistake(to, "CLIENT_ERROR invalid or duplicate flag");
    if (asked.mode != 0 && std::strchr("I+D-", asked.mode) == nullptr)
        return mistake(to, "CLIENT_ERROR invalid mode for ma M token");
    const bool increment = asked.mode == 0 || std::strchr("I+", asked.mode) != nullptr;

    service_.items.trim();
    store::access held{service_.items, asked.key, now_};
    counters& count = held.count();
    const replies::mark before = to.here();
    std::uint64_t value = 0;
    item* it = nullptr;
    bool created = false;
    switch (apply_delta(held, asked.key, increment, asked.delta, asked.cas, value, it)) {
        case delta_result::done:
            ++(increment ? count.incr_hits : count.decr_hits);
            break;
        case delta_result::not_number:
            return mistake(to, "CLIENT_ERROR cannot increment or decrement non-numeric value");
        case delta_result::no_memory:
            return mistake(to, "SERVER_ERROR out of memory");
        case delta_result::exists:
            it = nullptr;
            to.text("EX");
            break;
        case delta_result::not_found: {
            if (!asked.creates) {
                ++(increment ? count.incr_misses : count.decr_misses);
                to.text("NF");
                break;
            }
            char digits[20];
            value = asked.initial;
            const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
            const auto length = static_cast<std::uint32_t>(end - digits);
            item_ref made;
            if (held.make(asked.key, 0, 0, length + 2, made) != allocation::done)
                return mistake(to, "SERVER_ERROR Out of memory allocating new item");
            std::memcpy(made->value_begin(), digits, length);
            std::memcpy(made->value_begin() + length, "\r\n", 2);
            held.link(*made, nullptr);
            it = made.get();  // The store keeps it alive.
            created = true;
        }
    }
    char digits[20];
    const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    const std::string_view number{digits, static_cast<std::size_t>(end - digits)};
    if (it != nullptr && asked.wants_value) {
        to.text("VA ");
        to.number(number.size());
    } else if (it != nullptr) {
        to.text("HD");
    }
    for (unsigned i = 2; i < line.count(); ++i) switch (it != nullptr ? line[i][0] : 'O') {
            case 'c':
                say_number(to, 'c', it->cas);
                break;
            case 't':
                say_ttl(to, *it, now_);
                break;
            case 'T':
                it->expires_at = asked.expires_at;
                break;
            case 'N':
                if (created) it->expires_at = asked.created_expires_at;
                break;
            default:
                if (line[i][0] == 'O' && line[i].size() > opaque_max) {
                    to.take_back(before);
                    return mistake(to, opaque_too_long);
                }
                say_common(to, line[i], asked.key, asked.key_is_base64);
        }
    if (it != nullptr && !created && asked.quiet) return to.take_back(before);
    to.text("\r\n");
    if (it != nullptr && asked.wants_value) {
        to.text(number);
        to.text("\r\n");
    }
}

void session::meta_debug(const words& line, replies& to) {
    if (line.count() < 2 || line[1].size() > key_bytes_max) return mistake(to, bad_format);
    char decoded[key_bytes_max];
    std::string_view key = line[1];
    if (line.count() > 2 && line[2] == "b") {
        const std::size_t bytes = base64_decode(key, decoded, sizeof decoded);
        if (bytes == 0) return mistake(to, bad_format);
        key = {decoded, bytes};
    }
    store::access held{service_.items, key, now_};
    ++held.count().cmd_meta;
    const item* const it = held.find();
    if (it == nullptr) return to.text("EN\r\n");
    const std::uint64_t bytes = nominal_bytes(it->key_bytes, it->flags, it->value_bytes);
    to.text("ME ");
    say_key(to, it->key(), it->key_is_base64);
    to.text(" exp=");
    if (it->expires_at == 0)
        to.text("-1");
    else
        to.text(std::to_string(static_cast<std::int64_t>(now_) - it->expires_at));
    to.text(" la=");
    to.number(now_ - it->used_at);
    to.text(" cas=");
    to.number(it->cas);
    to.text(it->fetched ? " fetch=yes cls=" : " fetch=no cls=");
    to.number(classes.of(bytes));
    to.text(" size=");
    to.number(bytes);
    to.text("\r\n");
}

}  // namespace memcached
