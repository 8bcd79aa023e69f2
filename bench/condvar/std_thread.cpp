// SPDX-License-Identifier: MIT

// condvar: std::condition_variable with std::mutex.

#include <condition_variable>
#include <mutex>

#include "../common/on_threads.hpp"
#include "rounds.hpp"

int main(int argc, char** argv) {
    return bench::run_condvar_peer<bench::on_threads, std::mutex, std::condition_variable>(argc,
                                                                                           argv);
}
