// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace/perfetto.hpp: a trace in Perfetto's format (protos/perfetto/trace/ of that
// project), for ui.perfetto.dev.
//
// There is a track for each processor, with what ran there, and one for each fiber, with what it
// did; arrows lead from a wake-up to where the woken fiber runs. All packets belong to one
// sequence, which interns names.

#include <cstdio>
#include <unordered_map>

#include "sink.hpp"

namespace tool::tracing {

class perfetto_file final : public sink {
public:
    // Writes into an open file, which stays the caller's. `process` is the process's number, and
    // `name` its name for the page.
    perfetto_file(std::FILE* into, int process, const std::string& name);

    void processor(std::uint32_t track, std::string_view name) override;
    void fiber(std::uint64_t id, std::string_view name, std::string_view start) override;
    void add(const span& s) override;
    void add(const moment& m) override;

private:
    void slice(std::uint64_t track, std::string_view name, std::int64_t begin, std::int64_t end,
               std::uint64_t ends_arrow);
    void event(std::uint64_t track, unsigned type, std::int64_t at, std::string_view name,
               std::uint64_t begins_arrow, std::uint64_t ends_arrow);
    void descriptor(std::uint64_t uuid, std::uint64_t parent, std::string_view name,
                    std::string_view about);
    void put(const std::string& packet);

    std::FILE* const file_;
    std::unordered_map<std::string, std::uint64_t> names_;  // Interned.
    std::unordered_map<std::uint64_t, std::string> fibers_;
};

// Reads a file that perfetto_file has written, and tells it to `to` again, except moments. Throws
// std::runtime_error with one line.
void read_perfetto(const std::string& path, sink& to);
// Whether the file may be one.
[[nodiscard]] bool is_perfetto(const std::string& path);

}  // namespace tool::tracing
