// SPDX-License-Identifier: MIT

// http: a hand-written io_uring loop on one thread: multishot accept, multishot receive into a ring
// of shared buffers; everything prepared in one turn is submitted with the wait for the next.
//
// Every response is the same, so sends need no buffers of their own: they all read one text of many
// responses. A send asks for all of its bytes (MSG_WAITALL), and the next send of a connection
// begins when the one before has ended, because sends of one socket that are under way together may
// mix.

#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "../common/listen.hpp"
#include "request_ends.hpp"

namespace {

class server {
public:
    server() {
        io_uring_params how{};
        how.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
        how.cq_entries = 4 * entries;
        check(io_uring_queue_init_params(entries, &ring_, &how), "io_uring_queue_init_params");
        for (unsigned i = 0; i < most_at_once; ++i) responses_ += bench::response;
        add_buffers();
    }

    // Does not return.
    void run() {
        accept_on();
        for (;;) {
            const int n = io_uring_submit_and_wait(&ring_, 1);
            if (n < 0 && n != -EINTR) check(n, "io_uring_submit_and_wait");
            unsigned head = 0;
            unsigned seen = 0;
            io_uring_cqe* done = nullptr;
            io_uring_for_each_cqe(&ring_, head, done) {
                handle(*done);
                ++seen;
            }
            io_uring_cq_advance(&ring_, seen);
        }
    }

private:
    enum class what : std::uint64_t { accept, receive, send };

    struct connection {
        bench::request_ends ends;
        std::size_t owed = 0;  // In responses.
        bool is_sending = false;
        bool is_receiving = false;
    };

    static constexpr unsigned entries = 4096;
    static constexpr unsigned buffers = 4096;  // A power of two.
    static constexpr std::size_t buffer_bytes = 4096;
    static constexpr int group = 0;
    static constexpr std::size_t most_at_once = 1024;

    static int check(int result, const char* call) {
        if (result < 0) throw std::system_error{-result, std::generic_category(), call};
        return result;
    }

    void add_buffers() {
        void* memory = nullptr;
        check(-posix_memalign(&memory, 4096, buffers * sizeof(io_uring_buf)), "posix_memalign");
        free_ = static_cast<io_uring_buf_ring*>(memory);
        io_uring_buf_ring_init(free_);
        io_uring_buf_reg about{};
        about.ring_addr = reinterpret_cast<std::uint64_t>(memory);
        about.ring_entries = buffers;
        about.bgid = group;
        check(io_uring_register_buf_ring(&ring_, &about, 0), "io_uring_register_buf_ring");
        for (unsigned i = 0; i < buffers; ++i) give_back(i);
    }

    char* buffer(unsigned id) { return memory_.data() + id * buffer_bytes; }

    void give_back(unsigned id) {
        io_uring_buf_ring_add(free_, buffer(id), buffer_bytes, static_cast<unsigned short>(id),
                              io_uring_buf_ring_mask(buffers), 0);
        io_uring_buf_ring_advance(free_, 1);
    }

    io_uring_sqe* prepare() {
        for (;;) {
            if (auto* const entry = io_uring_get_sqe(&ring_)) return entry;
            check(io_uring_submit(&ring_), "io_uring_submit");
        }
    }

    static void mark(io_uring_sqe* entry, what kind, int socket) {
        io_uring_sqe_set_data64(
            entry, static_cast<std::uint64_t>(kind) << 32U | static_cast<std::uint32_t>(socket));
    }

    void accept_on() {
        auto* const entry = prepare();
        io_uring_prep_multishot_accept(entry, listener_, nullptr, nullptr, SOCK_CLOEXEC);
        mark(entry, what::accept, listener_);
    }

    void receive_on(int socket) {
        auto* const entry = prepare();
        io_uring_prep_recv_multishot(entry, socket, nullptr, 0, 0);
        entry->flags |= IOSQE_BUFFER_SELECT;
        entry->buf_group = group;
        mark(entry, what::receive, socket);
        at(socket).is_receiving = true;
    }

    void send_on(int socket) {
        auto& to = at(socket);
        if (to.is_sending || to.owed == 0) return;
        const auto now = std::min(to.owed, most_at_once);
        auto* const entry = prepare();
        io_uring_prep_send(entry, socket, responses_.data(), now * bench::response.size(),
                           MSG_NOSIGNAL | MSG_WAITALL);
        mark(entry, what::send, socket);
        to.owed -= now;
        to.is_sending = true;
    }

    connection& at(int socket) {
        const auto index = static_cast<std::size_t>(socket);
        if (index >= connections_.size()) connections_.resize(index + 1);
        return connections_[index];
    }

    void handle(const io_uring_cqe& done) {
        const auto socket = static_cast<int>(done.user_data & 0xffffffffU);
        switch (static_cast<what>(done.user_data >> 32U)) {
            case what::accept:
                if (done.res >= 0) {
                    bench::send_at_once(done.res);
                    at(done.res) = {};
                    receive_on(done.res);
                }
                if ((done.flags & IORING_CQE_F_MORE) == 0) accept_on();
                break;
            case what::receive:
                received(socket, done);
                break;
            case what::send:
                at(socket).is_sending = false;
                if (done.res < 0)
                    shutdown(socket, SHUT_RDWR);  // This ends the receive.
                else
                    send_on(socket);
                close_if_over(socket);
                break;
        }
    }

    void received(int socket, const io_uring_cqe& done) {
        auto& from = at(socket);
        if ((done.flags & IORING_CQE_F_BUFFER) != 0) {
            const auto id = done.flags >> IORING_CQE_BUFFER_SHIFT;
            if (done.res > 0)
                from.owed += from.ends.count({buffer(id), static_cast<std::size_t>(done.res)});
            give_back(id);
        }
        send_on(socket);
        if ((done.flags & IORING_CQE_F_MORE) != 0) return;
        from.is_receiving = false;
        if (done.res > 0 || done.res == -ENOBUFS) return receive_on(socket);
        close_if_over(socket);
    }

    // A descriptor is free again only when no operation under way names it.
    void close_if_over(int socket) {
        const auto& one = at(socket);
        if (!one.is_receiving && !one.is_sending) close(socket);
    }

    io_uring ring_{};
    io_uring_buf_ring* free_ = nullptr;
    std::vector<char> memory_ = std::vector<char>(buffers * buffer_bytes);
    std::string responses_;
    int listener_ = bench::listen_on_loopback(0);
    std::vector<connection> connections_;  // By descriptor.
};

}  // namespace

int main() {
    return bench::run_server([] { server{}.run(); });
}
