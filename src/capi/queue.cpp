// SPDX-License-Identifier: MIT

// A queue is a channel with room.

#include "capi/channel.hpp"

struct ums_queue {
    explicit ums_queue(ums_channel_t* owned) noexcept : channel{owned} {}
    ~ums_queue() { ums_channel_destroy(channel); }
    ums_queue(const ums_queue&) = delete;
    ums_queue& operator=(const ums_queue&) = delete;

    ums_channel_t* const channel;
};

int ums_queue_create(ums_queue_t** made, size_t element_bytes, size_t capacity) {
    *made = nullptr;
    if (capacity == 0) return -EINVAL;
    ums_channel_t* channel = nullptr;
    if (const int error = ums_channel_create(&channel, element_bytes, capacity); error != 0)
        return error;
    *made = new (std::nothrow) ums_queue{channel};
    if (*made != nullptr) return 0;
    ums_channel_destroy(channel);
    return -ENOMEM;
}

void ums_queue_destroy(ums_queue_t* q) { delete q; }

int ums_queue_push(ums_queue_t* q, const void* element) {
    return ums_channel_send(q->channel, element);
}
int ums_queue_push_until(ums_queue_t* q, const void* element, int64_t deadline, ums_stop_t* stop) {
    return ums_channel_send_until(q->channel, element, deadline, stop);
}
int ums_queue_trypush(ums_queue_t* q, const void* element) {
    return ums_channel_trysend(q->channel, element);
}

int ums_queue_pop(ums_queue_t* q, void* element) {
    return ums_channel_receive(q->channel, element);
}
int ums_queue_pop_until(ums_queue_t* q, void* element, int64_t deadline, ums_stop_t* stop) {
    return ums_channel_receive_until(q->channel, element, deadline, stop);
}
int ums_queue_trypop(ums_queue_t* q, void* element) {
    return ums_channel_tryreceive(q->channel, element);
}

void ums_queue_close(ums_queue_t* q) { ums_channel_close(q->channel); }
bool ums_queue_is_closed(const ums_queue_t* q) { return ums_channel_is_closed(q->channel); }
size_t ums_queue_size(const ums_queue_t* q) { return ums_channel_size(q->channel); }
size_t ums_queue_capacity(const ums_queue_t* q) { return ums_channel_capacity(q->channel); }
ums_channel_t* ums_queue_channel(ums_queue_t* q) { return q->channel; }
