// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "arch/context.hpp"

#include <cfenv>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <unwind.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/ums.hpp"

namespace {

using namespace ums;

// --- the switch alone, without a scheduler ---

constexpr std::size_t stack_bytes = 256 * 1024;

// A context on its own stack that hands control back each time it gets it.
struct echo {
    arch::context caller{}, own{};
    std::unique_ptr<char[]> stack{new char[stack_bytes]};
    void* seen_carrier = nullptr;
    void* seen_after = nullptr;
    std::uintptr_t frame = 0;

    echo() {
        auto top =
            reinterpret_cast<std::uintptr_t>(stack.get() + stack_bytes) & ~std::uintptr_t{15};
        arch::make_context(own, reinterpret_cast<void*>(top), &run, this);
    }

    arch::arrival to(void* carrier, void* after) {
        return arch::switch_context(caller, own, carrier, after);
    }

    static void run(void* carrier, void* after, void* self_) noexcept {
        auto* self = static_cast<echo*>(self_);
        self->frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        for (;;) {
            self->seen_carrier = carrier;
            self->seen_after = after;
            const arch::arrival a = arch::switch_context(self->own, self->caller, self, carrier);
            carrier = a.carrier;
            after = a.after;
        }
    }
};

TEST(context, the_first_switch_calls_the_entry_with_everything_it_needs) {
    echo e;
    int carrier, after;
    const arch::arrival back = e.to(&carrier, &after);
    EXPECT_EQ(e.seen_carrier, &carrier);
    EXPECT_EQ(e.seen_after, &after);
    EXPECT_EQ(back.carrier, &e);
    EXPECT_EQ(back.after, &carrier);
    // The value of rbp in a function that was entered with the stack aligned as the ABI requires.
    EXPECT_EQ(e.frame % 16, 0u);
    const auto bottom = reinterpret_cast<std::uintptr_t>(e.stack.get());
    EXPECT_GT(e.frame, bottom);
    EXPECT_LT(e.frame, bottom + stack_bytes);
}

TEST(context, each_switch_brings_its_carrier_and_what_comes_after) {
    echo e;
    for (std::intptr_t i = 1; i < 1'000; ++i) {
        e.to(reinterpret_cast<void*>(i), reinterpret_cast<void*>(-i));
        ASSERT_EQ(e.seen_carrier, reinterpret_cast<void*>(i));
        ASSERT_EQ(e.seen_after, reinterpret_cast<void*>(-i));
    }
}

// More values than there are registers, all of them needed after each switch.
[[gnu::noinline]] void hold_values(echo& e, std::uint64_t seed) {
    std::uint64_t i[18];
    double d[18];
    for (unsigned k = 0; k < 18; ++k) {
        i[k] = seed * (2 * k + 3);
        d[k] = static_cast<double>(seed % 1'000'003) * (k + 1);
        asm volatile("" : "+r"(i[k]), "+x"(d[k]));
    }
    for (unsigned round = 0; round < 20; ++round) {
        e.to(&e, nullptr);
        for (unsigned k = 0; k < 18; ++k) {
            i[k] += k;
            d[k] += 1.0;
        }
    }
    for (unsigned k = 0; k < 18; ++k) {
        ASSERT_EQ(i[k], seed * (2 * k + 3) + 20 * k);
        ASSERT_EQ(d[k], static_cast<double>(seed % 1'000'003) * (k + 1) + 20.0);
    }
}

TEST(context, values_survive_switches) {
    std::mt19937_64 rng{test_seed()};
    echo e;
    for (int n = 0; n < 200; ++n) hold_values(e, rng());
}

// --- in fibers ---

class context_test : public conserving_test {};

#if defined(__x86_64__)

// Calls f with the callee-saved registers set to in[], and stores what they are afterwards.
extern "C" void call_with_registers(void (*f)(), const std::uint64_t* in, std::uint64_t* out);
asm(R"(
        .text
        .type   call_with_registers, @function
        .globl  call_with_registers
call_with_registers:
        endbr64
        pushq   %rbp
        pushq   %rbx
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        pushq   %rdx
        movq    %rdi, %rax
        movq    0(%rsi), %rbx
        movq    8(%rsi), %rbp
        movq    16(%rsi), %r12
        movq    24(%rsi), %r13
        movq    32(%rsi), %r14
        movq    40(%rsi), %r15
        callq   *%rax
        popq    %rdx
        movq    %rbx, 0(%rdx)
        movq    %rbp, 8(%rdx)
        movq    %r12, 16(%rdx)
        movq    %r13, 24(%rdx)
        movq    %r14, 32(%rdx)
        movq    %r15, 40(%rdx)
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        retq
        .size   call_with_registers, . - call_with_registers
)");

TEST_F(context_test, callee_saved_registers_survive_yields_and_parks) {
    const std::uint64_t seed = test_seed();
    run({.processors = 2}, [seed] {
        std::vector<value_fiber<int>> all;
        for (std::uint64_t f = 0; f < 20; ++f) {
            all.push_back(spawn([seed, f] {
                std::mt19937_64 rng{seed + f};
                int wrong = 0;
                for (int round = 0; round < 300; ++round) {
                    std::uint64_t in[6], out[6];
                    for (auto& word : in) word = rng();
                    void (*ways[])() = {
                        [] { this_fiber::yield(); },
                        [] { this_fiber::sleep_for(std::chrono::nanoseconds{1}); },
                        [] { fiber{[] {}}.join(); },
                    };
                    call_with_registers(ways[rng() % 3], in, out);
                    for (int k = 0; k < 6; ++k) wrong += in[k] != out[k];
                }
                return wrong;
            }));
        }
        for (auto& f : all) EXPECT_EQ(f.join(), 0);
    });
}

std::uint32_t read_mxcsr() {
    std::uint32_t word;
    asm volatile("stmxcsr %0" : "=m"(word));
    return word;
}
void write_mxcsr(std::uint32_t word) { asm volatile("ldmxcsr %0" : : "m"(word)); }
std::uint16_t read_x87() {
    std::uint16_t word;
    asm volatile("fnstcw %0" : "=m"(word));
    return word;
}
void write_x87(std::uint16_t word) { asm volatile("fldcw %0" : : "m"(word)); }

// Rounding (both units), flush to zero, denormals are zero; and the x87 unit's precision. It leaves
// out the exception masks: a test that traps tells little.
struct control_words {
    std::uint32_t mxcsr;
    std::uint16_t x87;
    friend bool operator==(const control_words&, const control_words&) = default;

    static control_words current() {
        // Without the sticky flags that arithmetic sets.
        return {read_mxcsr() & ~0x3fu, read_x87()};
    }
    static control_words any(std::mt19937_64& rng) {
        const auto rounding = static_cast<std::uint32_t>(rng() % 4);
        const std::uint32_t flush = rng() % 2 != 0 ? 0x8040u : 0u;
        const std::uint32_t precision = rng() % 2 != 0 ? 0x300 : 0x200;
        return {0x1f80u | rounding << 13 | flush,
                static_cast<std::uint16_t>(0x7fu | precision | rounding << 10)};
    }
    void set() const {
        write_mxcsr(mxcsr);
        write_x87(x87);
    }
};

class kept_control_words {
public:
    ~kept_control_words() { before_.set(); }

private:
    const control_words before_ = control_words::current();
};

TEST_F(context_test, each_fiber_keeps_its_own_control_words) {
    const std::uint64_t seed = test_seed();
    const control_words before = control_words::current();
    run({.processors = 2}, [seed] {
        std::vector<fiber> all;
        std::atomic<int> wrong = 0;
        for (std::uint64_t f = 0; f < 50; ++f) {
            all.emplace_back([seed, f, &wrong] {
                std::mt19937_64 rng{seed + f};
                control_words mine = control_words::any(rng);
                mine.set();
                for (int round = 0; round < 200; ++round) {
                    this_fiber::yield();
                    wrong += control_words::current() != mine;
                    if (rng() % 10 == 0) {
                        mine = control_words::any(rng);
                        mine.set();
                    }
                    if (rng() % 20 == 0) {
                        this_fiber::sleep_for(std::chrono::nanoseconds{1});
                        wrong += control_words::current() != mine;
                    }
                }
            });
        }
        for (auto& f : all) f.join();
        EXPECT_EQ(wrong.load(), 0);
    });
    EXPECT_EQ(control_words::current(), before);
}

TEST_F(context_test, a_new_fiber_has_its_creators_control_words) {
    std::mt19937_64 rng{test_seed()};
    const kept_control_words keep;
    for (int round = 0; round < 20; ++round) {
        const control_words threads = control_words::any(rng);
        const control_words firsts = control_words::any(rng);
        threads.set();
        run({.processors = 2}, [&] {
            EXPECT_EQ(control_words::current(), threads);
            firsts.set();
            fiber child{[&] { EXPECT_EQ(control_words::current(), firsts); }};
            // Changed too late for the other fiber.
            control_words::any(rng).set();
            child.join();
            const fiber_options at_once{.launch = launch::dispatch};
            const control_words now = control_words::current();
            fiber{at_once, [&] { EXPECT_EQ(control_words::current(), now); }}.join();
            EXPECT_EQ(control_words::current(), now);
        });
        EXPECT_EQ(control_words::current(), threads);
    }
}

// A carrier that waits in its loop between two fibers must not pass one's words to the next.
TEST_F(context_test, control_words_do_not_pass_through_an_idle_carrier) {
    std::mt19937_64 rng{test_seed()};
    const kept_control_words keep;
    runtime started{{.processors = 1}};
    const control_words plain = control_words::current();
    for (int round = 0; round < 50; ++round) {
        const control_words other = control_words::any(rng);
        fiber{[&] { other.set(); }}.join();
        fiber{[&] { EXPECT_EQ(control_words::current(), plain); }}.join();
    }
}

#endif  // __x86_64__

// Seen through the C library: 1/3 rounded down, or up.
TEST_F(context_test, each_fiber_rounds_as_it_chose) {
    run({.processors = 2}, [] {
        auto third = [] {
            volatile double one = 1.0, three = 3.0;
            return one / three;
        };
        const double nearest = third();
        std::vector<fiber> all;
        for (int f = 0; f < 20; ++f) {
            all.emplace_back([f, third] {
                std::fesetround(f % 2 == 0 ? FE_DOWNWARD : FE_UPWARD);
                const double mine = third();
                for (int i = 0; i < 100; ++i) {
                    this_fiber::yield();
                    EXPECT_EQ(third(), mine);
                }
            });
        }
        for (int i = 0; i < 100; ++i) {
            this_fiber::yield();
            EXPECT_EQ(third(), nearest);
        }
        for (auto& f : all) f.join();
    });
}

struct walk {
    int frames = 0;
    bool ended = false;
};

[[gnu::noinline]] walk walk_stack() {
    walk w;
    const _Unwind_Reason_Code end = _Unwind_Backtrace(
        [](_Unwind_Context* at, void* w_) {
            auto* counted = static_cast<walk*>(w_);
            if (_Unwind_GetIP(at) != 0) ++counted->frames;
            return counted->frames > 500 ? _URC_NORMAL_STOP : _URC_NO_REASON;
        },
        &w);
    w.ended = end == _URC_END_OF_STACK;
    return w;
}

[[gnu::noinline]] walk walk_from(int depth) {
    const walk w = depth == 0 ? walk_stack() : walk_from(depth - 1);
    asm volatile("" : : "r"(&w) : "memory");  // No tail call.
    return w;
}

TEST_F(context_test, unwinding_ends_at_a_fibers_first_frame) {
    run({.processors = 2}, [] {
        for (int round = 0; round < 50; ++round) {
            fiber{[] {
                const walk top = walk_from(0);
                EXPECT_TRUE(top.ended);
                EXPECT_GE(top.frames, 3);
                EXPECT_LE(top.frames, 30);
                this_fiber::yield();
                const walk deep = walk_from(40);
                EXPECT_TRUE(deep.ended);
                EXPECT_EQ(deep.frames, top.frames + 40);
            }}.join();
        }
    });
}

TEST_F(context_test, unwinding_ends_when_the_fiber_was_made_by_a_thread) {
    runtime started;
    fiber{[] { EXPECT_TRUE(walk_from(3).ended); }}.join();
}

}  // namespace
