// SPDX-License-Identifier: MIT
#include "os/thread/kernel_thread.hpp"

#include <cerrno>
#include <ctime>
#include <link.h>

#include "os/futex.hpp"
#include "os/memory.hpp"

namespace ums::os {

namespace {

// The size of what the C library puts on top of each stack: the thread-local variables of all
// objects loaded so far.
std::size_t thread_local_bytes() noexcept {
    static const std::size_t all = [] {
        std::size_t sum = 0;
        dl_iterate_phdr(
            [](dl_phdr_info* object, std::size_t, void* to) {
                for (int i = 0; i < object->dlpi_phnum; ++i) {
                    const auto& part = object->dlpi_phdr[i];
                    if (part.p_type == PT_TLS)
                        *static_cast<std::size_t*>(to) += part.p_memsz + part.p_align;
                }
                return 0;
            },
            &sum);
        return sum;
    }();
    return all;
}

}  // namespace

int kernel_thread::start(void* (*body)(void*), void* argument) noexcept {
    UMS_ASSERT(!is_started(), "a kernel thread was started twice");
    bytes_ = page_bytes + round_up(stack_bytes + thread_local_bytes(), page_bytes);
    stack_ = static_cast<char*>(map(bytes_));
    if (stack_ == nullptr) return EAGAIN;
    // Not mprotect(), which a filter may refuse: this needs only the call that made the stack.
    const long guard = system.mmap(stack_, page_bytes, PROT_NONE,
                                   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    int error = EAGAIN;  // pthread_create() says the same.
    if (guard == reinterpret_cast<long>(stack_)) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, stack_ + page_bytes, bytes_ - page_bytes);
        error = pthread_create(&handle_, &attributes, body, argument);
        pthread_attr_destroy(&attributes);
    }
    if (error != 0) {
        unmap(stack_, bytes_);
        return error;
    }
    is_started_.store(1, base::release);  // sync(kernel_thread): publishes the handle to join().
    futex_wake(is_started_.address(), 1 << 30);
    return 0;
}

const char* kernel_thread::advice(int error) noexcept {
    return error == EAGAIN || error == ENOMEM ? "see ulimit -u, ulimit -v, pids.max"
                                              : "clone3() is refused, perhaps by a seccomp filter";
}

void kernel_thread::join() noexcept {
    // sync(kernel_thread): sees the handle.
    while (is_started_.load(base::acquire) == 0) futex_wait(is_started_, 0);
    pthread_join(handle_, nullptr);
    joined();
}

bool kernel_thread::join_within(nanoseconds limit) noexcept {
    UMS_ASSERT(is_started(), "a kernel thread was joined that does not run");
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);  // The only clock of this call that sanitizers know.
    until.tv_nsec += limit;
    until.tv_sec += until.tv_nsec / 1'000'000'000;
    until.tv_nsec %= 1'000'000'000;
    if (pthread_timedjoin_np(handle_, nullptr, &until) != 0) return false;
    joined();
    return true;
}

void kernel_thread::joined() noexcept {
    unmap(stack_, bytes_);
    is_started_.store(0, base::relaxed);  // relaxed: only one joins it.
}

}  // namespace ums::os
