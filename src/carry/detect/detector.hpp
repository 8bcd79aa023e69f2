// SPDX-License-Identifier: MIT
#pragma once

// carry/detect/detector.hpp: finds out that a kernel thread that carries a load has blocked in the
// kernel.
//
// There are two detectors behind one interface:
// monitor_detector  sentinels see most blocks at once, and a thread looks every 20 us to 10 ms.
// no_detector       does not look: only what the program marks as blocking is known.
//
// Lifetime:  stop() and the destructor require that no load is watched any more.
// Threads:   start(), stop(), add() and remove() may be called by any thread, start() and stop() by
//            one at a time. nudge() may be called by any thread, at any time between start() and
//            stop().

#include <memory>
#include <string>

#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"
#include "carry/load.hpp"
#include "os/cpu/membarrier.hpp"

namespace ums::carry {

enum class detector_kind : unsigned char { monitor, none };

// What to use; `automatic` means the best that works.
enum class preference : unsigned char { automatic, monitor, off };

class detector {
public:
    virtual ~detector() = default;
    detector(const detector&) = delete;
    detector& operator=(const detector&) = delete;

    // Begins to watch the loads that are added. Returns an empty text, or why it cannot: then
    // nothing is left of it.
    [[nodiscard]] virtual std::string start() = 0;
    virtual void stop() noexcept = 0;
    // In the child of a fork(), where its threads are not there: closes its descriptors. It is
    // never used again.
    virtual void leave_behind() noexcept {}

    virtual void add(load& w) = 0;  // Throws std::bad_alloc.
    // When it returns, no function of `w` runs any more, and none will be called again.
    virtual void remove(load& w) noexcept = 0;

    // Reports that a load has become of interest; call it afterwards. Costs a load unless the
    // detector sleeps.
    void nudge() noexcept { nudge(os::asymmetric()); }
    // For callers that know what os::asymmetric() says.
    UMS_ALWAYS_INLINE void nudge(bool is_asymmetric) noexcept {
        // The light side of monitor_detector's fence.
        if (is_asymmetric) [[likely]]
            base::compiler_fence();
        else
            base::full_fence();
        if (sleeps_.load(base::relaxed) != 0) [[unlikely]]  // relaxed: see monitor_detector.cpp.
            wake();
    }

    // The calling thread carries a load, and is about to sleep for a moment in which that is not of
    // interest: no sentinel needs to look. Returns what watch_again() needs after the sleep.
    [[nodiscard]] virtual int look_away() noexcept { return -1; }
    virtual void watch_again(int) noexcept {}

    [[nodiscard]] virtual detector_kind kind() const noexcept = 0;

protected:
    detector() noexcept = default;
    virtual void wake() noexcept {}

    base::atomic<std::uint32_t> sleeps_;
};

[[nodiscard]] const char* name_of(detector_kind kind) noexcept;  // The name that UMS_BLOCK uses.

struct chosen_detector {
    std::unique_ptr<detector> is;  // It has been started.
    std::string reason;  // Why this one: "asked for", or what was wrong with the better one.
};

// Starts the best detector that works, or the one that was asked for. Throws std::system_error
// (operation_not_supported) if that one does not work. Says so on standard error if none works.
[[nodiscard]] chosen_detector choose(preference wanted);

// The same choice without starting anything: for reports.
struct verdict {
    detector_kind kind;
    std::string reason;
    bool is_possible;  // False if the requested one does not work; the reason says why.
};
[[nodiscard]] verdict would_choose(preference wanted);

}  // namespace ums::carry
