// SPDX-License-Identifier: MIT
#include "linux_ums/info_files.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "linux_ums/scheduler.hpp"

namespace ums::linux_names::info_files {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_workers = 100;

constinit std::atomic<std::int64_t> written_at{0};
constinit std::mutex one_at_a_time;

struct file {
    std::string name, text;
};
struct thread_files {
    int handle = 0, tid = 0;
    std::string info;
    std::vector<file> workers;
};

std::string line(const char* name, std::uint64_t value) {
    return std::string{name} + ": " + std::to_string(value) + "\n";
}

std::string text_of(const scheduler& s) {
    const auto& f = s.figures;
    const std::uint64_t running = f.worker.load(compat::relaxed);
    const std::uint64_t switches = f.switches.load(compat::relaxed);
    return line("scheduler thread", static_cast<std::uint64_t>(s.tid)) +
           "state: " + (running != 0 ? "running" : "idle") + "\n" +
           line("completion list", s.serves->shown.id) +
           "worker: " + (running != 0 ? std::to_string(running) : "none") + "\n" +
           line("switches", switches) + line("last switch ns", f.last_ns.load(compat::relaxed)) +
           line("mean switch ns", switches != 0 ? f.all_ns.load(compat::relaxed) / switches : 0);
}

std::string text_of(const worker& w) {
    static constexpr const char* states[] = {"ready", "running", "blocked"};
    return line("worker", w.shown.pid) + "state: " + states[static_cast<int>(w.is)] + "\n" +
           line("completion list", w.from->shown.id) +
           line("scheduler thread", static_cast<std::uint64_t>(w.executed_by)) +
           line("switches", w.switches) + line("running ns", w.running_ns);
}

std::vector<thread_files> look() {
    std::vector<thread_files> all_of_them;
    const locked hold;
    for (const auto& [number, h] : all().handles)
        for (const scheduler* const s : h->schedulers)
            all_of_them.push_back({number, s->tid, text_of(*s), {}});
    for (const auto& [pid, w] : all().workers) {
        if (w.executed_by == 0) continue;
        for (thread_files& t : all_of_them)
            if (t.tid == w.executed_by && t.workers.size() < most_workers)
                t.workers.push_back({std::to_string(pid), text_of(w)});
    }
    return all_of_them;
}

// The process's own directory, which libums makes and removes. Empty: there is none, or no longer.
fs::path root() {
    const std::string directory = ums_scheduling_stats_directory();
    if (directory.empty()) return {};
    const fs::path at = fs::path{directory} / std::to_string(::getpid());
    std::error_code ignored;
    return fs::is_directory(at, ignored) ? at / "ums" : fs::path{};
}

void put(const fs::path& at, const std::string& text) {
    // Writes a file beside it first, so that a reader finds either the old text or the new one.
    const fs::path aside = at.string() + ".new";
    std::FILE* out = std::fopen(aside.c_str(), "we");
    if (out == nullptr) return;
    std::fwrite(text.data(), 1, text.size(), out);
    std::fclose(out);
    ::chmod(aside.c_str(), 0400);
    std::rename(aside.c_str(), at.c_str());
}

void write() {
    std::error_code ignored;
    const fs::path at = root();
    if (at.empty()) return;
    for (const thread_files& t : look()) {
        const fs::path folder =
            at / std::to_string(t.handle) / "schedulers" / std::to_string(t.tid);
        fs::remove_all(folder / "workers", ignored);
        fs::create_directories(folder / "workers", ignored);
        put(folder / "info", t.info);
        for (const file& one : t.workers) put(folder / "workers" / one.name, one.text);
    }
}

// `below` is relative to the root.
void remove_folder(const std::string& below) noexcept {
    try {
        std::error_code ignored;
        const std::lock_guard hold{one_at_a_time};
        if (const fs::path at = root(); !at.empty()) fs::remove_all(at / below, ignored);
    } catch (const std::exception&) {  // No memory: the folder stays until the process ends.
    }
}

}  // namespace

void write_if_old(std::int64_t now) noexcept {
    std::int64_t last = written_at.load(compat::relaxed);
    // relaxed: of the threads that find the files old, one wins the exchange and writes them.
    if (now - last < 1'000'000'000 ||
        !written_at.compare_exchange_strong(last, now, compat::relaxed))
        return;
    const std::unique_lock hold{one_at_a_time, std::try_to_lock};
    if (!hold.owns_lock()) return;
    try {
        write();
    } catch (const std::exception&) {  // No memory.
    }
}

void forget(int handle, int thread) noexcept {
    remove_folder(std::to_string(handle) + "/schedulers/" + std::to_string(thread));
}
void forget(int handle) noexcept { remove_folder(std::to_string(handle)); }

}  // namespace ums::linux_names::info_files
