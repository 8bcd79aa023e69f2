// SPDX-License-Identifier: MIT
//
// A stack and its unwind tables made of bytes, as `ums stack` follows it.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "image.hpp"
#include "inspect/unwinder.hpp"

namespace {

std::string_view tables;

template <class T>
T take() {
    T value{};
    const std::size_t n = std::min(sizeof value, tables.size());
    std::memcpy(&value, tables.data(), n);
    tables.remove_prefix(n);
    return value;
}

std::vector<tool::inspect::unwind_op> operations() {
    std::vector<tool::inspect::unwind_op> all(take<std::uint8_t>() % 8);
    for (auto& op : all) op = {take<std::uint8_t>(), take<std::uint64_t>(), take<std::uint64_t>()};
    return all;
}

}  // namespace

// In place of the reader of files.
namespace tool::inspect {
symbols::symbols(const process&) {}
symbols::~symbols() = default;
unwind_plan symbols::plan(address) {
    unwind_plan p;
    p.is_there = !tables.empty();
    p.is_signal = (take<std::uint8_t>() & 1) != 0;
    p.cfa = operations();
    for (unwind_rule& r : p.rules) {
        r.is = static_cast<unwind_rule::kind>(take<std::uint8_t>() % 3);
        r.ops = operations();
    }
    return p;
}
}  // namespace tool::inspect

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    using namespace tool::inspect;
    constexpr address stack = 0x7000;
    const std::string_view all{reinterpret_cast<const char*>(data), size};
    std::string memory(sizeof(image::head), '\0');
    const std::string_view part = all.substr(0, std::min<std::size_t>(size / 2, 4096));
    const image::head h{stack, part.size(), image::head::memory};
    std::memcpy(memory.data(), &h, sizeof h);
    memory += part;
    tables = all.substr(part.size());
    const image::process of{memory};
    symbols from{of};
    registers r;
    r.set(registers::sp, stack);
    r.set(registers::bp, stack + 64);
    r.set(registers::ip, 0x1000);
    const call_stack found = unwinder{of, from}.unwind(r, {stack, part});
    if (found.frames.empty() || found.frames.size() > 256) std::abort();
    return 0;
}
