// SPDX-License-Identifier: MIT

// yield: kernel threads, with sched_yield().

#include "../common/on_threads.hpp"
#include "laps.hpp"

int main(int argc, char** argv) { return bench::run_yield_peer<bench::on_threads>(argc, argv); }
