// SPDX-License-Identifier: MIT
#include "command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "interrupt.hpp"
#include "usage.hpp"

namespace tool {

namespace {

std::string one_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    // It may name what another program has chosen.
    const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
    std::replace_if(text.begin(), text.end(), is_control, ' ');
    return text;
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

}  // namespace

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

int run_command(CLI::App& app, int argc, char** argv, const std::function<int()>& act) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) {
            app.exit(error);
            return printed();
        }
        const auto given = app.get_subcommands();
        const std::string of = given.empty() ? "" : given.front()->get_name() + " ";
        fmt::print(stderr, "ums: {}; see {} {}--help\n", one_line(explained(app, error)),
                   app.get_name(), of);
        return 2;
    }
    try {
        return act();
    } catch (const usage_error& error) {
        fmt::print(stderr, "ums: {}\n", one_line(error.what()));
        return 2;
    } catch (const interrupted& stop) {
        return 128 + stop.signal;
    } catch (const std::exception& error) {
        // The library's messages say already where they come from.
        const std::string what = one_line(error.what());
        fmt::print(stderr, "{}{}\n", what.starts_with("ums: ") ? "" : "ums: ", what);
        return 1;
    }
}

int printed() {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
    fmt::print(stderr, "ums: cannot write the result: {}\n", std::strerror(errno));
    return 1;
}

}  // namespace tool
