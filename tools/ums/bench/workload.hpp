// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/workload.hpp: one bench: which cells it has, and how its result is shown.
//
// Each workload is one file of workloads/; all_workloads() lists them in the order of `ums bench
// all`.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cell.hpp"
#include "options.hpp"
#include "view.hpp"

namespace tool {

struct result {
    std::string bench;
    bench_options options;
    std::vector<setting> plan;
    std::vector<std::string> notes;  // What was not run, and why.
};

class workload {
public:
    virtual ~workload() = default;

    virtual std::string_view name() const = 0;
    // One line for `ums bench list` and the report.
    virtual std::string_view about() const = 0;
    virtual std::vector<std::string> runtimes() const = 0;
    virtual unsigned repetitions(const bench_options& options) const {
        return options.quick ? 3 : 5;
    }

    // No repetition begins that would not end within this many seconds; 0: no limit.
    virtual double limit_s(const bench_options&) const { return 0; }

    // Whether its peer on libums can be told which detector of blocking to use.
    virtual bool has_detectors() const { return false; }

    // Throws usage_error if an option makes no sense here.
    virtual void check(const bench_options& options) const;
    virtual std::vector<setting> plan(const bench_options& options,
                                      std::vector<std::string>& notes) const = 0;
    virtual view show(const result& got) const = 0;

protected:
    // The part of check() that is common to all workloads.
    void check_common(const bench_options& options) const;

    // The runtimes that were selected. A missing peer is left out with a note, unless the user
    // named it or it is ums itself: then its cells are planned, and their rows will carry the
    // error.
    std::vector<std::string> chosen(const bench_options& options,
                                    std::vector<std::string>& notes) const;

    // The name of the program that is the peer for a runtime.
    virtual std::string program(const std::string& runtime) const;

    // Why a runtime cannot be run here ("its peer was not built"); empty if it can.
    virtual std::string missing(const std::string& runtime) const;

    // A cell with the settings that most rows have.
    cell make_cell(const std::string& runtime, std::uint64_t processors,
                   std::uint64_t fibers) const;
    // A cell that does its work in one of several ways, and briefly with --quick.
    cell way_cell(const bench_options& options, const std::string& runtime, const std::string& way,
                  std::uint64_t processors, std::uint64_t fibers) const;
};

const std::vector<std::unique_ptr<workload>>& all_workloads();

std::unique_ptr<workload> make_yield();
std::unique_ptr<workload> make_spawn();
std::unique_ptr<workload> make_pingpong();
std::unique_ptr<workload> make_skynet();
std::unique_ptr<workload> make_forkjoin();
std::unique_ptr<workload> make_memory();
std::unique_ptr<workload> make_sleepers();
std::unique_ptr<workload> make_scaling();
std::unique_ptr<workload> make_mutex();
std::unique_ptr<workload> make_channel();
std::unique_ptr<workload> make_condvar();
std::unique_ptr<workload> make_semaphore();
std::unique_ptr<workload> make_select();
std::unique_ptr<workload> make_blocking();
std::unique_ptr<workload> make_preemption();
std::unique_ptr<workload> make_http();
std::unique_ptr<workload> make_memcached();
std::unique_ptr<workload> make_echo();
std::unique_ptr<workload> make_connections();
std::unique_ptr<workload> make_lone();
std::unique_ptr<workload> make_workers();
std::unique_ptr<workload> make_completion();
std::unique_ptr<workload> make_migrate();
std::unique_ptr<workload> make_policies();
std::unique_ptr<workload> make_jobs();
std::unique_ptr<workload> make_shares();

// The user's numbers, or the workload's own.
std::vector<std::uint64_t> given_or(const std::vector<std::uint64_t>& given,
                                    std::vector<std::uint64_t> own);

// Whether `fibers` of `bytes_each` fit into the memory that is free now. Adds a note if they do
// not.
bool fits(const std::string& runtime, std::uint64_t fibers, std::uint64_t bytes_each,
          std::vector<std::string>& notes);

}  // namespace tool
