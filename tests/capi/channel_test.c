// SPDX-License-Identifier: MIT
// variants: migrate p1 nosync
#include <pthread.h>

#include "check.h"

struct item {
    long number;
    char text[20];
};

static void use_batches(void* argument) {
    ums_channel_t* c;
    struct item in[5], out[8];
    (void)argument;
    for (int i = 0; i < 5; ++i) in[i] = (struct item){i, "many"};
    CHECK_IS(0, ums_channel_create(&c, sizeof(struct item), 8));
    CHECK_IS(-ETIMEDOUT, ums_channel_receive_some_until(c, out, 8, 0, NULL));
    CHECK_IS(5, ums_channel_send_all(c, in, 5));
    CHECK_IS(3, ums_channel_send_all_until(c, in, 5, ums_deadline_after(MS / 10), NULL));
    CHECK_IS(6, ums_channel_receive_some(c, out, 6));
    for (int i = 0; i < 6; ++i) CHECK(out[i].number == i % 5 && strcmp(out[i].text, "many") == 0);
    CHECK_IS(2, ums_channel_receive_some(c, out, 8));
    CHECK_IS(1, out[0].number);
    CHECK_IS(2, out[1].number);
    ums_channel_close(c);
    CHECK_IS(-EPIPE, ums_channel_send_all(c, in, 5));
    CHECK_IS(-EPIPE, ums_channel_receive_some(c, out, 8));
    ums_channel_destroy(c);
}
static void several_elements_go_at_once(void) { on_a_fiber_and_on_a_thread(use_batches, NULL); }

/* One by one, and many at a time across the ends of blocks. What lies behind the received elements
 * stays as it was. */
static void use_elements_of(size_t bytes, size_t capacity) {
    enum { ELEMENTS = 60, AT_ONCE = 20 };
    unsigned char in[ELEMENTS * 257], out[sizeof in + 1];
    ums_channel_t* c;
    size_t const all = ELEMENTS * bytes;
    for (size_t i = 0; i < all; ++i) in[i] = (unsigned char)(i * 7 + i / 251);
    memset(out, 0xee, sizeof out);
    CHECK_IS(0, ums_channel_create(&c, bytes, capacity));
    for (size_t i = 0; i < AT_ONCE; ++i) CHECK_IS(0, ums_channel_send(c, in + i * bytes));
    CHECK_IS(AT_ONCE, ums_channel_send_all(c, in + AT_ONCE * bytes, AT_ONCE));
    for (size_t i = 0; i < AT_ONCE / 2; ++i) CHECK_IS(0, ums_channel_receive(c, out + i * bytes));
    CHECK_IS(AT_ONCE, ums_channel_receive_some(c, out + AT_ONCE / 2 * bytes, AT_ONCE));
    CHECK_IS(AT_ONCE, ums_channel_send_all(c, in + 2 * AT_ONCE * bytes, AT_ONCE));
    CHECK_IS(ELEMENTS - AT_ONCE * 3 / 2,
             ums_channel_receive_some(c, out + AT_ONCE * 3 / 2 * bytes, ELEMENTS));
    CHECK(memcmp(in, out, all) == 0);
    CHECK_IS(0xee, out[all]);
    ums_channel_destroy(c);
}
static void use_elements(void* argument) {
    static const size_t sizes[] = {1, 3, 4, 8, 16, 17, 256, 257};
    (void)argument;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        use_elements_of(sizes[i], 45);
        use_elements_of(sizes[i], UMS_CHANNEL_UNBOUNDED);
    }
}
static void elements_of_any_size_arrive_whole(void) {
    on_a_fiber_and_on_a_thread(use_elements, NULL);
}

static void use_channel(void* argument) {
    ums_channel_t* c;
    ums_stop_t* stop;
    struct item in = {7, "seven"}, out = {0, ""};
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK_IS(-EINVAL, ums_channel_create(&c, 0, 1));
    CHECK_IS(-EINVAL, ums_channel_create(&c, UMS_CHANNEL_ELEMENT_MAX + 1, 1));
    CHECK_IS(-EINVAL, ums_channel_create(&c, 8, SIZE_MAX / 2));
    CHECK_IS(0, ums_channel_create(&c, sizeof(struct item), 2));
    CHECK_IS(2, ums_channel_capacity(c));
    CHECK_IS(-EAGAIN, ums_channel_tryreceive(c, &out));
    CHECK_IS(-ETIMEDOUT, ums_channel_receive_until(c, &out, ums_deadline_after(MS / 10), NULL));
    CHECK_IS(-ETIMEDOUT, ums_channel_receive_until(c, &out, ums_deadline_after(MS / 10), stop));
    CHECK_IS(0, ums_channel_send(c, &in));
    in.number = 8;
    CHECK_IS(0, ums_channel_trysend(c, &in));
    CHECK_IS(2, ums_channel_size(c));
    CHECK_IS(-EAGAIN, ums_channel_trysend(c, &in));
    CHECK_IS(-ETIMEDOUT, ums_channel_send_until(c, &in, ums_deadline_after(MS / 10), NULL));
    CHECK(ums_stop_request(stop));
    CHECK_IS(-ECANCELED, ums_channel_send_until(c, &in, UMS_NEVER, stop));
    CHECK_IS(0, ums_channel_receive(c, &out));
    CHECK(out.number == 7 && strcmp(out.text, "seven") == 0);
    CHECK(!ums_channel_is_closed(c));
    ums_channel_close(c);
    CHECK(ums_channel_is_closed(c));
    CHECK_IS(-EPIPE, ums_channel_send(c, &in));
    CHECK_IS(-EPIPE, ums_channel_trysend(c, &in));
    CHECK_IS(-EPIPE, ums_channel_send_until(c, &in, UMS_NEVER, NULL));
    CHECK_IS(0, ums_channel_receive_until(c, &out, UMS_NEVER, NULL));
    CHECK_IS(8, out.number);
    CHECK_IS(-EPIPE, ums_channel_receive(c, &out));
    CHECK_IS(-EPIPE, ums_channel_tryreceive(c, &out));
    CHECK_IS(-EPIPE, ums_channel_receive_until(c, &out, UMS_NEVER, NULL));
    ums_channel_destroy(c);

    char large[UMS_CHANNEL_ELEMENT_MAX], copy[sizeof large] = "";
    memset(large, 'x', sizeof large);
    CHECK_IS(0, ums_channel_create(&c, sizeof large, UMS_CHANNEL_UNBOUNDED));
    for (int i = 0; i < 100; ++i) CHECK_IS(0, ums_channel_send(c, large));
    CHECK_IS(0, ums_channel_receive(c, copy));
    CHECK(memcmp(large, copy, sizeof large) == 0);
    CHECK_IS(99, ums_channel_size(c));
    CHECK_IS(-ECANCELED, (ums_channel_close(c), ums_select_until(NULL, 0, NULL, UMS_NEVER, stop)));
    ums_channel_destroy(c); /* It still has values in it. */
    ums_stop_destroy(stop);
}
static void a_channel_carries_structs(void) { on_a_fiber_and_on_a_thread(use_channel, NULL); }

enum { ITEMS = 1000, SIDES = 4 };
struct traffic {
    ums_channel_t* channel;
    atomic_long sum, items;
};
static void send_items(void* argument) {
    struct traffic* t = argument;
    for (long i = 1; i <= ITEMS; ++i) {
        int error = -ETIMEDOUT;
        while (error == -ETIMEDOUT)
            error = i % 2 == 0
                        ? ums_channel_send(t->channel, &i)
                        : ums_channel_send_until(t->channel, &i, ums_deadline_after(MS), NULL);
        CHECK_IS(0, error);
    }
}
static void receive_items(void* argument) {
    struct traffic* t = argument;
    long item = 0;
    int error;
    while ((error = ums_channel_receive(t->channel, &item)) == 0) {
        t->sum += item;
        ++t->items;
    }
    CHECK_IS(-EPIPE, error);
}
static void* send_on_a_thread(void* argument) {
    send_items(argument);
    return NULL;
}
static void nothing_is_lost_or_doubled(void) {
    const size_t capacities[] = {0, 1, 10, UMS_CHANNEL_UNBOUNDED};
    for (int kind = 0; kind < 4; ++kind) {
        struct traffic t = {.sum = 0};
        ums_fiber_t senders[SIDES], receivers[SIDES];
        pthread_t thread;
        CHECK_IS(0, ums_runtime_start(NULL));
        CHECK_IS(0, ums_channel_create(&t.channel, sizeof(long), capacities[kind]));
        for (int i = 0; i < SIDES; ++i) {
            senders[i] = start(send_items, &t);
            receivers[i] = start(receive_items, &t);
        }
        CHECK_IS(0, pthread_create(&thread, NULL, send_on_a_thread, &t));
        pthread_join(thread, NULL);
        for (int i = 0; i < SIDES; ++i) join(&senders[i]);
        ums_channel_close(t.channel);
        for (int i = 0; i < SIDES; ++i) join(&receivers[i]);
        ums_channel_destroy(t.channel);
        CHECK_IS(0, ums_runtime_stop());
        CHECK_IS((SIDES + 1) * ITEMS, t.items);
        CHECK_IS((SIDES + 1) * (long)ITEMS * (ITEMS + 1) / 2, t.sum);
    }
}

static void use_select(void* argument) {
    ums_channel_t *numbers, *words;
    ums_stop_t* stop;
    long number = 5, got = 0;
    char word[4] = "abc", got_word[4] = "";
    size_t index = 99;
    (void)argument;
    CHECK_IS(0, ums_stop_create(&stop));
    CHECK_IS(0, ums_channel_create(&numbers, sizeof(long), 1));
    CHECK_IS(0, ums_channel_create(&words, sizeof word, 1));
    const ums_select_case_t receive[] = {{numbers, UMS_SELECT_RECEIVE, &got},
                                         {words, UMS_SELECT_RECEIVE, got_word}};
    const ums_select_case_t send[] = {{numbers, UMS_SELECT_SEND, &number},
                                      {words, UMS_SELECT_SEND, word}};
    const ums_select_case_t bad[] = {{numbers, 9, &number}, {numbers, -1, &number}};
    CHECK_IS(-EINVAL, ums_select(bad, 1, &index));
    CHECK_IS(-EINVAL, ums_select(bad + 1, 1, &index));
    CHECK_IS(-EAGAIN, ums_tryselect(receive, 2, &index));
    CHECK_IS(-ETIMEDOUT, ums_select_until(receive, 2, &index, ums_deadline_after(MS / 10), NULL));
    CHECK_IS(-ETIMEDOUT, ums_select_until(receive, 2, &index, 0, stop));
    CHECK_IS(-ETIMEDOUT, ums_select_until(NULL, 0, NULL, 0, NULL));
    CHECK_IS(99, index);
    CHECK_IS(0, ums_select(send + 1, 1, &index));
    CHECK_IS(0, index);
    CHECK_IS(0, ums_select(send, 2, &index)); /* All words are taken. */
    CHECK_IS(0, index);
    CHECK_IS(-EAGAIN, ums_tryselect(send, 2, NULL));
    CHECK_IS(0, ums_tryselect(receive, 1, &index));
    CHECK_IS(5, got);
    CHECK_IS(0, ums_select_until(receive, 2, &index, 0, NULL));
    CHECK_IS(1, index);
    CHECK(strcmp(got_word, "abc") == 0);
    CHECK(ums_stop_request(stop));
    CHECK_IS(-ECANCELED, ums_select_until(receive, 2, &index, UMS_NEVER, stop));
    ums_channel_close(words);
    CHECK_IS(-EPIPE, ums_select(receive, 2, &index));
    CHECK_IS(1, index);
    ums_channel_destroy(numbers);
    ums_channel_destroy(words);
    ums_stop_destroy(stop);
}
static void select_takes_the_first_that_can_be(void) {
    on_a_fiber_and_on_a_thread(use_select, NULL);
}

struct two {
    ums_channel_t* channels[2];
};
static void send_one_by_one(void* argument) {
    struct two* t = argument;
    for (long i = 1; i <= ITEMS; ++i) CHECK_IS(0, ums_channel_send(t->channels[i % 2], &i));
    ums_channel_close(t->channels[0]);
    ums_channel_close(t->channels[1]);
}
static void select_all(void* argument) {
    struct two t;
    long sum = 0;
    (void)argument;
    for (int i = 0; i < 2; ++i) CHECK_IS(0, ums_channel_create(&t.channels[i], sizeof(long), 0));
    ums_fiber_t sender = start(send_one_by_one, &t);
    bool open[2] = {true, true};
    while (open[0] || open[1]) {
        long item = 0;
        size_t index = 0, count = 0;
        ums_select_case_t cases[2];
        int which[2];
        for (int i = 0; i < 2; ++i) {
            if (!open[i]) continue;
            which[count] = i;
            cases[count++] = (ums_select_case_t){t.channels[i], UMS_SELECT_RECEIVE, &item};
        }
        const int error = ums_select(cases, count, &index);
        CHECK(error == 0 || error == -EPIPE);
        if (error == 0) {
            CHECK_IS(which[index], item % 2);
            sum += item;
        } else {
            open[which[index]] = false;
        }
    }
    join(&sender);
    CHECK_IS((long)ITEMS * (ITEMS + 1) / 2, sum);
    for (int i = 0; i < 2; ++i) ums_channel_destroy(t.channels[i]);
}
static void select_misses_nothing(void) { on_a_fiber_and_on_a_thread(select_all, NULL); }

int main(void) {
    RUN(a_channel_carries_structs);
    RUN(several_elements_go_at_once);
    RUN(elements_of_any_size_arrive_whole);
    RUN(nothing_is_lost_or_doubled);
    RUN(select_takes_the_first_that_can_be);
    RUN(select_misses_nothing);
    return check_end();
}
