// SPDX-License-Identifier: MIT
#include "layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "notes.hpp"
#include "printable.hpp"

namespace tool::inspect {

namespace {

// The head of the constant, the only part that never changes.
struct root_head {
    char magic[8];
    std::uint32_t version, bytes;
    char library[16];
    std::uint32_t value_count, place_count;
};
struct root_place {
    char name[24];
    address at;
};
struct root_value {
    char name[28];
    std::uint32_t value;
};
constexpr std::uint32_t version_known = 2, places_most = 8, bytes_most = 1 << 20;
// Descriptions to look at: a program and a library have one each.
constexpr std::size_t roots_most = 64;

template <std::size_t n>
std::string text(const char (&field)[n]) {
    return std::string(field, strnlen(field, n));
}

// Where the constant is, according to the notes of the program or library whose header is at
// `base`.
std::vector<address> roots_of(const memory& m, address base, std::uint32_t type) {
    std::vector<address> found;
    for (const elf_note& n : notes_of(m, base))
        if (n.name == "libums" && n.type == type && n.descriptor.size() == sizeof(address))
            found.push_back(n.at + at_offset<address>(n.descriptor, 0));
    return found;
}

}  // namespace

layout::layout(const process& of) {
    std::size_t looks = 0;
    for (const mapping& m : of.mappings()) {
        if (m.offset != 0 || m.path.empty() || m.path[0] != '/') continue;
        for (const address at : roots_of(of, m.begin, 1)) {
            if (++looks > roots_most) break;
            layout candidate{*this};
            if (!candidate.read_from(of, at, "umsroot")) {
                refusal_ = candidate.refusal_;
                continue;
            }
            const address slabs = of.get<address>(candidate.place("slabs")).value_or(0);
            const bool is_used = slabs != 0;
            // A program and a library may both contain one: take the one whose runtime runs.
            if (!values_.empty() && !is_used) continue;
            *this = candidate;
            // The UMS API's constant, of the same program or library. One with another layout
            // counts as none.
            for (const address workers : roots_of(of, m.begin, 2))
                if (++looks <= roots_most && !read_from(of, workers, "umswork")) refusal_.clear();
            if (is_used) return;
        }
    }
    if (!values_.empty()) return;
    if (refusal_.empty()) refusal_ = "there is no libums in it";
    if (const std::string w = of.warning(); !w.empty()) refusal_ += ": " + w;
    throw std::runtime_error{of.title() + ": " + refusal_};
}

bool layout::read_from(const process& of, address at, const char* magic) {
    const auto head = of.get<root_head>(at);
    if (!head || std::memcmp(head->magic, magic, 8) != 0) {
        refusal_ = "the description of its libums cannot be read";
        return false;
    }
    library_ = printable(text(head->library));
    if (head->version != version_known) {
        refusal_ = fmt::format(
            "its libums has layout {}, and this command knows layout {}: use the "
            "command that came with that libums",
            head->version, version_known);
        return false;
    }
    std::vector<char> all(std::min(head->bytes, bytes_most));
    if (!of.read(at, all.data(), all.size())) {
        refusal_ = "the description of its libums is cut off";
        return false;
    }
    std::size_t offset = sizeof(root_head);
    for (std::uint32_t i = 0; i < std::min(head->place_count, places_most); ++i) {
        const auto p = at_offset<root_place>(all, offset + i * sizeof(root_place));
        places_.emplace(text(p.name), p.at);
    }
    offset += places_most * sizeof(root_place);
    for (std::uint32_t i = 0; i < head->value_count && offset < all.size(); ++i) {
        const auto v = at_offset<root_value>(all, offset);
        values_.emplace(text(v.name), v.value);
        offset += sizeof(root_value);
    }
    return true;
}

std::size_t layout::value(std::string_view name) const {
    const auto found = values_.find(std::string{name});
    if (found == values_.end())
        throw std::runtime_error{fmt::format(
            "libums {} in that process does not tell of {}: use the command that came with it",
            library_, name)};
    return found->second;
}

address layout::place(std::string_view name) const {
    const auto found = places_.find(std::string{name});
    if (found == places_.end())
        throw std::runtime_error{fmt::format(
            "libums {} in that process does not tell of {}: use the command that came with it",
            library_, name)};
    return found->second;
}

}  // namespace tool::inspect
