// SPDX-License-Identifier: MIT
//
// hostile FOLDER: a program that means ill to whoever looks at it. It says "8 fibers" when it is
// ready, and ends with its standard input.
//
// A thread of it is in vfork(), and its child waits for ever. It has mapped a library with the end
// of a line in its path; where that path leads, as /proc/PID/maps writes it, is a pipe. A fiber is
// in a function whose name of 418 characters stands for a text of gigabytes. Others wait for a
// pipe and a socket whose names drive a terminal. One waits for a shared_mutex that is being read.
//
// hostile FOLDER slow: a page of it is supplied when another thread likes, which is never, and
// everything of libums seems to lie there.
#include <elf.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <ums/ums.hpp>
#include <vector>

namespace {

std::atomic<int> begun{0};

}  // namespace

// The function with 2^40 letters, as a compiler would call it.
[[gnu::noinline]] void parks_under_a_long_name() asm(
    "_Z1f1AIiiES_IS0_S0_ES_IS1_S1_ES_IS2_S2_ES_IS3_S3_ES_IS4_S4_ES_IS5_S5_ES_IS6_S6_ES_IS7_S7_E"
    "S_IS8_S8_ES_IS9_S9_ES_ISA_SA_ES_ISB_SB_ES_ISC_SC_ES_ISD_SD_ES_ISE_SE_ES_ISF_SF_ES_ISG_SG_E"
    "S_ISH_SH_ES_ISI_SI_ES_ISJ_SJ_ES_ISK_SK_ES_ISL_SL_ES_ISM_SM_ES_ISN_SN_ES_ISO_SO_ES_ISP_SP_E"
    "S_ISQ_SQ_ES_ISR_SR_ES_ISS_SS_ES_IST_ST_ES_ISU_SU_ES_ISV_SV_ES_ISW_SW_ES_ISX_SX_ES_ISY_SY_E"
    "S_ISZ_SZ_ES_IS10_S10_ES_IS11_S11_ES_IS12_S12_ES_IS13_S13_E");
[[gnu::noinline]] void parks_under_a_long_name() {
    ++begun;
    ums::this_fiber::park();
    ++begun;  // So it is no tail call.
}

namespace {

// A library that is there, and a pipe where its path seems to lead.
void map_a_library(const std::string& folder) {
    const std::string real = folder + "/lib\nrary.so";
    std::ofstream{real, std::ios::binary}
        << std::ifstream{"/proc/self/exe", std::ios::binary}.rdbuf();
    ::mkfifo((folder + "/lib\\012rary.so").c_str(), 0600);
    const int fd = ::open(real.c_str(), O_RDONLY);
    if (::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED) std::abort();
    ::close(fd);
}

int odd_pipe(const std::string& folder) {
    const std::string path = folder + "/\x1b[31mpipe\nfiber 77: parked";
    ::mkfifo(path.c_str(), 0600);
    return ::open(path.c_str(), O_RDWR | O_NONBLOCK);
}

int odd_socket() {
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    sockaddr_un name{AF_UNIX, {}};
    std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "ums\x1b[31msocket-%d", ::getpid());
    ::bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name);
    return fd;
}

// vfork() returns when its child has begun another program, so the child is one that has not. It
// has its parent's memory, and tells that its parent waits.
std::atomic<bool> is_in_vfork{false};
void stay_in_vfork() {
    if (::vfork() != 0) return;
    is_in_vfork = true;
    for (;;) ::syscall(SYS_pause);
}

// Where every read of its memory is made to wait. Returns false if this system forbids it.
bool supply_nothing() {
    const long fd = ::syscall(SYS_userfaultfd, O_CLOEXEC);
    uffdio_api api{UFFD_API, 0, 0};
    if (fd < 0 || ::ioctl(static_cast<int>(fd), UFFDIO_API, &api) != 0) return false;
    void* const page =
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uffdio_register all{};
    all.range = {reinterpret_cast<std::uintptr_t>(page), 4096};
    all.mode = UFFDIO_REGISTER_MODE_MISSING;
    if (::ioctl(static_cast<int>(fd), UFFDIO_REGISTER, &all) != 0) return false;
    // A fiber that seems to lie there is enough: libums itself tells where its first slab is.
    std::printf("slow %p\n", page);
    std::fflush(stdout);
    return true;
}

ums::fiber waits(const char* name, auto what) {
    return ums::fiber{ums::fiber_options{.name = name}, [what] {
                          ++begun;
                          what();
                      }};
}

}  // namespace

int main(int, char** words) {
    const std::string folder = words[1];
    if (words[2] != nullptr && !supply_nothing()) {
        std::puts("skip");
        return 0;
    }
    if (words[2] == nullptr) {
        map_a_library(folder);
        std::thread{stay_in_vfork}.detach();
        while (!is_in_vfork) std::this_thread::yield();
    }
    const int pipe = odd_pipe(folder), socket = odd_socket();
    ums::run({.processors = 1}, [&] {
        ums::shared_mutex shared;
        shared.lock_shared();
        std::vector<ums::fiber> all;
        all.push_back(ums::fiber{{.name = "long"}, [] { parks_under_a_long_name(); }});
        all.push_back(waits("pipe", [pipe] {
            char byte;
            (void)ums::io::read(pipe, &byte, 1);
        }));
        all.push_back(waits("socket", [socket] { (void)ums::io::wait_readable(socket); }));
        all.push_back(waits("writer", [&shared] { shared.lock(); }));
        ums::latch latch{1};
        ums::channel<int> empty{1};
        all.push_back(waits("latch\x1b[31m\nfiber 78: parked\xff", [&latch] { latch.wait(); }));
        all.push_back(waits("receive", [&empty] { (void)empty.receive(); }));
        all.push_back(waits("sleep", [] { ums::this_fiber::sleep_for(std::chrono::hours{1}); }));
        while (begun != 7) ums::this_fiber::yield();
        std::puts("8 fibers");
        std::fflush(stdout);
        char line[8];
        (void)!::read(0, line, sizeof line);
        std::quick_exit(0);
    });
}
