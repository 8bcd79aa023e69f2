// SPDX-License-Identifier: MIT
//
// What `ums ps` and `ums trace` make of a process that lies. The process is the image of a crowd
// (tests/fuzz/image/crowd), with other numbers in its description of itself.
//
// image --record PID FILE: makes such an image of all that a look reads.
#include "image.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "inspect/live_process.hpp"
#include "inspect/lock_graph.hpp"
#include "inspect/snapshot.hpp"
#include "inspect/wait_words.hpp"
#include "trace/live_rings.hpp"

namespace {

using namespace tool;
using inspect::address;

// Another process, with a note of all that is read.
class recorder final : public inspect::process {
public:
    explicit recorder(const inspect::process& of) : of_{of} {}
    using memory::read;
    void read(std::span<inspect::piece> pieces) const override {
        of_.read(pieces);
        for (const inspect::piece& p : pieces)
            for (std::size_t i = 0; p.is_read && i < p.bytes; ++i)
                seen_.insert_or_assign(p.at + i, static_cast<const char*>(p.into)[i]);
    }
    [[nodiscard]] bool is_live() const override { return false; }
    [[nodiscard]] int pid() const override { return of_.pid(); }
    [[nodiscard]] std::string title() const override { return of_.title(); }
    [[nodiscard]] const std::vector<inspect::mapping>& mappings() const override {
        return of_.mappings();
    }
    [[nodiscard]] std::string file_of(const inspect::mapping&) const override { return {}; }
    [[nodiscard]] std::optional<inspect::thread_state> thread(int tid) const override {
        return of_.thread(tid);
    }
    [[nodiscard]] std::int64_t now() const override { return of_.now(); }
    [[nodiscard]] std::uint64_t bytes() const override { return of_.bytes(); }

    [[nodiscard]] std::string as_image(address file) const {
        std::string all;
        for (auto at = seen_.begin(); at != seen_.end();) {
            image::head h{at->first, 0,
                          at->first == file ? image::head::file : image::head::memory};
            std::string bytes;
            for (; at != seen_.end() && at->first == h.begin + bytes.size(); ++at)
                bytes += at->second;
            h.bytes = bytes.size();
            all.append(reinterpret_cast<const char*>(&h), sizeof h);
            all += bytes;
        }
        return all;
    }

private:
    const inspect::process& of_;
    mutable std::map<address, char> seen_;
};

int record(int pid, const char* path) {
    const inspect::live_process live{pid, false};
    const recorder of{live};
    const inspect::layout how{of};
    const inspect::snapshot s{of, how};
    tracing::live_rings rings{of, how};
    tracing::recording what;
    (void)rings.collect(what);
    std::ofstream{path, std::ios::binary} << of.as_image(live.mappings().front().begin);
    return s.fibers.empty() ? 1 : 0;
}

class image_test : public ::testing::Test {
protected:
    void SetUp() override {
        std::ifstream file{CROWD_IMAGE, std::ios::binary};
        bytes.assign(std::istreambuf_iterator<char>{file}, {});
        ASSERT_FALSE(bytes.empty());
    }
    // Changes what the process says of its layout.
    void say(const std::string& name, std::uint32_t value) {
        const std::size_t at = bytes.find(name + '\0');
        ASSERT_NE(at, std::string::npos) << name;
        std::memcpy(bytes.data() + at + 28, &value, sizeof value);
    }
    [[nodiscard]] std::uint32_t said(const std::string& name) const {
        std::uint32_t value = 0;
        std::memcpy(&value, bytes.data() + bytes.find(name + '\0') + 28, sizeof value);
        return value;
    }
    // As many zeros as an address space has room for.
    void add_zeros(address begin, std::uint64_t count) {
        const image::head h{begin, count, image::head::zeros};
        bytes.append(reinterpret_cast<const char*>(&h), sizeof h);
    }
    void add(address begin, const std::string& what) {
        const image::head h{begin, what.size(), image::head::memory};
        bytes.append(reinterpret_cast<const char*>(&h), sizeof h);
        bytes += what;
    }
    // Overwrites a word of the image's memory.
    template <class Word = std::uint64_t>
    void put(address at, Word value) {
        std::size_t i = 0;
        for (image::head h; i + sizeof h <= bytes.size();) {
            std::memcpy(&h, bytes.data() + i, sizeof h);
            i += sizeof h;
            if (at >= h.begin && at + sizeof value <= h.begin + h.bytes) {
                std::memcpy(bytes.data() + i + (at - h.begin), &value, sizeof value);
                return;
            }
            i += h.kind == image::head::zeros ? 0 : h.bytes;
        }
        FAIL() << "the image has no such address";
    }
    [[nodiscard]] std::string looked_at() const {
        const image::process of{bytes};
        const inspect::layout how{of};
        const inspect::snapshot s{of, how};
        inspect::descriptors none;
        std::string all;
        for (const inspect::fiber_record& f : s.fibers)
            all += inspect::wait_in_words(s, f, none) + "\n";
        return all + inspect::lock_graph{s}.in_words() + s.warning;
    }
    template <class Look>
    auto with_layout(Look look) const {
        const image::process of{bytes};
        return look(of, inspect::layout{of});
    }
    [[nodiscard]] address first_processor() const {
        return with_layout([](const inspect::process& of, const inspect::layout& how) {
            const address cluster = of.get<address>(how.place("clusters")).value_or(0);
            return of.get<address>(cluster + how.value("cluster.processors")).value_or(0);
        });
    }

    std::string bytes;
};

constexpr address nowhere = 0x100000000000;

// So much the test may take, with all that it has taken before.
class bounded {
public:
    bounded() : before_{peak()} {}
    ~bounded() { EXPECT_LT(peak() - before_, 64 << 10) << "kilobytes"; }

private:
    static long peak() {
        std::ifstream file{"/proc/self/status"};
        for (std::string line; std::getline(file, line);)
            if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
        return 0;
    }
    long before_;
};

TEST_F(image_test, a_crowd_is_told_of_as_if_it_ran) {
    const std::string all = looked_at();
    for (const char* const what : {"shared_mutex", "channel", "latch", "sleep", "held by 1 reader"})
        EXPECT_NE(all.find(what), std::string::npos) << what << ":\n" << all;
}

TEST_F(image_test, a_reader_may_count_for_nothing) {
    say("shared_mutex.one_reader", 0);
    EXPECT_NE(looked_at().find("shared_mutex"), std::string::npos);
}

TEST_F(image_test, a_mark_may_be_shifted_out_of_its_word) {
    say("fiber.mark_shift", 200);
    (void)looked_at();
}

TEST_F(image_test, no_more_timers_than_the_process_has_memory_for) {
    const bounded memory;
    const address p = first_processor();
    add_zeros(nowhere, std::uint64_t{1} << 40);
    put(p + said("processor.timers"), nowhere);
    put(p + said("processor.timer_count"), 49'000'000);
    EXPECT_NE(looked_at().find("channel"), std::string::npos);
}

TEST_F(image_test, no_larger_queue_than_the_process_has_memory_for) {
    const bounded memory;
    const address queue = first_processor() + said("processor.queue");
    add_zeros(nowhere, std::uint64_t{1} << 40);
    put(queue + said("queue.slots"), nowhere);
    put(queue + said("queue.mask"), (std::uint32_t{1} << 24) - 1);
    put(queue + said("queue.size"), std::uint32_t{1'000'000});
    EXPECT_NE(looked_at().find("channel"), std::string::npos);
}

TEST_F(image_test, no_more_fibers_than_the_process_has_memory_for) {
    const bounded memory;
    const auto slabs = with_layout([](const inspect::process& of, const inspect::layout& how) {
        return of.get<address>(how.place("slabs")).value_or(0);
    });
    // 4 million stacks that lie in nothing but zeros.
    const std::uint32_t count = 4'000'000;
    const std::uint64_t stride = 256 << 10;
    add_zeros(nowhere, count * stride);
    put(slabs + said("slab.stacks"), nowhere);
    put(slabs + said("slab.stride"), stride);
    put(slabs + said("slab.bytes"), count * stride);
    put(slabs + said("slab.count"), count);
    put(slabs + said("slab.carved"), count);
    EXPECT_EQ(looked_at().find("makes no sense"), std::string::npos);
}

TEST_F(image_test, no_larger_ring_than_the_process_has_memory_for) {
    const bounded memory;
    const auto control = with_layout(
        [](const inspect::process&, const inspect::layout& how) { return how.place("trace"); });
    // Of 2^24 records; its words are those of src/sched/record/trace.hpp.
    std::string ring(32, '\0');
    const auto word = [&](std::uint64_t w) {
        ring.append(reinterpret_cast<const char*>(&w), sizeof w);
    };
    for (const std::uint64_t w : {std::uint64_t{1} << 24, (std::uint64_t{1} << 24) - 1,
                                  std::uint64_t{nowhere}, std::uint64_t{0}})
        word(w);
    ring.append(8 + 16 + 32 + 8, '\0');
    add(nowhere - 4096, ring);
    add_zeros(nowhere, std::uint64_t{1} << 40);
    put(control + 16, nowhere - 4096);
    with_layout([](const inspect::process& of, const inspect::layout& how) {
        tracing::live_rings rings{of, how};
        tracing::recording what;
        (void)rings.collect(what);
    });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4 && argv[1] == std::string_view{"--record"})
        return record(std::atoi(argv[2]), argv[3]);
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
