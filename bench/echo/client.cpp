// SPDX-License-Identifier: MIT

// echo: the load.

#include "../servers/load.hpp"
#include "message.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        bench::load_settings how{in};
        how.is_idle = in.word("way", {"busy", "idle"}) == "idle";
        in.done();
        bench::echo_dialogue words;
        bench::load{how, words}.run(out);
    });
}
