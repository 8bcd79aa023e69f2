// SPDX-License-Identifier: MIT
#include "workers/scheduler/stats_files.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "runtime/environment.hpp"
#include "workers/worker/context.hpp"

namespace ums::scheduling::stats_files {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_workers = 1000;

constinit base::atomic<os::nanoseconds> written_at{0};

bool is_wanted() noexcept {
    static const bool wanted = rt::environment::stats_files();
    return wanted;
}

// Returns a directory of the user's own that no other user can write to; empty: there is none.
fs::path own_directory() {
    const char* runtime = ::secure_getenv("XDG_RUNTIME_DIR");
    const char* chosen = rt::environment::stats_directory();
    fs::path at = chosen != nullptr ? fs::path{chosen}
                  : runtime != nullptr && runtime[0] == '/'
                      ? fs::path{runtime} / "ums"
                      : fs::path{"/tmp/ums-" + std::to_string(::geteuid())};
    ::mkdir(at.c_str(), 0700);
    struct stat is = {};
    // Do not follow a link: in /tmp the name may be another user's.
    if (::lstat(at.c_str(), &is) != 0 || !S_ISDIR(is.st_mode) || is.st_uid != ::geteuid() ||
        (is.st_mode & 022) != 0)
        return {};
    return at;
}

// The file of this name in a tree holds the PID namespace that the tree's number belongs to, as
// text.
constexpr const char* space_file = ".pid_namespace";

std::string own_pid_space() {
    struct stat s {};
    return ::stat("/proc/self/ns/pid", &s) == 0 ? std::to_string(s.st_ino) + "\n" : "";
}

std::string pid_space_of(const fs::path& tree) {
    std::ifstream file{tree / space_file};
    return {std::istreambuf_iterator<char>{file}, {}};
}

bool is_number_of_nobody(const std::string& name) {
    int pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    return error == std::errc{} && end == name.data() + name.size() && pid > 0 &&
           ::kill(pid, 0) != 0 && errno == ESRCH;  // /proc need not be there.
}

// The number of a process in another PID namespace means nothing here, so its tree stays. So does
// every tree if this process cannot tell which namespace it is in.
void remove_if_gone(const fs::path& at, const std::string& own_space) {
    if (own_space.empty()) return;
    std::error_code ignored;
    if (is_number_of_nobody(at.filename().string()) && pid_space_of(at) == own_space)
        fs::remove_all(at, ignored);
}

void put(const fs::path& at, const std::string& text) {
    // Writes a file beside it first, so that a reader finds either the old text or the new one.
    const fs::path aside = at.string() + ".new";
    std::FILE* file = std::fopen(aside.c_str(), "we");
    if (file == nullptr) return;
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
    ::chmod(aside.c_str(), 0400);
    std::rename(aside.c_str(), at.c_str());
}

std::string figures(const ums_context_stats_t& s) {
    std::string text;
    const auto line = [&text](const char* name, std::uint64_t value) {
        text += std::string{name} + ": " + std::to_string(value) + "\n";
    };
    line("switches", s.switches);
    line("yields", s.yields);
    line("blocked in syscall", s.blocked_in_syscall);
    line("blocked in fault", s.blocked_in_fault);
    line("last switch at ns", s.last_switch_at_ns);
    return text;
}

std::string info(const ums_context_stats_t& s, const ums_context_stats_t& worker) {
    const std::uint64_t measured = s.measured_switches;
    return "pid: " + std::to_string(s.pid) + "\ntid: " + std::to_string(s.tid) +
           "\nstate: " + (s.is_running ? "running" : "idle") +
           "\ncompletion list: " + std::to_string(s.list) +
           "\nworker: " + (s.is_running ? std::to_string(worker.tid) : "none") + "\n" + figures(s) +
           "total switch ns: " + std::to_string(s.switch_ns) +
           "\nmean switch ns: " + std::to_string(measured != 0 ? s.switch_ns / measured : 0) + "\n";
}

std::string worker_text(const ums_context_stats_t& s, int scheduler_tid) {
    static constexpr const char* states[] = {"none",    "created", "queued",    "owned",
                                             "running", "blocked", "terminated"};
    return "tid: " + std::to_string(s.tid) + "\nstate: " + states[s.state] +
           "\nscheduler: " + std::to_string(scheduler_tid) + "\n" + figures(s) +
           "running ns: " + std::to_string(s.running_ns) + "\n";
}

// While this exists, a worker is not stopped, and its scheduler waits with it: both may want the
// tree.
class undisturbed {
public:
    undisturbed() noexcept { ums_critical_enter(); }
    ~undisturbed() { ums_critical_leave(); }
    undisturbed(const undisturbed&) = delete;
    undisturbed& operator=(const undisturbed&) = delete;
};

// Never destroyed: other threads may still write while the process exits.
class tree {
public:
    tree() {
        const fs::path directory = own_directory();
        if (directory.empty()) return;
        std::error_code ignored;
        const std::string own_space = own_pid_space();
        for (const auto& entry : fs::directory_iterator{directory, ignored})
            remove_if_gone(entry.path(), own_space);
        at_ = directory / std::to_string(::getpid());
        // A tree with this number is left over from an earlier process, or belongs to another
        // namespace. In the second case this process has none.
        if (pid_space_of(at_) == own_space) fs::remove_all(at_, ignored);
        // Renamed when complete, so that no process finds it without its namespace.
        const fs::path aside = at_.string() + ".new";
        fs::remove_all(aside, ignored);
        fs::create_directories(aside / "schedulers", ignored);
        std::ofstream{aside / space_file} << own_space;
        fs::rename(aside, at_, ignored);
        if (ignored) at_.clear();
    }
    tree(const tree&) = delete;
    tree& operator=(const tree&) = delete;

    bool write(bool with_workers) {
        if (pid_ != ::getpid())
            // A child process has no tree, and the lock may be held by a thread of its parent.
            return false;
        const std::lock_guard hold{lock_};
        if (at_.empty()) return false;
        find_schedulers();
        for (std::size_t n = 0, left = most_workers; n < folders_.size(); ++n) {
            if (folders_[n] == 0) continue;
            const fs::path folder = at_ / "schedulers" / std::to_string(n);
            std::error_code ignored;
            fs::create_directories(folder / "workers", ignored);
            ums_context_stats_t mine = UMS_CONTEXT_STATS_INIT, its = UMS_CONTEXT_STATS_INIT;
            if (ums_context_get_stats(folders_[n], &mine) != 0) continue;
            if (mine.is_running) (void)ums_context_get_stats(mine.partner, &its);
            put(folder / "info", info(mine, its));
            if (with_workers) write_workers(folder / "workers", folders_[n], mine.tid, left);
        }
        return true;
    }

    // For the end of the program. Schedulers may not have noticed it; they write nothing more.
    void remove() noexcept {
        const undisturbed section;
        if (pid_ != ::getpid()) return;  // As above.
        const std::lock_guard hold{lock_};
        std::error_code ignored;
        if (!at_.empty()) fs::remove_all(at_, ignored);
        at_.clear();
    }

private:
    // A scheduler keeps its folder while it is entered; the folders of schedulers that have left
    // are removed.
    void find_schedulers() {
        std::vector<handle> entered;
        contexts.for_each([&](handle h, const context& c) {
            if (is_scheduler(&c)) entered.push_back(h);
        });
        for (std::size_t n = 0; n < folders_.size(); ++n) {
            if (folders_[n] == 0 || std::erase(entered, folders_[n]) != 0) continue;
            std::error_code ignored;
            fs::remove_all(at_ / "schedulers" / std::to_string(n), ignored);
            folders_[n] = 0;
        }
        for (const handle h : entered) {
            const auto free = std::find(folders_.begin(), folders_.end(), handle{0});
            if (free != folders_.end())
                *free = h;
            else
                folders_.push_back(h);
        }
    }

    // `left` is how many files may still be written.
    static void write_workers(const fs::path& folder, handle scheduler, int scheduler_tid,
                              std::size_t& left) {
        std::set<std::string> written;
        contexts.for_each([&](handle w, const context& worker) {
            if (!is_worker(&worker) || worker.partner.get() != scheduler || left == 0) return;
            --left;
            ums_context_stats_t one = UMS_CONTEXT_STATS_INIT;
            if (ums_context_get_stats(w, &one) != 0) return;
            const std::string name = std::to_string(one.tid);
            put(folder / name, worker_text(one, scheduler_tid));
            written.insert(name);
        });
        std::error_code ignored;
        for (const auto& entry : fs::directory_iterator{folder, ignored})
            if (!written.contains(entry.path().filename().string()))
                fs::remove(entry.path(), ignored);
    }

    const pid_t pid_ = ::getpid();
    std::mutex lock_;
    // Guarded by lock_:
    fs::path at_;                  // Empty: there is no tree, or no longer.
    std::vector<handle> folders_;  // The scheduler of each folder; 0: none.
};

// Removes a tree when it is destroyed itself.
struct tree_remover {
    tree& of;
    ~tree_remover() { of.remove(); }
};

bool write(bool with_workers) noexcept {
    const undisturbed section;
    if (!is_wanted()) return false;
    try {
        static tree& own = *new tree;
        static const tree_remover at_exit{own};
        written_at.store(os::now(), base::relaxed);  // relaxed: a hint.
        return own.write(with_workers);
    } catch (const std::exception&) {
        return false;  // No memory.
    }
}

}  // namespace

bool write() noexcept { return write(true); }

const char* directory() noexcept {
    static thread_local std::string kept;
    const undisturbed section;
    try {
        kept = is_wanted() ? own_directory().string() : std::string{};
        return kept.c_str();
    } catch (const std::exception&) {
        return "";  // No memory.
    }
}

void write_if_old() noexcept {
    const os::nanoseconds now = os::now();
    os::nanoseconds last = written_at.load(base::relaxed);
    // relaxed: of the threads that find the files old, one wins the exchange and writes them.
    if (now - last > 1'000'000'000 &&
        written_at.compare_exchange(last, now, base::relaxed, base::relaxed))
        write(false);
}

}  // namespace ums::scheduling::stats_files
