// SPDX-License-Identifier: MIT

// mutex: ums::fair_mutex, which always goes to the longest waiter.

#include "../common/on_ums.hpp"
#include "contest.hpp"

int main(int argc, char** argv) {
    return bench::run_mutex_peer<bench::on_ums, ums::fair_mutex>(argc, argv);
}
