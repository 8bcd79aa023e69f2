// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/owned_fd.hpp: owns the descriptor of a socket.
//
// One fiber may close the descriptor while others use it. The destructor does not close it: the
// sockets do.

namespace ums::impl {

class owned_fd {
public:
    explicit owned_fd(int fd = -1) noexcept : fd_{fd} {}
    owned_fd(owned_fd&& other) noexcept : fd_{other.release()} {}
    owned_fd& operator=(owned_fd&& other) noexcept {
        const int mine = get();
        set(other.get());
        other.set(mine);
        return *this;
    }

    // relaxed, here and below: the engine's close() orders the closer with the waiters that it
    // ends.
    [[nodiscard]] int get() const noexcept { return __atomic_load_n(&fd_, __ATOMIC_RELAXED); }
    // Gives the descriptor up: the caller that gets it must close it. -1: none is left.
    int release() noexcept { return __atomic_exchange_n(&fd_, -1, __ATOMIC_RELAXED); }

private:
    void set(int fd) noexcept { __atomic_store_n(&fd_, fd, __ATOMIC_RELAXED); }
    int fd_;
};

}  // namespace ums::impl
