// SPDX-License-Identifier: MIT
#include "runtime/settings.hpp"

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>

#include "arch/sanitizer.hpp"
#include "mem/stack_depot.hpp"
#include "os/cpu/cpu_choice.hpp"
#include "os/cpu/cpu_quota.hpp"
#include "os/cpu/topology.hpp"
#include "os/signal/interrupt_signal.hpp"
#include "runtime/environment.hpp"
#include "sched/policies/built_in.hpp"
#include "sched/run/cluster.hpp"

namespace ums::rt {

namespace {

using mem::stack_depot;

constexpr std::uint32_t most_spin_ns = 1'000'000'000;
constexpr std::uint32_t most_carriers = 1'000'000;
constexpr std::uint32_t least_slice_us = 100, most_slice_us = 60'000'000;

std::string names_of_policies() {
    std::string names;
    for (const auto& one : sched::built_in_policies())
        names += (names.empty() ? "" : " or ") + std::string{one.name};
    return names;
}

// UMS_DEBUG. Every build accepts all words, so that one environment serves all.
void read_debug_words(options& o) {
    using namespace environment;
    o.guard = static_cast<guard_kind>(
        debug_word("guard", static_cast<int>(o.guard),
                   {{"auto", static_cast<int>(guard_kind::automatic)},
                    {"lightweight", static_cast<int>(guard_kind::lightweight)},
                    {"mprotect", static_cast<int>(guard_kind::mprotect)}}));
    o.migrate = debug_switch("migrate", o.migrate);
    o.measure_stacks = debug_switch("measure_stacks", o.measure_stacks);
    o.deadlock = static_cast<deadlock_check>(
        debug_word("deadlock", static_cast<int>(o.deadlock),
                   {{"report", static_cast<int>(deadlock_check::report)},
                    {"abort", static_cast<int>(deadlock_check::abort)},
                    {"exit", static_cast<int>(deadlock_check::exit)},
                    {"off", static_cast<int>(deadlock_check::off)}}));
    o.membarrier = debug_switch("membarrier", o.membarrier);
    o.seed = debug_number("seed", o.seed);
    static_cast<void>(times());  // The UMS API uses it.
    static_cast<void>(system_root());
    [[maybe_unused]] const int syncs = debug_word("tsan", 1, {{"sync", 1}, {"no_sync", 0}});
#if defined(UMS_TSAN)
    arch::race_context_syncs = syncs != 0;
#endif
}

// Whether choose_cpus() can make sense of it, on this machine or another one.
bool names_cpus(const std::string& text) {
    return text == "auto" || (text.starts_with("node:") ? os::names_node(text.substr(5))
                                                        : os::parse_cpu_list(text).has_value());
}

void read_environment(options& o) {
    using namespace environment;
    reject_unknown();
    o.processors = static_cast<unsigned>(
        number("UMS_PROCESSORS", o.processors, 1, sched::cluster::max_processors));
    o.stack_bytes =
        bytes("UMS_STACK_BYTES", o.stack_bytes, stack_depot::min_bytes, stack_depot::max_bytes);
    if (const char* const name = ::secure_getenv("UMS_POLICY")) {
        const auto policy = policy_named(name);
        if (!policy) refuse("UMS_POLICY", name, names_of_policies());
        o.policy = *policy;
        o.make_policy = {};
    }
    o.follow_cpus = word("UMS_FOLLOW_CPUS", o.follow_cpus, {{"0", 0}, {"1", 1}}) != 0;
    o.pin = word("UMS_PIN", o.pin, {{"0", 0}, {"1", 1}}) != 0;
    if (const char* const cpus = ::secure_getenv("UMS_CPUS")) {
        if (!names_cpus(cpus))
            refuse("UMS_CPUS", cpus, "a list such as 0-3,8, or node:NUMBER, or auto");
        o.cpus = cpus;
    }
    o.spin_ns = static_cast<std::uint32_t>(number("UMS_SPIN_NS", o.spin_ns, 0, most_spin_ns));
    o.warm_stacks =
        static_cast<std::uint32_t>(number("UMS_WARM_STACKS", o.warm_stacks, 0, 1u << 31));
    o.carriers = static_cast<std::uint32_t>(number("UMS_CARRIERS", o.carriers, 2, most_carriers));
    o.time_slice_us = static_cast<std::uint32_t>(
        number_or_zero("UMS_TIME_SLICE_US", o.time_slice_us, least_slice_us, most_slice_us));
    o.signal = static_cast<int>(number_or_zero("UMS_SIGNAL", static_cast<std::uint64_t>(o.signal),
                                               static_cast<std::uint64_t>(SIGRTMIN),
                                               static_cast<std::uint64_t>(SIGRTMAX)));
    o.block = static_cast<block_detection>(detector(static_cast<int>(o.block)));
    // The UMS API uses it, perhaps later, perhaps never.
    static_cast<void>(stats_files());
    static_cast<void>(stats_directory());
    static_cast<void>(trace());  // Checked together with the others; start() uses it.
    read_debug_words(o);
}

[[noreturn]] void refuse(std::errc code, const char* what) {
    throw std::system_error{std::make_error_code(code), what};
}

}  // namespace

void check_slice(std::uint32_t us) {
    if (us != 0 && (us < least_slice_us || us > most_slice_us))
        refuse(std::errc::invalid_argument, "ums: time_slice_us: expected 0, or 100 to 60,000,000");
}

available available_processors(const std::string& root) {
    const unsigned usable = os::usable_cpus();
    available found{usable, std::to_string(usable) + " CPUs usable"};
    const os::cpu_quota quota = os::find_cpu_quota(root);
    found.number = std::min(os::whole_cpus(quota, usable), sched::cluster::max_processors);
    if (quota.cpus <= 0) return found;
    char cpus[32];
    std::snprintf(cpus, sizeof cpus, "%.3g", quota.cpus);
    found.reason += std::string{", a quota of "} + cpus + " by " + quota.where;
    return found;
}

std::vector<int> choose_cpus(const std::string& wanted, unsigned processors) {
    if (wanted.empty()) return {};
    const std::string root = environment::system_root();
    const std::vector<int> usable = os::usable_cpu_list();
    if (wanted == "auto")
        return os::near_cpus(processors, usable, sched::cluster::cpus_in_use(), root);
    const bool is_node = wanted.starts_with("node:");
    auto named = is_node ? os::cpus_of_node(wanted.substr(5), root) : os::parse_cpu_list(wanted);
    if (!named)
        refuse(std::errc::invalid_argument,
               "ums: cpus: expected a list such as \"0-3,8\", \"node:\" and a number, or \"auto\"");
    const auto may_use = [&](int cpu) {
        return std::binary_search(usable.begin(), usable.end(), cpu);
    };
    // Those of a node that may be used; all of a list.
    if (is_node) std::erase_if(*named, [&](int cpu) { return !may_use(cpu); });
    if (named->empty() || !std::all_of(named->begin(), named->end(), may_use))
        refuse(std::errc::operation_not_supported,
               "ums: cpus: the option, or UMS_CPUS, names CPUs that this process may not use, or a "
               "node that is not there (usable: Cpus_allowed_list in /proc/self/status)");
    return *std::move(named);
}

namespace {

// A program that is out of descriptors still starts, without regard to a quota.
available available_at_start() try {
    return available_processors(environment::system_root());
} catch (const std::system_error& e) {
    const unsigned usable = os::usable_cpus();
    return {
        std::min(usable, sched::cluster::max_processors),
        std::to_string(usable) + " CPUs usable, any quota unknown (" + e.code().message() + ")"};
}

void choose_processors(settings& s) {
    available found = available_at_start();
    if (const std::string& named = s.chosen.cpus; !named.empty()) {
        s.cpus =
            choose_cpus(named, s.chosen.processors != 0 ? s.chosen.processors : os::usable_cpus());
        const auto n = static_cast<unsigned>(s.cpus.size());
        if (n <= found.number) found = {n, std::to_string(n) + " CPUs by \"" + named + "\""};
    }
    s.processors_reason = found.reason;
    s.is_number_asked = s.chosen.processors != 0;
    if (s.is_number_asked)
        s.processors_reason = std::to_string(os::usable_cpus()) + " CPUs usable, asked for";
    else
        s.chosen.processors = found.number;
}

}  // namespace

settings settle(const options& asked) {
    settings s{.chosen = asked,
               .guard = mem::guard_kind::mprotect,
               .guard_reason = "",
               .processors_reason = ""};
    options& o = s.chosen;
    read_environment(o);
    if (o.processors > sched::cluster::max_processors)
        refuse(std::errc::invalid_argument, "ums: options::processors: expected at most 1024");
    choose_processors(s);
    if (!sched::is_built_in(o.policy))
        refuse(std::errc::invalid_argument, "ums: options::policy: there is no such policy");
    if (o.stack_bytes < stack_depot::min_bytes || o.stack_bytes > stack_depot::max_bytes)
        refuse(std::errc::invalid_argument, "ums: options::stack_bytes: expected 16 KiB to 1 GiB");
    if (o.spin_ns > most_spin_ns)
        refuse(std::errc::invalid_argument, "ums: options::spin_ns: expected at most 1 s");
    if (o.carriers < 2 || o.carriers > most_carriers)
        refuse(std::errc::invalid_argument, "ums: options::carriers: expected 2 to 1,000,000");
    if (o.follow_cpus && o.block == block_detection::off)
        refuse(std::errc::operation_not_supported,
               "ums: options::follow_cpus: needs a detector of blocking: leave options::block, or "
               "UMS_BLOCK, at its default");
    check_slice(o.time_slice_us);
    if (o.signal != 0 && !os::interrupt_signal::is_usable(o.signal))
        refuse(std::errc::invalid_argument,
               "ums: options::signal: expected 0 or the number of a real-time signal");
    o.stack_bytes = std::bit_ceil(o.stack_bytes);

    const bool can = mem::has_lightweight_guards();
    switch (o.guard) {
        case guard_kind::mprotect:
            s.guard_reason = "asked for";
            break;
        case guard_kind::lightweight:
            if (!can)
                refuse(std::errc::operation_not_supported,
                       "ums: lightweight guards (MADV_GUARD_INSTALL) need Linux 6.13; "
                       "guard_kind::automatic uses what there is");
            s.guard = mem::guard_kind::lightweight;
            s.guard_reason = "asked for";
            break;
        case guard_kind::automatic:
            s.guard = can ? mem::guard_kind::lightweight : mem::guard_kind::mprotect;
            s.guard_reason = can ? "the kernel has MADV_GUARD_INSTALL"
                                 : "the kernel has no MADV_GUARD_INSTALL; about 32,700 stacks";
            break;
    }
    return s;
}

}  // namespace ums::rt
