// SPDX-License-Identifier: MIT
#pragma once

// tests/inspect/image.hpp: a process made of bytes, for the command to look at.
//
// A file is a row of regions. Each has a head, and then its bytes, unless they are all zeros: an
// address space may hold terabytes of those.

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/process.hpp"

namespace image {

using tool::inspect::address;

struct head {
    address begin;
    std::uint64_t bytes;
    // zeros: none follow. file: a program or library begins here, with the head of its file.
    enum : std::uint64_t { memory, zeros, file } kind;
};

class process final : public tool::inspect::process {
public:
    // What is cut off is left out.
    explicit process(std::string_view in) {
        for (head h; in.size() >= sizeof h;) {
            std::memcpy(&h, in.data(), sizeof h);
            in.remove_prefix(sizeof h);
            region r{h.bytes, {}};
            if (h.kind != head::zeros) {
                r.bytes = std::min<std::uint64_t>(h.bytes, in.size());
                r.data = in.substr(0, r.bytes);
                in.remove_prefix(r.bytes);
                bytes_ += r.bytes;
            }
            if (r.bytes == 0 || h.begin + r.bytes < h.begin) continue;
            if (h.kind == head::file) mappings_.push_back({h.begin, h.begin + r.bytes, 0, "/file"});
            regions_.insert_or_assign(h.begin, std::move(r));
        }
    }

    using memory::read;
    void read(std::span<tool::inspect::piece> pieces) const override {
        for (tool::inspect::piece& p : pieces)
            p.is_read = read_one(p.at, static_cast<char*>(p.into), p.bytes);
    }
    [[nodiscard]] bool is_live() const override { return false; }
    [[nodiscard]] int pid() const override { return 0; }
    [[nodiscard]] std::string title() const override { return "an image"; }
    [[nodiscard]] const std::vector<tool::inspect::mapping>& mappings() const override {
        return mappings_;
    }
    [[nodiscard]] std::string file_of(const tool::inspect::mapping&) const override { return {}; }
    [[nodiscard]] std::optional<tool::inspect::thread_state> thread(int tid) const override {
        tool::inspect::thread_state t;
        t.tid = tid;
        t.state = tid % 3 == 0 ? 'R' : 'S';
        if (tid % 5 != 0) t.call = tid % 5 - 2;
        return t;
    }
    [[nodiscard]] std::int64_t now() const override { return 1'000'000'000'000; }
    [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }

private:
    struct region {
        std::uint64_t bytes;
        std::string_view data;  // Empty: zeros.
    };

    bool read_one(address at, char* into, std::size_t bytes) const {
        while (bytes != 0) {
            auto r = regions_.upper_bound(at);
            if (r == regions_.begin()) return false;
            --r;
            const std::uint64_t offset = at - r->first;
            if (offset >= r->second.bytes) return false;
            const auto n =
                static_cast<std::size_t>(std::min<std::uint64_t>(bytes, r->second.bytes - offset));
            if (r->second.data.empty())
                std::memset(into, 0, n);
            else
                std::memcpy(into, r->second.data.data() + offset, n);
            at += n;
            into += n;
            bytes -= n;
        }
        return true;
    }

    std::map<address, region> regions_;
    std::vector<tool::inspect::mapping> mappings_;
    std::uint64_t bytes_ = 0;
};

}  // namespace image
