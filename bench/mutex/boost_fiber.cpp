// SPDX-License-Identifier: MIT

// mutex: boost::fibers::mutex.

#include <boost/fiber/mutex.hpp>

#include "../common/on_boost.hpp"
#include "contest.hpp"

int main(int argc, char** argv) {
    return bench::run_mutex_peer<bench::on_boost, boost::fibers::mutex>(argc, argv);
}
