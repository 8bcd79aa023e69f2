// SPDX-License-Identifier: MIT
#include "capi/channel.hpp"

#include <stdexcept>

using namespace ums;
using namespace ums::capi;

using calls = impl::channel_calls;

namespace {

std::size_t size_of(const void* element) noexcept {
    std::size_t bytes = 0;
    std::memcpy(&bytes, element, sizeof bytes);
    return bytes;
}

void build(void* cell, void* from) { std::memcpy(cell, from, element_head + size_of(from)); }

void deliver(void* sink, void* from) {
    std::memcpy(static_cast<element_sink*>(sink)->out, static_cast<std::byte*>(from) + element_head,
                size_of(from));
}

void destroy(void*) noexcept {}

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
    : element_bytes{bytes},
      type{element_head + (bytes + element_head - 1) / element_head * element_head,
           element_head,
           &build,
           &deliver,
           &destroy,
           bytes <= ums::impl::bytes_most} {
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
    packed_element packed{element, c->element_bytes};
    return call([&] { return error_of(calls::send(c->state, &packed)); });
}

int ums_channel_send_until(ums_channel_t* c, const void* element, int64_t deadline,
                           ums_stop_t* stop) {
    packed_element packed{element, c->element_bytes};
    return call([&] {
        std::stop_token token;
        return error_of(
            calls::send_until(c->state, &packed, to_deadline(deadline), token_of(stop, token)));
    });
}

int ums_channel_trysend(ums_channel_t* c, const void* element) {
    packed_element packed{element, c->element_bytes};
    return call([&] { return error_of(calls::try_send(c->state, &packed)); });
}

int ums_channel_receive(ums_channel_t* c, void* element) {
    element_sink sink{element};
    return call([&] { return error_of(calls::receive(c->state, &sink)); });
}

int ums_channel_receive_until(ums_channel_t* c, void* element, int64_t deadline, ums_stop_t* stop) {
    element_sink sink{element};
    return call([&] {
        std::stop_token token;
        return error_of(
            calls::receive_until(c->state, &sink, to_deadline(deadline), token_of(stop, token)));
    });
}

int ums_channel_tryreceive(ums_channel_t* c, void* element) {
    element_sink sink{element};
    return call([&] { return error_of(calls::try_receive(c->state, &sink)); });
}

int64_t ums_channel_send_all_until(ums_channel_t* c, const void* elements, size_t count,
                                   int64_t deadline, ums_stop_t* stop) {
    struct source {
        const std::byte* elements;
        std::size_t bytes;
        packed_element packed;
    } from{static_cast<const std::byte*>(elements), c->element_bytes, {elements, 0}};
    const impl::channel_batch all{
        [](void* context, std::size_t i) -> void* {
            auto& s = *static_cast<source*>(context);
            return ::new (&s.packed) packed_element{s.elements + i * s.bytes, s.bytes};
        },
        &from, count};
    return many(deadline, stop, [&](ums::deadline limit, const std::stop_token* t, std::size_t& n) {
        return calls::send_all(c->state, all, n, limit, t);
    });
}

int64_t ums_channel_send_all(ums_channel_t* c, const void* elements, size_t count) {
    return ums_channel_send_all_until(c, elements, count, UMS_NEVER, nullptr);
}

int64_t ums_channel_receive_some_until(ums_channel_t* c, void* elements, size_t most,
                                       int64_t deadline, ums_stop_t* stop) {
    struct target {
        std::byte* elements;
        std::size_t bytes;
        element_sink sink;
    } to{static_cast<std::byte*>(elements), c->element_bytes, {nullptr}};
    const impl::channel_batch all{[](void* context, std::size_t i) -> void* {
                                      auto& t = *static_cast<target*>(context);
                                      t.sink.out = t.elements + i * t.bytes;
                                      return &t.sink;
                                  },
                                  &to, most};
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
