// SPDX-License-Identifier: MIT
#include "ums/stream.hpp"

#include <algorithm>
#include <climits>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/assert.hpp"
#include "io/away/file.hpp"
#include "io/net/names.hpp"

namespace ums::net {

stream::~stream() {
    if (fd_.get() >= 0) close();
}

result<stream> stream::connect(const endpoint& to, const limits& l) {
    const result<int> fd = io::socket(to.family(), SOCK_STREAM);
    if (!fd) return result<stream>::failure(fd.error().value());
    stream made{*fd};
    if (to.family() != AF_UNIX) set_option(*fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (const result<void> r = io::connect(*fd, to.data(), to.size(), l); !r)
        return result<stream>::failure(r.error().value());
    return made;
}

result<std::pair<stream, stream>> stream::pair() {
    int ends[2];
    if (const result<void> r = io::socketpair(AF_UNIX, SOCK_STREAM, 0, ends); !r)
        return result<std::pair<stream, stream>>::failure(r.error().value());
    return std::pair{stream{ends[0]}, stream{ends[1]}};
}

result<void> stream::write_all(std::span<iovec> pieces, const limits& l) {
    const io::file_at file{io::number_at{fd_.get()}};
    while (!pieces.empty()) {
        const auto count = static_cast<int>(std::min<std::size_t>(pieces.size(), IOV_MAX));
        const result<std::size_t> n = io::writev(fd_.get(), pieces.data(), count, l);
        if (!n) return result<void>::from(n.number());
        std::size_t done = *n;
        while (!pieces.empty() && done >= pieces.front().iov_len) {
            done -= pieces.front().iov_len;
            pieces = pieces.subspan(1);
        }
        UMS_DEBUG_ASSERT(!pieces.empty() || done == 0, "more was written than the pieces hold");
        if (pieces.empty()) break;
        if (file.is_gone()) return result<void>::failure(EBADF);
        pieces.front().iov_base = static_cast<char*>(pieces.front().iov_base) + done;
        pieces.front().iov_len -= done;
    }
    return {};
}

result<void> stream::close() { return io::close(fd_.release()); }

result<void> stream::set_no_delay(bool on) {
    return result<void>::from(set_option(fd_.get(), IPPROTO_TCP, TCP_NODELAY, on));
}

result<endpoint> stream::local() const { return name_of(fd_.get(), SYS_getsockname); }
result<endpoint> stream::peer() const { return name_of(fd_.get(), SYS_getpeername); }

}  // namespace ums::net
