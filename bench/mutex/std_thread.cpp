// SPDX-License-Identifier: MIT

// mutex: std::mutex under as many kernel threads as the others have fibers.

#include <mutex>

#include "../common/on_threads.hpp"
#include "contest.hpp"

int main(int argc, char** argv) {
    return bench::run_mutex_peer<bench::on_threads, std::mutex>(argc, argv);
}
