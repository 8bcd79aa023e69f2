// SPDX-License-Identifier: MIT
#include "trace.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "inspect/live_process.hpp"
#include "inspect/snapshot.hpp"
#include "inspect/symbols.hpp"
#include "interrupt.hpp"
#include "trace/chrome.hpp"
#include "trace/dump_file.hpp"
#include "trace/live_rings.hpp"
#include "trace/perfetto.hpp"
#include "trace/started.hpp"
#include "trace/summary.hpp"
#include "trace/timeline.hpp"
#include "usage.hpp"

namespace tool {

using namespace tracing;

namespace {

constexpr std::int64_t second = 1'000'000'000;

std::int64_t now() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * second + t.tv_nsec;
}

// Waits between two looks at the rings. Returns false after Ctrl-C.
bool pause() {
    constexpr timespec a_moment{0, 2'000'000};
    ppoll(nullptr, 0, &a_moment, &interruptible_mask());
    return interrupt_signal() == 0;
}

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// A process with libums inside, ready to be traced.
struct subject {
    explicit subject(int pid) : process{pid, false}, how{process}, rings{process, how} {}
    inspect::live_process process;
    inspect::layout how;
    live_rings rings;
};

// A recording with the names that go with it.
struct recorded {
    recording what;
    known_fibers known;
    // Made while the process exists, because it may have ended when names are asked for.
    std::unique_ptr<inspect::symbols> names;
    std::string name;
    std::int64_t from = 0;
};

// The fibers that exist, by name and start function.
void learn_fibers(const subject& s, inspect::symbols& names, known_fibers& into) {
    const inspect::snapshot all{s.process, s.how};
    for (const inspect::fiber_record& f : all.fibers)
        into[f.id] = {f.name, f.run != 0 ? inspect::start_function(names.function(f.run)) : ""};
}

totals tell_all(const recorded& r, sink& to) {
    assert(r.names != nullptr && "a recording has lost the names that go with it");
    return tell(
        r.what, r.from, r.known,
        [&](inspect::address at) { return inspect::start_function(r.names->function(at)); }, to);
}

class output {
public:
    explicit output(const std::string& path) : path_{path}, file_{std::fopen(path.c_str(), "wbe")} {
        if (file_ == nullptr)
            throw std::runtime_error{fmt::format("{}: {}", path, std::strerror(errno))};
    }
    ~output() {
        if (file_ != nullptr) std::fclose(file_);
    }
    output(const output&) = delete;
    output& operator=(const output&) = delete;
    [[nodiscard]] std::FILE* file() const { return file_; }
    void close() {
        assert(file_ != nullptr && "a trace's file is closed twice");
        const bool is_good = std::ferror(file_) == 0;
        if (std::fclose(std::exchange(file_, nullptr)) != 0 || !is_good)
            throw std::runtime_error{
                fmt::format("{} cannot be written: {}", path_, std::strerror(errno))};
    }

private:
    std::string path_;
    std::FILE* file_;
};

void write_out(const trace_request& asked, const recorded& r) {
    const std::string path = !asked.into.empty() ? asked.into
                             : asked.chrome      ? "ums-trace.json"
                                                 : "ums.pftrace";
    output into{path};
    std::unique_ptr<sink> to;
    if (asked.chrome)
        to = std::make_unique<chrome_file>(into.file(), r.what.process, r.name);
    else
        to = std::make_unique<perfetto_file>(into.file(), r.what.process, r.name);
    const totals n = tell_all(r, *to);
    to.reset();
    into.close();
    const auto ms = (n.end - n.begin) / 1'000'000;
    fmt::print(
        "{}: {} records, {} s: {} runs, {} waits, {} wake-ups, {} deadlines, {} events, {} spawns, "
        "{} ends, {} steals, "
        "{} hand-offs, {} stops, {} marks\n",
        path, n.records, static_cast<double>(ms) / 1000, n.runs, n.parks, n.unparks, n.timers, n.io,
        n.spawns, n.ends, n.steals, n.hand_offs, n.stops, n.marks);
    if (r.what.lost() != 0)
        fmt::print(stderr,
                   "ums: {} records were overwritten before they were read: ask for larger rings "
                   "(--buffer)\n",
                   r.what.lost());
}

void print_summary(const trace_request& asked, const summary& s) {
    if (asked.json)
        fmt::print("{}\n", s.json());
    else
        s.print();
}

// Turns recording on, and restores its state in all cases.
class switched_on {
public:
    switched_on(const live_rings& rings, std::uint64_t ring_bytes)
        : rings_{rings}, is_over_{rings.is_on()} {
        assert(ring_bytes <= UINT32_MAX && "a ring's size does not fit into its word");
        rings.switch_on(static_cast<std::uint32_t>(ring_bytes));
    }
    ~switched_on() {
        try {
            end();
        } catch (const std::exception&) {  // The process has ended.
        }
    }
    switched_on(const switched_on&) = delete;
    switched_on& operator=(const switched_on&) = delete;
    void end() {
        if (!std::exchange(is_over_, true)) rings_.switch_off();
    }

private:
    const live_rings& rings_;
    bool is_over_;
};

// Records a running process until the time is over, Ctrl-C, or its end.
recorded record_live(const trace_request& asked, subject& s) {
    recorded r;
    r.name = s.process.title();
    r.names = std::make_unique<inspect::symbols>(s.process);
    learn_fibers(s, *r.names, r.known);
    s.rings.skip();
    // From here on a signal ends the recording. Before, and while the file is written, it ends the
    // command: nothing has to be put back then.
    const caught_interrupts caught;
    switched_on on{s.rings, asked.ring_bytes};
    const std::int64_t until =
        asked.seconds > 0 ? now() + static_cast<std::int64_t>(asked.seconds * 1e9) : 0;
    try {
        bool has_room = true;
        do has_room = s.rings.collect(r.what);
        while (has_room && pause() && (until == 0 || now() < until));
        on.end();
        if (!s.rings.collect(r.what))
            fmt::print(stderr,
                       "ums: the recording ended early: it takes an eighth of the memory\n");
    } catch (const std::runtime_error&) {
        // Otherwise the process has ended, and this is everything.
        if (r.what.rings.empty()) throw;
    }
    return r;
}

// The flight recorder.
recorded last_of(const trace_request& asked, subject& s) {
    if (!s.rings.is_on())
        throw std::runtime_error{
            "nothing is being recorded: switch it on before (ums trace --on PID, or UMS_TRACE=on)"};
    recorded r;
    r.name = s.process.title();
    r.names = std::make_unique<inspect::symbols>(s.process);
    learn_fibers(s, *r.names, r.known);
    s.rings.collect(r.what);
    for (ring& one : r.what.rings) one.lost = 0;  // The records before that time do not count.
    if (asked.last > 0) r.from = now() - static_cast<std::int64_t>(asked.last * 1e9);
    return r;
}

recorded from_dump(const std::string& path) {
    dump d = read_dump(path);
    return {std::move(d.what), {}, std::make_unique<inspect::symbols>(*d.of), d.of->title(), 0};
}

int run_command(const trace_request& asked) {
    catch_interrupts();
    started program{asked.command,
                    asked.ring_bytes != 0 ? fmt::format("{}:on", asked.ring_bytes) : "on"};
    std::unique_ptr<subject> s;
    recorded r;
    r.name = asked.command.front();
    std::string refusal = "it has no libums inside, or started no runtime";
    for (;;) {
        const started::is is = program.look();
        if (is == started::is::gone) break;
        try {
            if (s == nullptr) s = std::make_unique<subject>(program.pid());
            (void)s->rings.collect(r.what);  // Without room for more, its end is waited for.
            // The process may have loaded libraries since.
            if (r.names == nullptr || is == started::is::exiting)
                r.names =
                    std::make_unique<inspect::symbols>(inspect::live_process{program.pid(), false});
        } catch (const std::exception& e) {
            refusal = e.what();  // The library is not loaded yet, or never will be.
            if (r.what.rings.empty()) s.reset();
        }
        if (is == started::is::exiting)
            program.let_go();
        else
            pause();  // Ctrl-C reaches the program, too, and its end is what ends this loop.
        if (const int signal = take_sent_interrupt(); signal != 0) kill(program.pid(), signal);
    }
    if (r.names == nullptr || r.what.rings.empty())
        throw std::runtime_error{
            fmt::format("{}: nothing was recorded: {}", asked.command.front(), refusal)};
    write_out(asked, r);
    return program.code();
}

int sum_up(const trace_request& asked) {
    summary sum;
    assert(asked.words.size() == 2 && "a summary was asked for of nothing");
    const std::string& what = asked.words[1];
    if (is_number(what)) {
        subject s{inspect::number_of(what)};
        trace_request one = asked;
        if (one.seconds <= 0) one.seconds = 1;
        tell_all(record_live(one, s), sum);
    } else if (is_dump(what)) {
        tell_all(from_dump(what), sum);
    } else if (is_perfetto(what)) {
        read_perfetto(what, sum);
    } else {
        throw std::runtime_error{fmt::format(
            "{}: neither a trace that ums trace wrote nor a dump, the file that UMS_TRACE names",
            what)};
    }
    print_summary(asked, sum);
    return 0;
}

}  // namespace

void add_trace(CLI::App& app, trace_request& asked) {
    auto* const trace = app.add_subcommand("trace",
                                           "record what fibers do, as a trace: of a process, or of "
                                           "-- COMMAND; or add a trace up (summary)");
    trace
        ->add_option("target", asked.words,
                     "a process's number, or a dump (the file that UMS_TRACE names); with "
                     "'summary' in front also a trace")
        ->type_name("[summary] PID|FILE");
    trace
        ->add_option("-o,--output", asked.into,
                     "the file to write (default ums.pftrace, for ui.perfetto.dev)")
        ->type_name("FILE");
    trace->add_flag("--chrome", asked.chrome,
                    "write JSON for chrome://tracing instead (default ums-trace.json)");
    trace
        ->add_option("--for", asked.seconds,
                     "record for so many seconds; else until Ctrl-C or the process's end")
        ->check(CLI::PositiveNumber)
        ->type_name("SECONDS");
    trace
        ->add_option("--last", asked.last,
                     "write the last so many seconds of what the process has recorded since --on")
        ->check(CLI::PositiveNumber)
        ->type_name("SECONDS");
    trace
        ->add_option("--buffer", asked.ring_bytes,
                     "the size of each processor's ring, 64K to 2G (default 16M)")
        ->transform(CLI::AsSizeValue(false).description(""))
        ->check(CLI::Range(std::uint64_t{64} << 10, std::uint64_t{1} << 31).description(""))
        ->type_name("BYTES");
    trace->add_flag("--on", asked.on, "only switch recording on, for --last");
    trace->add_flag("--off", asked.off, "only switch it off");
    trace->add_flag("--json", asked.json, "the summary as JSON");
}

int trace(const trace_request& asked) {
    if (!asked.command.empty()) {
        if (!asked.words.empty())
            throw usage_error{"trace: expected a process or a command, not both"};
        return run_command(asked);
    }
    if (asked.words.size() == 2 && asked.words[0] == "summary") return sum_up(asked);
    if (asked.words.size() != 1)
        throw usage_error{"trace: expected PID, FILE, summary PID|FILE, or -- COMMAND"};
    const std::string& target = asked.words.front();
    if (!is_number(target)) {
        if (!is_dump(target))
            throw std::runtime_error{
                fmt::format("{}: not a dump, the file that UMS_TRACE names; if it is a trace: ums "
                            "trace summary {}",
                            target, target)};
        write_out(asked, from_dump(target));
        return 0;
    }
    subject s{inspect::number_of(target)};
    if (asked.on || asked.off) {
        if (asked.on)
            s.rings.switch_on(static_cast<std::uint32_t>(asked.ring_bytes));
        else
            s.rings.switch_off();
        return 0;
    }
    write_out(asked, asked.last > 0 ? last_of(asked, s) : record_live(asked, s));
    return 0;
}

}  // namespace tool
