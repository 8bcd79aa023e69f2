// SPDX-License-Identifier: MIT
#pragma once

// options: the command line of the server; the letters are memcached's.

#include <optional>
#include <string>
#include <vector>

#include <ums/endpoint.hpp>

#include "store.hpp"

namespace memcached {

struct options {
    std::vector<std::string> addresses;  // For read_address(). Empty means all addresses.
    // 0: any free one.
    std::optional<std::uint16_t> port = 11211;
    std::optional<std::uint16_t> udp_port;
    std::string unix_path;  // If not empty, there is neither TCP nor UDP.
    unsigned unix_mode = 0700;
    unsigned processors = 4;
    unsigned max_connections = 1024;
    unsigned backlog = 1024;
    store_options store;
};

// Reads an IP address of -l, with this port unless it names one. Fails with invalid_argument.
ums::result<ums::net::endpoint> read_address(const std::string& text, std::uint16_t port);

// Reads the options. Ends the program after -h and -V, or with one line that says what is wrong
// (exit code 64).
options read_options(int count, char** words);

}  // namespace memcached
