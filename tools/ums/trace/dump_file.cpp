// SPDX-License-Identifier: MIT
#include "dump_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace tool::tracing {

namespace {

constexpr char magic[8] = {'u', 'm', 's', 't', 'r', 'c', '1', 0};

struct dump_head {
    char magic[8];
    std::uint64_t began_stamp, now_stamp;
    std::int64_t began_ns, now_ns, process;
};
struct dump_ring {
    std::uint64_t processor, count, capacity;
    char cluster[16];
};

class dumped_process final : public inspect::process {
public:
    dumped_process(int pid, std::istream& maps) : pid_{pid} {
        for (std::string line; std::getline(maps, line);) {
            inspect::mapping m;
            std::istringstream words{line};
            char dash = 0;
            std::string rights, device, inode;
            words >> std::hex >> m.begin >> dash >> m.end >> rights >> m.offset >> device >> inode;
            std::getline(words >> std::ws, m.path);
            mappings_.push_back(std::move(m));
        }
    }
    using memory::read;
    void read(std::span<inspect::piece> pieces) const override {
        for (inspect::piece& p : pieces) p.is_read = read_from_file(p);
    }
    [[nodiscard]] bool is_live() const override { return false; }
    [[nodiscard]] int pid() const override { return pid_; }
    [[nodiscard]] std::string title() const override { return fmt::format("process {}", pid_); }
    [[nodiscard]] const std::vector<inspect::mapping>& mappings() const override {
        return mappings_;
    }
    [[nodiscard]] std::string file_of(const inspect::mapping& m) const override {
        return m.path.starts_with('/') ? m.path : std::string{};
    }
    [[nodiscard]] std::optional<inspect::thread_state> thread(int) const override {
        return std::nullopt;
    }
    [[nodiscard]] std::int64_t now() const override { return 0; }

private:
    // What the program has not changed can still be read from its files.
    [[nodiscard]] bool read_from_file(const inspect::piece& p) const {
        for (const inspect::mapping& m : mappings_) {
            if (p.at < m.begin || p.at >= m.end || p.bytes > m.end - p.at || file_of(m).empty())
                continue;
            std::ifstream file{m.path, std::ios::binary};
            file.seekg(static_cast<std::streamoff>(m.offset + (p.at - m.begin)));
            return static_cast<bool>(
                file.read(static_cast<char*>(p.into), static_cast<std::streamsize>(p.bytes)));
        }
        return false;
    }

    const int pid_;
    std::vector<inspect::mapping> mappings_;
};

// A part of the file; throws if it is cut off.
template <class T>
T take(const std::vector<char>& bytes, std::size_t& at) {
    T value;
    assert(at <= bytes.size() && "a position lies behind the end of the dump");
    if (bytes.size() - at < sizeof value) throw std::runtime_error{"the file is cut off"};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
    return value;
}

}  // namespace

bool is_dump(const std::string& path) {
    char first[sizeof magic] = {};
    std::ifstream file{path, std::ios::binary};
    return file.read(first, sizeof first) && std::memcmp(first, magic, sizeof magic) == 0;
}

dump read_dump(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    const std::vector<char> bytes{std::istreambuf_iterator<char>{file}, {}};
    std::size_t at = 0;
    const auto head = take<dump_head>(bytes, at);
    dump d;
    d.what.process = static_cast<int>(head.process);
    d.what.began = {head.began_stamp, head.began_ns};
    d.what.now = {head.now_stamp, head.now_ns};
    for (;;) {
        const auto r = take<dump_ring>(bytes, at);
        if (r.processor == ~std::uint64_t{0}) break;
        const std::uint64_t kept = std::min(r.count, r.capacity);
        if (kept > (bytes.size() - at) / sizeof(raw_record) || r.capacity == 0 ||
            (r.capacity & (r.capacity - 1)) != 0)
            throw std::runtime_error{"the file is cut off"};
        ring one{static_cast<std::uint32_t>(r.processor),
                 std::string{r.cluster, strnlen(r.cluster, 16)},
                 0,
                 {}};
        const char* const slots = bytes.data() + at;
        at += kept * sizeof(raw_record);
        const auto after = take<std::uint64_t>(bytes, at);
        const std::uint64_t whole = after + 1 > r.capacity ? after + 1 - r.capacity : 0;
        one.lost = whole;
        for (std::uint64_t i = whole; i < r.count; ++i) {
            raw_record x;
            assert((i & (r.capacity - 1)) < kept && "a record lies behind its ring");
            std::memcpy(&x, slots + (i & (r.capacity - 1)) * sizeof x, sizeof x);
            one.raw.push_back(x);
        }
        d.what.rings.push_back(std::move(one));
    }
    std::istringstream maps{std::string{bytes.data() + at, bytes.size() - at}};
    d.of = std::make_unique<dumped_process>(d.what.process, maps);
    return d;
}

}  // namespace tool::tracing
