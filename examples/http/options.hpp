// SPDX-License-Identifier: MIT
#pragma once

// options: the command line of the server.

#include <chrono>
#include <string>
#include <vector>

#include <ums/endpoint.hpp>

#include "limits.hpp"

namespace http {

struct options {
    std::vector<ums::net::endpoint> listen;  // Empty: port 8080 of every address.
    std::string root;                        // Empty: no files.
    bool metrics = false;                    // Serve /metrics.
    unsigned processors = 0;                 // 0: one for each CPU.
    unsigned max_connections = 100'000;
    std::chrono::milliseconds header_timeout{
        10'000};  // From a request's first byte to its headers' end.
    std::chrono::milliseconds body_timeout{60'000};   // From there to the body's end.
    std::chrono::milliseconds idle_timeout{60'000};   // Between requests.
    std::chrono::milliseconds write_timeout{60'000};  // For an answer, or 256 KiB of a file.
    std::chrono::milliseconds grace{10'000};  // For what is in progress when the server stops.
    http::limits limits;
};

// Reads the options. Ends the program after --help, or with one line that says what is wrong (exit
// code 2).
options read_options(int count, char** words);

}  // namespace http
