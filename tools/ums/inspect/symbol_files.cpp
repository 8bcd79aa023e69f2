// SPDX-License-Identifier: MIT
#include "symbol_files.hpp"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "regular_file.hpp"

namespace tool::inspect {

namespace {

// A name of 200 characters can stand for a text of gigabytes. Nothing tells before, and the library
// cannot be told when to end, so a timer of this process's CPU time ends it. It is left in the
// middle, perhaps in the allocator: at worst that ends the helper, and names end with it.
constexpr suseconds_t demangling_us = 100'000;
constexpr int overruns_most = 3;
sigjmp_buf overrun;
volatile std::sig_atomic_t is_demangling = 0;

void give_up(int) {
    if (std::exchange(is_demangling, 0) != 0) siglongjmp(overrun, 1);
}

void set_timer(suseconds_t us) {
    const itimerval after{{}, {0, us}};
    setitimer(ITIMER_PROF, &after, nullptr);
}

std::string demangled(const char* name) {
    static volatile int overruns = 0;
    if (std::strncmp(name, "_Z", 2) != 0 || overruns == overruns_most) return name;
    if (sigsetjmp(overrun, 1) != 0) {
        overruns = overruns + 1;
        return name;
    }
    int status = 0;
    is_demangling = 1;
    set_timer(demangling_us);
    char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    is_demangling = 0;
    set_timer(0);
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

// By the name that the linker knows, which begins with the namespaces.
owner owner_by_name(std::string_view linked) {
    if (!linked.starts_with("_Z"))
        return linked.starts_with("ums_") ? owner::libums : owner::program;
    // Z: local to a function; N: in a namespace; K: const.
    linked.remove_prefix(std::min(linked.find_first_not_of("ZNK", 2), linked.size()));
    if (linked.starts_with("3ums")) return owner::libums;
    return linked.starts_with('S') ? owner::standard_library : owner::program;
}

// By the header that it is written in.
owner owner_by_file(std::string_view file) {
    if (file.find("include/ums/") != file.npos) return owner::libums;
    return file.find("/include/c++/") != file.npos ? owner::standard_library : owner::program;
}

// What it is an instance or a definition of.
Dwarf_Die declared(Dwarf_Die die) {
    constexpr int links_most = 4;
    Dwarf_Attribute link;
    Dwarf_Die to;
    for (int i = 0; i < links_most; ++i) {
        if (dwarf_attr(&die, DW_AT_abstract_origin, &link) == nullptr &&
            dwarf_attr(&die, DW_AT_specification, &link) == nullptr)
            break;
        if (dwarf_formref_die(&link, &to) == nullptr) break;
        die = to;
    }
    return die;
}

// Whether the type, or what it refers to, is a lambda's: a class without a name, or with the one
// that gcc gives it.
bool find_lambda(Dwarf_Die type, Dwarf_Die& found) {
    Dwarf_Attribute link;
    if (dwarf_tag(&type) == DW_TAG_reference_type &&
        dwarf_formref_die(dwarf_attr(&type, DW_AT_type, &link), &type) == nullptr)
        return false;
    const int tag = dwarf_tag(&type);
    const char* const name = dwarf_diename(&type);
    const bool is_unnamed = name == nullptr || std::string_view{name}.starts_with("<lambda");
    found = type;
    return is_unnamed && (tag == DW_TAG_structure_type || tag == DW_TAG_class_type);
}

// The first lambda among the types that a template was made with.
bool find_lambda_argument(Dwarf_Die* of, Dwarf_Die& found) {
    Dwarf_Die child, type;
    if (dwarf_child(of, &child) != 0) return false;
    do {
        const int tag = dwarf_tag(&child);
        if (tag == DW_TAG_GNU_template_parameter_pack && find_lambda_argument(&child, found))
            return true;
        Dwarf_Attribute link;
        if (tag == DW_TAG_template_type_parameter &&
            dwarf_formref_die(dwarf_attr(&child, DW_AT_type, &link), &type) != nullptr &&
            find_lambda(type, found))
            return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

// The name of what is at an address, as the linker knows it; null: there is none. And whether a
// function begins there.
const char* linked_name(Dwfl_Module* in, address at, bool* begins = nullptr) {
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char* const name =
        dwfl_module_addrinfo(in, at, &offset, &symbol, nullptr, nullptr, nullptr);
    if (begins != nullptr)
        *begins = name != nullptr && offset == 0 && GELF_ST_TYPE(symbol.st_info) == STT_FUNC;
    return name;
}

}  // namespace

symbol_files::symbol_files(const std::vector<module_file>& files) {
    struct sigaction action {};
    action.sa_handler = give_up;
    sigaction(SIGPROF, &action, nullptr);
    dwfl_ = dwfl_begin(&callbacks);
    if (dwfl_ == nullptr) return;  // No memory.
    dwfl_report_begin(dwfl_);
    for (const module_file& m : files) {
        const int fd = regular_file{m.file}.release();
        if (fd < 0) continue;
        // Takes the descriptor, but not if it fails.
        if (dwfl_report_elf(dwfl_, m.path.c_str(), m.file.c_str(), fd, m.bias, true) == nullptr)
            close(fd);
    }
    dwfl_report_end(dwfl_, nullptr, nullptr);
}

symbol_files::~symbol_files() { dwfl_end(dwfl_); }

std::string symbol_files::function(address at) {
    Dwfl_Module* const in = dwfl_addrmodule(dwfl_, at);
    const char* const name = in != nullptr ? linked_name(in, at) : nullptr;
    return name != nullptr ? demangled(name) : std::string{};
}

std::string symbol_files::beginning_at(address at) {
    Dwfl_Module* const in = dwfl_addrmodule(dwfl_, at);
    bool begins = false;
    const char* const name = in != nullptr ? linked_name(in, at, &begins) : nullptr;
    return begins ? demangled(name) : std::string{};
}

// The code is a member of a class template that was made with the lambda's type.
source_frame symbol_files::lambda_of(address run) {
    Dwfl_Module* const in = dwfl_addrmodule(dwfl_, run);
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = in != nullptr ? dwfl_module_addrdie(in, run, &bias) : nullptr;
    Dwarf_Die code, lambda;
    if (unit == nullptr || !find_function(unit, run - bias, code)) return {};
    source_frame at;
    Dwarf_Die member = declared(code);
    Dwarf_Die* scopes = nullptr;
    if (dwarf_getscopes_die(&member, &scopes) > 1 && find_lambda_argument(&scopes[1], lambda)) {
        const char* const file = dwarf_decl_file(&lambda);
        if (file != nullptr && dwarf_decl_line(&lambda, &at.line) == 0) at.file = file;
    }
    std::free(scopes);
    return at;
}

std::vector<source_frame> symbol_files::frames(address pc) {
    std::vector<source_frame> found;
    Dwfl_Module* const in = dwfl_addrmodule(dwfl_, pc);
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = in != nullptr ? dwfl_module_addrdie(in, pc, &bias) : nullptr;
    source_frame last;
    owner by_name = owner::program;
    if (in != nullptr) {
        if (const char* const name = linked_name(in, pc)) {
            last.function = demangled(name);
            by_name = owner_by_name(name);
        }
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
    // The headers' templates are compiled into the program, and its own functions inlined there:
    // the files tell them apart. The rest of a library has its own inside alone.
    const bool is_all_by_name =
        by_name != owner::program && owner_by_file(last.file) == owner::program;
    found.push_back(std::move(last));
    for (source_frame& f : found) f.of = is_all_by_name ? by_name : owner_by_file(f.file);
    return found;
}

namespace {

std::vector<unwind_op> copied(const Dwarf_Op* ops, std::size_t count) {
    std::vector<unwind_op> all;
    for (std::size_t i = 0; i < std::min(count, unwind_op::most); ++i)
        all.push_back({ops[i].atom, ops[i].number, ops[i].number2});
    return all;
}

}  // namespace

unwind_plan symbol_files::plan(address pc) {
    unwind_plan p;
    Dwfl_Module* const in = dwfl_addrmodule(dwfl_, pc);
    if (in == nullptr) return p;
    Dwarf_Frame* frame = nullptr;
    Dwarf_Addr bias = 0;
    for (const auto tables : {&dwfl_module_eh_cfi, &dwfl_module_dwarf_cfi}) {
        Dwarf_CFI* const of = tables(in, &bias);
        if (of == nullptr || dwarf_cfi_addrframe(of, pc - bias, &frame) != 0) continue;
        Dwarf_Op* cfa = nullptr;
        std::size_t count = 0;
        p.is_there = dwarf_frame_cfa(frame, &cfa, &count) == 0 && count <= unwind_op::most;
        if (p.is_there) {
            p.cfa = copied(cfa, count);
            break;
        }
        std::free(frame);
    }
    if (!p.is_there) return p;
    dwarf_frame_info(frame, nullptr, nullptr, &p.is_signal);
    for (unsigned i = 0; i < registers::count; ++i) {
        unwind_rule& r = p.rules[i];
        Dwarf_Op storage[3];
        Dwarf_Op* ops = nullptr;
        std::size_t count = 0;
        if (dwarf_frame_register(frame, static_cast<int>(i), storage, &ops, &count) != 0 ||
            count > unwind_op::most)
            r.is = unwind_rule::undefined;
        else if (count != 0)
            r = {unwind_rule::expression, copied(ops, count)};
        else
            r.is = ops == storage ? unwind_rule::undefined : unwind_rule::same;
    }
    std::free(frame);
    return p;
}

}  // namespace tool::inspect
