// SPDX-License-Identifier: MIT
#include "check_policy.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ums/options.hpp>
#include <ums/ums.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>

#include "policy_trial.hpp"
#include "usage.hpp"

namespace tool {

namespace {

// A policy of C functions, made the same way as in a C program: through a cluster's options.
class policy_of_c final : public ums::policy {
public:
    explicit policy_of_c(const ums_policy_calls_t& calls)
        : calls_{calls}, self_{calls.make != nullptr ? calls.make(nullptr) : nullptr} {
        if (calls.make != nullptr && self_ == nullptr) throw std::bad_alloc{};
    }
    ~policy_of_c() override {
        if (calls_.destroy != nullptr) calls_.destroy(self_);
    }
    void attach(unsigned p) override { calls_.attach(self_, p); }
    void detach(unsigned p) override { calls_.detach(self_, p); }
    void ready(ums::fiber_ref f, unsigned p) noexcept override { calls_.ready(self_, to_c(f), p); }
    ums::fiber_ref next(unsigned p) noexcept override { return from_c(calls_.next(self_, p)); }
    ums::fiber_ref steal(unsigned thief, unsigned victim) noexcept override {
        return calls_.steal != nullptr ? from_c(calls_.steal(self_, thief, victim))
                                       : ums::fiber_ref{};
    }
    bool empty(unsigned p) const noexcept override { return calls_.empty(self_, p); }
    ums::fiber_ref instead_of(ums::fiber_ref f, unsigned p) noexcept override {
        return calls_.instead_of != nullptr ? from_c(calls_.instead_of(self_, to_c(f), p))
                                            : next(p);
    }
    void left(ums::fiber_ref f, unsigned p) noexcept override {
        if (calls_.left != nullptr) calls_.left(self_, to_c(f), p);
    }
    bool has_priorities() const noexcept override {
        return calls_.has_priorities != nullptr && calls_.has_priorities(self_);
    }
    void raised(ums::fiber_ref f) noexcept override {
        if (calls_.raised != nullptr) calls_.raised(self_, to_c(f));
    }
    bool set_group_weight(unsigned group, unsigned weight) noexcept override {
        return calls_.set_group_weight != nullptr && calls_.set_group_weight(self_, group, weight);
    }
    void placed(ums::fiber_ref f, unsigned p) noexcept override {
        if (calls_.placed != nullptr) calls_.placed(self_, to_c(f), p);
    }

    // It may have been compiled with a header in which the last functions were not yet there.
    static ums_policy_calls_t known_part(const ums_policy_calls_t& given, const std::string& of) {
        if (given.size < offsetof(ums_policy_calls_t, instead_of))
            throw usage_error{fmt::format(
                "{}: ums_policy_functions.size is too small: begin with UMS_POLICY_CALLS_INIT",
                of)};
        ums_policy_calls_t known = UMS_POLICY_CALLS_INIT;
        std::memcpy(&known, &given, std::min(given.size, sizeof known));
        if (known.attach == nullptr || known.detach == nullptr || known.ready == nullptr ||
            known.next == nullptr || known.empty == nullptr)
            throw usage_error{fmt::format(
                "{}: ums_policy_functions lacks one of attach, detach, ready, next and empty", of)};
        return known;
    }

private:
    // Both are one pointer to the same object.
    static_assert(sizeof(ums_ref_t) == sizeof(ums::fiber_ref));
    static ums_ref_t to_c(ums::fiber_ref f) noexcept {
        ums_ref_t to;
        std::memcpy(&to, &f, sizeof to);
        return to;
    }
    static ums::fiber_ref from_c(ums_ref_t f) noexcept {
        ums::fiber_ref to;
        std::memcpy(static_cast<void*>(&to), &f, sizeof to);
        return to;
    }

    const ums_policy_calls_t calls_;
    void* const self_;
};

std::function<std::unique_ptr<ums::policy>()> maker_of(const std::string& what) {
    if (const auto kind = ums::policy_named(what)) {
        if (*kind == ums::policy_kind::work_stealing)
            throw usage_error{
                "work_stealing is the scheduler itself: it has no methods to be checked"};
        return [kind] { return ums::make_policy(*kind); };
    }
    if (what.find('/') == what.npos)
        throw usage_error{fmt::format(
            "there is no policy '{}'; a shared object needs a path, such as ./{}", what, what)};
    void* const library = dlopen(what.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw usage_error{dlerror()};
    if (void* const make = dlsym(library, "ums_policy_make"))
        return [make] {
            std::unique_ptr<ums::policy> made{reinterpret_cast<ums::policy* (*)()>(make)()};
            // A cluster would take this for work_stealing.
            if (made == nullptr) throw broken_rule{"ums_policy_make() returned null"};
            return made;
        };
    if (void* const calls = dlsym(library, "ums_policy_functions"))
        return [known =
                    policy_of_c::known_part(*static_cast<const ums_policy_calls_t*>(calls), what)] {
            return std::make_unique<policy_of_c>(known);
        };
    throw usage_error{
        fmt::format("{}: neither ums_policy_make() nor ums_policy_functions is in it; see "
                    "docs/write-a-policy.md",
                    what)};
}

// The last that a child says of a test that it has been through. A policy may end the process.
constexpr char came_to_its_end = '\0';

// Returns what a test broke; empty: nothing.
std::string run_apart(const policy_trial& trial, const policy_subject& subject) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error{fmt::format("pipe: {}", std::strerror(errno))};
    std::fflush(nullptr);
    const pid_t child = fork();  // This process has one thread and no runtime.
    if (child < 0) throw std::runtime_error{fmt::format("fork: {}", std::strerror(errno))};
    if (child == 0) {
        const rlimit none{0, 0};
        setrlimit(RLIMIT_CORE, &none);
        subject.reached(0);
        std::string broken;
        try {
            trial.run(subject);
        } catch (const std::exception& error) {
            broken = error.what();
        } catch (...) {
            broken = "it threw an exception that is no std::exception";
        }
        broken += came_to_its_end;
        const bool is_said = write(ends[1], broken.data(), broken.size()) > 0;
        // A broken policy may have left anything behind.
        _exit(is_said ? 0 : 1);
    }
    close(ends[1]);
    std::string said;
    char buffer[512];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
        said.append(buffer, static_cast<std::size_t>(n));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM
                   ? fmt::format("{} (within {} s; see --seconds)", trial.hang, subject.seconds)
                   : fmt::format("it crashed: {}", strsignal(WTERMSIG(status)));
    if (said.empty() || said.back() != came_to_its_end)
        return fmt::format("it ended the process (exit code {})", WEXITSTATUS(status));
    said.pop_back();
    return said;
}

}  // namespace

void add_check_policy(CLI::App& app, check_policy_request& asked) {
    auto* const check =
        app.add_subcommand("check-policy", "run a policy through tests; name what it breaks");
    check
        ->add_option("policy", asked.policy,
                     "a shared object with ums_policy_make(), or a policy's name")
        ->required()
        ->type_name("./lib.so|NAME");
    check
        ->add_option("--steps", asked.steps,
                     "steps of each test, 1000 to 1000000000 (default 200000)")
        ->type_name("N")
        ->check(CLI::Range(1000ul, 1000000000ul).description(""));
    check->add_option("--seed", asked.seed, "seed of the random steps (default 1)")->type_name("N");
    check
        ->add_option(
            "--seconds", asked.seconds,
            "how long a test may stand still before it counts as hung, 1 to 86400 (default 60)")
        ->type_name("N")
        ->check(CLI::Range(1u, 86400u).description(""));
}

int check_policy(const check_policy_request& asked) {
    const policy_subject subject{maker_of(asked.policy), asked.steps, asked.seed, asked.seconds};
    bool is_broken = false;
    for (const policy_trial& trial : policy_trials()) {
        const std::string broken = run_apart(trial, subject);
        fmt::print("{}: {}\n", trial.name, broken.empty() ? "ok" : "BROKEN: " + broken);
        is_broken = is_broken || !broken.empty();
    }
    return is_broken ? 1 : 0;
}

}  // namespace tool
