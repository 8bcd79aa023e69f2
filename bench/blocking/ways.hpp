// SPDX-License-Identifier: MIT
#pragma once

// bench/blocking/ways.hpp: ways to block in the kernel for a given time.
//
// A plain thread ends each block, so that the end comes whatever the measured runtime does. It also
// runs while no runner blocks, so its cost is in both halves of the comparison.
//
// nanosleep    called by number, past whatever a runtime may put in the place of the C library's.
// read         of an empty pipe. A thread writes after the time; it looks once a millisecond.
// fault        of a page that userfaultfd holds. A thread resolves it after the time.
// getaddrinfo  of a name that a name server on loopback denies after the time.
// fsync        of a file in TMPDIR, /tmp by default, with a new page. It takes as long as it takes;
//              the caller waits the rest of the time in the way of its runtime.

#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "../common/clock.hpp"

namespace bench {

inline long checked(long result, const char* what) {
    if (result < 0) throw std::system_error{errno, std::generic_category(), what};
    return result;
}

class blocks {
public:
    blocks() = default;
    virtual ~blocks() = default;
    blocks(const blocks&) = delete;
    blocks& operator=(const blocks&) = delete;
    // Blocks runner i, for about `ns`.
    virtual void block(std::uint64_t i, std::uint64_t ns) = 0;
    // Whether a block takes another time than was asked for.
    [[nodiscard]] virtual bool has_own_length() const { return false; }
};

class sleeping final : public blocks {
public:
    void block(std::uint64_t, std::uint64_t ns) override {
        const timespec length{static_cast<time_t>(ns / 1'000'000'000U),
                              static_cast<long>(ns % 1'000'000'000U)};
        checked(syscall(SYS_nanosleep, &length, nullptr), "nanosleep");
    }
};

class reading final : public blocks {
public:
    explicit reading(std::uint64_t n) : all_(n) {
        for (auto& one : all_) checked(pipe2(one.ends, O_CLOEXEC), "pipe");
        writer_ = std::thread{[this] { write_when_due(); }};
    }
    ~reading() override {
        is_over_ = true;
        writer_.join();
        for (auto& one : all_) {
            close(one.ends[0]);
            close(one.ends[1]);
        }
    }
    void block(std::uint64_t i, std::uint64_t ns) override {
        char byte;
        all_[i].due_ns = now_ns() + ns;
        checked(::read(all_[i].ends[0], &byte, 1), "read of a pipe");
    }

private:
    struct one_pipe {
        int ends[2];
        std::atomic<std::uint64_t> due_ns{0};
    };

    void write_when_due() {
        while (!is_over_) {
            usleep(1000);
            const auto now = now_ns();
            for (auto& one : all_) {
                const std::uint64_t due = one.due_ns;
                if (due == 0 || due > now) continue;
                one.due_ns = 0;
                if (write(one.ends[1], "x", 1) != 1) std::abort();
            }
        }
    }

    std::vector<one_pipe> all_;
    std::atomic<bool> is_over_{false};
    std::thread writer_;
};

class faulting final : public blocks {
public:
    explicit faulting(std::uint64_t n)
        : bytes_{n * page},
          fd_{static_cast<int>(
              checked(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY),
                      "userfaultfd"))} {
        uffdio_api api{UFFD_API, 0, 0};
        checked(ioctl(fd_, UFFDIO_API, &api), "userfaultfd");
        pages_ = static_cast<char*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        checked(pages_ == MAP_FAILED ? -1 : 0, "mmap");
        uffdio_register range{
            {reinterpret_cast<std::uint64_t>(pages_), bytes_}, UFFDIO_REGISTER_MODE_MISSING, 0};
        checked(ioctl(fd_, UFFDIO_REGISTER, &range), "userfaultfd");
        checked(pipe2(over_, O_CLOEXEC), "pipe");
        resolver_ = std::thread{[this] { resolve_when_due(); }};
    }
    ~faulting() override {
        close(over_[1]);
        resolver_.join();
        close(over_[0]);
        munmap(pages_, bytes_);
        close(fd_);
    }
    void block(std::uint64_t i, std::uint64_t ns) override {
        length_ns_ = ns;
        *static_cast<volatile char*>(pages_ + i * page) = 1;
        checked(madvise(pages_ + i * page, page, MADV_DONTNEED), "madvise");
    }

private:
    static constexpr std::uint64_t page = 4096;
    struct held {
        std::uint64_t address, due_ns;
    };

    void resolve_when_due() {
        std::deque<held> all;  // Sorted by their ends, except in the first round.
        for (;;) {
            int wait_ms = -1;
            const auto now = now_ns();
            while (!all.empty() && all.front().due_ns <= now) {
                uffdio_zeropage fill{{all.front().address, page}, 0, 0};
                if (ioctl(fd_, UFFDIO_ZEROPAGE, &fill) != 0 && errno != EEXIST) std::abort();
                all.pop_front();
            }
            if (!all.empty())
                wait_ms = static_cast<int>((all.front().due_ns - now + 999'999) / 1'000'000);
            pollfd both[2] = {{fd_, POLLIN, 0}, {over_[0], 0, 0}};
            if (poll(both, 2, wait_ms) < 0 && errno != EINTR) std::abort();
            if (both[1].revents != 0) return;
            uffd_msg what{};
            while (::read(fd_, &what, sizeof what) == sizeof what)
                if (what.event == UFFD_EVENT_PAGEFAULT) {
                    const held one{what.arg.pagefault.address & ~(page - 1), now_ns() + length_ns_};
                    auto at = all.end();
                    while (at != all.begin() && (at - 1)->due_ns > one.due_ns) --at;
                    all.insert(at, one);
                }
        }
    }

    const std::uint64_t bytes_;
    const int fd_;
    char* pages_ = nullptr;
    int over_[2] = {-1, -1};
    std::atomic<std::uint64_t> length_ns_{0};
    std::thread resolver_;
};

class resolving final : public blocks {
public:
    resolving()
        : fd_{static_cast<int>(checked(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"))} {
        here_.sin_family = AF_INET;
        here_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof here_;
        checked(bind(fd_, reinterpret_cast<sockaddr*>(&here_), bytes), "bind");
        checked(getsockname(fd_, reinterpret_cast<sockaddr*>(&here_), &bytes), "getsockname");
        checked(pipe2(over_, O_CLOEXEC), "pipe");
        server_ = std::thread{[this] { answer_when_due(); }};
    }
    ~resolving() override {
        close(over_[1]);
        server_.join();
        close(over_[0]);
        close(fd_);
    }
    void block(std::uint64_t, std::uint64_t ns) override {
        length_ns_ = ns;
        // The resolver's state belongs to the kernel thread. A new thread may get the state that
        // another left when it ended, including its servers, but without RES_INIT.
        if ((_res.options & RES_INIT) == 0 || _res.nscount != 1 ||
            _res.nsaddr_list[0].sin_port != here_.sin_port) {
            checked(res_init(), "res_init");
            _res.nscount = 1;
            _res.nsaddr_list[0] = here_;
            _res.retry = 1;
            _res.retrans = 30;
            _res.options &= ~(RES_DNSRCH | RES_DEFNAMES);
        }
        addrinfo wanted{};
        wanted.ai_family = AF_INET;
        addrinfo* found = nullptr;
        const auto before = asked_.load();
        const int said = getaddrinfo("no.such.host.invalid.", nullptr, &wanted, &found);
        if (said == 0) freeaddrinfo(found);
        if (asked_ == before)
            throw std::runtime_error{
                std::string{"getaddrinfo() did not ask the bench's name server: "} +
                gai_strerror(said)};
    }

private:
    struct question {
        sockaddr_in from;
        std::uint64_t due_ns;
        std::vector<unsigned char> text;
    };

    void answer_when_due() {
        std::deque<question> all;
        for (;;) {
            int wait_ms = -1;
            const auto now = now_ns();
            while (!all.empty() && all.front().due_ns <= now) {
                auto& one = all.front();
                one.text[2] |= 0x80;  // This is a response:
                // there is no such name.
                one.text[3] = static_cast<unsigned char>((one.text[3] & 0xf0) | 3);
                sendto(fd_, one.text.data(), one.text.size(), 0,
                       reinterpret_cast<sockaddr*>(&one.from), sizeof one.from);
                all.pop_front();
            }
            if (!all.empty())
                wait_ms = static_cast<int>((all.front().due_ns - now + 999'999) / 1'000'000);
            pollfd both[2] = {{fd_, POLLIN, 0}, {over_[0], 0, 0}};
            if (poll(both, 2, wait_ms) < 0 && errno != EINTR) std::abort();
            if (both[1].revents != 0) return;
            if ((both[0].revents & POLLIN) == 0) continue;
            question one{{}, now_ns() + length_ns_, std::vector<unsigned char>(512)};
            socklen_t bytes = sizeof one.from;
            const auto n = recvfrom(fd_, one.text.data(), one.text.size(), 0,
                                    reinterpret_cast<sockaddr*>(&one.from), &bytes);
            if (n < 12) continue;
            one.text.resize(static_cast<std::size_t>(n));
            ++asked_;
            auto at = all.end();
            while (at != all.begin() && (at - 1)->due_ns > one.due_ns) --at;
            all.insert(at, std::move(one));
        }
    }

    const int fd_;
    sockaddr_in here_{};
    int over_[2] = {-1, -1};
    std::atomic<std::uint64_t> length_ns_{0};
    std::atomic<std::uint64_t> asked_{0};
    std::thread server_;
};

class syncing final : public blocks {
public:
    explicit syncing(std::uint64_t n) {
        const char* folder = std::getenv("TMPDIR");
        for (std::uint64_t i = 0; i < n; ++i) {
            std::string name =
                std::string{folder != nullptr ? folder : "/tmp"} + "/ums-bench-XXXXXX";
            files_.push_back(
                static_cast<int>(checked(mkostemp(name.data(), O_CLOEXEC), name.c_str())));
            unlink(name.c_str());
        }
    }
    ~syncing() override {
        for (const int fd : files_) close(fd);
    }
    void block(std::uint64_t i, std::uint64_t) override {
        const std::vector<char> page(4096, 'x');
        checked(pwrite(files_[i], page.data(), page.size(), 0), "write");
        checked(fsync(files_[i]), "fsync");
    }
    [[nodiscard]] bool has_own_length() const override { return true; }

private:
    std::vector<int> files_;
};

inline std::unique_ptr<blocks> make_blocks(const std::string& way, std::uint64_t n) {
    if (way == "nanosleep") return std::make_unique<sleeping>();
    if (way == "read") return std::make_unique<reading>(n);
    if (way == "fault") return std::make_unique<faulting>(n);
    if (way == "getaddrinfo") return std::make_unique<resolving>();
    return std::make_unique<syncing>(n);
}

}  // namespace bench
