// SPDX-License-Identifier: MIT
#include "symbols.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "printable.hpp"
#include "symbol_files.hpp"

namespace tool::inspect {

namespace {

using namespace std::chrono_literals;

// The largest programs there are, with 5 GB of debug information, take some seconds.
constexpr auto answer_most = 10s, all_answers_most = 60s;
constexpr std::size_t text_most = 4096, answer_bytes_most = std::size_t{1} << 20,
                      frames_known_most = 100'000, inlined_most = 200, modules_most = 100'000;
constexpr unsigned headers_most = 256;

// The address from which a program or library would lie if it were loaded at 0.
bool lowest_address(const memory& m, address base, address& low) {
    const auto head = m.get<Elf64_Ehdr>(base);
    if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return false;
    if (head->e_phentsize != sizeof(Elf64_Phdr) || head->e_phnum > headers_most) return false;
    std::vector<Elf64_Phdr> all(head->e_phnum);
    if (!m.read(base + head->e_phoff, all.data(), all.size() * sizeof all[0])) return false;
    low = ~address{0};
    for (const Elf64_Phdr& p : all)
        if (p.p_type == PT_LOAD) low = std::min(low, p.p_vaddr - p.p_offset);
    return low != ~address{0};
}

// Four times as long, it would overflow the stack of std::regex (--match).
std::string shown(std::string_view text) {
    std::string all = printable(text.substr(0, text_most));
    if (all.size() > text_most) all.resize(text_most);
    return all;
}

// --- What goes over the socket: numbers as they are, texts after their length. ---

template <class T>
void put(std::string& to, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& to, const std::string& text) {
    const std::string short_one = shown(text);
    put(to, static_cast<std::uint32_t>(short_one.size()));
    to += short_one;
}

void put(std::string& to, const std::vector<unwind_op>& ops) {
    put(to, static_cast<std::uint32_t>(ops.size()));
    for (const unwind_op& op : ops) {
        put(to, op.atom);
        put(to, op.number);
        put(to, op.number2);
    }
}

// Takes the same apart. What is cut off counts as zeros: the helper may be anybody's by now.
class answer {
public:
    explicit answer(std::string_view bytes) : left_{bytes} {}
    template <class T>
    T take() {
        T value{};
        if (left_.size() < sizeof value) left_ = {};
        if (!left_.empty()) {
            std::memcpy(&value, left_.data(), sizeof value);
            left_.remove_prefix(sizeof value);
        }
        return value;
    }
    std::string text() {
        const auto n = std::min<std::size_t>(take<std::uint32_t>(), left_.size());
        const std::string_view found = left_.substr(0, n);
        left_.remove_prefix(n);
        return shown(found);  // Nothing changes, if it is what the helper should send.
    }
    std::vector<unwind_op> ops() {
        std::vector<unwind_op> all(std::min<std::size_t>(take<std::uint32_t>(), unwind_op::most));
        for (unwind_op& op : all) {
            op.atom = take<std::uint8_t>();
            op.number = take<std::uint64_t>();
            op.number2 = take<std::uint64_t>();
        }
        return all;
    }

private:
    std::string_view left_;
};

std::string bytes_of(const std::vector<source_frame>& frames) {
    std::string all;
    const std::size_t n = std::min(frames.size(), inlined_most);
    put(all, static_cast<std::uint32_t>(n));
    // The last one is the function itself.
    for (std::size_t i = frames.size() - n; i < frames.size(); ++i) {
        put(all, frames[i].function);
        put(all, frames[i].file);
        put(all, frames[i].line);
        put(all, frames[i].is_inlined);
        put(all, frames[i].of);
    }
    return all;
}

std::vector<source_frame> frames_from(const std::string& bytes) {
    answer from{bytes};
    std::vector<source_frame> all(std::min<std::size_t>(from.take<std::uint32_t>(), inlined_most));
    for (source_frame& f : all) {
        f.function = from.text();
        f.file = from.text();
        f.line = from.take<int>();
        f.is_inlined = from.take<std::uint8_t>() != 0;
        f.of = static_cast<owner>(from.take<std::uint8_t>());
    }
    return all;
}

std::string bytes_of(const unwind_plan& p) {
    std::string all;
    put(all, p.is_there);
    put(all, p.is_signal);
    put(all, p.cfa);
    for (const unwind_rule& r : p.rules) {
        put(all, r.is);
        put(all, r.ops);
    }
    return all;
}

struct request {
    std::uint32_t what;
    address at;
};

bool send_all(int to, const std::string& bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t n = send(to, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += static_cast<std::size_t>(n);
    }
    return true;
}

// A sanitizer's own memory is beyond every bound.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#elif defined(__has_feature)
constexpr bool is_sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool is_sanitized = false;
#endif

void bound_memory() {
    const rlimit none{};
    setrlimit(RLIMIT_CORE, &none);
    if (is_sanitized) return;
    const auto all =
        static_cast<rlim_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
    // Private memory alone: the files are mapped, and may be larger.
    rlimit bytes{};
    getrlimit(RLIMIT_DATA, &bytes);
    bytes.rlim_cur = std::min(bytes.rlim_cur, std::max<rlim_t>(all / 4, rlim_t{1} << 30));
    setrlimit(RLIMIT_DATA, &bytes);
}

// The helper. It has nothing but the socket, and ends with whoever asks.
[[noreturn]] void serve(int socket, const std::vector<module_file>& files, int parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    // The terminal's signals are for the command, which may still want names after them.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(signal, SIG_IGN);
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
        std::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC); nowhere >= 0)
        for (const int fd : {0, 1, 2}) dup2(nowhere, fd);
    if (socket != 3) dup2(socket, 3);
    close_range(4, ~0u, 0);
    bound_memory();
    symbol_files from{files};
    std::string ready;
    put(ready, std::uint32_t{0});
    bool is_asked = send_all(3, ready);
    for (request r; is_asked && read(3, &r, sizeof r) == sizeof r;) {
        std::string what;
        if (r.what == 0)
            put(what, from.function(r.at));
        else if (r.what == 1)
            what = bytes_of(from.frames(r.at));
        else if (r.what == 2)
            what = bytes_of(from.plan(r.at));
        else if (r.what == 3)
            put(what, from.beginning_at(r.at));
        else
            what = bytes_of({from.lambda_of(r.at)});
        if (what.size() > answer_bytes_most) what.clear();
        std::string framed;
        put(framed, static_cast<std::uint32_t>(what.size()));
        is_asked = send_all(3, framed + what);
    }
    _exit(0);
}

}  // namespace

symbols::symbols(const process& of) : left_{all_answers_most} {
    std::vector<module_file> files;
    for (const mapping& m : of.mappings()) {
        address low = 0;
        const std::string file = m.offset == 0 ? of.file_of(m) : std::string{};
        if (file.empty() || modules_.size() == modules_most || !lowest_address(of, m.begin, low)) {
            // The rest of one, as the addresses of its parts say.
            if (!modules_.empty() && m.path == modules_.back().path && !m.path.empty())
                modules_.back().end = m.end;
            continue;
        }
        modules_.push_back({m.begin, m.end, m.begin - low, m.path});
        files.push_back({m.path, file, m.begin - low});
    }
    std::sort(modules_.begin(), modules_.end(),
              [](const module& a, const module& b) { return a.begin < b.begin; });
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return;
    const int parent = getpid();
    helper_ = fork();
    if (helper_ == 0) {
        try {
            serve(pair[1], files, parent);
        } catch (...) {  // Out of memory.
            _exit(1);
        }
    }
    close(pair[1]);
    socket_ = pair[0];
    // The files are open once it answers, so that the process may end.
    std::uint32_t ready = 0;
    const auto begin = clock::now();
    if (helper_ < 0 || !receive(&ready, sizeof ready, begin + answer_most)) give_up();
    left_ -= clock::now() - begin;
}

symbols::~symbols() {
    end_helper();
    if (!complaint_.empty()) fmt::print(stderr, "ums: {}\n", complaint_);
}

void symbols::end_helper() {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
    if (helper_ <= 0) return;
    // It keeps nothing that would have to be put away.
    kill(helper_, SIGKILL);
    while (waitpid(helper_, nullptr, 0) < 0 && errno == EINTR) continue;
    helper_ = -1;
}

void symbols::give_up() {
    end_helper();
    complaint_ =
        "names and calls are missing: the program's files could not be read within bounds of time "
        "and memory";
}

bool symbols::receive(void* into, std::size_t bytes, clock::time_point until) {
    for (std::size_t done = 0; done < bytes;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
        pollfd ready{socket_, POLLIN, 0};
        const int n = left.count() > 0 ? poll(&ready, 1, static_cast<int>(left.count())) : 0;
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        const ssize_t got =
            recv(socket_, static_cast<char*>(into) + done, bytes - done, MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) return false;
        done += static_cast<std::size_t>(got);
    }
    return true;
}

std::string symbols::ask(question what, address at) {
    if (socket_ < 0) return {};
    const auto begin = clock::now();
    const auto until = begin + std::min<clock::duration>(answer_most, left_);
    const request asked{static_cast<std::uint32_t>(what), at};
    std::uint32_t bytes = 0;
    std::string found;
    bool is_there = send(socket_, &asked, sizeof asked, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                        static_cast<ssize_t>(sizeof asked) &&
                    receive(&bytes, sizeof bytes, until) && bytes <= answer_bytes_most;
    if (is_there) {
        found.resize(bytes);
        is_there = receive(found.data(), bytes, until);
    }
    left_ -= clock::now() - begin;
    if (is_there) return found;
    give_up();
    return {};
}

const symbols::module* symbols::module_of(address at) const {
    auto m = std::upper_bound(modules_.begin(), modules_.end(), at,
                              [](address a, const module& one) { return a < one.begin; });
    return m == modules_.begin() || at >= (--m)->end ? nullptr : &*m;
}

std::string symbols::in_module(address at) const {
    const module* const m = module_of(at);
    if (m == nullptr) return fmt::format("0x{:x}", at);
    return fmt::format("{}+0x{:x}", shown(m->path), at - m->begin);
}

std::string symbols::function(address at) {
    std::string name = answer{ask(question::function, at)}.text();
    return name.empty() ? in_module(at) : name;
}

const std::vector<source_frame>& symbols::frames(address pc) {
    if (known_.size() >= frames_known_most) known_.clear();
    const auto [at, is_new] = known_.try_emplace(pc);
    if (!is_new) return at->second;
    at->second = frames_from(ask(question::frames, pc));
    if (at->second.empty()) at->second.emplace_back();
    if (source_frame& last = at->second.back(); last.function.empty()) {
        last.function = in_module(pc);
        if (last.function.find("/libums.so.") != std::string::npos) last.of = owner::libums;
    }
    return at->second;
}

std::string symbols::beginning_at(address at) {
    return module_of(at) != nullptr ? answer{ask(question::beginning, at)}.text() : std::string{};
}

source_frame symbols::lambda_of(address run) {
    std::vector<source_frame> found = frames_from(ask(question::lambda, run));
    return found.empty() ? source_frame{} : std::move(found.front());
}

unwind_plan symbols::plan(address pc) {
    const std::string bytes = ask(question::plan, pc);
    answer from{bytes};
    unwind_plan p;
    p.is_there = from.take<std::uint8_t>() != 0;
    p.is_signal = from.take<std::uint8_t>() != 0;
    p.cfa = from.ops();
    for (unwind_rule& r : p.rules) {
        r.is = static_cast<unwind_rule::kind>(from.take<std::uint8_t>());
        r.ops = from.ops();
    }
    return p;
}

std::size_t find_outside(std::string_view name, char c) {
    constexpr std::string_view local = "(anonymous namespace)", opening = "<({", closing = ">)}";
    int depth = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name.substr(i).starts_with(local)) {
            i += local.size() - 1;
            continue;
        }
        if (depth == 0 && name[i] == c) return i;
        depth += opening.find(name[i]) != opening.npos;
        depth -= closing.find(name[i]) != closing.npos;
    }
    return name.npos;
}

std::string start_function(std::string demangled) {
    // ums::impl::bound<F, Args...>::run_in_place(void*)
    // ums::run(): ums::impl::first_call<F>
    std::string_view all = demangled;
    const std::size_t end = all.rfind(">::run_");
    if (end == all.npos) return demangled;
    all = all.substr(0, end);
    // ums::fork_join(), ums::parallel_for(): ums::impl::forked<F>, ums::impl::loop_part<F>
    constexpr std::string_view before[] = {"ums::impl::bound<", "ums::impl::first_call<",
                                           "ums::impl::forked<", "ums::impl::loop_part<"};
    std::size_t begin = all.npos;
    for (const std::string_view one : before)
        if (const std::size_t at = all.find(one); at != all.npos)
            begin = std::min(begin, at + one.size());
    if (begin == all.npos) return demangled;
    all.remove_prefix(begin);
    // ums::spawn() and scopes: their own call, before the function.
    constexpr std::string_view call = "::call, ";
    for (const std::string_view own :
         {"ums::value_fiber<", "ums::scope::call, ", "ums::value_scope<"})
        if (all.starts_with(own))
            if (const std::size_t at = all.find(call); at != all.npos)
                all.remove_prefix(at + call.size());
    all = all.substr(0, find_outside(all, ','));      // The arguments follow.
    while (all.ends_with('&')) all.remove_suffix(1);  // fork_join() calls it where it lies.
    const auto trim = [&all] {                        // As in "bound<A<B> >".
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
