// SPDX-License-Identifier: MIT
#pragma once

// server: connects connections to the sessions of a site, with a fiber for each.

#include <memory>
#include <vector>

#include <ums/fiber.hpp>
#include <ums/listener.hpp>
#include <ums/semaphore.hpp>

#include "connection_fibers.hpp"
#include "connections.hpp"
#include "input_buffer.hpp"
#include "options.hpp"
#include "pool.hpp"
#include "session.hpp"

namespace http {

class server {
public:
    // Listens. Throws std::system_error if it cannot have an address or the root. Call it on a
    // fiber.
    explicit server(const options& chosen);
    ~server();

    // Where it listens, in the order of the options, with the ports that were chosen.
    [[nodiscard]] std::vector<ums::net::endpoint> addresses() const;

    // Serves until stop(), and then until what is in progress is finished.
    void run();
    // May be called by any thread, at any time.
    void stop();

private:
    // What serving a request needs, and an idle connection does not.
    struct workplace {
        input_buffer in;
        output out;
        void clear() noexcept {
            in.clear();
            out.clear();
        }
    };

    void accept(ums::net::listener& at);
    void serve(ums::net::stream peer);
    bool send(connection& c, output& what);
    // Lets the peer read the last answer before the socket is gone (RFC 9112, 9.6).
    void linger(connection& c);

    const options options_;
    site site_;
    std::vector<ums::net::listener> listeners_;
    connections connections_;
    pool<workplace> workplaces_;
    connection_fibers fibers_;
    ums::counting_semaphore<> places_;  // There are max_connections of them.
    std::stop_source stops_;
};

}  // namespace http
