// SPDX-License-Identifier: MIT
#pragma once

// io/engine/epoll_engine.hpp: the engine on epoll.
//
// Cost: one epoll_ctl() for each kept descriptor that ever waits, and one when it is closed; one
// epoll_ctl() for each wait for a shared descriptor. One epoll_wait() takes up to 256 edges.

#include <memory>

#include "io/engine/engine.hpp"

struct epoll_event;

namespace ums::io {

class epoll_engine final : public engine {
public:
    // Returns null and sets -errno if the kernel has no descriptor to give.
    static std::unique_ptr<engine> make(long& error) noexcept;
    ~epoll_engine() override;

    sched::fiber* wait(os::nanoseconds limit) noexcept override;
    sched::fiber* poll() noexcept override;
    void interrupt() noexcept override;

    long add(int fd, std::uint32_t generation, bool) noexcept override;
    void remove(int fd, std::uint32_t generation, bool) noexcept override;
    long arm(int fd, std::uint32_t generation, bool in, bool out, bool& is_new) noexcept override;
    void disarm(int fd) noexcept override;
    [[nodiscard]] const char* name() const noexcept override { return "epoll"; }

private:
    epoll_engine(int epoll, int bell, std::unique_ptr<epoll_event[]> polled) noexcept;
    void end_if_lost(long error) const noexcept;
    static sched::fiber* deliver(const epoll_event* events, long count) noexcept;

    const int epoll_;
    // An eventfd that can always be read. Edge-triggered: it is reported once for each time that it
    // is put into the set again.
    const int bell_;
    // For poll(), which runs once at a time (sched/queue/driver.hpp) and on the stack of a fiber,
    // where the events would touch one more page.
    std::unique_ptr<epoll_event[]> polled_;
    bool has_pwait2_ = true;
};

}  // namespace ums::io
