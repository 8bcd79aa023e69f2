// SPDX-License-Identifier: MIT

// A program for count.py: makes COUNT operations of one kind, spread over PROCESSORS processors.
//
//   operations KIND PROCESSORS COUNT

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "ums/cluster.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"
#include "ums/wait_group.hpp"

namespace {

namespace this_fiber = ums::this_fiber;

// Runs `each` on `fibers` fibers, so often that it is `count` times in all.
void spread(unsigned fibers, unsigned count, const std::function<void(unsigned)>& each) {
    std::vector<ums::fiber> all;
    for (unsigned i = 0; i < fibers; ++i) all.emplace_back([&] { each(count / fibers); });
    for (ums::fiber& f : all) f.join();
}

void yields(unsigned processors, unsigned count) {
    spread(processors * 4, count, [](unsigned n) {
        for (unsigned i = 0; i < n; ++i) this_fiber::yield();
    });
}

void spawns(unsigned processors, unsigned count) {
    spread(processors * 2, count, [](unsigned n) {
        for (unsigned i = 0; i < n; ++i) ums::fiber{[] {}}.join();
    });
}

// Each fiber has a partner of its own, and they wake each other in turn.
void parks(unsigned processors, unsigned count) {
    spread(processors * 2, count, [](unsigned n) {
        const ums::fiber_ref self = this_fiber::ref();
        ums::fiber partner{[&] {
            for (unsigned i = 0; i < n / 2; ++i) {
                this_fiber::park();
                self.unpark();
            }
        }};
        for (unsigned i = 0; i < n / 2; ++i) {
            partner.ref().unpark();
            this_fiber::park();
        }
        partner.join();
    });
}

// From outside, so this has to wake processors.
void posts(unsigned, unsigned count) {
    ums::wait_group done;
    for (unsigned i = 0; i < count; i += 100) {
        done.add(100);
        for (int k = 0; k < 100; ++k) ums::cluster::standard().post([&] { done.done(); });
        done.wait();
    }
}

void batches(unsigned, unsigned count) {
    ums::wait_group done;
    for (unsigned i = 0; i < count; i += 100) {
        done.add(100);
        ums::cluster::standard().post_each(
            std::vector<std::function<void()>>(100, [&] { done.done(); }));
        done.wait();
    }
}

constexpr struct {
    const char* name;
    void (*run)(unsigned, unsigned);
} kinds[] = {
    {"yield", yields}, {"spawn", spawns}, {"park", parks}, {"post", posts}, {"batch", batches}};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    const unsigned processors = static_cast<unsigned>(std::atoi(argv[2]));
    const unsigned count = static_cast<unsigned>(std::atoi(argv[3]));
    for (const auto& kind : kinds) {
        if (std::strcmp(kind.name, argv[1]) != 0) continue;
        const ums::options chosen{
            .processors = processors, .time_slice_us = 0, .block = ums::block_detection::off};
        // The main thread holds no processor, so its posts come from outside.
        if (kind.run == posts || kind.run == batches) {
            const ums::runtime running{chosen};
            kind.run(processors, count);
        } else {
            ums::run(chosen, [&] { kind.run(processors, count); });
        }
        return 0;
    }
    return 2;
}
