// SPDX-License-Identifier: MIT

// The fields are those of https://github.com/google/pprof/blob/main/proto/profile.proto.

#include <zlib.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "profile_data.hpp"

namespace tool::profiling {

namespace {

// One message of protocol buffers.
class message {
public:
    void number(unsigned field, std::uint64_t value) {
        if (value == 0) return;  // A missing field means 0.
        varint(field << 3);
        varint(value);
    }
    void bytes(unsigned field, std::string_view value) {
        varint(field << 3 | 2);
        varint(value.size());
        text_ += value;
    }
    void add(unsigned field, const message& value) { bytes(field, value.text_); }
    // Writes several numbers into one field.
    void packed(unsigned field, const std::vector<std::uint64_t>& values) {
        message all;
        for (const std::uint64_t v : values) all.varint(v);
        add(field, all);
    }
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
        text_ += static_cast<char>(value);
    }
    std::string text_;
};

class strings {
public:
    std::uint64_t of(const std::string& text) {
        const auto [at, is_new] = index_.try_emplace(text, all.size());
        if (is_new) all.push_back(text);
        return at->second;
    }
    std::vector<std::string> all{""};

private:
    std::unordered_map<std::string, std::uint64_t> index_{{"", 0}};
};

std::string compressed(const std::string& text) {
    z_stream z{};
    constexpr int gzip = 16;
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + gzip, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::runtime_error{"zlib cannot compress"};
    // Piece by piece: zlib counts in 32 bits.
    constexpr std::size_t piece = std::size_t{1} << 24;
    std::string out;
    int done = Z_OK;
    for (std::size_t at = 0; done == Z_OK;) {
        if (z.avail_in == 0 && at < text.size()) {
            z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + at));
            z.avail_in = static_cast<uInt>(std::min(piece, text.size() - at));
            at += z.avail_in;
        }
        const std::size_t before = out.size();
        out.resize(before + piece);
        z.next_out = reinterpret_cast<Bytef*>(out.data() + before);
        z.avail_out = static_cast<uInt>(piece);
        done = deflate(&z, at == text.size() ? Z_FINISH : Z_NO_FLUSH);
        out.resize(out.size() - z.avail_out);
    }
    deflateEnd(&z);
    if (done != Z_STREAM_END) throw std::runtime_error{"zlib cannot compress"};
    return out;
}

}  // namespace

std::string to_pprof(const profile_data& p) {
    message all;
    strings names;
    const auto value_type = [&](const char* what, const char* unit) {
        message m;
        m.number(1, names.of(what));
        m.number(2, names.of(unit));
        return m;
    };
    all.add(1, value_type("cpu", "nanoseconds"));
    all.add(1, value_type("off_cpu", "nanoseconds"));
    all.add(1, value_type("samples", "count"));

    std::map<frame, std::uint64_t> locations;
    std::map<std::pair<std::string, std::string>, std::uint64_t> functions;
    message tables;  // Holds locations and functions, in the order in which they are first met.
    const auto location_of = [&](const frame& f) {
        const auto [at, is_new] = locations.try_emplace(f, locations.size() + 1);
        if (!is_new) return at->second;
        const auto [function, is_new_function] =
            functions.try_emplace({f.function, f.file}, functions.size() + 1);
        if (is_new_function) {
            message m;
            m.number(1, function->second);
            m.number(2, names.of(f.function));
            m.number(3, names.of(f.function));
            m.number(4, names.of(f.file));
            tables.add(5, m);
        }
        message line, m;
        line.number(1, function->second);
        line.number(2, static_cast<std::uint64_t>(f.line));
        m.number(1, at->second);
        m.add(4, line);
        tables.add(4, m);
        return at->second;
    };
    for (const sample& s : p.samples) {
        message m;
        std::vector<std::uint64_t> ids;
        for (auto f = s.frames.rbegin(); f != s.frames.rend(); ++f) ids.push_back(location_of(*f));
        m.packed(1, ids);
        const auto ns = static_cast<std::uint64_t>(s.ns);
        m.packed(2, {s.is_on_cpu ? ns : 0, s.is_on_cpu ? 0 : ns, s.count});
        if (!s.wait.empty()) {
            message label;
            label.number(1, names.of("wait"));
            label.number(2, names.of(s.wait));
            m.add(3, label);
        }
        all.add(2, m);
    }
    const message period = value_type("cpu", "nanoseconds");
    const std::uint64_t shown_first = names.of(p.total_ns(true) != 0 ? "cpu" : "off_cpu");
    const std::uint64_t title = names.of(p.title);
    std::string text = all.text() + tables.text();
    message rest;
    for (const std::string& one : names.all) rest.bytes(6, one);
    rest.number(9, static_cast<std::uint64_t>(p.began_ns));
    rest.number(10, static_cast<std::uint64_t>(p.duration_ns));
    rest.add(11, period);
    rest.number(12, static_cast<std::uint64_t>(p.period_ns));
    rest.number(13, title);
    rest.number(14, shown_first);
    return compressed(text + rest.text());
}

}  // namespace tool::profiling
