// SPDX-License-Identifier: MIT
#include "dump_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "../inspect/regular_file.hpp"

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
            m.path = inspect::path_in_maps(std::move(m.path));
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
    [[nodiscard]] std::uint64_t bytes() const override { return 0; }

private:
    // What the program has not changed can still be read from its files.
    [[nodiscard]] bool read_from_file(const inspect::piece& p) const {
        for (const inspect::mapping& m : mappings_) {
            if (p.at < m.begin || p.at >= m.end || p.bytes > m.end - p.at || file_of(m).empty())
                continue;
            return inspect::regular_file{m.path}.read(m.offset + (p.at - m.begin), p.into,
                                                      p.bytes) == p.bytes;
        }
        return false;
    }

    const int pid_;
    std::vector<inspect::mapping> mappings_;
};

// The file, from its beginning on. Throws if it is cut off.
class parts {
public:
    explicit parts(const std::string& path) : file_{path} {}
    template <class T>
    T take() {
        T value;
        take(&value, sizeof value);
        return value;
    }
    void take(void* into, std::size_t bytes) {
        if (file_.read(at_, into, bytes) != bytes) throw std::runtime_error{"the file is cut off"};
        at_ += bytes;
    }
    [[nodiscard]] std::uint64_t left() const { return file_.size() - at_; }

private:
    inspect::regular_file file_;
    std::uint64_t at_ = 0;
};

// Of processors; each has one.
constexpr std::size_t rings_most = 10'000;
// /proc/PID/maps is some hundred kilobytes.
constexpr std::uint64_t maps_most = 64 << 20;

ring ring_of(const dump_ring& r, parts& file) {
    const std::uint64_t kept = std::min(r.count, r.capacity);
    if (kept > file.left() / sizeof(raw_record) || !std::has_single_bit(r.capacity))
        throw std::runtime_error{"the file is cut off"};
    ring one{static_cast<std::uint32_t>(r.processor),
             std::string{r.cluster, strnlen(r.cluster, 16)},
             0,
             {}};
    one.raw.resize(kept);
    file.take(one.raw.data(), kept * sizeof(raw_record));
    const auto after = file.take<std::uint64_t>();
    // The oldest lies where the next one would go. Those that were written meanwhile may be torn.
    std::rotate(one.raw.begin(),
                one.raw.begin() +
                    static_cast<std::ptrdiff_t>(kept < r.capacity ? 0 : r.count & (r.capacity - 1)),
                one.raw.end());
    const std::uint64_t oldest = r.count - kept;
    one.lost = after >= r.capacity ? after - r.capacity + 1 : 0;
    const std::uint64_t torn = std::min(std::max(one.lost, oldest) - oldest, kept);
    one.raw.erase(one.raw.begin(), one.raw.begin() + static_cast<std::ptrdiff_t>(torn));
    return one;
}

}  // namespace

bool is_dump(const std::string& path) {
    char first[sizeof magic] = {};
    return inspect::regular_file{path}.get(0, first) &&
           std::memcmp(first, magic, sizeof magic) == 0;
}

dump read_dump(const std::string& path) {
    parts file{path};
    const auto head = file.take<dump_head>();
    dump d;
    d.what.process = static_cast<int>(head.process);
    d.what.began = {head.began_stamp, head.began_ns};
    d.what.now = {head.now_stamp, head.now_ns};
    for (;;) {
        const auto r = file.take<dump_ring>();
        if (r.processor == ~std::uint64_t{0}) break;
        if (d.what.rings.size() == rings_most) throw std::runtime_error{"the file is cut off"};
        d.what.rings.push_back(ring_of(r, file));
    }
    std::string maps(std::min(file.left(), maps_most), '\0');
    file.take(maps.data(), maps.size());
    std::istringstream lines{std::move(maps)};
    d.of = std::make_unique<dumped_process>(d.what.process, lines);
    return d;
}

}  // namespace tool::tracing
