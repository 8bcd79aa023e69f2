// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/owned_fd.hpp: the descriptor of a socket, which one fiber may close while others use it.

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

    // relaxed, here and below: the engine's close() orders the closer with those it ends.
    [[nodiscard]] int get() const noexcept { return __atomic_load_n(&fd_, __ATOMIC_RELAXED); }
    // Gives it up: who gets it is the one to close it. -1: none.
    int release() noexcept { return __atomic_exchange_n(&fd_, -1, __ATOMIC_RELAXED); }

private:
    void set(int fd) noexcept { __atomic_store_n(&fd_, fd, __ATOMIC_RELAXED); }
    int fd_;
};

}  // namespace ums::impl
