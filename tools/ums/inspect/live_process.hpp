// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/live_process.hpp: a process that runs.
//
// It is read by process_vm_readv(2), which needs the kernel's permission to trace it and nothing
// else. The process is not stopped and does not notice, unless `stop` is asked for: then all its
// threads stand still until let_go(), or as long as this object exists. (A stop ends some waits in
// the kernel with EINTR: see ptrace(2).)

#include <functional>
#include <map>
#include <memory>

#include "process.hpp"

namespace tool::inspect {

class live_process final : public process {
public:
    live_process(int pid, bool stop);
    ~live_process() override;
    live_process(const live_process&) = delete;
    live_process& operator=(const live_process&) = delete;

    using memory::read;
    void read(std::span<piece> pieces) const override;
    [[nodiscard]] bool is_live() const override { return true; }
    [[nodiscard]] int pid() const override { return pid_; }
    [[nodiscard]] std::string title() const override;
    [[nodiscard]] const std::vector<mapping>& mappings() const override { return mappings_; }
    [[nodiscard]] std::string file_of(const mapping& m) const override;
    [[nodiscard]] std::optional<thread_state> thread(int tid) const override;
    [[nodiscard]] int tid_here(int own) const override;
    [[nodiscard]] std::int64_t now() const override;
    [[nodiscard]] std::uint64_t bytes() const override;
    [[nodiscard]] std::string warning() const override { return warning_; }
    std::int64_t let_go() override;

    // How long a thread has been on a CPU since its start, up to some ms ago if it runs; -1: not
    // known.
    [[nodiscard]] std::int64_t on_cpu_ns(int tid) const;
    // Stops one thread for some microseconds and calls `look` meanwhile, on another thread. Use it
    // for a thread that is in no system call, because then nothing is interrupted. Returns for how
    // long it was stopped, in ns; 0: it is not of this process, or cannot be stopped soon.
    std::int64_t glimpse(int tid, const std::function<void(const registers&)>& look) const;

private:
    class stopper;
    void stop_all();
    [[nodiscard]] std::string proc(const std::string& rest) const;

    const int pid_;
    std::vector<mapping> mappings_;
    std::unique_ptr<stopper> stopped_;
    mutable std::unique_ptr<stopper> glimpser_;
    std::string warning_;
    std::int64_t stopped_at_ = 0;
    bool has_own_numbers_ = false;     // It is in another PID namespace.
    mutable std::map<int, int> tids_;  // From its own number to the one here.
    mutable std::int64_t tids_read_at_ = 0;
};

}  // namespace tool::inspect
