// SPDX-License-Identifier: MIT

// blocked: one fiber blocks in the kernel, and the others go on, all on one processor.
//
// Output:
//   got 1
//   got 2
//   got 3
//   closed

#include <cstdio>
#include <ums/ums.hpp>
#include <unistd.h>

int main() {
    return ums::run({.processors = 1}, [] {  // Starts the runtime; this lambda is the first fiber.
        int ends[2];
        if (pipe(ends) != 0) return 1;
        ums::channel<int> numbers;
        ums::scope fibers;
        fibers.spawn([&] {
            char c;
            if (read(ends[0], &c, 1) == 0) std::puts("closed");  // Blocks in the kernel until then.
        });
        fibers.spawn([&] {
            for (int i = 1; i <= 3; ++i) (void)numbers.send(i);  // Parks until the number is taken.
            numbers.close();
        });
        for (const int n : numbers) std::printf("got %d\n", n);
        close(ends[1]);
        fibers.join();
        return 0;
    });
}
