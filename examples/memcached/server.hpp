// SPDX-License-Identifier: MIT
#pragma once

// server: connections and datagrams to sessions, a fiber for each connection.

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include <ums/datagram.hpp>
#include <ums/fiber.hpp>
#include <ums/listener.hpp>

#include "connection_fibers.hpp"
#include "connections.hpp"
#include "options.hpp"
#include "session.hpp"

namespace memcached {

class server : private service::reporter {
public:
    // Listens. Throws std::system_error. Call it on a fiber.
    explicit server(const options& chosen);

    [[nodiscard]] std::vector<ums::net::endpoint> addresses() const;
    [[nodiscard]] std::vector<ums::net::endpoint> udp_addresses() const;

    // Serves until stop().
    void run();
    // May be called by any thread, at any time.
    void stop() { stops_.request_stop(); }

private:
    void accept(ums::net::listener& at);
    void serve(ums::net::stream peer);
    void serve_datagrams(ums::net::datagram& at);
    static bool send(connection& c, replies& what);

    void general(replies& to) override;
    void settings(replies& to) override;

    const options options_;
    store items_;
    clock time_;
    service service_;
    std::vector<ums::net::listener> listeners_;
    std::vector<ums::net::datagram> datagrams_;
    connections connections_;
    connection_fibers fibers_;
    // Accepted and not closed yet; this number is limited.
    std::atomic<unsigned> open_ = 0;
    std::atomic<std::uint64_t> rejected_ = 0;
    std::stop_source stops_;
};

}  // namespace memcached
