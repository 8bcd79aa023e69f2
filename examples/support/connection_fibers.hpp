// SPDX-License-Identifier: MIT
#pragma once

// connection_fibers: the fibers that serve the connections of a server, one for each.
//
// There may be no stack for one more: address space is limited, and with mprotect guards the number of mappings
// (docs/limits.md). That is no reason to end the server: whoever accepted the connection closes it, and
// goes on when another has ended.

#include <chrono>
#include <system_error>
#include <utility>

#include <ums/event.hpp>
#include <ums/fiber.hpp>
#include <ums/stream.hpp>
#include <ums/wait_group.hpp>

class connection_fibers {
public:
    // Calls serve(peer) on a new fiber. False if there is no stack for it: `peer` is as it was.
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
    // Until one has ended since the last time; but not for long: others use stacks, too.
    void wait_for_stack() { (void)ended_.wait_for(std::chrono::milliseconds{10}); }
    // Until all have ended.
    void wait() { running_.wait(); }

private:
    ums::wait_group running_;
    ums::auto_reset_event ended_;
};
