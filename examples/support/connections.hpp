// SPDX-License-Identifier: MIT
#pragma once

// connections: the connections of a server, their time-outs, and how they end when the server
// stops.
//
// A connection says how long it may wait by storing a time: no timer is set or cancelled for a
// request. One fiber, the watch, sleeps until the earliest of these times, looks at all, ends the
// waits that have lasted too long, and sleeps again; while there is no time to wait for it sleeps
// for good. The watch ends a wait by shutting the socket down, which wakes the fiber that reads or
// writes there; that fiber then sees why.
//
// Why no wake-up is lost: the watch may sleep while a connection stores an earlier time than it
// sleeps for. So a connection that stores a time compares it with the watch's and wakes the watch
// if the time is earlier. (Both are in one order, sequentially consistent: either the watch sees
// the new time before it sleeps, or the connection sees how long the watch will sleep.)

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <ums/condition_variable.hpp>
#include <ums/event.hpp>
#include <ums/fiber.hpp>
#include <ums/mutex.hpp>
#include <ums/stream.hpp>

class connections;

// One connection, for the time that a fiber serves it.
class connection {
public:
    connection(connections& of, ums::net::stream peer);
    ~connection();
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;

    ums::net::stream& stream() noexcept { return peer_; }

    // The next waits may last until that time from now; zero: for ever. Call it again to change
    // that. The waits end up to an eighth, or a tenth of a second, later than that, so a connection
    // that is served again and again need not store a new time for each request.
    void allow(std::chrono::milliseconds time, bool writes) noexcept;
    // No request is in progress: when the server stops, the wait for more ends at once.
    void set_idle(bool idle) noexcept;
    // Whether the watch has ended the wait.
    [[nodiscard]] bool has_timed_out() const noexcept;
    // Whether the server stops: then no further request is to be served.
    [[nodiscard]] bool must_end() const noexcept;

private:
    friend class connections;
    static constexpr std::int64_t never = INT64_MAX;

    connections& all_;
    ums::net::stream peer_;
    std::atomic<std::int64_t> until_ = never;  // Milliseconds of the steady clock.
    std::atomic<bool> writes_ = false;
    std::atomic<bool> idle_ = false;
    std::atomic<bool> timed_out_ = false;
    // Guarded by the list's lock:
    connection* previous_ = nullptr;
    connection* next_ = nullptr;
};

class connections {
public:
    // Starts the watch.
    connections();
    ~connections();  // Requires: none is left.
    connections(const connections&) = delete;
    connections& operator=(const connections&) = delete;

    // From now on idle connections end, and the others end after their request. May be called by
    // any thread.
    void stop();
    // Returns false if some are left when the time has passed.
    bool wait_until_empty(std::chrono::milliseconds time);
    // Shuts down the connections that are left.
    void end_all();

    [[nodiscard]] std::size_t count() const noexcept {
        return count_.load(std::memory_order_relaxed);  // relaxed: a figure.
    }
    [[nodiscard]] std::uint64_t total() const noexcept {
        return total_.load(std::memory_order_relaxed);  // relaxed: a figure.
    }

private:
    friend class connection;
    static std::int64_t now() noexcept;
    void watch();
    void wake_watch(std::int64_t until) noexcept;
    std::int64_t look(std::int64_t now);

    ums::mutex lock_;
    connection* first_ = nullptr;  // Guarded by lock_.
    std::atomic<std::size_t> count_ = 0;
    std::atomic<std::uint64_t> total_ = 0;
    ums::condition_variable empty_;
    std::atomic<bool> stops_ = false;
    std::atomic<bool> ends_ = false;
    std::atomic<std::int64_t> sleeps_until_ = 0;  // How long the watch sleeps.
    ums::auto_reset_event wake_;
    ums::fiber watch_;  // It comes last, because it uses the rest.
};
