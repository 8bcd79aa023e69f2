// SPDX-License-Identifier: MIT
#pragma once

// runtime/carrier_watch.hpp: connects the processors with the detector of blocking (src/carry), and
// the carriers with the signal that stops a fiber (sched/block/stop.hpp). There is one while a
// runtime runs; it exists before the first carrier and disappears after the last.

#include <optional>
#include <string>

#include "carry/detect/detector.hpp"
#include "carry/maker.hpp"
#include "os/signal/interrupt_signal.hpp"
#include "os/signal/user_interrupt.hpp"
#include "runtime/settings.hpp"

namespace ums::rt {

class carrier_watch {
public:
    // Throws std::system_error if a detector that was asked for does not work, or is missing for
    // time slices; or if the signal number is in use.
    explicit carrier_watch(const settings& chosen);
    // In the child of a fork(): no detector, and no stops. The signal's handler stays installed.
    // The parent's watch is never used again. Throws std::bad_alloc.
    struct after_fork {};
    carrier_watch(after_fork, carrier_watch& parents);
    ~carrier_watch();
    carrier_watch(const carrier_watch&) = delete;
    carrier_watch& operator=(const carrier_watch&) = delete;

    // Whether a detector looks at the processors.
    [[nodiscard]] bool detects() const noexcept { return detector_.is != nullptr; }
    // Why it does, or does not.
    [[nodiscard]] const std::string& reason() const noexcept { return detector_.reason; }
    [[nodiscard]] int signal() const noexcept { return signal_ ? signal_->number() : 0; }
    // Returns false if there is no signal, or the application has replaced our handler by its own.
    [[nodiscard]] bool can_stop() const noexcept { return signal_ && signal_->is_installed(); }

    // The slice that a cluster's option of that many microseconds means; 0: none. Without a
    // detector, the default means none, and another value throws std::system_error: a fiber that is
    // stopped may hold a lock on which others then block in the kernel, and their processors must
    // move on for it to run again. Without a clock, another value throws, too; with the default the
    // processor leaves a fiber whose slice is over, late, and no fiber is stopped
    // (sched/block/detection.cpp).
    [[nodiscard]] os::nanoseconds slice(std::uint32_t us) const;

private:
    carry::maker::use maker_;
    carry::chosen_detector detector_;
    std::optional<os::interrupt_signal> signal_;
    std::string no_slices_;  // Why none can end in time; empty if they can.
};

// Says why no fiber can be stopped at the end of its time slice; empty if one can. `reason` is why
// there is a detector, or none. It leaves out sanitizers, under which slices are accepted
// and never end: see why_no_stops().
[[nodiscard]] std::string why_no_slices(bool detects, const std::string& reason);

// Says, as a noun, why fibers are never stopped in this process; null if they are.
[[nodiscard]] const char* why_no_stops() noexcept;

}  // namespace ums::rt
