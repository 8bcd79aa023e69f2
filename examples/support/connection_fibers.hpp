// SPDX-License-Identifier: MIT
#pragma once

// connection_fibers: the fibers that serve the connections of a server, one for each.
//
// There may be no stack for one more fiber: address space is limited, and so is the number of
// mappings with mprotect guards (docs/limits.md). That is no reason to end the server: the code
// that accepted the connection closes it, and continues when another connection has ended.

#include <chrono>
#include <system_error>
#include <utility>

#include <ums/event.hpp>
#include <ums/fiber.hpp>
#include <ums/stream.hpp>
#include <ums/wait_group.hpp>

class connection_fibers {
public:
    // Calls serve(peer) on a new fiber. Returns false if there is no stack for it; then `peer` is
    // unchanged.
    template <class Serve>
    [[nodiscard]] bool start(ums::net::stream& peer, Serve serve) {
        running_.add();
        try {
            ums::fiber{[this, serve](ums::net::stream taken) {
                           serve(std::move(taken));
                           ended_.set();
                           running_.done();
                       },
                       std::move(peer)}
                .detach();
            return true;
        } catch (const std::system_error&) {
            running_.done();
            return false;
        }
    }
    // Waits until one has ended since the last time; but not for long, because other code uses
    // stacks, too.
    void wait_for_stack() { (void)ended_.wait_for(std::chrono::milliseconds{10}); }
    // Waits until all have ended.
    void wait() { running_.wait(); }

private:
    ums::wait_group running_;
    ums::auto_reset_event ended_;
};
