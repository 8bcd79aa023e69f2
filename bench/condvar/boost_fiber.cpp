// SPDX-License-Identifier: MIT

// condvar: boost::fibers::condition_variable with boost::fibers::mutex.

#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/mutex.hpp>

#include "../common/on_boost.hpp"
#include "rounds.hpp"

int main(int argc, char** argv) {
    return bench::run_condvar_peer<bench::on_boost, boost::fibers::mutex,
                                   boost::fibers::condition_variable>(argc, argv);
}
