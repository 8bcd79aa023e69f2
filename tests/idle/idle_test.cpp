// SPDX-License-Identifier: MIT
// variants: nomembarrier

// A runtime with nothing to run does nothing: no periodic wake-up, no polling.

#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/jfiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
namespace this_fiber = ums::this_fiber;

class idle_test : public conserving_test {};

struct sample {
    // How often each carrier has given up a CPU of its own accord.
    std::map<std::string, std::uint64_t> switches;
    bool all_sleep = true;  // No carrier has a CPU or waits for one.

    // Those since `earlier`. A spare carrier may have ended meanwhile.
    [[nodiscard]] std::uint64_t since(const sample& earlier) const {
        std::uint64_t sum = 0;
        for (const auto& [tid, n] : switches)
            if (const auto was = earlier.switches.find(tid); was != earlier.switches.end())
                sum += n - was->second;
        return sum;
    }
};

sample look() {
    sample now;
    for (const std::string& tid : conservation::threads()) {
        std::ifstream comm{"/proc/self/task/" + tid + "/comm"};
        std::string name;
        comm >> name;
        if (name != "ums") continue;
        std::ifstream status{"/proc/self/task/" + tid + "/status"};
        for (std::string word; status >> word;) {
            if (word == "State:") {
                status >> word;
                now.all_sleep &= word == "S";
            } else if (word == "voluntary_ctxt_switches:") {
                std::uint64_t n = 0;
                status >> n;
                now.switches[tid] = n;
            }
        }
    }
    return now;
}

TEST_F(idle_test, parked_and_sleeping_fibers_wake_nobody) {
    for (const unsigned processors : {1u, 2u, 4u}) {
        ums::runtime started{{.processors = processors}};
        std::vector<ums::jfiber> all;
        const int n = scaled(10'000, 500);
        for (int i = 0; i < n; ++i) {
            all.emplace_back([](std::stop_token stop) { this_fiber::park(stop); });
            all.emplace_back([i](std::stop_token stop) {
                this_fiber::park_for(1h + std::chrono::milliseconds{i}, stop);
            });
        }
        // The quiet begins when a whole sample passes without a switch, and not for lack of a CPU.
        // This is the one test that lets time pass: it checks what happens in that time.
        sample before = look();
        for (;;) {
            std::this_thread::sleep_for(100ms);
            const sample now = look();
            if (now.switches == before.switches && now.all_sleep) break;
            before = now;
        }
        std::this_thread::sleep_for(500ms);
        EXPECT_LE(look().since(before), 2u);
    }
}

}  // namespace
