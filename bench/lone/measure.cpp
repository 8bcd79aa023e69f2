// SPDX-License-Identifier: MIT

// lone: starts a peer (bench/lone/RUNTIME.cpp), measures its process from outside, and ends it.
//
//   lone-measure runtime=ums way=echo connections=16 rate=3100 ms=1000
//
// It runs twice: for the times, the CPU time and the kernel's switches, and for count_ms under a
// tracer that counts system calls.
//
// cpu_us_per_op      the CPU time of the peer's process, by its clock: the sum of the schedstat of
//                    its threads, and those that have ended
// all_cpu_us_per_op  with that of the load, and of the server behind a proxy
// voluntary_per_op, involuntary_per_op
//                    the kernel's switches, from the status of the peer's threads
// reads_per_op, ...  system calls; see call_counter.hpp

#include <fcntl.h>
#include <sys/prctl.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <vector>

#include "../servers/watched_process.hpp"
#include "call_counter.hpp"
#include "client.hpp"
#include "lone.hpp"

namespace {

struct settings {
    std::string runtime, way, descriptors;
    std::uint64_t processors, connections, rate, gap_us, compute_ns, window_ms, count_ms;

    explicit settings(bench::cell& in)
        : runtime{in.word("runtime", {"ums", "std_thread", "go", "epoll", "ums-worker"})},
          way{in.word("way", lone::all_ways)},
          descriptors{in.word("descriptors", {"", "own", "elsewhere", "adopted"})},
          processors{in.number("processors", 1, 1, 1024)},
          connections{in.number("connections", 1, 1, 100'000)},
          rate{in.number("rate", 0)},
          gap_us{in.number("gap_us", 0, 0)},
          compute_ns{in.number("compute_ns", 0, 0)},
          window_ms{in.number("ms", 200)},
          count_ms{in.number("count_ms", 0, 0)} {}
};

// The program of a runtime, started. What it says is read from a pipe; its stdin is another.
class peer {
public:
    peer(const std::string& runtime, std::vector<std::string> args) {
        const auto program =
            std::filesystem::read_symlink("/proc/self/exe").parent_path() / ("lone-" + runtime);
        args.insert(args.begin(), program.string());
        std::vector<char*> argv;
        for (auto& one : args) argv.push_back(one.data());
        argv.push_back(nullptr);
        int in[2], out[2];
        lone::checked(pipe2(in, O_CLOEXEC), "pipe");
        lone::checked(pipe2(out, O_CLOEXEC), "pipe");
        process_ = lone::checked(fork(), "fork");
        if (process_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(in[0], STDIN_FILENO);
            dup2(out[1], STDOUT_FILENO);
            execv(argv.front(), argv.data());
            lone::give_up(argv.front());
        }
        close(in[0]);
        close(out[1]);
        in_ = in[1];
        out_ = fdopen(out[0], "r");
    }
    peer(const peer&) = delete;
    peer& operator=(const peer&) = delete;
    ~peer() {
        if (process_ != 0) {
            kill(process_, SIGKILL);
            counter_.reset();
            waitpid(process_, nullptr, 0);
        }
        std::fclose(out_);
        close(in_);
    }

    pid_t process() const { return process_; }

    std::string line() {
        char text[1024];
        if (std::fgets(text, sizeof text, out_) != nullptr) return text;
        int status = 0;
        counter_.reset();
        waitpid(std::exchange(process_, 0), &status, 0);
        if (WIFEXITED(status)) std::_Exit(1);  // It has said why.
        throw std::runtime_error{"the peer was ended by signal " +
                                 std::to_string(WTERMSIG(status))};
    }

    // Where a server listens: a port, or @NAME.
    std::string address() {
        const auto said = line();
        const auto at = said.find_last_of(":@");
        if (!said.starts_with("listening on ") || at == std::string::npos)
            throw std::runtime_error{"the peer said: " + said};
        return said.substr(said[at] == '@' ? at : at + 1, said.find('\n') - at - (said[at] != '@'));
    }

    void begin() { lone::checked(static_cast<int>(write(in_, "\n", 1)), "write"); }

    // Until the peer ends.
    lone::call_counter& count_calls() { return counter_.emplace(process_); }

private:
    pid_t process_ = 0;
    int in_ = -1;
    std::FILE* out_ = nullptr;
    std::optional<lone::call_counter> counter_;
};

// What the kernel counts of the peer, and of the load beside it.
struct usage {
    struct switches {
        std::uint64_t voluntary = 0, involuntary = 0;
    };
    std::uint64_t cpu_ns = 0, other_cpu_ns = 0;
    std::map<std::string, switches> of_threads;  // By id. Those that have ended are not there.
};

std::uint64_t cpu_ns(pid_t process) {
    return bench::watched_process{static_cast<std::uint64_t>(process)}.cpu_ns();
}

std::map<std::string, usage::switches> switches_of(pid_t process) {
    std::map<std::string, usage::switches> all;
    const auto folder = "/proc/" + std::to_string(process) + "/task";
    for (const auto& task : std::filesystem::directory_iterator{folder}) {
        auto& mine = all[task.path().filename()];
        std::ifstream status{task.path() / "status"};
        for (std::string key; status >> key;) {
            if (key == "voluntary_ctxt_switches:") status >> mine.voluntary;
            if (key == "nonvoluntary_ctxt_switches:") status >> mine.involuntary;
        }
    }
    return all;
}

// The threads' status takes long to read where there are thousands, so it is read outside of the
// window's CPU time.
usage usage_of(pid_t process, pid_t behind, bool is_begin) {
    usage all;
    if (is_begin) all.of_threads = switches_of(process);
    all.cpu_ns = cpu_ns(process);
    all.other_cpu_ns = bench::read_ns(CLOCK_THREAD_CPUTIME_ID) + (behind == 0 ? 0 : cpu_ns(behind));
    if (!is_begin) all.of_threads = switches_of(process);
    return all;
}

double figure(const std::string& json, const std::string& key) {
    const auto at = json.find("\"" + key + "\":");
    if (at == std::string::npos) throw std::runtime_error{"the peer said: " + json};
    return std::stod(json.substr(at + key.size() + 3));
}

// One run of a peer.
class run {
public:
    run(const settings& how, std::uint64_t window_ms, bool counts_calls)
        : how_{how}, window_ms_{window_ms}, counts_calls_{counts_calls} {
        if (lone::is_server(how.way))
            load();
        else
            wait();
    }

    void add_to(bench::line& out) const {
        const auto n = static_cast<double>(ops_);
        const auto cpu_us = static_cast<double>(end_.cpu_ns - begin_.cpu_ns) / 1000;
        const auto other_us =
            is_loaded_ ? static_cast<double>(end_.other_cpu_ns - begin_.other_cpu_ns) / 1000 : 0;
        usage::switches all;
        for (const auto& [thread, at_end] : end_.of_threads) {
            const auto found = begin_.of_threads.find(thread);
            const auto before =
                found == begin_.of_threads.end() ? usage::switches{} : found->second;
            all.voluntary += at_end.voluntary - before.voluntary;
            all.involuntary += at_end.involuntary - before.involuntary;
        }
        out.add("ops_per_s", n * 1e9 / static_cast<double>(ns_));
        out.add("cpu_us_per_op", cpu_us / n).add("all_cpu_us_per_op", (cpu_us + other_us) / n);
        for (const auto& [key, value] : times_) out.add(key, value);
        out.add("voluntary_per_op", static_cast<double>(all.voluntary) / n);
        out.add("involuntary_per_op", static_cast<double>(all.involuntary) / n);
    }

    void add_calls_to(bench::line& out) const {
        if (calls_.empty()) return;
        double all = 0;
        for (const auto n : calls_) all += static_cast<double>(n);
        out.add("calls_per_op", all / static_cast<double>(ops_));
        for (std::size_t i = 0; i < calls_.size(); ++i)
            out.add(std::string{lone::call_counter::names[i]} + "_per_op",
                    static_cast<double>(calls_[i]) / static_cast<double>(ops_));
    }

private:
    std::vector<std::string> arguments() const {
        std::vector<std::string> all{"way=" + how_.way,
                                     "processors=" + std::to_string(how_.processors)};
        const auto add = [&](const char* key, std::uint64_t value) {
            if (value != 0) all.push_back(std::string{key} + "=" + std::to_string(value));
        };
        add("connections", how_.connections);
        add("ms", window_ms_);
        add("gap_us", how_.gap_us);
        add("compute_ns", how_.compute_ns);
        add("rate", how_.rate);
        if (!how_.descriptors.empty()) all.push_back("descriptors=" + how_.descriptors);
        return all;
    }

    lone::call_counter* counter_of(peer& of) const {
        if (!counts_calls_) return nullptr;
        auto& counter = of.count_calls();
        return counter.is_attached() ? &counter : nullptr;
    }

    void keep(const lone::call_counter* counter) {
        if (counter == nullptr) return;
        for (int i = 0; i < lone::call_counter::kinds; ++i)
            calls_.push_back(counter->count(static_cast<lone::call_counter::kind>(i)));
    }

    // The peer loads itself.
    void wait() {
        peer of{how_.runtime, arguments()};
        if (of.line() != "ready\n") throw std::runtime_error{"the peer is not ready"};
        auto* const counter = counter_of(of);
        begin_ = usage_of(of.process(), 0, true);
        if (counter != nullptr) counter->start();
        of.begin();
        const auto said = of.line();
        if (counter != nullptr) counter->stop();
        end_ = usage_of(of.process(), 0, false);
        keep(counter);
        ops_ = static_cast<std::uint64_t>(figure(said, "ops"));
        ns_ = static_cast<std::uint64_t>(figure(said, "ns"));
        for (const char* key : {"p50_us", "p99_us", "p999_us", "max_us"})
            times_.emplace_back(key, figure(said, key));
    }

    // The load is this thread. Behind a proxy is an epoll loop of its own process.
    void load() {
        static constexpr std::string_view http = "GET / HTTP/1.1\r\nHost: lone\r\n\r\n";
        const std::string echo(64, 'x');
        const lone::load_plan plan{how_.connections, how_.rate, how_.gap_us * 1000,
                                   how_.way == "http" ? http : std::string_view{echo},
                                   how_.way == "http" ? lone::http_answer.size() : echo.size()};
        is_loaded_ = true;

        auto words = arguments();
        std::optional<peer> behind;
        if (how_.way == "proxy") {
            behind.emplace("epoll", std::vector<std::string>{"way=echo"});
            words.push_back("backend=" + behind->address());
        }
        const pid_t other = behind ? behind->process() : 0;
        peer of{how_.runtime, std::move(words)};
        lone::client load{plan, of.address()};
        auto* const counter = counter_of(of);
        load.run(window_ms_ * 500'000);
        begin_ = usage_of(of.process(), other, true);
        if (counter != nullptr) counter->start();
        load.begin_counting();
        const auto begin_ns = lone::now_ns();
        load.run(window_ms_ * 1'000'000);
        // On a busy machine nothing may have run meanwhile.
        const auto least = how_.rate == 0 ? how_.connections : 1;
        constexpr std::uint64_t patience_ns = 60'000'000'000;
        while (load.answered() < least && lone::now_ns() - begin_ns < patience_ns)
            load.run(10'000'000);
        ns_ = lone::now_ns() - begin_ns;
        ops_ = load.answered();
        if (counter != nullptr) counter->stop();
        end_ = usage_of(of.process(), other, false);
        keep(counter);
        load.each_time([&](const char* key, double value) { times_.emplace_back(key, value); });
    }

    const settings& how_;
    const std::uint64_t window_ms_;
    const bool counts_calls_;
    bool is_loaded_ = false;
    usage begin_, end_;
    std::uint64_t ops_ = 0, ns_ = 0;
    std::vector<std::pair<const char*, double>> times_;
    std::vector<std::uint64_t> calls_;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const settings how{in};
        in.done();
        // Each runtime's own variable takes precedence over what its peer asks for.
        const auto processors = std::to_string(how.processors);
        for (const char* name : {"UMS_PROCESSORS", "GOMAXPROCS"})
            setenv(name, processors.c_str(), 1);
        run{how, how.window_ms, false}.add_to(out);
        if (how.count_ms != 0) run{how, how.count_ms, true}.add_calls_to(out);
    });
}
