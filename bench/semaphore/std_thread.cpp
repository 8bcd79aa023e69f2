// SPDX-License-Identifier: MIT

// semaphore: std::counting_semaphore.

#include <semaphore>

#include "../common/on_threads.hpp"
#include "rally.hpp"

int main(int argc, char** argv) {
    return bench::run_semaphore_peer<bench::on_threads, std::counting_semaphore<>>(argc, argv);
}
