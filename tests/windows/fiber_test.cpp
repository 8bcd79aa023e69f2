// SPDX-License-Identifier: MIT
// Windows' fibers by their names.
#include <cfenv>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/conservation.hpp"
#include "windows/holders.hpp"

namespace {

class windows_fibers : public conserving_test {
protected:
    void SetUp() override {
        main_ = ConvertThreadToFiber(this);
        ASSERT_NE(main_, nullptr);
    }
    void TearDown() override { ASSERT_TRUE(ConvertFiberToThread()); }
    LPVOID main_ = nullptr;
};

struct turn {
    LPVOID back;
    std::vector<int> order;
};

VOID CALLBACK count(LPVOID parameter) {
    auto& t = *static_cast<turn*>(parameter);
    for (int i = 0;; ++i) {
        t.order.push_back(i);
        SwitchToFiber(t.back);
    }
}

TEST_F(windows_fibers, a_fiber_goes_on_where_it_left_off) {
    turn t{main_, {}};
    const LPVOID fiber = CreateFiber(0, count, &t);
    ASSERT_NE(fiber, nullptr);
    for (int i = 0; i < 3; ++i) SwitchToFiber(fiber);
    EXPECT_EQ(t.order, (std::vector{0, 1, 2}));
    DeleteFiber(fiber);
}

TEST_F(windows_fibers, a_fiber_knows_itself_and_its_data) {
    EXPECT_TRUE(IsThreadAFiber());
    EXPECT_EQ(GetCurrentFiber(), main_);
    EXPECT_EQ(GetFiberData(), this);
    struct seen {
        LPVOID back, current, data;
    } s{main_, nullptr, nullptr};
    const LPVOID fiber = CreateFiberEx(
        64 * 1024, 128 * 1024, FIBER_FLAG_FLOAT_SWITCH,
        [](LPVOID p) {
            auto& in = *static_cast<seen*>(p);
            in.current = GetCurrentFiber();
            in.data = GetFiberData();
            SwitchToFiber(in.back);
        },
        &s);
    SwitchToFiber(fiber);
    EXPECT_EQ(s.current, fiber);
    EXPECT_EQ(s.data, &s);
    DeleteFiber(fiber);
}

TEST_F(windows_fibers, a_small_stack_is_what_is_committed_at_first) {
    const auto run = [](LPVOID back) {
        use_stack(nullptr);
        SwitchToFiber(back);
    };
    for (const LPVOID fiber :
         {CreateFiber(16 * 1024, run, main_), CreateFiberEx(4096, 0, 0, run, main_),
          CreateFiberEx(512 * 1024, 4096, 0, run, main_)}) {
        SwitchToFiber(fiber);
        DeleteFiber(fiber);
    }
}

TEST_F(windows_fibers, wrong_use_gets_the_documented_errors) {
    EXPECT_EQ(ConvertThreadToFiberEx(nullptr, 0), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_ALREADY_FIBER});
    EXPECT_EQ(CreateFiber(0, nullptr, nullptr), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_INVALID_PARAMETER});
    EXPECT_EQ(CreateFiber(~SIZE_T{0} / 2, count, nullptr), nullptr);
    EXPECT_EQ(GetLastError(), DWORD{ERROR_NOT_ENOUGH_MEMORY});
    other_thread t{[] {
        EXPECT_FALSE(IsThreadAFiber());
        EXPECT_EQ(GetFiberData(), nullptr);
        EXPECT_FALSE(ConvertFiberToThread());
        EXPECT_EQ(GetLastError(), DWORD{ERROR_ALREADY_THREAD});
        return 0;
    }};
}

TEST_F(windows_fibers, exceptions_and_rounding_modes_stay_on_their_fiber) {
    struct both {
        LPVOID back;
        std::string caught;
        int rounding;
    } b{main_, "", 0};
    const LPVOID fiber = CreateFiber(
        0,
        [](LPVOID p) {
            auto& in = *static_cast<both*>(p);
            std::fesetround(FE_UPWARD);
            try {
                throw std::runtime_error{"inner"};
            } catch (const std::exception&) {
                SwitchToFiber(in.back);
                try {
                    throw;
                } catch (const std::exception& e) {
                    in.caught = e.what();
                }
            }
            in.rounding = std::fegetround();
            SwitchToFiber(in.back);
        },
        &b);
    try {
        throw std::runtime_error{"outer"};
    } catch (const std::exception& e) {
        SwitchToFiber(fiber);
        EXPECT_EQ(std::fegetround(), FE_TONEAREST);
        SwitchToFiber(fiber);
        EXPECT_EQ(std::string{e.what()}, "outer");
    }
    EXPECT_EQ(b.caught, "inner");
    EXPECT_EQ(b.rounding, FE_UPWARD);
    DeleteFiber(fiber);
}

TEST_F(windows_fibers, a_hundred_thousand_switches_among_many) {
    struct ring {
        std::vector<LPVOID> all;
        LPVOID back;
        int left;
        std::size_t at = 0;
    } r{{}, main_, scaled(100'000, 5'000)};
    const auto pass = [](LPVOID p) {
        auto& in = *static_cast<ring*>(p);
        for (;;) {
            if (--in.left == 0) SwitchToFiber(in.back);
            in.at = (in.at + 1) % in.all.size();
            SwitchToFiber(in.all[in.at]);
        }
    };
    for (int i = 0; i < 50; ++i) r.all.push_back(CreateFiber(64 * 1024, pass, &r));
    SwitchToFiber(r.all[0]);
    EXPECT_EQ(r.left, 0);
    for (const LPVOID f : r.all) DeleteFiber(f);
}

// One thread makes it, another continues it.
TEST_F(windows_fibers, a_fiber_runs_on_the_thread_that_switches_to_it) {
    turn t{nullptr, {}};
    const LPVOID fiber = CreateFiber(0, count, &t);
    t.back = main_;
    SwitchToFiber(fiber);
    {
        other_thread second{[&] {
            t.back = ConvertThreadToFiber(nullptr);
            SwitchToFiber(fiber);
            return ConvertFiberToThread() ? 0 : 1;
        }};
    }
    t.back = main_;
    SwitchToFiber(fiber);
    EXPECT_EQ(t.order, (std::vector{0, 1, 2}));
    DeleteFiber(fiber);
}

DWORD run_fiber_thread(LPFIBER_START_ROUTINE start, LPVOID* made) {
    struct in {
        LPFIBER_START_ROUTINE start;
        LPVOID* made;
    } arguments{start, made};
    const holder thread{CreateThread(
        nullptr, 0,
        [](LPVOID p) -> DWORD {
            auto& a = *static_cast<in*>(p);
            ConvertThreadToFiber(nullptr);
            *a.made = CreateFiber(0, a.start, GetCurrentFiber());
            SwitchToFiber(*a.made);
            return 1000;
        },
        &arguments, 0, nullptr)};
    EXPECT_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    DWORD code = 0;
    EXPECT_TRUE(GetExitCodeThread(thread, &code));
    return code;
}

TEST_F(windows_fibers, a_fiber_that_returns_or_exits_ends_its_thread) {
    LPVOID fiber = nullptr;
    EXPECT_EQ(run_fiber_thread([](LPVOID) {}, &fiber), 0u);
    DeleteFiber(fiber);
    EXPECT_EQ(run_fiber_thread([](LPVOID) { ExitThread(6); }, &fiber), 6u);
    DeleteFiber(fiber);
    EXPECT_EQ(run_fiber_thread([](LPVOID back) { SwitchToFiber(back); }, &fiber), 1000u);
    DeleteFiber(fiber);
    EXPECT_EQ(run_fiber_thread([](LPVOID) { DeleteFiber(GetCurrentFiber()); }, &fiber), 1u);
}

}  // namespace
