// SPDX-License-Identifier: MIT

// semaphore: ums::counting_semaphore.

#include <ums/semaphore.hpp>

#include "../common/on_ums.hpp"
#include "rally.hpp"

int main(int argc, char** argv) {
    return bench::run_semaphore_peer<bench::on_ums, ums::counting_semaphore<>>(argc, argv);
}
