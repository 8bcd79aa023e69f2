// SPDX-License-Identifier: MIT
#pragma once

// internal/modelled/surroundings.hpp: what the text of src/sched sees of the layers below it, in a
// model.
//
// Include it before the text, together with what the text includes of os/ and arch/: those headers
// are the real ones, and must not be read again under other names.

#include <cerrno>
#include <csignal>
#include <ucontext.h>

#include "arch/context.hpp"
#include "arch/exception_state.hpp"
#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "internal/tso_model.hpp"
#include "os/clock.hpp"
#include "os/foreign.hpp"
#include "os/no_stop.hpp"
#include "os/say.hpp"
#include "os/signal/code_map.hpp"
#include "os/signal/interrupt_signal.hpp"
#include "os/stay_loaded.hpp"
#include "os/thread/at_rest.hpp"
#include "os/thread/kernel_thread.hpp"
#include "os/thread/placement.hpp"
#include "os/thread/thread_cpu.hpp"
#include "os/thread/thread_state.hpp"
#include "os/thread_slot.hpp"

namespace ums::tso {

// Which mutant of the generated text is active; 0: none.
inline int mutant = 0;
inline bool is_on(int number) noexcept { return mutant == number; }

}  // namespace ums::tso

namespace ums::modelled_arch {

using arch::exception_state;
using arch::stack_shadow;

// The context of a stopped fiber leads to the carrier that waits.
struct context {
    tso::checked<void*> target = nullptr;
};

struct race_context {
    void enter() const noexcept {}
    void resume() const noexcept {}
};

inline void happens_before(const void*) noexcept {}
inline void happens_after(const void*) noexcept {}
inline void start_last_switch(const stack_shadow&) noexcept {}
inline void make_context(context& made, void*, void (*)(void*, void*, void*),
                         void* target) noexcept {
    made.target = target;
}
// Only in code that a model never calls, because a model changes stacks by itself.
inline void switch_context(context&, context&, void*, void*) noexcept { std::abort(); }

}  // namespace ums::modelled_arch

namespace ums::modelled_os {

using os::at_rest;
using os::code_map;
using os::held_back;
using os::is_runtime_library;
using os::say;
using os::slot_head;
using os::stay_loaded;
using os::thread_states;

struct user_interrupt {
    static constexpr os::nanoseconds shortest = 1;
};

inline bool ask_for_slice(os::nanoseconds) noexcept { return false; }
inline bool asymmetric() noexcept { return true; }
inline void* thread_slot() noexcept {
    tso::model& m = tso::model::running();
    return m.is_on_strand() ? m.slot() : nullptr;
}
inline void begin_no_stop() noexcept {
    if (auto* here = static_cast<slot_head*>(thread_slot())) here->no_stops.add(1);
}
inline void end_no_stop() noexcept {
    if (auto* here = static_cast<slot_head*>(thread_slot())) here->no_stops.add(~std::uint32_t{0});
}

struct kernel_thread {
    int start(void* (*)(void*), void*) noexcept { return EAGAIN; }
    static const char* advice(int) noexcept { return ""; }
    void join() noexcept {}
    bool join_within(os::nanoseconds) noexcept { return true; }
    [[nodiscard]] bool is_started() const noexcept { return false; }
};
struct thread_cpu {
    static int get() noexcept { return -1; }
    static int here() noexcept { return 0; }
};
struct placement {
    void begin(int, int) noexcept {}
    void end() noexcept {}
};

}  // namespace ums::modelled_os
