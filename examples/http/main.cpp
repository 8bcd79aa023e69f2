// SPDX-License-Identifier: MIT

// http-server: see docs/servers.md.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <system_error>

#include <ums/run.hpp>

#include "server.hpp"
#include "stop_signals.hpp"

int main(int count, char** words) {
    const http::options chosen = http::read_options(count, words);
    stop_signals signals;
    try {
        return ums::run(ums::options{.processors = chosen.processors}, [&] {
            http::server server{chosen};
            signals.call([&server] { server.stop(); });
            for (const auto& at : server.addresses())
                std::printf("listening on %s\n", at.text().c_str());
            std::fflush(stdout);
            server.run();
            signals.end();
            return EXIT_SUCCESS;
        });
    } catch (const std::exception& error) {
        std::fprintf(stderr, "http-server: %s\n", error.what());
        return EXIT_FAILURE;
    }
}
