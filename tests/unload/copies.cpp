// SPDX-License-Identifier: MIT
//
// Two copies of the library in one process, as two plug-ins have them that were linked with it, are
// started, stopped and unloaded. Whatever the order, no signal handler may lead to code that is not
// there. If the copy that was started last stops first, both can be unloaded, and the handlers are
// those from before.
//
// usage: copies LIBUMS_SO
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const std::string& what) {
    if (holds) return;
    std::fprintf(stderr, "FAILED: %s\n", what.c_str());
    ++failures;
}

class copy_of_library {
public:
    copy_of_library(const std::filesystem::path& original, const std::filesystem::path& at)
        : at_{at} {
        std::filesystem::copy_file(original, at);
        handle_ = ::dlopen(at.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle_ == nullptr) {
            std::fprintf(stderr, "%s\n", ::dlerror());
            std::exit(2);
        }
    }
    void start() {
        auto* const f =
            reinterpret_cast<int (*)(const void*)>(::dlsym(handle_, "ums_runtime_start"));
        expect(f(nullptr) == 0, "start");
    }
    void stop() {
        auto* const f = reinterpret_cast<int (*)()>(::dlsym(handle_, "ums_runtime_stop"));
        expect(f() == 0, "stop");
    }
    void unload() { ::dlclose(handle_); }
    [[nodiscard]] bool is_loaded() const {
        return ::dlopen(at_.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr;
    }

private:
    std::filesystem::path at_;
    void* handle_;
};

const void* handler_of(int number) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    return reinterpret_cast<const void*>(now.sa_handler);
}

std::vector<const void*> all_handlers() {
    std::vector<const void*> all;
    for (int n = 1; n <= SIGRTMAX; ++n) all.push_back(handler_of(n));
    return all;
}

bool is_there(const void* handler) {
    Dl_info in;
    return handler == reinterpret_cast<const void*>(SIG_DFL) ||
           handler == reinterpret_cast<const void*>(SIG_IGN) || ::dladdr(handler, &in) != 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    std::string made = (std::filesystem::temp_directory_path() / "ums-copies-XXXXXX").string();
    if (::mkdtemp(made.data()) == nullptr) return 2;
    const std::filesystem::path folder = made;
    const auto before = all_handlers();

    copy_of_library a{argv[1], folder / "a.so"}, b{argv[1], folder / "b.so"};
    a.start();
    b.start();
    b.stop();
    a.stop();
    expect(all_handlers() == before,
           "the last that starts stops first: the handlers are as before");
    a.unload();
    b.unload();
    expect(!a.is_loaded() && !b.is_loaded(), "nothing is left, and they can be unloaded");

    copy_of_library c{argv[1], folder / "c.so"}, d{argv[1], folder / "d.so"};
    for (int round = 0; round < 2; ++round) {
        c.start();
        d.start();
        c.stop();
        d.stop();
    }
    c.unload();
    d.unload();
    for (int n = 1; n <= SIGRTMAX; ++n)
        expect(is_there(handler_of(n)),
               "signal " + std::to_string(n) + " has a handler in code that was unloaded");
    std::filesystem::remove_all(folder);
    if (failures == 0) std::puts("ok");
    return failures != 0;
}
