// SPDX-License-Identifier: MIT
//
// hangs [child]: two fibers that wait for ever. With "child" a child process has them, and this one
// waits for it without any.

#include <sys/wait.h>
#include <unistd.h>

#include <ums/fiber.hpp>
#include <ums/run.hpp>
#include <ums/semaphore.hpp>

int main(int argc, char** argv) {
    if (argc > 1) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::execl("/proc/self/exe", argv[0], static_cast<char*>(nullptr));
            ::_exit(1);
        }
        ::waitpid(child, nullptr, 0);
        return 0;
    }
    ums::run([] {
        ums::binary_semaphore never{0};
        ums::fiber first{ums::fiber_options{.name = "first_to_wait"}, [&] { never.acquire(); }};
        ums::fiber second{ums::fiber_options{.name = "second_to_wait"}, [&] { never.acquire(); }};
        first.join();
        second.join();
    });
}
