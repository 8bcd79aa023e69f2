// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace/chrome.hpp: a trace as JSON, in the Trace Event Format of chrome://tracing.

#include <cstdio>
#include <unordered_map>

#include "sink.hpp"

namespace tool::tracing {

class chrome_file final : public sink {
public:
    chrome_file(std::FILE* into, int process, const std::string& name);
    ~chrome_file() override;  // Ends the text.
    chrome_file(const chrome_file&) = delete;
    chrome_file& operator=(const chrome_file&) = delete;

    void processor(std::uint32_t track, std::string_view name) override;
    void fiber(std::uint64_t id, std::string_view name, std::string_view start) override;
    void add(const span& s) override;
    void add(const moment& m) override;

private:
    std::FILE* const file_;
    const int process_;
    std::unordered_map<std::uint64_t, std::string> fibers_;
};

}  // namespace tool::tracing
