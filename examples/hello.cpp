// SPDX-License-Identifier: MIT

// hello: starts the runtime and one fiber, and waits for it.
//
// Output:
//   hello from fiber "greeter"
//   goodbye from fiber "main"

#include <cstdio>

#include <ums/ums.hpp>

namespace {

void say(const char* what) {
    const std::string_view name = ums::this_fiber::name();
    std::printf("%s from fiber \"%.*s\"\n", what, static_cast<int>(name.size()), name.data());
}

}  // namespace

int main() {
    return ums::run([] {  // The runtime lives as long as this call; the lambda is its first fiber.
        ums::fiber greeter{ums::fiber_options{.name = "greeter"}, say, "hello"};
        greeter.join();
        say("goodbye");
        return 0;  // What main() returns.
    });
}
