// SPDX-License-Identifier: MIT

// pingpong: two kernel threads pass a token through two binary semaphores.

#include <semaphore>

#include "../common/on_threads.hpp"
#include "../semaphore/rally.hpp"

int main(int argc, char** argv) {
    return bench::run_semaphore_peer<bench::on_threads, std::binary_semaphore>(argc, argv);
}
