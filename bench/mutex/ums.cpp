// SPDX-License-Identifier: MIT

// mutex: ums::mutex, which lets a running fiber overtake the waiters.

#include "../common/on_ums.hpp"
#include "contest.hpp"

int main(int argc, char** argv) {
    return bench::run_mutex_peer<bench::on_ums, ums::mutex>(argc, argv);
}
