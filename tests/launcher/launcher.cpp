// SPDX-License-Identifier: MIT
//
// launcher SECONDS UMS PROGRAM [ARGUMENT...]: runs a test program. If it has not ended after
// SECONDS, says what the fibers of it and of its children do, by `UMS ps` and `UMS stack`, kills
// them, and fails. ctest's own time limit only kills.
//
// Otherwise as if there were no launcher: the same input, output and exit status, the program dies
// of the signals that the launcher gets, and the launcher dies of the program's.

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

namespace {

constexpr int tool_seconds = 15;  // For one command of `ums`.
constexpr int most_shown = 3;     // Processes.

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "launcher: %s: %s\n", what, std::strerror(errno));
    std::exit(126);
}

// The parent of a process; 0 if there is no such process, or it has ended.
pid_t parent_of(pid_t pid) {
    char path[64], text[512];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const ssize_t length = ::read(file, text, sizeof text - 1);
    ::close(file);
    text[length > 0 ? length : 0] = '\0';
    const char* rest = std::strrchr(text, ')');  // The name in brackets may have any characters.
    char state = 'Z';
    pid_t parent = 0;
    if (rest == nullptr || std::sscanf(rest, ") %c %d", &state, &parent) != 2) return 0;
    return state == 'Z' ? 0 : parent;
}

bool descends(pid_t pid, pid_t from) {
    while (pid > 1 && pid != from) pid = parent_of(pid);
    return pid == from;
}

// Calls f(pid) with each process that descends from `from`.
template <class F>
void each_descendant(pid_t from, F f) {
    DIR* all = ::opendir("/proc");
    if (all == nullptr) return;
    while (const dirent* entry = ::readdir(all)) {
        const pid_t pid = std::atoi(entry->d_name);
        if (pid > 0 && pid != from && descends(pid, from)) f(pid);
    }
    ::closedir(all);
}

// Runs `ums WHAT PID`, its complaints among its output.
void ask(const char* ums, const char* what, pid_t pid) {
    char number[16];
    std::snprintf(number, sizeof number, "%d", pid);
    std::printf("== ums %s %s\n", what, number);
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(tool_seconds);
        ::dup2(STDOUT_FILENO, STDERR_FILENO);
        ::execl(ums, ums, what, number, static_cast<char*>(nullptr));
        ::_exit(127);
    }
    int status = 0;
    if (child > 0) ::waitpid(child, &status, 0);
    if (child < 0 || WIFSIGNALED(status) || WEXITSTATUS(status) == 127)
        std::printf("== it could not be asked\n");
}

void show(const char* ums, pid_t pid) {
    ask(ums, "ps", pid);
    ask(ums, "stack", pid);
}

[[noreturn]] void end_hung(const char* seconds, const char* ums, pid_t program) {
    std::printf("\n== launcher: not ended after %s s\n", seconds);
    if (::access(ums, X_OK) != 0) {
        std::printf("== the fibers are not shown: %s is not built (target ums_command)\n", ums);
    } else {
        show(ums, program);
        int shown = 1;
        each_descendant(program, [&](pid_t pid) {
            if (shown++ < most_shown) show(ums, pid);
        });
    }
    std::fflush(stdout);
    each_descendant(program, [](pid_t pid) { ::kill(pid, SIGKILL); });
    ::kill(-program, SIGKILL);
    ::waitpid(program, nullptr, 0);
    std::exit(1);
}

// Ends as the program did.
[[noreturn]] void end_alike(int status) {
    if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
    const rlimit none{0, 0};  // The program has left its core file.
    ::setrlimit(RLIMIT_CORE, &none);
    sigset_t its;
    ::sigemptyset(&its);
    ::sigaddset(&its, WTERMSIG(status));
    ::signal(WTERMSIG(status), SIG_DFL);
    ::sigprocmask(SIG_UNBLOCK, &its, nullptr);
    ::raise(WTERMSIG(status));
    ::_exit(128 + WTERMSIG(status));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: launcher SECONDS UMS PROGRAM [ARGUMENT...]\n");
        return 126;
    }
    sigset_t waited, before;
    ::sigemptyset(&waited);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT})
        ::sigaddset(&waited, signal);
    ::sigprocmask(SIG_BLOCK, &waited, &before);

    const pid_t launcher = ::getpid();
    const pid_t program = ::fork();
    if (program < 0) fail("fork");
    if (program == 0) {
        ::setpgid(0, 0);  // So that whatever it leaves behind can be ended with it. (Also below.)
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != launcher) ::_exit(126);    // The launcher was killed before.
        ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // `ums` is none of its parents.
        ::sigprocmask(SIG_SETMASK, &before, nullptr);
        ::execv(argv[3], argv + 3);
        fail(argv[3]);
    }

    ::setpgid(program, program);

    timespec end;
    ::clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += std::atoi(argv[1]);
    for (;;) {
        timespec now;
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        timespec left{end.tv_sec - now.tv_sec, end.tv_nsec - now.tv_nsec};
        if (left.tv_nsec < 0) --left.tv_sec, left.tv_nsec += 1'000'000'000;
        if (left.tv_sec < 0) end_hung(argv[1], argv[2], program);
        const int signal = ::sigtimedwait(&waited, nullptr, &left);
        int status = 0;
        if (::waitpid(program, &status, WNOHANG) == program) end_alike(status);
        if (signal > 0 && signal != SIGCHLD) ::kill(-program, signal);
    }
}
