// SPDX-License-Identifier: MIT
//
// The text of sched/block/permits in every execution that C++20 allows, up to a bound: no more are
// out than there are, none is lost, and no waiter is left asleep or overtaken.

#include <array>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "internal/modelled/sync_surroundings.hpp"

namespace ums::modelled {

// As base::fifo, of links that the model checks.
template <class T, tso::kept<T*> T::*link>
class fifo {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    void push(T& item) noexcept {
        item.*link = nullptr;
        if (first_ == nullptr)
            first_ = &item;
        else
            last_.get()->*link = &item;
        last_ = &item;
    }
    [[nodiscard]] T* pop() noexcept {
        T* const item = first_;
        if (item != nullptr) first_ = (item->*link).get();
        return item;
    }

private:
    tso::kept<T*> first_, last_;
};

}  // namespace ums::modelled

#define base modelled_base
#define os modelled_waits
#define sched modelled
#include "sched/block/permits.cpp"
#include "sched/block/permits.hpp"
#undef base
#undef os
#undef sched

namespace {

using ums::tso::model;

struct machine {
    ums::modelled::permits permits;
    std::array<ums::modelled::fiber, 3> fibers;
    // For the proof: how many have a permit.
    model::cell out = model::running().make(0);

    // Each letter is a strand: t takes one and gives it back, T tries to.
    void run(char kind, unsigned most) {
        model& m = model::running();
        if (kind == 'T') {
            if (!permits.try_take(most)) return;
        } else {
            permits.take(most);
        }
        if (++m.at(out) > most) m.fail("more are out than there are");
        m.step("has one");
        --m.at(out);
        permits.give();
    }
};

ums::tso::program with(std::string_view strands, unsigned most, unsigned preemptions) {
    return {.name = strands.data(),
            .build =
                [strands, most](model& of) {
                    auto& s = ums::tso::remade<machine>();
                    for (std::size_t n = 0; n < strands.size(); ++n)
                        ums::tso::add_fiber(of, std::string{strands[n]} + std::to_string(n),
                                            s.fibers[n],
                                            [&s, strands, n, most] { s.run(strands[n], most); });
                    of.at_rest([&s, &of, strands]() -> std::string {
                        if (ums::tso::sleeps_for_ever(of, strands.size()))
                            return "one sleeps for ever";
                        return s.permits.used() == 0 ? "" : "a permit was lost";
                    });
                },
            .preemptions = preemptions,
            .histories = true,
            .stack_cells = 8};
}

constexpr const char* overtakes =
    "while one waits none is free, unless their number has just grown: then it overtakes";

ums::tso::mutation_test all() {
    return {{with("tt", 1, 3), with("tT", 1, 3), with("ttt", 1, 2), with("ttT", 1, 2),
             with("ttt", 2, 2)},
            {
#include "permits_model_test.inc"
            },
            {{"one_takes_a_permit_past_those_that_wait", overtakes},
             {"another_tries_past_those_that_wait", overtakes}}};
}

TEST(permits_model_test, no_permit_is_lost_or_out_twice) { all().text_is_correct(); }
TEST(permits_model_test, finds_each_mutant) { all().finds_each_mutant(); }

}  // namespace
