// SPDX-License-Identifier: MIT

// http, memcached, echo, connections: servers on one CPU, with the load from another. The program
// servers-measure (bench/servers/measure.py) starts and measures them, one run for each cell.

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "../../machine.hpp"
#include "../../usage.hpp"
#include "../compare.hpp"
#include "../peer.hpp"

namespace tool {

namespace {

// What differs between the benches.
struct facts {
    std::string_view name;
    std::string_view about;
    std::vector<std::string> runtimes;
    std::vector<std::string> ways = {};  // Empty: there is only one.
    std::vector<std::uint64_t> connections = {16, 256, 1024, 10'000};
    std::vector<std::uint64_t> quick_connections = {16};
    std::vector<std::uint64_t> pipeline = {1, 16};  // Empty: nothing is sent.
    std::string_view note = {};
    std::string_view other_client = {};  // Beside "own"; empty: none.
};

// wrk makes all connections at once; beyond this number it overruns the backlogs of the servers.
constexpr std::uint64_t most_of_wrk = 1024;
// Descriptors that are not connections; bench/servers/measure.py adds the same number.
constexpr std::uint64_t own_descriptors = 200;

bool is_installed(const std::string& program) {
    const char* const path = std::getenv("PATH");
    std::istringstream folders{std::string{path == nullptr ? "/usr/bin:/bin" : path} +
                               ":/usr/sbin:/usr/local/sbin"};
    for (std::string folder; std::getline(folders, folder, ':');)
        if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
    return false;
}

// How many descriptors a peer may have. A peer that runs as root can raise its limit, if it is not
// confined; then its own limit counts.
std::uint64_t most_descriptors() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    const rlimit more{limit.rlim_cur, limit.rlim_max + 1};
    if (setrlimit(RLIMIT_NOFILE, &more) != 0) return limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return ~std::uint64_t{0};
}

class servers final : public workload {
public:
    explicit servers(facts about) : facts_{std::move(about)} {}

    std::string_view name() const override { return facts_.name; }
    std::string_view about() const override { return facts_.about; }
    std::vector<std::string> runtimes() const override { return facts_.runtimes; }
    unsigned repetitions(const bench_options& options) const override {
        return options.quick ? 1 : 3;
    }

    void check(const bench_options& options) const override {
        check_common(options);
        const auto refuse = [this](bool is_given, const char* option) {
            if (is_given)
                throw usage_error{fmt::format("{}: {} has no such setting", option, name())};
        };
        refuse(!options.fibers.empty(), "--fibers");
        refuse(!options.yields.empty(), "--yields");
        const bool has_client = options.client.empty() || options.client == "own" ||
                                options.client == facts_.other_client;
        if (!has_client && !facts_.other_client.empty())
            throw usage_error{fmt::format("--client: expected own or {} for {}, got '{}'",
                                          facts_.other_client, name(), options.client)};
        refuse(!options.client.empty() && facts_.other_client.empty(), "--client");
        refuse(!options.pipeline.empty() && facts_.pipeline.empty(), "--pipeline");
        if (options.client == "wrk" && !is_installed("wrk"))
            throw usage_error{"--client: wrk is not installed"};
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        if (options.processors != std::vector<std::uint64_t>{1})
            notes.push_back("Servers are measured on one processor, whatever --processors says.");
        if (available_cpus().size() < 2) notes.push_back("Server and load share the only CPU.");
        std::vector<setting> all;
        const auto most = most_descriptors();
        for (const auto& way : facts_.ways.empty() ? std::vector<std::string>{""} : facts_.ways)
            for (const auto pipeline : pipelines(options))
                for (const auto n :
                     possible(given_or(options.connections, options.quick ? facts_.quick_connections
                                                                          : facts_.connections),
                              most, notes)) {
                    if (options.client == "wrk" && n > most_of_wrk) {
                        notes.push_back(
                            fmt::format("{} connections were left out: wrk makes all at once.", n));
                        continue;
                    }
                    setting group;
                    for (const auto& runtime : chosen(options, notes))
                        group.push_back(one_cell(runtime, way, pipeline, n, options));
                    all.push_back(std::move(group));
                }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto& way : facts_.ways.empty() ? std::vector<std::string>{""} : facts_.ways)
            for (const auto pipeline : pipelines(got.options)) {
                const filter which = [&, wanted = way, pipeline](const cell& one) {
                    return one.settings.value("way", "") == wanted &&
                           one.settings.value("pipeline", std::uint64_t{0}) == pipeline;
                };
                made.tables.push_back(facts_.pipeline.empty()
                                          ? idle_table(got, which)
                                          : table_of(got, way, pipeline, which));
                add_charts(made, got, way, pipeline, which);
            }
        if (!facts_.note.empty() && !made.tables.empty())
            made.tables.back().notes.emplace_back(facts_.note);
        return made;
    }

protected:
    std::string missing(const std::string& runtime) const override {
        for (const auto* program : {"nginx", "memcached", "node"})
            if (runtime == program)
                return is_installed(runtime) ? "" : runtime + " is not installed";
        return path_of(program_of(server(), runtime)).empty() ? "its peer was not built" : "";
    }

private:
    // The idle connections are those of the echo servers.
    std::string_view server() const { return facts_.pipeline.empty() ? "echo" : name(); }

    // One process holds all connections, so its limit of descriptors bounds them. Numbers of busy
    // connections beyond it are left out. For idle connections, each of which costs the same
    // memory, the largest possible number takes their place.
    std::vector<std::uint64_t> possible(const std::vector<std::uint64_t>& asked, std::uint64_t most,
                                        std::vector<std::string>& notes) const {
        std::vector<std::uint64_t> all;
        for (const auto n : asked) {
            if (n + own_descriptors <= most) {
                all.push_back(n);
                continue;
            }
            const auto instead = most > own_descriptors ? most - own_descriptors : 0;
            const bool is_idle = facts_.pipeline.empty();
            auto note = fmt::format(
                "{} connections were {}: they take {} descriptors of one process, and the limit "
                "(ulimit -Hn) is {}.",
                n, is_idle ? "not possible" : "left out", n + own_descriptors, most);
            if (is_idle && instead >= 100 &&
                std::find(all.begin(), all.end(), instead) == all.end()) {
                note += fmt::format(" Measured instead: {}.", instead);
                all.push_back(instead);
            }
            if (std::find(notes.begin(), notes.end(), note) == notes.end())
                notes.push_back(std::move(note));
        }
        return all;
    }

    std::vector<std::uint64_t> pipelines(const bench_options& options) const {
        if (facts_.pipeline.empty()) return {0};
        return given_or(options.pipeline, facts_.pipeline);
    }

    cell one_cell(const std::string& runtime, const std::string& way, std::uint64_t pipeline,
                  std::uint64_t connections, const bench_options& options) const {
        cell made;
        made.runtime = runtime;
        made.program = "servers-measure";
        made.processors = 2;  // One for the server, one for the load.
        made.settings["processors"] = 1;
        made.settings["connections"] = connections;
        made.args = {fmt::format("bench={}", name()), fmt::format("runtime={}", runtime),
                     fmt::format("connections={}", connections),
                     fmt::format("ms={}", !options.quick            ? 1000
                                          : options.client == "wrk" ? 500
                                                                    : 50)};
        if (pipeline != 0) {
            made.settings["pipeline"] = pipeline;
            made.args.push_back(fmt::format("pipeline={}", pipeline));
        }
        if (!way.empty()) {
            made.settings["way"] = way;
            made.args.push_back("way=" + way);
        }
        if (!options.client.empty()) {
            made.settings["client"] = options.client;
            made.args.push_back("client=" + options.client);
        }
        return made;
    }

    static std::string what_is_sent(const std::string& way, std::uint64_t pipeline) {
        return fmt::format("{}{} at a time", way.empty() ? "" : way + ", ",
                           count(pipeline, "request"));
    }

    table table_of(const result& got, const std::string& way, std::uint64_t pipeline,
                   const filter& which) const {
        auto shown = by_figure(
            got,
            fmt::format("{}: {}, {}", name(), what_is_sent(way, pipeline), repetitions_of(got)),
            {{"connections", "connections"}},
            {{"cpu_us_per_request", "CPU us each"},
             {"ops_per_s", "requests/s"},
             {"p50_us", "p50, us"},
             {"p99_us", "p99, us"},
             {"p999_us", "p99.9, us"},
             {"bytes_per_connection", "bytes per connection"}},
            which);
        shown.notes =
            ratios(got, "cpu_us_per_request", "connections", "connection", which, of_costs);
        if (!shown.notes.empty()) shown.notes.insert(shown.notes.begin(), "CPU time per request:");
        auto times = ratios(got, "p99_us", "connections", "connection", which);
        if (!times.empty()) shown.notes.emplace_back("p99, with the load as fast as it goes:");
        std::move(times.begin(), times.end(), std::back_inserter(shown.notes));
        return shown;
    }

    table idle_table(const result& got, const filter& which) const {
        return by_figure(got, fmt::format("{}: idle, {}", name(), repetitions_of(got)),
                         {{"connections", "connections"}},
                         {{"bytes_per_connection", "bytes each"},
                          {"connects_per_s", "connects/s"},
                          {"idle_cpu_us_per_s", "CPU us per idle second"}},
                         which);
    }

    void add_charts(view& made, const result& got, const std::string& way, std::uint64_t pipeline,
                    const filter& which) const {
        const auto under = [](const cell& one) {
            return fmt::format("{}", one.settings["connections"].get<std::uint64_t>());
        };
        const auto add = [&](const char* figure, const char* title) {
            const auto what = facts_.pipeline.empty() ? "idle" : what_is_sent(way, pipeline);
            made.charts.push_back(
                bars(got, fmt::format("{}, {}", name(), what), figure, title, which, under));
        };
        if (facts_.pipeline.empty()) return add("bytes_per_connection", "bytes per connection");
        add("cpu_us_per_request", "server's CPU us per request");
        add("p99_us", "p99, us");
    }

    facts facts_;
};

}  // namespace

std::unique_ptr<workload> make_http() {
    return std::make_unique<servers>(facts{
        .name = "http",
        .about = "HTTP servers with keep-alive: CPU time, times, memory",
        .runtimes = {"epoll", "epoll_parser", "io_uring", "nginx", "fasthttp", "node", "ums"},
        .note = "epoll and io_uring only look for the end of a request: a bound, not servers. "
                "epoll_parser is the same loop with the parser and the answers of ums's server. "
                "Which headers a response has is each server's own choice.",
        .other_client = "wrk"});
}

std::unique_ptr<workload> make_memcached() {
    return std::make_unique<servers>(
        facts{.name = "memcached",
              .about = "gets and sets of 100 bytes: CPU time, times, memory",
              .runtimes = {"memcached", "ums"},
              .ways = {"get", "set"},
              .note = "memcached runs one worker thread (-t 1)."});
}

std::unique_ptr<workload> make_echo() {
    return std::make_unique<servers>(
        facts{.name = "echo",
              .about = "64 bytes there and back: CPU time, times, memory",
              .runtimes = {"epoll", "boost.fiber", "go", "ums"},
              .note = "boost.fiber waits in an I/O context of Boost.Asio.",
              .other_client = "ums"});
}

std::unique_ptr<workload> make_connections() {
    return std::make_unique<servers>(facts{
        .name = "connections",
        .about = "idle connections of an echo server, each served once: memory, and CPU time",
        .runtimes = {"epoll", "boost.fiber", "go", "ums"},
        .connections = {10'000, 100'000},
        .quick_connections = {100},
        .pipeline = {},
        .note =
            "Resident memory of the process; what the kernel keeps for a socket is not in it."});
}

}  // namespace tool
