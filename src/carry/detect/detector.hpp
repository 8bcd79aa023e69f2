// SPDX-License-Identifier: MIT
#pragma once

// carry/detect/detector.hpp: finds out that a kernel thread that carries a load has blocked in the
// kernel.
//
// The one detector is monitor_detector; the interface is the place for another.
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

namespace ums {
enum class block_detection;
}

namespace ums::carry {

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

    // How long the first look after a nudge may be put off.
    static constexpr os::nanoseconds put_off = 10'000'000;

    // Reports that a load has become of interest; call it afterwards. Costs a load unless the
    // detector sleeps. Returns which look at the load may be called off, should it soon be of no
    // interest any more; 0: none.
    std::uint64_t nudge() noexcept { return nudge(os::asymmetric()); }
    // For callers that know what os::asymmetric() says.
    UMS_ALWAYS_INLINE std::uint64_t nudge(bool is_asymmetric) noexcept {
        // The light side of monitor_detector's fence.
        if (is_asymmetric) [[likely]]
            base::compiler_fence();
        else
            base::full_fence();
        if (sleeps_.load(base::relaxed) != 0) [[unlikely]]  // relaxed: see monitor_detector.cpp.
            return wake();
        return 0;
    }
    // The load is of interest no more, and nothing else needs the look.
    virtual void call_off(std::uint64_t) noexcept {}
    // Something waits for the load: the look is to come sooner, and may not be called off.
    virtual void hurry(std::uint64_t) noexcept {}

    // The calling thread carries a load, and is about to sleep for a moment in which that is not of
    // interest: no sentinel needs to look. Returns what watch_again() needs after the sleep.
    [[nodiscard]] virtual int look_away() noexcept { return -1; }
    virtual void watch_again(int) noexcept {}

protected:
    detector() noexcept = default;
    virtual std::uint64_t wake() noexcept { return 0; }

    base::atomic<std::uint32_t> sleeps_;
};

// A detector that has been started, or null if none looks: then only what the program marks as
// blocking is known.
struct chosen_detector {
    std::unique_ptr<detector> is;
    std::string reason;  // Why this one, or why none: "asked for", or what does not work.
};

// Starts the detector that is wanted; `automatic` means the best that works.
[[nodiscard]] chosen_detector choose(block_detection wanted);

}  // namespace ums::carry
