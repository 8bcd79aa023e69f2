// SPDX-License-Identifier: MIT

// ums: the command. Each subcommand is a file or a folder of its own; this one lists them.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>

#include "bench/bench.hpp"
#include "check_policy.hpp"
#include "command.hpp"
#include "info.hpp"
#include "profile.hpp"
#include "ps.hpp"
#include "slow.hpp"
#include "stack.hpp"
#include "top.hpp"
#include "trace.hpp"
#include "usage.hpp"

int main(int argc, char** argv) {
    tool::bench_request asked;
    asked.command_line = tool::command_line(argc, argv);
    CLI::App app{"ums: user-mode scheduling for Linux"};
    app.name("ums");
    app.set_version_flag("--version", "ums " + tool::version());
    app.require_subcommand(0, 1);
    tool::add_bench(*app.add_subcommand("bench", "measure ums beside its peers"), asked);
    tool::ps_request asked_ps;
    tool::add_ps(app, asked_ps);
    tool::stack_request asked_stack;
    tool::add_stack(app, asked_stack);
    tool::check_policy_request asked_check;
    tool::add_check_policy(app, asked_check);
    tool::trace_request asked_trace;
    tool::add_trace(app, asked_trace);
    // The words after -- are a command of their own.
    char** const own_end =
        std::find_if(argv, argv + argc, [](const char* w) { return std::strcmp(w, "--") == 0; });
    if (own_end != argv + argc && argc > 1 && std::strcmp(argv[1], "trace") == 0) {
        asked_trace.command.assign(own_end + 1, argv + argc);
        argc = static_cast<int>(own_end - argv);
    }
    tool::top_request asked_top;
    tool::add_top(app, asked_top);
    tool::profile_request asked_profile;
    tool::add_profile(app, asked_profile);
    tool::slow_request asked_slow;
    tool::add_slow(app, asked_slow);
    app.add_subcommand("info", "what the library is and what it chose on this machine");

    return tool::run_command(app, argc, argv, [&] {
        const auto printed = [](int code) { return code != 0 ? code : tool::printed(); };
        if (app.got_subcommand("bench")) return tool::bench(asked);
        if (app.got_subcommand("ps")) return printed(tool::ps(asked_ps));
        if (app.got_subcommand("stack")) return printed(tool::stack(asked_stack));
        if (app.got_subcommand("check-policy")) return printed(tool::check_policy(asked_check));
        if (app.got_subcommand("trace")) return printed(tool::trace(asked_trace));
        if (app.got_subcommand("top")) return printed(tool::top(asked_top));
        if (app.got_subcommand("profile")) return printed(tool::profile(asked_profile));
        if (app.got_subcommand("slow")) return printed(tool::slow(asked_slow));
        if (!app.got_subcommand("info"))
            throw tool::usage_error{
                "expected a command: bench, check-policy, info, profile, ps, slow, stack, top or "
                "trace; see ums --help"};
        fmt::print("{}", tool::info());
        return printed(0);
    });
}
