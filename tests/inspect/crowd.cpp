// SPDX-License-Identifier: MIT
//
// crowd COUNT: a program to be inspected. COUNT fibers of each kind wait, and each is named after
// what it waits for: mutex-0, join-17. The program says so in one line, then reads a line from
// standard input: "abort" makes it dump core, "late" prints how late the ticker was, "run" makes a
// fiber compute until "rest", anything else ends it at once.
//
// crowd COUNT ticker: the same, and one more fiber, which wakes up every millisecond.
// crowd COUNT alone: the same on one processor.
//
// crowd work: a fiber computes for ever; "yield N": ten more yield N times, all together, and end.
//
// crowd deadlock: three fibers that wait for each other's mutexes. crowd states: two that compute
// for ever on one processor, one of which is stopped at any time, and two in a cluster whose policy
// is not the default. crowd names: a child of a scope, one with a long name that keeps much for its
// joiner, a fiber with many frames, and some with names that nobody would give them. crowd
// functions: a fiber for each way to make one call a plain function.
#include <ums/ums.h>
#include <ums/ums.hpp>
#include <ums/ums_pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;

std::atomic<std::size_t> begun{0}, ended{0};

struct waited_for {
    ums::mutex mutex;
    ums::counting_semaphore<> semaphore{0};
    ums::channel<int> empty{1};
    ums::channel<int> full{1};
    ums::mutex guard;
    ums::condition_variable condition;
    ums::latch latch{3};
    int pipe[2];
};

template <class F>
ums::fiber start(const char* kind, std::size_t number, F wait) {
    return ums::fiber{ums::fiber_options{.name = std::string{kind} + "-" + std::to_string(number)},
                      [wait, number] {
                          // So that debuggers can find it.
                          const volatile std::size_t mine = 1000 + number;
                          ++begun;
                          wait();
                          ended += mine;  // So it is no tail call, and this frame is on the stack.
                      }};
}

// How late the ticker was at worst since the last question, in nanoseconds.
std::atomic<long> worst{0};

void tick() {
    auto at = std::chrono::steady_clock::now();
    for (;;) {
        ums::this_fiber::sleep_until(at += 1ms);
        const long late = std::chrono::nanoseconds{std::chrono::steady_clock::now() - at}.count();
        if (late > worst) worst = late;
    }
}

void yield_together(long times) {
    std::vector<ums::fiber> all;
    for (int i = 0; i < 10; ++i)
        all.emplace_back(ums::fiber_options{.name = "yield"}, [times] {
            for (long left = times / 10; left != 0; --left) ums::this_fiber::yield();
        });
    for (ums::fiber& one : all) one.join();
}

std::atomic<bool> may_rest{false};

void run_without_a_switch() {
    while (!may_rest) ++ended;
}

[[noreturn]] void obey() {
    ums::fiber runner;
    for (;;) {
        char line[16] = {};
        const ssize_t n = ::read(0, line, sizeof line - 1);
        if (n > 0 && std::strncmp(line, "abort", 5) == 0) std::abort();
        if (n > 0 && std::strncmp(line, "yield ", 6) == 0) {
            yield_together(std::strtol(line + 6, nullptr, 10));
            std::puts("done");
            std::fflush(stdout);
            continue;
        }
        if (n > 0 && std::strncmp(line, "run", 3) == 0) {
            runner = ums::fiber{ums::fiber_options{.name = "runner"}, &run_without_a_switch};
            continue;
        }
        if (n > 0 && std::strncmp(line, "rest", 4) == 0) {
            may_rest = true;
            runner.join();
            continue;
        }
        if (n <= 0 || std::strncmp(line, "late", 4) != 0) ::_exit(0);
        std::printf("%ld\n", worst.exchange(0));
        std::fflush(stdout);
    }
}

// Each locks its own mutex, and once all have done so, the next one's.
void deadlock() {
    ums::mutex all[3];
    std::vector<ums::fiber> fibers;
    const char* const names[] = {"one", "two", "three"};
    for (std::size_t i = 0; i < 3; ++i)
        fibers.emplace_back(ums::fiber_options{.name = names[i]}, [&all, i] {
            all[i].lock();
            ++begun;
            while (begun != 3) ums::this_fiber::yield();
            all[(i + 1) % 3].lock();
        });
    while (begun != 3) ums::this_fiber::yield();
    std::puts("4 fibers");
    std::fflush(stdout);
    obey();
}

[[gnu::noinline]] void compute() {
    for (++begun;;) ended.fetch_add(1, std::memory_order_relaxed);
}

void states() {
    ums::cluster own{{.name = "own", .processors = 1, .policy = ums::policy_kind::global_fifo}};
    ums::channel<int> empty{1};
    auto wait = [&empty] {
        ++begun;
        (void)empty.receive();
        ++ended;
    };
    ums::fiber a{ums::fiber_options{.name = "receive-0", .cluster = &own}, wait};
    ums::fiber b{ums::fiber_options{.name = "receive-1", .cluster = &own}, std::ref(wait)};
    ums::fiber c{ums::fiber_options{.name = "compute-0"}, [] { compute(); }};
    ums::fiber d{ums::fiber_options{.name = "compute-1"}, [] { compute(); }};
    while (begun != 4) ums::this_fiber::yield();
    std::puts("5 fibers");
    std::fflush(stdout);
    obey();
}

// A bell, colours and a second line; bytes that are not UTF-8; words; what few know as controls.
const char* const odd_names[] = {"bell\a\x1b[31mred\nsecond line\t", "\xff\xfe half \xe6\x97",
                                 "\xc3\xbc \xe6\x97\xa5\xe6\x9c\xac",
                                 "\xc2\x9b"
                                 "31m\xe2\x80\xae"};

[[gnu::noinline]] void descend(int frames) {
    if (frames == 0)
        ums::this_fiber::park();
    else
        descend(frames - 1);
    ++ended;  // So it is no tail call.
}

void names() {
    ums::scope children;
    children.spawn({.name = "child"}, [] { ums::this_fiber::park(); });
    const auto keeps = ums::spawn({.name = std::string(250, 'k')}, [] {
        ums::this_fiber::park();
        return std::array<char, 384>{};
    });
    std::vector<ums::fiber> all;
    all.emplace_back(ums::fiber_options{.name = "deep"}, [] { descend(300); });
    for (const char* name : odd_names)
        all.emplace_back(ums::fiber_options{.name = name}, [] { ums::this_fiber::park(); });
    std::puts("8 fibers");
    std::fflush(stdout);
    obey();
}

// What the fibers of functions() call.
void park_plainly(int, const char*) {
    ums::this_fiber::park();
    ++ended;
}
int park_for_a_value(char) {
    ums::this_fiber::park();
    return 1;
}
void park_as_a_child() {
    ums::this_fiber::park();
    ++ended;
}
void park_in_c(void*) {
    ums::this_fiber::park();
    ++ended;
}
void* park_as_a_thread(void*) {
    ums::this_fiber::park();
    return nullptr;
}
void park_and_call(void (*call)()) {
    ums::this_fiber::park();
    call();
}

void functions() {
    ums::fiber plain{ums::fiber_options{.name = "plain"}, park_plainly, 1, "one"};
    ums::fiber given{ums::fiber_options{.name = "given"}, park_and_call, park_as_a_child};
    auto value = ums::spawn(ums::fiber_options{.name = "value"}, park_for_a_value, '2');
    ums::scope children;
    children.spawn({.name = "child"}, &park_as_a_child);
    children.spawn({.name = "either"}, &park_and_call, &park_as_a_child);
    ums_fiber_options_t options = UMS_FIBER_OPTIONS_INIT;
    options.name = "c";
    ums_fiber_t in_c;
    ums_pthread_t thread;
    if (ums_fiber_create(&in_c, &options, park_in_c, nullptr) != 0 ||
        ums_pthread_create(&thread, nullptr, park_as_a_thread, nullptr) != 0)
        std::abort();
    ums_pthread_setname_np(thread, "thread");
    std::puts("8 fibers");
    std::fflush(stdout);
    obey();
}

void work() {
    ums::fiber a{ums::fiber_options{.name = "compute-0"}, [] { compute(); }};
    while (begun != 1) ums::this_fiber::yield();
    std::puts("2 fibers");
    std::fflush(stdout);
    obey();
}

}  // namespace

int main(int, char** words) {
    if (words[1] != nullptr && std::strcmp(words[1], "deadlock") == 0) {
        ums::run({.processors = 2}, deadlock);
        return 0;
    }
    if (words[1] != nullptr && std::strcmp(words[1], "states") == 0) {
        ums::run({.processors = 1}, states);
        return 0;
    }
    if (words[1] != nullptr && std::strcmp(words[1], "names") == 0) {
        ums::run({.processors = 2}, names);
        return 0;
    }
    if (words[1] != nullptr && std::strcmp(words[1], "functions") == 0) {
        ums::run({.processors = 2}, functions);
        return 0;
    }
    if (words[1] != nullptr && std::strcmp(words[1], "work") == 0) {
        ums::run({.processors = 2}, work);
        return 0;
    }
    const std::size_t count = words[1] != nullptr ? std::strtoul(words[1], nullptr, 10) : 1;
    const auto says = [words, count](const char* word) {
        return count != 0 && words[2] != nullptr && std::strcmp(words[2], word) == 0;
    };
    const bool ticks = says("ticker");
    ums::run({.processors = says("alone") ? 1u : 2u}, [count, ticks] {
        waited_for w;
        if (!ums::io::pipe(w.pipe)) return;
        (void)w.full.send(1);
        std::vector<ums::fiber> all;
        all.push_back(start("holder", 0, [&w] {
            w.mutex.lock();
            ums::this_fiber::park();
        }));
        while (begun == 0) ums::this_fiber::yield();
        const auto first_end = std::chrono::steady_clock::now() + 1h - 1min;
        for (std::size_t i = 0; i < count; ++i) {
            all.push_back(start("mutex", i, [&w] { w.mutex.lock(); }));
            all.push_back(start("semaphore", i, [&w] { w.semaphore.acquire(); }));
            all.push_back(start("receive", i, [&w] { (void)w.empty.receive(); }));
            all.push_back(start("send", i, [&w] { (void)w.full.send(2); }));
            all.push_back(start("condition", i, [&w] {
                std::unique_lock lock{w.guard};
                w.condition.wait(lock);
            }));
            all.push_back(start("latch", i, [&w] { w.latch.wait(); }));
            // Due in the order of their numbers, whenever and wherever each begins.
            all.push_back(start(
                "sleep", i, [first_end, i] { ums::this_fiber::sleep_until(first_end + i * 1ms); }));
            all.push_back(start("read", i, [&w] {
                char byte;
                (void)ums::io::read(w.pipe[0], &byte, 1);
            }));
            all.push_back(start("park", i, [] { ums::this_fiber::park(); }));
            ums::fiber* const joined = new ums::fiber{std::move(all.back())};
            all.back() = start("join", i, [joined] { joined->join(); });
        }
        while (begun != 1 + 10 * count) ums::this_fiber::yield();
        if (ticks) all.emplace_back(ums::fiber_options{.name = "ticker"}, &tick);
        std::printf("%zu fibers\n", 2 + 10 * count + (ticks ? 1 : 0));
        std::fflush(stdout);
        obey();  // The main fiber blocks in the kernel.
    });
}
