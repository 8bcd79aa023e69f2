// SPDX-License-Identifier: MIT
#pragma once

// ums/stream.hpp: a connection: TCP, or a Unix stream.
//
// A stream owns its descriptor, as std::fstream owns a file; the destructor closes it. Two fibers
// may use a stream at once, one reading and the other writing; shutdown() by anybody wakes both.
//
// Blocking, Errors, Cost: as ums/io.hpp.
// Lifetime: moved and destroyed only while no other fiber uses it. To end another fiber's wait,
//           call shutdown() or close().

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "ums/endpoint.hpp"
#include "ums/impl/owned_fd.hpp"
#include "ums/io.hpp"

namespace ums::net {

class UMS_EXPORT stream {
public:
    stream() noexcept = default;  // No connection.
    // Takes over a connected descriptor, and adopts it (io::adopt()): until release(), only the
    // stream closes it.
    explicit stream(int fd) noexcept : fd_{fd} {
        if (fd >= 0) static_cast<void>(io::adopt(fd));  // Without, it works as well.
    }
    stream(stream&& other) noexcept : fd_{std::move(other.fd_)} {}
    stream& operator=(stream&& other) noexcept {
        fd_ = std::move(other.fd_);
        return *this;
    }
    ~stream();

    // Connects to `to`. TCP connections have no Nagle delay (set_no_delay).
    static result<stream> connect(const endpoint& to, const limits& l = {});
    // Makes the two ends of a Unix connection.
    static result<std::pair<stream, stream>> pair();

    // Reads what is there, at least one byte; 0 means the end.
    result<std::size_t> read(std::span<std::byte> into, const limits& l = {}) {
        return io::recv(fd_.get(), into.data(), into.size(), 0, l);
    }
    result<std::size_t> read(void* into, std::size_t bytes, const limits& l = {}) {
        return io::recv(fd_.get(), into, bytes, 0, l);
    }
    // See io::wait_readable(): with it an idle connection holds no buffer.
    [[nodiscard]] result<void> wait_readable(const limits& l = {}) {
        return io::wait_readable(fd_.get(), l);
    }
    // Reads exactly that many bytes; see io::read_all().
    [[nodiscard]] result<void> read_all(void* into, std::size_t bytes, const limits& l = {}) {
        return io::read_all(fd_.get(), into, bytes, l);
    }
    // Writes as much as there is room for, at least one byte, as io::write().
    [[nodiscard]] result<std::size_t> write(const void* from, std::size_t bytes,
                                            const limits& l = {}) {
        return io::send(fd_.get(), from, bytes, 0, l);
    }
    [[nodiscard]] result<std::size_t> write(std::string_view text, const limits& l = {}) {
        return write(text.data(), text.size(), l);
    }
    [[nodiscard]] result<std::size_t> write(std::span<const std::byte> from, const limits& l = {}) {
        return write(from.data(), from.size(), l);
    }
    // Writes all of it; see io::write_all().
    [[nodiscard]] result<void> write_all(const void* from, std::size_t bytes,
                                         const limits& l = {}) {
        return io::write_all(fd_.get(), from, bytes, l);
    }
    [[nodiscard]] result<void> write_all(std::string_view text, const limits& l = {}) {
        return write_all(text.data(), text.size(), l);
    }
    [[nodiscard]] result<void> write_all(std::span<const std::byte> from, const limits& l = {}) {
        return write_all(from.data(), from.size(), l);
    }
    // Writes all pieces and changes them: it cuts off what has been sent.
    [[nodiscard]] result<void> write_all(std::span<iovec> pieces, const limits& l = {});

    // SHUT_RD, SHUT_WR or SHUT_RDWR.
    result<void> shutdown(int how = SHUT_RDWR) { return io::shutdown(fd_.get(), how); }
    // Closes the connection. Waits of other fibers in it fail with bad_file_descriptor.
    result<void> close();

    // Turns Nagle's delay off or on (TCP only). The addresses of both ends.
    result<void> set_no_delay(bool on);
    [[nodiscard]] result<endpoint> local() const;
    [[nodiscard]] result<endpoint> peer() const;

    [[nodiscard]] bool is_open() const noexcept { return fd_.get() >= 0; }
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }
    // Gives the descriptor up: the caller owns the number and may do with it whatever it likes.
    [[nodiscard]] int release() noexcept {
        const int fd = fd_.release();
        io::forget(fd);
        return fd;
    }

private:
    impl::owned_fd fd_;
};

}  // namespace ums::net
