// SPDX-License-Identifier: MIT
#include "symbols.hpp"

#include <cxxabi.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace tool::inspect {

namespace {

std::string demangled(const char* name) {
    int status = 0;
    char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    std::string result = status == 0 && text != nullptr ? text : name;
    std::free(text);
    return result;
}

const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = nullptr,
};

// The address from which a program or library would lie if it were loaded at 0.
bool lowest_address(const memory& m, address base, address& low) {
    const auto head = m.get<Elf64_Ehdr>(base);
    if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return false;
    if (head->e_phentsize != sizeof(Elf64_Phdr)) return false;
    std::vector<Elf64_Phdr> all(head->e_phnum);
    if (!m.read(base + head->e_phoff, all.data(), all.size() * sizeof all[0])) return false;
    low = ~address{0};
    for (const Elf64_Phdr& p : all)
        if (p.p_type == PT_LOAD) low = std::min(low, p.p_vaddr - p.p_offset);
    return low != ~address{0};
}

// The name that a programmer gave it, with its class and namespace as far as debug information
// tells.
std::string name_of(Dwarf_Die& die) {
    Dwarf_Attribute attribute;
    for (const unsigned which : {unsigned{DW_AT_linkage_name}, unsigned{DW_AT_MIPS_linkage_name}})
        if (dwarf_attr_integrate(&die, which, &attribute) != nullptr)
            if (const char* name = dwarf_formstring(&attribute)) return demangled(name);
    const char* name = dwarf_diename(&die);
    return name != nullptr ? name : "";
}

bool has_address(Dwarf_Die& die, Dwarf_Addr at) { return dwarf_haspc(&die, at) > 0; }

// The chain of inlined functions at `at` below `die`, outermost first.
void collect_inlined(Dwarf_Die* die, Dwarf_Addr at, std::vector<Dwarf_Die>& chain) {
    Dwarf_Die child;
    if (dwarf_child(die, &child) != 0) return;
    do {
        const int tag = dwarf_tag(&child);
        const bool is_inlined = tag == DW_TAG_inlined_subroutine;
        const bool is_block =
            tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
        if ((!is_inlined && !is_block) || !has_address(child, at)) continue;
        if (is_inlined) chain.push_back(child);
        return collect_inlined(&child, at, chain);
    } while (dwarf_siblingof(&child, &child) == 0);
}

// The function of a compilation unit that holds `at`.
bool find_function(Dwarf_Die* in, Dwarf_Addr at, Dwarf_Die& found) {
    Dwarf_Die child;
    if (dwarf_child(in, &child) != 0) return false;
    do {
        const int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram && has_address(child, at)) {
            found = child;
            return true;
        }
        const bool may_hold =
            tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type;
        if (may_hold && find_function(&child, at, found)) return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

}  // namespace

symbols::symbols(const process& of) {
    dwfl_ = dwfl_begin(&callbacks);
    dwfl_report_begin(dwfl_);
    for (const mapping& m : of.mappings()) {
        const std::string file = of.file_of(m);
        address low = 0;
        if (m.offset != 0 || file.empty() || !lowest_address(of, m.begin, low)) continue;
        // A file that cannot be opened, or is not an ELF file, gives no names.
        dwfl_report_elf(dwfl_, m.path.c_str(), file.c_str(), -1, m.begin - low, true);
    }
    dwfl_report_end(dwfl_, nullptr, nullptr);
}

symbols::~symbols() { dwfl_end(dwfl_); }

std::string symbols::function(address at) {
    Dwfl_Module* const in = dwfl_addrmodule(dwfl_, at);
    if (in == nullptr) return fmt::format("0x{:x}", at);
    GElf_Off offset = 0;
    GElf_Sym symbol;
    if (const char* name =
            dwfl_module_addrinfo(in, at, &offset, &symbol, nullptr, nullptr, nullptr))
        return demangled(name);
    Dwarf_Addr begin = 0;
    const char* path =
        dwfl_module_info(in, nullptr, &begin, nullptr, nullptr, nullptr, nullptr, nullptr);
    return fmt::format("{}+0x{:x}", path != nullptr ? path : "?", at - begin);
}

const std::vector<source_frame>& symbols::frames(address pc) {
    const auto [at, is_new] = known_.try_emplace(pc);
    if (is_new) at->second = look_up(pc);
    return at->second;
}

std::vector<source_frame> symbols::look_up(address pc) {
    std::vector<source_frame> found;
    Dwfl_Module* const in = dwfl_addrmodule(dwfl_, pc);
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = in != nullptr ? dwfl_module_addrdie(in, pc, &bias) : nullptr;
    source_frame last;
    last.function = function(pc);
    if (in != nullptr) {
        if (Dwfl_Line* line = dwfl_module_getsrc(in, pc)) {
            int number = 0;
            if (const char* file =
                    dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr)) {
                last.file = file;
                last.line = number;
            }
        }
    }
    Dwarf_Die whole;
    if (unit != nullptr && find_function(unit, pc - bias, whole)) {
        std::vector<Dwarf_Die> chain;
        collect_inlined(&whole, pc - bias, chain);
        Dwarf_Files* files = nullptr;
        std::size_t count = 0;
        dwarf_getsrcfiles(unit, &files, &count);
        std::string file = last.file;
        int line = last.line;
        for (auto die = chain.rbegin(); die != chain.rend(); ++die) {
            found.push_back({name_of(*die), file, line, true});
            Dwarf_Attribute attribute;
            Dwarf_Word value = 0;
            if (dwarf_formudata(dwarf_attr(&*die, DW_AT_call_line, &attribute), &value) == 0)
                line = static_cast<int>(value);
            if (dwarf_formudata(dwarf_attr(&*die, DW_AT_call_file, &attribute), &value) == 0 &&
                files != nullptr)
                if (const char* name = dwarf_filesrc(files, value, nullptr, nullptr)) file = name;
        }
        last.file = file;
        last.line = line;
        if (std::string name = name_of(whole); !name.empty()) last.function = std::move(name);
    }
    found.push_back(std::move(last));
    return found;
}

symbols::tables symbols::unwind_tables(address at) {
    tables t;
    Dwfl_Module* const in = dwfl_addrmodule(dwfl_, at);
    if (in == nullptr) return t;
    t.of[0] = dwfl_module_eh_cfi(in, &t.bias[0]);
    t.of[1] = dwfl_module_dwarf_cfi(in, &t.bias[1]);
    return t;
}

std::string start_function(std::string demangled) {
    // ums::impl::bound<F, Args...>::run_in_place(void*)
    // ums::run(): ums::impl::first_call<F>
    std::string_view all = demangled;
    const std::size_t end = all.rfind(">::run_");
    if (end == all.npos) return demangled;
    all = all.substr(0, end);
    constexpr std::string_view before[] = {"ums::impl::bound<", "ums::impl::first_call<"};
    std::size_t begin = all.npos;
    for (const std::string_view one : before)
        if (const std::size_t at = all.find(one); at != all.npos)
            begin = std::min(begin, at + one.size());
    if (begin == all.npos) return demangled;
    all.remove_prefix(begin);
    // ums::spawn() and scopes: their own call, before the function.
    constexpr std::string_view call = "::call, ";
    if (all.starts_with("ums::value_fiber<") || all.starts_with("ums::scope::call, "))
        if (const std::size_t at = all.find(call); at != all.npos)
            all.remove_prefix(at + call.size());
    const auto trim = [&all] {  // As in "bound<A<B> >".
        if (all.ends_with(' ')) all.remove_suffix(1);
    };
    trim();
    constexpr std::string_view reference = "std::reference_wrapper<";
    if (all.starts_with(reference) && all.ends_with('>')) {
        all.remove_prefix(reference.size());
        all.remove_suffix(1);
        trim();
    }
    return std::string{all};
}

}  // namespace tool::inspect
