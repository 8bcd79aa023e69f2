// SPDX-License-Identifier: MIT

// lone: waits of processors that have little else to do: few connections, requests far apart, more
// processors than work. What does a wait cost, in CPU time, kernel switches and system calls? The
// program lone-measure (bench/lone/measure.cpp) starts and measures the peers, one run for each
// cell.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "../../machine.hpp"
#include "../../usage.hpp"
#include "../compare.hpp"
#include "../peer.hpp"

namespace tool {

namespace {

using numbers = std::vector<std::uint64_t>;

// Some runtimes are the same program with other arguments.
struct flavour {
    std::string_view runtime, peer;
    std::vector<std::string> args;
};

const std::array flavours{
    flavour{"std::thread", "std_thread", {}},
    flavour{"epoll", "epoll", {}},
    flavour{"go", "go", {}},
    flavour{"ums", "ums", {}},
    flavour{"ums one", "ums", {"processors=1"}},
    flavour{"ums elsewhere", "ums", {"descriptors=elsewhere"}},
    flavour{"ums adopted", "ums", {"descriptors=adopted"}},
    flavour{"ums-worker", "ums-worker", {}},
};

const flavour& flavour_of(std::string_view runtime) {
    return *std::find_if(flavours.begin(), flavours.end(),
                         [&](const flavour& one) { return one.runtime == runtime; });
}

// What varies within a way.
enum class axis { connections, rate, gap, compute };

struct way {
    std::string_view name;
    std::string_view peer_way;  // The name that the peers know.
    std::string_view about;
    axis varies;
    numbers values, quick_values;
    std::vector<std::string_view> not_on = {};  // Runtimes that do not have it.
};

const std::vector<std::string_view> only_calls{"epoll", "ums-worker", "ums elsewhere",
                                               "ums adopted"};
const std::vector<std::string_view> only_sockets{"ums-worker"};

const std::array ways{
    way{"pipe", "pipe", "round trips of two over two pipes", axis::connections, {1, 16, 256}, {2}},
    way{"unix",
        "unix",
        "round trips of two over a socket pair",
        axis::connections,
        {1, 16, 256},
        {2}},
    way{"tcp", "tcp", "round trips of two over TCP", axis::connections, {1, 16, 256}, {2}},
    way{"condvar",
        "condvar",
        "round trips of two under a mutex with a condition variable",
        axis::connections,
        {1, 16, 256},
        {2},
        {"epoll", "ums elsewhere", "ums adopted"}},
    way{"blocking",
        "blocking",
        "round trips of two by plain read() and write() of a socket pair",
        axis::connections,
        {1, 16, 256},
        {2},
        only_calls},
    way{"nowait",
        "nowait",
        "a write and a read that need not wait, by one",
        axis::connections,
        {1},
        {1},
        {"epoll", "ums-worker"}},
    way{"echo",
        "echo",
        "an echo server, TCP, as fast as it goes",
        axis::connections,
        {1, 16, 1024},
        {2}},
    way{"echo_unix",
        "echo_unix",
        "an echo server, AF_UNIX, as fast as it goes",
        axis::connections,
        {1, 16, 256},
        {2},
        only_sockets},
    way{"proxy",
        "proxy",
        "a proxy between two TCP sockets, as fast as it goes",
        axis::connections,
        {1, 16},
        {2},
        only_sockets},
    way{"http",
        "http",
        "a minimal HTTP server, as fast as it goes",
        axis::connections,
        {4, 8, 16},
        {2},
        only_sockets},
    way{"open",
        "echo",
        "an echo server, requests at random times",
        axis::rate,
        {1000, 3100, 10'000, 30'000},
        {3100}},
    way{"tick",
        "tick",
        "an empty task after each gap",
        axis::gap,
        {1000, 10'000},
        {1000},
        only_calls},
    way{"gap",
        "echo",
        "an echo server, one connection that pauses after each answer",
        axis::gap,
        {0, 5, 10, 20, 30, 45, 60},
        {10}},
    way{"ready",
        "ready",
        "one makes another ready and computes on",
        axis::compute,
        {0, 5, 50, 500, 1000, 10'000},
        {50},
        only_calls},
    way{"flood",
        "flood",
        "short tasks that take a fifth of the processors",
        axis::rate,
        {300'000},
        {100'000},
        only_calls},
};

// Beyond this rate a server that is traced would serve other requests than one that is not.
constexpr std::uint64_t most_counted = 5000;
// With more connections the tracer only takes longer.
constexpr std::uint64_t most_traced = 64;
// Each worker of the UMS API is a kernel thread, and each wait of one is found by a monitor.
constexpr std::uint64_t most_workers = 256;
// A task of `flood` needs one of these to be free.
constexpr std::uint64_t desks = 512;

class lone final : public workload {
public:
    std::string_view name() const override { return "lone"; }
    std::string_view about() const override {
        return "waits with little else to do: CPU time, latency, switches, system calls";
    }
    std::vector<std::string> runtimes() const override {
        std::vector<std::string> all;
        for (const auto& one : flavours) all.emplace_back(one.runtime);
        return all;
    }
    unsigned repetitions(const bench_options& options) const override {
        return options.quick ? 1 : 3;
    }
    double limit_s(const bench_options& options) const override { return options.demo ? 20 : 0; }

    void check(const bench_options& options) const override {
        auto others = options;
        others.connections.clear();
        others.ways.clear();
        others.rates.clear();
        workload::check(others);
        if (!options.fibers.empty())
            throw usage_error{"--fibers: lone has no such setting; see --connections"};
        for (const auto& given : options.ways)
            if (std::none_of(ways.begin(), ways.end(),
                             [&](const way& one) { return one.name == given; })) {
                std::vector<std::string_view> known;
                for (const auto& one : ways) known.push_back(one.name);
                throw usage_error{fmt::format("--ways: lone has no way '{}'; expected some of: {}",
                                              given, fmt::join(known, ", "))};
            }
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        const auto add = [&](const way& which, std::uint64_t processors, std::uint64_t value,
                             std::uint64_t connections) {
            setting group;
            for (const auto& runtime : chosen(options, notes))
                if (has(runtime, which, processors, connections, options))
                    group.push_back(
                        one_cell(runtime, which, processors, value, connections, options));
            all.push_back(std::move(group));
        };
        for (const auto p : processors_of(options))
            for (const auto& which : ways) {
                if (!is_asked(which, options)) continue;
                if (which.name == "gap" && p == 1 && p == processors_of(options).back()) {
                    notes.emplace_back("gap was not run: its client spins, on a CPU of its own.");
                    continue;
                }
                // With one processor these show what a saturated server shows.
                if (is_open(which) && p != processors_of(options).back()) continue;
                for (const auto value : values_of(which, options)) {
                    if (which.varies == axis::connections)
                        add(which, p, value, value);
                    else if (which.name != "open")
                        add(which, p, value, which.name == "flood" ? desks : 1);
                    else
                        for (const auto n : connections_of(value, options)) add(which, p, value, n);
                }
            }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : processors_of(got.options))
            for (const auto& which : ways) {
                const filter of = [&, p](const cell& one) {
                    return one.processors == p && one.settings["way"] == which.name;
                };
                auto shown = table_of(got, which, p, of);
                if (shown.rows.empty()) continue;
                made.tables.push_back(std::move(shown));
                add_charts(made, got, which, p, of);
            }
        add_claims(made, got);
        if (!made.tables.empty())
            for (const auto* note :
                 {"CPU us: of the measured process, for each operation; with load: and of the "
                  "client, and of the server behind a proxy.",
                  "Switches: of the kernel, for each operation; by waits and by preemption. System "
                  "calls: counted in a second run, under a tracer.",
                  "ums one: UMS_PROCESSORS=1, not confined. ums elsewhere: descriptors that "
                  "libums has not made, by io::read and io::write. ums adopted: those, after "
                  "io::adopt()."})
                made.tables.back().notes.emplace_back(note);
        return made;
    }

protected:
    std::string missing(const std::string& runtime) const override {
        for (const auto peer : {std::string_view{"measure"}, flavour_of(runtime).peer})
            if (path_of(fmt::format("lone-{}", peer)).empty()) return "its peer was not built";
        return "";
    }

private:
    // Of a single pair over two pipes, and of few requests, on all CPUs that were measured.
    static void add_claims(view& made, const result& got) {
        const auto last = processors_of(got.options).back();
        const auto us = [](double each) { return human(each) + " us"; };
        const auto add = [&](const filter& which, const std::string& what, const char* about) {
            const auto* const group = setting_of(got, which);
            if (group == nullptr) return;
            const auto ours = median_of(*group, "ums", "cpu_us_per_op", which);
            const auto theirs = median_of(*group, "std::thread", "cpu_us_per_op", which);
            if (!ours || !theirs || *ours <= 0 || *theirs <= 0) return;
            const auto found = compared(*ours, *theirs, of_costs);
            made.claims.push_back(
                {what + (found == "the same" ? "as much CPU time as a thread's."
                                             : found + " CPU time than a thread's."),
                 about, bars_of(*group, "cpu_us_per_op", which, us)});
        };
        add(
            [last](const cell& one) {
                return one.processors == last && one.settings["way"] == "pipe";
            },
            "A lone wait takes ",
            "CPU time of a round trip of one byte over two pipes, between two runners that have "
            "nothing else to do. Shorter is better.");
        add(
            [last](const cell& one) {
                return one.processors == last && one.settings["way"] == "open" &&
                       one.settings["rate"] <= 3100;
            },
            "A request at light load takes ",
            "CPU time of an echo server for each request, at random times, 3,100 a second or "
            "fewer. "
            "Shorter is better.");
    }

    static bool is_open(const way& which) { return which.varies != axis::connections; }

    static bool is_asked(const way& which, const bench_options& options) {
        const auto name = which.name;
        if (options.demo) return name == "pipe" || name == "unix" || name == "open";
        return options.ways.empty() ||
               std::find(options.ways.begin(), options.ways.end(), name) != options.ways.end();
    }

    // One CPU, and all of them. The short forms: all.
    static numbers processors_of(const bench_options& options) {
        if (options.has_processors) return options.processors;
        const std::uint64_t all = available_cpus().size();
        if (all == 1 || options.quick || options.demo) return {all};
        return {1, all};
    }

    static numbers values_of(const way& which, const bench_options& options) {
        const auto& own = options.quick ? which.quick_values : which.values;
        if (options.demo) return which.varies == axis::rate ? numbers{3100, 10'000} : numbers{1};
        if (which.varies == axis::rate) return given_or(options.rates, own);
        return which.varies == axis::connections ? given_or(options.connections, own) : own;
    }

    static numbers connections_of(std::uint64_t rate, const bench_options& options) {
        if (!options.connections.empty()) return options.connections;
        return rate == 3100 && !options.quick && !options.demo ? numbers{16, 6000} : numbers{16};
    }

    static bool has(const std::string& runtime, const way& which, std::uint64_t processors,
                    std::uint64_t connections, const bench_options& options) {
        if (options.demo &&
            (runtime == "ums elsewhere" || runtime == "ums adopted" || runtime == "ums-worker"))
            return false;
        if (runtime == "ums one" && processors == 1) return false;  // As ums.
        if (runtime == "ums-worker" && connections > most_workers) return false;
        return std::find(which.not_on.begin(), which.not_on.end(), runtime) == which.not_on.end();
    }

    cell one_cell(const std::string& runtime, const way& which, std::uint64_t processors,
                  std::uint64_t value, std::uint64_t connections,
                  const bench_options& options) const {
        cell made;
        made.runtime = runtime;
        made.program = "lone-measure";
        made.processors = processors;
        made.settings["processors"] = processors;
        made.settings["way"] = which.name;
        made.settings["connections"] = connections;
        const auto& kind = flavour_of(runtime);
        made.args = {fmt::format("runtime={}", kind.peer), fmt::format("way={}", which.peer_way),
                     fmt::format("connections={}", connections)};
        std::uint64_t ms = 100;
        switch (which.varies) {
            case axis::connections:
                break;
            case axis::rate:
                made.settings["rate"] = value;
                made.args.push_back(fmt::format("rate={}", value));
                ms = options.demo || which.name == "flood" ? 300 : 500;
                if (which.name == "flood")
                    made.args.push_back(
                        fmt::format("compute_ns={}", processors * 200'000'000 / value));
                break;
            case axis::gap:
                made.settings["gap_us"] = value;
                made.args.push_back(fmt::format("gap_us={}", value));
                if (which.name == "tick") ms = 500;
                break;
            case axis::compute:
                made.settings["compute_us"] = value;
                made.args.push_back(fmt::format("compute_ns={}", value * 1000));
                made.args.emplace_back("gap_us=1000");
                ms = 300;
                break;
        }
        made.args.push_back(fmt::format("ms={}", options.quick ? 40 : ms));
        if (!options.demo && connections <= most_traced &&
            (which.varies != axis::rate || value <= most_counted))
            made.first_args = {fmt::format("count_ms={}", options.quick ? 20 : 50)};
        made.args.insert(made.args.end(), kind.args.begin(), kind.args.end());
        return made;
    }

    static std::vector<label> labels_of(const way& which) {
        std::vector<label> all;
        if (which.varies == axis::connections || which.name == "open")
            all.push_back({"connections", "at once"});
        switch (which.varies) {
            case axis::connections:
                break;
            case axis::rate:
                all.push_back({"rate", "a second"});
                break;
            case axis::gap:
                all.push_back({"gap_us", "gap, us"});
                break;
            case axis::compute:
                all.push_back({"compute_us", "computes, us"});
                break;
        }
        return all;
    }

    static table table_of(const result& got, const way& which, std::uint64_t processors,
                          const filter& of) {
        auto shown = by_figure(got,
                               fmt::format("lone, {}: {}, {}, {}", which.name, which.about,
                                           count(processors, "CPU"), repetitions_of(got)),
                               labels_of(which),
                               {{"cpu_us_per_op", "CPU us"},
                                {"all_cpu_us_per_op", "with load"},
                                {"p50_us", "p50, us"},
                                {"p99_us", "p99"},
                                {"p999_us", "p99.9"},
                                {"max_us", "max"},
                                {"ops_per_s", "a second"},
                                {"voluntary_per_op", "switches: wait"},
                                {"involuntary_per_op", "preempt"},
                                {"calls_per_op", "calls"},
                                {"reads_per_op", "read"},
                                {"writes_per_op", "write"},
                                {"waits_per_op", "wait"},
                                {"futexes_per_op", "futex"},
                                {"controls_per_op", "control"},
                                {"masks_per_op", "mask"},
                                {"others_per_op", "other"}},
                               of);
        // There is no room for the spread of each.
        const std::size_t first = shown.labels + 1;
        for (auto& row : shown.rows)
            for (std::size_t c = first; c < row.size(); ++c) row[c].spread.clear();
        shown.notes = which.varies == axis::connections
                          ? ratios(got, "cpu_us_per_op", "connections", "connection", of, of_costs)
                      : which.name == "open"
                          ? ratios(got, "cpu_us_per_op", "rate", "request", of, of_costs)
                          : std::vector<std::string>{};
        if (!shown.notes.empty()) shown.notes.insert(shown.notes.begin(), "CPU time of each:");
        return shown;
    }

    static void add_charts(view& made, const result& got, const way& which,
                           std::uint64_t processors, const filter& of) {
        const auto under = [&](const cell& one) {
            std::string text;
            for (const auto& [key, title] : labels_of(which))
                text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                                    human(one.settings[key].get<std::uint64_t>()), title);
            return text;
        };
        const auto add = [&](const char* figure, const char* title, std::string about) {
            made.charts.push_back(
                bars(got, fmt::format("lone, {}, {}", which.name, count(processors, "CPU")), figure,
                     title, of, under));
            made.charts.back().about = std::move(about);
        };
        add("cpu_us_per_op", "CPU us of each",
            fmt::format("The CPU time of the measured process for each operation: {}. Lower is "
                        "better, and the axis is logarithmic.",
                        which.about));
        if (which.name == "open")
            add("p99_us", "p99, us",
                "From the sending of a request until its answer, for the slowest hundredth. Lower "
                "is better, and the axis is logarithmic.");
        if (which.name == "ready")
            add("max_us", "longest, us",
                "From the moment when a fiber is made ready until it runs, at the longest. The one "
                "that made it ready computes on meanwhile.");
    }
};

}  // namespace

std::unique_ptr<workload> make_lone() { return std::make_unique<lone>(); }

}  // namespace tool
