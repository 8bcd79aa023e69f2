// SPDX-License-Identifier: MIT

// condvar: ums::condition_variable with ums::mutex.

#include <ums/condition_variable.hpp>
#include <ums/mutex.hpp>

#include "../common/on_ums.hpp"
#include "rounds.hpp"

int main(int argc, char** argv) {
    return bench::run_condvar_peer<bench::on_ums, ums::mutex, ums::condition_variable>(argc, argv);
}
