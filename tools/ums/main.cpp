// SPDX-License-Identifier: MIT

// ums: the command. Each subcommand is a file of its own; this one reads the command line.
//
// Exit codes: 0; 1 if something failed while running; 2 for an argument that cannot be used, with
// one line on stderr; 128 + signal if interrupted.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "bench.hpp"
#include "check_policy.hpp"
#include "info.hpp"
#include "interrupt.hpp"
#include "profile.hpp"
#include "ps.hpp"
#include "stack.hpp"
#include "top.hpp"
#include "trace.hpp"
#include "usage.hpp"

namespace {

std::string one_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

// Quoted as a shell would read it.
std::string command_line(int argc, char** argv) {
    std::string line = "ums";
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool is_plain = !word.empty() && word.find_first_not_of(
                                                   "abcdefghijklmnopqrstuvwxyz"
                                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                   "0123456789-_=+,./:@%") == std::string::npos;
        if (is_plain) {
            line += " " + word;
            continue;
        }
        line += " '";
        for (const char c : word) line += c == '\'' ? std::string{"'\\''"} : std::string{c};
        line += "'";
    }
    return line;
}

// The library's own message does not always name the argument.
std::string explained(const CLI::App& app, const CLI::ParseError& error) {
    std::string said = error.what();
    const auto rest = app.remaining(true);
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !rest.empty())
        return fmt::format("unexpected argument '{}'", rest.front());
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
        return fmt::format("{}: expected one value", said.substr(0, said.find(':')));
    return said;
}

void add_bench(CLI::App& app, tool::bench_request& asked) {
    auto* const bench = app.add_subcommand("bench", "measure ums beside its peers");
    bench->add_option("name", asked.name, "a bench, 'demo', 'all', or 'list' to see what there is");
    bench
        ->add_option("--json", asked.json,
                     "write the rows as JSON; - for stdout, the tables then go to stderr")
        ->type_name("FILE|-");
    bench
        ->add_option("--html", asked.html,
                     "write a page with tables and charts that needs no network")
        ->type_name("FILE");
    bench->add_flag("--quick", asked.quick,
                    "seconds instead of minutes: shows that all works, not how fast");
    bench->add_option("--processors", asked.processors, "CPUs for every runtime (default 1)")
        ->type_name("N[,N..]");
    bench->add_option("--fibers", asked.fibers, "how many fibers or threads")->type_name("N[,N..]");
    bench->add_option("--yields", asked.yields, "yield: how often each yields")
        ->type_name("N[,N..]");
    bench->add_option("--connections", asked.connections, "http, echo, ...: how many connections")
        ->type_name("N[,N..]");
    bench
        ->add_option(
            "--pipeline", asked.pipeline,
            "http, echo, memcached: requests that are sent before a response is waited for")
        ->type_name("N[,N..]");
    bench
        ->add_option("--client", asked.client,
                     "http and echo: what loads the servers (default own)")
        ->type_name("own|wrk|ums");
    bench->add_option("--repetitions", asked.repetitions, "how often each cell is measured")
        ->type_name("N");
    bench
        ->add_option("--detectors", asked.detectors,
                     "yield, spawn, pingpong: with each of these detectors of blocking, in turn")
        ->type_name("off|monitor[,..]");
    bench->add_option("--runtimes", asked.runtimes, "only these, such as ums,boost.fiber")
        ->type_name("NAME[,NAME..]");
    bench->add_flag("--cycles", asked.cycles,
                    "yield: cycles of each single switch, by the time-stamp counter");
}

// Returns the exit code when all is done; the output may still be on its way.
int printed() {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
    fmt::print(stderr, "ums: cannot write the result: {}\n", std::strerror(errno));
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    tool::bench_request asked;
    asked.command_line = command_line(argc, argv);
    CLI::App app{"ums: user-mode scheduling for Linux"};
    app.name("ums");
    app.set_version_flag("--version", "ums " + tool::version());
    app.require_subcommand(0, 1);
    add_bench(app, asked);
    tool::ps_request asked_ps;
    tool::add_ps(app, asked_ps);
    tool::stack_request asked_stack;
    tool::add_stack(app, asked_stack);
    tool::check_policy_request asked_check;
    tool::add_check_policy(app, asked_check);
    tool::trace_request asked_trace;
    tool::add_trace(app, asked_trace);
    // The words after -- are a command of their own.
    const int own = static_cast<int>(std::find_if(argv, argv + argc, [](const char* w) { return std::strcmp(w, "--") == 0; }) - argv);
    if (own < argc && argc > 1 && std::strcmp(argv[1], "trace") == 0) {
        asked_trace.command.assign(argv + own + 1, argv + argc);
        argc = own;
    }
    tool::top_request asked_top;
    tool::add_top(app, asked_top);
    tool::profile_request asked_profile;
    tool::add_profile(app, asked_profile);
    app.add_subcommand("info", "what the library is and what it chose on this machine");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) {
            app.exit(error);
            return printed();
        }
        const auto given = app.get_subcommands();
        const std::string of = given.empty() ? "" : given.front()->get_name() + " ";
        fmt::print(stderr, "ums: {}; see ums {}--help\n", one_line(explained(app, error)), of);
        return 2;
    }
    try {
        if (app.got_subcommand("bench")) return tool::bench(asked);
        if (app.got_subcommand("ps")) {
            const int code = tool::ps(asked_ps);
            return code != 0 ? code : printed();
        }
        if (app.got_subcommand("stack")) {
            const int code = tool::stack(asked_stack);
            return code != 0 ? code : printed();
        }
        if (app.got_subcommand("check-policy")) {
            const int code = tool::check_policy(asked_check);
            return code != 0 ? code : printed();
        }
        if (app.got_subcommand("trace")) {
            const int code = tool::trace(asked_trace);
            return code != 0 ? code : printed();
        }
        if (app.got_subcommand("top")) {
            const int code = tool::top(asked_top);
            return code != 0 ? code : printed();
        }
        if (app.got_subcommand("profile")) {
            const int code = tool::profile(asked_profile);
            return code != 0 ? code : printed();
        }
        if (!app.got_subcommand("info"))
            throw tool::usage_error{
                "expected a command: bench, check-policy, info, profile, ps, stack, top or trace; "
                "see ums --help"};
        fmt::print("{}", tool::info());
        return printed();
    } catch (const tool::usage_error& error) {
        fmt::print(stderr, "ums: {}\n", one_line(error.what()));
        return 2;
    } catch (const tool::interrupted& stop) {
        return 128 + stop.signal;
    } catch (const std::exception& error) {
        // The library's messages say already where they come from.
        const std::string what = one_line(error.what());
        fmt::print(stderr, "{}{}\n", what.starts_with("ums: ") ? "" : "ums: ", what);
        return 1;
    }
}
