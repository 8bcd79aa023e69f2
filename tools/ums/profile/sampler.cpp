// SPDX-License-Identifier: MIT
#include "sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <unordered_set>
#include <utility>

#include "../inspect/printable.hpp"
#include "../inspect/stacks.hpp"
#include "../inspect/wait_words.hpp"

namespace tool::profiling {

using namespace inspect;

namespace {

constexpr std::size_t page_bytes = 4096, pages_most = 8, carriers_most = 100'000,
                      spawners_most = 24, origins_most = 4'000'000,
                      // Programs have some hundred.
    sums_most = 200'000, frames_most = 1'000'000, known_most = 100'000;
// Looks at what is off a CPU are at least this far apart, and take at most a tenth of the time.
constexpr double off_interval_s = 0.1, off_share = 0.1;

std::string thread_file(int pid, int tid, const char* name) {
    return fmt::format("/proc/{}/task/{}/{}", pid, tid, name);
}

// Whether a stop of the thread would find it at work: it runs, and does not run only where nothing
// else wants to. A thread of the latter kind (such as a sentinel of libums) may take long to come
// to its stop.
bool is_at_work(int pid, int tid) {
    std::string line;
    if (!std::getline(std::ifstream{thread_file(pid, tid, "stat")}, line)) return false;
    const std::size_t end = line.rfind(')');
    if (end == std::string::npos) return false;
    std::istringstream in{line.substr(end + 1)};
    char state = 0;
    in >> state;
    if (state != 'R') return false;
    // See proc_pid_stat(5); the state is field 3.
    constexpr int policy_field = 41, idle_policy = 5;
    std::string skipped;
    for (int i = 4; i < policy_field; ++i) in >> skipped;
    int policy = 0;
    in >> policy;
    return policy != idle_policy;
}

// The frame that begins every fiber says nothing.
bool is_entry(const std::string& function) {
    constexpr std::string_view begins[] = {
        "ums_fiber_entry", "fiber_main", "run_function", "invoke<",     "__invoke",
        "call<",           "ums::spawn", "ums::run",     "ums::impl::", "ums::sched::run_"};
    constexpr std::string_view holds[] = {"run_in_place", "std::__invoke", "std::invoke",
                                          "ums::impl::invoke"};
    return std::any_of(std::begin(begins), std::end(begins),
                       [&](std::string_view w) { return function.starts_with(w); }) ||
           std::any_of(std::begin(holds), std::end(holds),
                       [&](std::string_view w) { return function.find(w) != std::string::npos; });
}

// Leaves out the arguments, which are long and say little here.
std::string without_arguments(std::string function) {
    constexpr std::string_view local = "(anonymous namespace)::";
    for (std::size_t at; (at = function.find(local)) != std::string::npos;)
        function.erase(at, local.size());
    if (const std::size_t at = function.find('('); at != std::string::npos && at != 0 &&
                                                   !function.ends_with("operator()") &&
                                                   function.find("lambda") == std::string::npos)
        function.erase(at);
    return function;
}

std::int64_t day_ns() {
    timespec t{};
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

}  // namespace

sampler::sampler(const live_process& of, const layout& how, symbols& names)
    : of_{of}, how_{how}, names_{names}, starts_{names, of}, by_{of, names} {}

std::int64_t sampler::cpu_time() const {
    std::string line;
    std::getline(std::ifstream{fmt::format("/proc/{}/stat", of_.pid())}, line);
    const std::size_t end = line.rfind(')');
    if (end == std::string::npos) return 0;
    std::istringstream in{line.substr(end + 1)};
    std::string skipped;
    for (int i = 0; i < 11; ++i) in >> skipped;  // state .. cmajflt
    std::int64_t user = 0, system = 0;
    in >> user >> system;
    return (user + system) * (1'000'000'000 / sysconf(_SC_CLK_TCK));
}

profile_data sampler::run(double seconds, double frequency, bool on_cpu, bool off_cpu) {
    assert(seconds > 0 && frequency > 0 && "a profile of no length, or without a look");
    profile_data all;
    all.title = of_.title();
    all.began_ns = day_ns();
    all.period_ns = static_cast<std::int64_t>(1e9 / frequency);
    const std::int64_t cpu_before = cpu_time();
    const auto begin = clock::now();
    const auto passed = [&](clock::time_point since) {
        return std::chrono::duration<double>{clock::now() - since}.count();
    };
    const auto later = [](clock::time_point from, double s) {
        return from + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>{s});
    };
    const auto end = later(begin, seconds);
    // Out of step with the program: between half a period and one and a half.
    std::uniform_real_distribution<double> jitter{0.5, 1.5};
    auto next_off = later(begin, off_interval_s * jitter(random_));
    auto last_off = begin, next_threads = begin;
    learn_origins();
    try {
        while (clock::now() < end) {
            const double pause = on_cpu ? jitter(random_) / frequency : off_interval_s / 4;
            std::this_thread::sleep_until(std::min(end, later(clock::now(), pause)));
            if (on_cpu) {
                if (clock::now() >= next_threads) {
                    find_threads();
                    next_threads = later(clock::now(), 0.1);
                }
                look_on_cpu();
            }
            if (const auto now = clock::now(); off_cpu && now >= next_off && now < end) {
                look_off_cpu(1e9 * std::chrono::duration<double>{now - last_off}.count());
                last_off = now;
                const double pause_off =
                    std::max(off_interval_s, passed(now) / off_share) * jitter(random_);
                next_off = later(clock::now(), pause_off);
            }
        }
        all.duration_ns = static_cast<std::int64_t>(passed(begin) * 1e9);
        if (off_cpu) look_off_cpu(1e9 * passed(last_off));
    } catch (const std::runtime_error&) {
        if (sums_.empty()) throw;  // The process was never there for long enough.
    }
    if (stops_ == 0 && refused_ != 0)
        throw std::runtime_error{
            fmt::format("process {} cannot be stopped: that needs the right to trace it, and no "
                        "debugger may do "
                        "so at the same time",
                        of_.pid())};
    if (all.duration_ns == 0) all.duration_ns = static_cast<std::int64_t>(passed(begin) * 1e9);
    all.cpu_ns = cpu_time() - cpu_before;
    all.cpu_ns = std::max<std::int64_t>(all.cpu_ns, 0);
    all.stops = stops_;
    all.stopped_ns = stopped_ns_;
    all.looks_off_cpu = looks_;
    for (const auto& [k, s] : sums_) {
        assert(!k.frames.empty() && s.count != 0 && s.ns >= 0 && "a sample says nothing");
        sample one;
        for (const std::uint32_t f : k.frames) one.frames.push_back(frames_[f]);
        one.is_on_cpu = k.is_on_cpu;
        one.wait = name_of(k.waits);
        one.count = s.count;
        one.ns = std::llround(s.ns);
        all.samples.push_back(std::move(one));
    }
    return all;
}

void sampler::find_threads() {
    threads_.clear();
    std::error_code gone;
    const std::string folder = fmt::format("/proc/{}/task", of_.pid());
    for (const auto& entry : std::filesystem::directory_iterator{folder, gone})
        threads_.push_back(std::stoi(entry.path().filename().string()));
    for (const int tid : threads_)
        if (!cpu_of_.contains(tid)) cpu_of_[tid] = of_.on_cpu_ns(tid);
    if (threads_.empty()) throw std::runtime_error{fmt::format("process {} has ended", of_.pid())};
    carrier_of_.clear();
    std::unordered_set<address> seen;
    address cluster = of_.get<address>(how_.place("clusters")).value_or(0);
    for (std::size_t n = 0; cluster != 0 && n < 4096; ++n) {
        address c = of_.get<address>(cluster + how_.value("cluster.carriers")).value_or(0);
        for (; c != 0 && carrier_of_.size() < carriers_most;
             c = of_.get<address>(c + how_.value("carrier.next")).value_or(0)) {
            if (!seen.insert(c).second) break;
            const int own = of_.get<int>(c + how_.value("carrier.tid")).value_or(0);
            carrier_of_.emplace(of_.tid_here(own), c);
        }
        cluster = of_.get<address>(cluster + how_.value("cluster.next")).value_or(0);
    }
}

sampler::origin sampler::origin_of(const fiber_record& f) {
    return {starts_.key(f), f.spawned_at, f.spawner, f.spawner == 0 && f.name == "main"};
}

// Spawners may never be on a CPU, so they are looked at here.
void sampler::learn_origins() {
    const snapshot s{of_, how_};
    for (const fiber_record& f : s.fibers) origins_.try_emplace(f.id, origin_of(f));
}

void sampler::look_on_cpu() {
    for (const int tid : threads_) {
        if (!is_at_work(of_.pid(), tid)) continue;
        // A thread that has waited for a CPU all the time has used none.
        const std::int64_t now = of_.on_cpu_ns(tid);
        const std::int64_t used = now - std::exchange(cpu_of_[tid], now);
        if (used <= 0) continue;
        const auto carrier = carrier_of_.find(tid);
        glimpse(tid, carrier != carrier_of_.end() ? carrier->second : 0, used);
    }
}

void sampler::glimpse(int tid, address carrier, std::int64_t ns) {
    registers then;
    std::vector<char> bytes;
    address begin = 0;
    std::uint64_t id = 0;
    origin from;
    address callable = 0;
    const std::int64_t stopped = of_.glimpse(tid, [&](const registers& now) {
        then = now;
        begin = now.value[registers::sp];
        // The rest of this page, and the next pages as far as there are any.
        bytes.resize(pages_most * page_bytes);
        address fiber = 0;
        std::vector<piece> pieces{{carrier + how_.value("carrier.running"), &fiber, 8, false}};
        if (carrier == 0) pieces.clear();
        const std::size_t stack = pieces.size();
        std::size_t used = 0;
        for (address at = begin; used < bytes.size();) {
            const std::size_t n =
                std::min<std::size_t>(page_bytes - at % page_bytes, bytes.size() - used);
            pieces.push_back({at, bytes.data() + used, n, false});
            at += n;
            used += n;
        }
        of_.read(pieces);
        used = 0;
        for (std::size_t i = stack; i < pieces.size() && pieces[i].is_read; ++i)
            used += pieces[i].bytes;
        assert(used <= bytes.size() && "more of a stack was read than there is room for");
        bytes.resize(used);
        if (fiber == 0) return;
        piece words[] = {{fiber + how_.value("fiber.id"), &id, 8, false},
                         {fiber + how_.value("fiber.run"), &from.start, 8, false},
                         {fiber + how_.value("fiber.callable"), &callable, 8, false},
                         {fiber + how_.value("fiber.spawner"), &from.spawner, 8, false},
                         {fiber, &from.spawned_at, 8, false}};
        const bool has_place = how_.has("fiber.spawned_at");
        if (has_place) words[4].at = fiber + how_.value("fiber.spawned_at");
        of_.read(words);
        if (!has_place) from.spawned_at = 0;
    });
    if (stopped == 0) {
        ++refused_;
        return;
    }
    stopped_ns_ += stopped;
    ++stops_;
    key k;
    k.is_on_cpu = true;
    if (id != 0) {
        from.start = starts_.key(from.start, callable);
        k.frames = spawners(origins_.try_emplace(id, from).first->second);
    } else if (carrier != 0) {
        k.frames.push_back(label("[scheduler]"));
    } else {
        std::string name;
        std::getline(std::ifstream{thread_file(of_.pid(), tid, "comm")}, name);
        k.frames.push_back(label("[thread " + printable(name) + "]"));
    }
    add_calls(k.frames, by_.unwind(then, {begin, bytes}), id != 0);
    sum& to = sum_of(std::move(k));
    to.ns += static_cast<double>(ns);
    ++to.count;
}

void sampler::look_off_cpu(double ns) {
    const snapshot s{of_, how_};
    ++looks_;
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t i = 0; i < s.fibers.size(); ++i) {
        const fiber_record& f = s.fibers[i];
        if (origins_.size() < origins_most && !origins_.contains(f.id))
            origins_.try_emplace(f.id, origin_of(f));
        // The registers of a thread in a page fault would be known only after the fault.
        const bool is_off = f.state == fiber_state::parked || f.state == fiber_state::ready ||
                            (f.state == fiber_state::blocked && f.waits == wait::system_call);
        if (is_off) chosen.push_back(i);
    }
    const std::vector<call_stack> stacks = stacks_of(s, chosen, by_);
    assert(stacks.size() == chosen.size() && "fibers and their stacks are out of step");
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        const fiber_record& f = s.fibers[chosen[i]];
        key k;
        k.waits = f.waits;
        k.frames = spawners(origin_of(f));
        add_calls(k.frames, stacks[i], true);
        std::string why = f.state == fiber_state::ready  ? "a processor"
                          : f.waits == wait::system_call ? system_call_name(f.waits_in) + "()"
                                                         : name_of(f.waits);
        if (f.waits == wait::join && f.waits_by != nobody)
            why = "end of " + without_arguments(starts_.of(s.fibers[f.waits_by]).name);
        k.frames.push_back(label("[waits: " + why + "]"));
        sum& to = sum_of(std::move(k));
        to.ns += ns;
        ++to.count;
    }
}

// Begins with the first fiber: its start function, where it spawned the next, and so on to the
// fiber's own.
std::vector<std::uint32_t> sampler::spawners(const origin& of) {
    std::vector<const origin*> chain{&of};
    while (chain.back()->spawner != 0 && chain.size() < spawners_most) {
        const auto found = origins_.find(chain.back()->spawner);
        if (found == origins_.end()) break;
        chain.push_back(&found->second);
    }
    std::vector<std::uint32_t> frames;
    const auto add = [&](std::uint32_t f) {  // A fiber that spawns its like is shown once.
        if (std::find(frames.begin(), frames.end(), f) == frames.end()) frames.push_back(f);
    };
    if (chain.back()->spawner != 0) add(label("[spawned by a fiber that has ended]"));
    for (auto one = chain.rbegin(); one != chain.rend(); ++one) {
        if ((*one)->spawner != 0 && (*one)->spawned_at != 0)
            for (const std::uint32_t f : frames_of((*one)->spawned_at - 1))
                if (!is_entry(frames_[f].function)) add(f);
        // The first fiber's function is often one that cannot be demangled.
        std::string start =
            (*one)->is_main ? "main" : without_arguments(starts_.of((*one)->start).name);
        add(label("[fiber " + (start.empty() ? "?" : start) + "]"));
    }
    return frames;
}

void sampler::add_calls(std::vector<std::uint32_t>& to, const call_stack& calls, bool is_fiber) {
    if (calls.frames.empty()) return to.push_back(label("[not known]"));
    if (calls.is_cut_off) to.push_back(label("[..]"));
    bool is_begun = !is_fiber;
    for (auto pc = calls.frames.rbegin(); pc != calls.frames.rend(); ++pc)
        for (const std::uint32_t f : frames_of(*pc)) {
            if (!is_begun && is_entry(frames_[f].function)) continue;
            is_begun = true;
            to.push_back(f);
        }
}

// The outermost frame first.
const std::vector<std::uint32_t>& sampler::frames_of(address pc) {
    if (known_.size() >= known_most) known_.clear();
    const auto [at, is_new] = known_.try_emplace(pc);
    if (!is_new) return at->second;
    const std::vector<source_frame>& all = names_.frames(pc);
    for (auto f = all.rbegin(); f != all.rend(); ++f)
        at->second.push_back(number(
            {f->function.empty() ? fmt::format("0x{:x}", pc) : without_arguments(f->function),
             f->file, f->line}));
    return at->second;
}

// Stacks that are made to be all different come together in the end.
sampler::sum& sampler::sum_of(key k) {
    if (sums_.size() >= sums_most && !sums_.contains(k)) k.frames = {label("[other]")};
    return sums_[std::move(k)];
}

std::uint32_t sampler::number(frame f) {
    if (frames_.size() >= frames_most && !numbers_.contains(f)) f = {"[other]", {}, 0};
    const auto [at, is_new] =
        numbers_.try_emplace(std::move(f), static_cast<std::uint32_t>(frames_.size()));
    if (is_new) frames_.push_back(at->first);
    assert(frames_.size() == numbers_.size() && "two frames have one number");
    return at->second;
}

}  // namespace tool::profiling
