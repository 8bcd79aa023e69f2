// SPDX-License-Identifier: MIT
#pragma once

// support/gate.hpp: places at which a kernel thread blocks until another thread opens them, each by
// another way into the kernel. Nothing here marks itself as blocking.

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

class gate {
public:
    gate() = default;
    virtual ~gate() = default;
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;
    // Blocks until open() was called, as often. Returns false if the way into the kernel reported
    // something unexpected; see errno.
    virtual bool pass() = 0;
    virtual void open() = 0;
};

class pipe_gate : public gate {
public:
    pipe_gate() {
        if (::pipe2(ends_, O_CLOEXEC) != 0) std::abort();
    }
    ~pipe_gate() override {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    bool pass() override {
        char byte;
        return ::read(ends_[0], &byte, 1) == 1;
    }
    void open() override {
        if (::write(ends_[1], "x", 1) != 1) std::abort();
    }

protected:
    [[nodiscard]] int reader() const { return ends_[0]; }

private:
    int ends_[2];
};

class raw_read_gate final : public pipe_gate {
public:
    bool pass() override {
        char byte;
        return ::syscall(SYS_read, reader(), &byte, 1) == 1;
    }
};

class poll_gate final : public pipe_gate {
public:
    bool pass() override {
        pollfd one{reader(), POLLIN, 0};
        return ::poll(&one, 1, -1) == 1 && pipe_gate::pass();
    }
};

class epoll_gate final : public pipe_gate {
public:
    epoll_gate() : set_{::epoll_create1(EPOLL_CLOEXEC)} {
        epoll_event event{};
        event.events = EPOLLIN;
        if (::epoll_ctl(set_, EPOLL_CTL_ADD, reader(), &event) != 0) std::abort();
    }
    ~epoll_gate() override { ::close(set_); }
    bool pass() override {
        epoll_event event;
        return ::epoll_wait(set_, &event, 1, -1) == 1 && pipe_gate::pass();
    }

private:
    int set_;
};

class socket_gate final : public gate {
public:
    socket_gate() {
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) != 0) std::abort();
        // Reads with a time limit are among those that are never restarted after a signal.
        const timeval long_time{1'000'000, 0};
        ::setsockopt(ends_[0], SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof long_time);
    }
    ~socket_gate() override {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    bool pass() override {
        char byte;
        return ::recv(ends_[0], &byte, 1, 0) == 1;
    }
    void open() override {
        if (::send(ends_[1], "x", 1, 0) != 1) std::abort();
    }

private:
    int ends_[2];
};

class futex_gate final : public gate {
public:
    bool pass() override {
        while (__atomic_exchange_n(&word_, 0, __ATOMIC_ACQ_REL) == 0)
            if (::syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 0, nullptr) != 0 &&
                errno != EAGAIN)
                return false;
        return true;
    }
    void open() override {
        __atomic_store_n(&word_, 1, __ATOMIC_RELEASE);
        ::syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1);
    }

private:
    int word_ = 0;
};

// Works only once.
class fault_gate final : public gate {
public:
    [[nodiscard]] static bool is_possible() {
        const long fd = ::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
        if (fd >= 0) ::close(static_cast<int>(fd));
        return fd >= 0;
    }
    fault_gate()
        : fd_{static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY))} {
        uffdio_api api{UFFD_API, 0, 0};
        page_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uffdio_register range{{address(), bytes}, UFFDIO_REGISTER_MODE_MISSING, 0};
        if (::ioctl(fd_, UFFDIO_API, &api) != 0 || ::ioctl(fd_, UFFDIO_REGISTER, &range) != 0)
            std::abort();
    }
    ~fault_gate() override {
        ::munmap(page_, bytes);
        ::close(fd_);
    }
    bool pass() override { return *static_cast<volatile char*>(page_) == 0; }
    void open() override {
        uffdio_zeropage fill{{address(), bytes}, 0, 0};
        if (::ioctl(fd_, UFFDIO_ZEROPAGE, &fill) != 0) std::abort();
    }

private:
    static constexpr std::size_t bytes = 4096;
    [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(page_); }
    int fd_;
    void* page_;
};

struct gate_kind {
    std::string name;
    std::function<std::unique_ptr<gate>()> make;
};

// The gates that this machine permits.
inline std::vector<gate_kind> gate_kinds() {
    std::vector<gate_kind> all{
        {"read", [] { return std::make_unique<pipe_gate>(); }},
        {"raw read", [] { return std::make_unique<raw_read_gate>(); }},
        {"poll", [] { return std::make_unique<poll_gate>(); }},
        {"epoll_wait", [] { return std::make_unique<epoll_gate>(); }},
        {"recv with a time limit", [] { return std::make_unique<socket_gate>(); }},
        {"futex", [] { return std::make_unique<futex_gate>(); }},
    };
    if (fault_gate::is_possible())
        all.push_back({"page fault", [] { return std::make_unique<fault_gate>(); }});
    return all;
}
