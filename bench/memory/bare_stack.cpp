// SPDX-License-Identifier: MIT

// memory: the limit. N stacks laid out as those of ums are, each with its guard and one page in
// use, and with nothing running on them. One of them costs what the kernel takes for a guard and a
// page.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "../common/footprint.hpp"
#include "../common/peer.hpp"

namespace {

constexpr std::size_t stack_bytes = 256 * 1024;
constexpr std::size_t guard_bytes = 68 * 1024;
constexpr std::size_t stride = guard_bytes + stack_bytes;

// Newer than Debian 12's headers.
constexpr int madv_guard_install = 102;
constexpr int this_process = -10'001;

std::runtime_error failure(const char* call) {
    return std::runtime_error{std::string{call} + ": " + std::strerror(errno)};
}

// Takes one system call for up to 64 guards, where the kernel has it, otherwise one for each; on a
// kernel without lightweight guards it uses mprotect, which takes a mapping each. These are the
// choices of ums.
void guard(char* stacks, std::uint64_t n) {
    iovec guards[64];
    for (std::uint64_t i = 0; i < n; ++i) guards[i] = {stacks + i * stride, guard_bytes};
    const long done = syscall(SYS_process_madvise, this_process, guards, n, madv_guard_install, 0);
    for (std::uint64_t i = done > 0 ? static_cast<std::uint64_t>(done) / guard_bytes : 0; i < n;
         ++i)
        if (madvise(stacks + i * stride, guard_bytes, madv_guard_install) != 0 &&
            mprotect(stacks + i * stride, guard_bytes, PROT_NONE) != 0)
            throw failure("a guard");
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        in.number("processors", 1, 1, 1024);
        const auto stacks = in.number("fibers", 1'000'000, 1, 100'000'000);
        in.done();

        const bench::footprint footprint;
        void* const all = mmap(nullptr, stacks * stride, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED) throw failure("mmap");
        // This fails on kernels without huge pages.
        madvise(all, stacks * stride, MADV_NOHUGEPAGE);
        auto* const first = static_cast<volatile char*>(all);
        for (std::uint64_t i = 0; i < stacks;) {
            const auto n = std::min<std::uint64_t>(stacks - i, 64);
            guard(static_cast<char*>(all) + i * stride, n);
            for (const auto end = i + n; i < end; ++i) first[(i + 1) * stride - 64] = 1;
        }
        footprint.add_to(out, stacks);
        munmap(all, stacks * stride);
        out.add("peak_rss_bytes", bench::status_bytes("VmHWM"));
    });
}
