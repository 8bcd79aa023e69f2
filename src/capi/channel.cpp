// SPDX-License-Identifier: MIT
#include "capi/channel.hpp"

#include <stdexcept>

#include "base/assert.hpp"

using namespace ums;
using namespace ums::capi;

using calls = impl::channel_calls;

namespace {

// What a send shows the mechanism, which only reads it.
void* shown(const void* element) noexcept { return const_cast<void*>(element); }

// The elements of a call, which lie one after the other.
struct row {
    std::byte* first;
    std::size_t bytes, count;
    static void* at(void* context, std::size_t i) {
        const auto& r = *static_cast<row*>(context);
        UMS_DEBUG_ASSERT(i < r.count, "a channel asked for an element behind the caller's last");
        return r.first + i * r.bytes;
    }
};

// A token that no caller can request needs no change.
const std::stop_token* token_of(const ums_stop_t* stop, std::stop_token& token) {
    if (stop != nullptr) token = stop->source.get_token();
    return &token;
}

// Returns how many elements went through; if none did, why.
template <class F>
int64_t many(int64_t deadline, ums_stop_t* stop, F transfer) {
    std::size_t count = 0;
    const int error = call([&] {
        std::stop_token token;
        return error_of(transfer(to_deadline(deadline), token_of(stop, token), count));
    });
    return count != 0 ? static_cast<int64_t>(count) : error;
}

}  // namespace

ums_channel::ums_channel(std::size_t bytes, std::size_t capacity)
    : type{bytes, 1, nullptr, nullptr, nullptr, true} {
    calls::open(state, type, capacity);
}

ums_channel::~ums_channel() { calls::destroy(state); }

int ums_channel_create(ums_channel_t** made, size_t element_bytes, size_t capacity) {
    *made = nullptr;
    if (element_bytes == 0 || element_bytes > UMS_CHANNEL_ELEMENT_MAX) return -EINVAL;
    return call([&] {
        try {
            *made = new ums_channel{element_bytes, capacity};
            return 0;
        } catch (const std::length_error&) {
            return -EINVAL;
        }
    });
}

void ums_channel_destroy(ums_channel_t* c) { delete c; }

int ums_channel_send(ums_channel_t* c, const void* element) {
    return call([&] { return error_of(calls::send(c->state, shown(element))); });
}

int ums_channel_send_until(ums_channel_t* c, const void* element, int64_t deadline,
                           ums_stop_t* stop) {
    return call([&] {
        std::stop_token token;
        return error_of(calls::send_until(c->state, shown(element), to_deadline(deadline),
                                          token_of(stop, token)));
    });
}

int ums_channel_trysend(ums_channel_t* c, const void* element) {
    return call([&] { return error_of(calls::try_send(c->state, shown(element))); });
}

int ums_channel_receive(ums_channel_t* c, void* element) {
    return call([&] { return error_of(calls::receive(c->state, element)); });
}

int ums_channel_receive_until(ums_channel_t* c, void* element, int64_t deadline, ums_stop_t* stop) {
    return call([&] {
        std::stop_token token;
        return error_of(
            calls::receive_until(c->state, element, to_deadline(deadline), token_of(stop, token)));
    });
}

int ums_channel_tryreceive(ums_channel_t* c, void* element) {
    return call([&] { return error_of(calls::try_receive(c->state, element)); });
}

int64_t ums_channel_send_all_until(ums_channel_t* c, const void* elements, size_t count,
                                   int64_t deadline, ums_stop_t* stop) {
    row from{static_cast<std::byte*>(shown(elements)), c->type.size, count};
    const impl::channel_batch all{&row::at, &from, count, from.first};
    return many(deadline, stop, [&](ums::deadline limit, const std::stop_token* t, std::size_t& n) {
        return calls::send_all(c->state, all, n, limit, t);
    });
}

int64_t ums_channel_send_all(ums_channel_t* c, const void* elements, size_t count) {
    return ums_channel_send_all_until(c, elements, count, UMS_NEVER, nullptr);
}

int64_t ums_channel_receive_some_until(ums_channel_t* c, void* elements, size_t most,
                                       int64_t deadline, ums_stop_t* stop) {
    row to{static_cast<std::byte*>(elements), c->type.size, most};
    const impl::channel_batch all{&row::at, &to, most};
    return many(deadline, stop, [&](ums::deadline limit, const std::stop_token* t, std::size_t& n) {
        return calls::receive_some(c->state, all, n, limit, t);
    });
}

int64_t ums_channel_receive_some(ums_channel_t* c, void* elements, size_t most) {
    return ums_channel_receive_some_until(c, elements, most, UMS_NEVER, nullptr);
}

void ums_channel_close(ums_channel_t* c) { calls::close(c->state); }
bool ums_channel_is_closed(const ums_channel_t* c) { return calls::is_closed(c->state); }
size_t ums_channel_size(const ums_channel_t* c) { return calls::size(c->state); }
size_t ums_channel_capacity(const ums_channel_t* c) { return c->state.capacity; }
