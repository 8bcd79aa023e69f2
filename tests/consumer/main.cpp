// SPDX-License-Identifier: MIT
#include <ums/ums.hpp>

int main() {
    return ums::run([] {
        ums::fiber f{[] {}};
        f.join();
        return 0;
    });
}
