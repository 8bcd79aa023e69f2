// SPDX-License-Identifier: MIT
#include "looks.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace tool::running {

namespace {

using clock = std::chrono::steady_clock;

constexpr double watch_s = 0.0003;
// So many are read within some 40 us: most waits are longer.
constexpr std::size_t most_watched = 16;
// The first looks come soon, for programs that end soon.
constexpr double first_s = 0.001, least_s = 0.03;
// With fewer waits that were watched to their ends, those found by the looks say more,
constexpr int least_watched = 50;
// unless these are fewer than so many findings.
constexpr int least_findings = 8;
// Until there is enough the looks come this many times as often.
constexpr double hurry = 3;

double since(clock::time_point start) {
    return std::chrono::duration<double>(clock::now() - start).count();
}

// Not by the clock: a look during which another program has the CPU for long costs no more, and the
// next one must not come a hundred times as late.
double cpu_s() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// A file of /proc from its beginning; empty: the thread has ended.
std::string_view content(int file, char (&into)[256]) {
    const auto n = pread(file, into, sizeof into, 0);
    return {into, n > 0 ? static_cast<std::size_t>(n) : 0};
}

}  // namespace

looks::looks(int pid) : pid_{pid}, reader_{pid} {
    // Two files for each thread.
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

looks::~looks() {
    for (const auto& [tid, one] : threads_) close_files(one);
}

void looks::close_files(const thread& one) {
    close(one.call);
    close(one.times);
}

void looks::list() {
    const std::string folder = fmt::format("/proc/{}/task", pid_);
    for (auto& [tid, one] : threads_) one.is_listed = false;
    DIR* const open_folder = opendir(folder.c_str());
    if (open_folder == nullptr) return;
    std::size_t count = 0;
    while (const dirent* const entry = readdir(open_folder)) {
        const int tid = std::atoi(entry->d_name);
        if (tid == 0) continue;
        ++count;
        const auto [at, is_new] = threads_.try_emplace(tid);
        at->second.is_listed = true;
        if (!is_new) continue;
        const auto open_file = [&](const char* name) {
            return open(fmt::format("{}/{}/{}", folder, tid, name).c_str(), O_RDONLY | O_CLOEXEC);
        };
        at->second.call = open_file("syscall");
        at->second.times = at->second.call >= 0 ? open_file("schedstat") : -1;
        if (at->second.times >= 0) continue;
        is_refused_ = is_refused_ || errno == EACCES || errno == EPERM;
        at->second.is_listed = false;
    }
    closedir(open_folder);
    for (auto at = threads_.begin(); at != threads_.end();) {
        if (!at->second.is_listed) close_files(at->second);
        at = at->second.is_listed ? std::next(at) : threads_.erase(at);
    }
    most_threads_ = std::max(most_threads_, count);
}

std::uint64_t looks::observe(thread& one) {
    char text[256];
    const std::string_view call = content(one.call, text);
    if (call.empty()) {
        is_refused_ = is_refused_ || errno == EACCES || errno == EPERM;
        one.in = wait::unknown;
        return 0;
    }
    const wait in = reader_.read(call);
    const std::string times{content(one.times, text)};
    unsigned long long runs = 0;
    if (std::sscanf(times.c_str(), "%*u %*u %llu", &runs) != 1) runs = one.runs;
    const std::uint64_t ended = runs - one.runs;
    one.in = in;
    one.runs = runs;
    return ended;
}

void looks::watch(std::vector<thread*>& active) {
    const double stands_for = static_cast<double>(active.size()) /
                              static_cast<double>(std::min(active.size(), most_watched));
    if (active.size() > most_watched) {
        std::shuffle(active.begin(), active.end(), random_);
        active.resize(most_watched);
    }
    const auto start = clock::now();
    do
        for (thread* const one : active) {
            const wait in = one->in;
            const auto n = static_cast<double>(observe(*one));
            if (n == 0 || in == wait::none || in == wait::unknown) continue;
            ++watched_;
            ended_[static_cast<std::size_t>(in)] += n * stands_for;
        }
    while (since(start) < watch_s);
}

double looks::look() {
    const double start = cpu_s();
    list();
    reader_.forget();
    std::vector<thread*> active;
    double running = 0;
    for (auto& [tid, one] : threads_) {
        const wait in = one.in;
        observe(one);
        running += one.in == wait::none ? 1 : 0;
        const std::uint64_t ended = one.runs - one.counted;
        one.counted = one.runs;
        runs_ += static_cast<double>(ended);
        if (ended == 0) continue;
        active.push_back(&one);
        if (in == wait::none || in == wait::unknown) continue;
        found_[static_cast<std::size_t>(in)] += static_cast<double>(ended);
        ++findings_;
    }
    if (running >= 1) {
        running_ += 1;
        ready_ += running - 1;
        accompanied_ += running >= 2 ? 1 : 0;
    }
    if (!active.empty()) watch(active);
    if ((looks_ & (looks_ - 1)) == 0) look_for_cxx();  // More and more seldom.
    ++looks_;
    const double ramp = first_s * static_cast<double>(1 << std::min(looks_, 10));
    const double pause = std::max(least_s, 100 * (cpu_s() - start));
    return std::min(ramp, is_enough() ? pause : pause / hurry);
}

void looks::look_for_cxx() {
    std::ifstream file{fmt::format("/proc/{}/maps", pid_)};
    for (std::string line; !has_cxx_ && std::getline(file, line);)
        has_cxx_ = line.find("/libstdc++.so") != std::string::npos ||
                   line.find("/libc++.so") != std::string::npos;
}

bool looks::is_enough() const { return watched_ >= least_watched || findings_ >= least_findings; }

shares looks::kinds() const {
    shares all = watched_ >= least_watched ? ended_ : found_;
    double sum = 0;
    for (const double one : all) sum += one;
    for (double& one : all) one = sum != 0 ? one / sum : 0;
    return all;
}

}  // namespace tool::running
